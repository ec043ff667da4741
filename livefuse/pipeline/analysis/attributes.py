"""z_att: a face's pose, expression and light, apart from whose face it is. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.face import Attributes
from livefuse.pipeline.analysis.pose import measure_width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.frame import Frame

# Pairs of vertices whose distance is read: upper and lower lip, mouth corners, upper and lower lid
# of either eye, brow and eye corner of either side, eye corners.
_ONE: Final = np.array([13, 61, 159, 386, 105, 334, 33], np.intp)
_OTHER: Final = np.array([14, 291, 145, 374, 33, 263, 263], np.intp)
# Plain skin: forehead, cheeks, beside the chin; the picture's left, its right, above, below.
_SKIN_LEFT: Final = np.array([50, 205, 101, 36, 69, 32], np.intp)
_SKIN_RIGHT: Final = np.array([280, 425, 330, 266, 299, 262], np.intp)
_SKIN_TOP: Final = np.array([151, 9, 69, 299], np.intp)
_SKIN_BOTTOM: Final = np.array([205, 425, 32, 262], np.intp)
_BLACK: Final = 16.0
_RANGE: Final = 219.0


def describe_attributes(frame: Frame, face: Face) -> Attributes | None:
    """Return the z_att of `face`, or None without a mesh. Reads some twenty px of luma."""
    mesh = face.mesh
    if mesh is None:
        return None
    spans = mesh[_ONE] - mesh[_OTHER]
    lips, corners, lids_left, lids_right, brow_left, brow_right, eyes = np.sqrt(
        np.einsum("ij,ij->i", spans, spans)
    ).tolist()
    width = max(measure_width(mesh), 1.0)
    left, right = _read_luma(frame, mesh[_SKIN_LEFT]), _read_luma(frame, mesh[_SKIN_RIGHT])
    top, bottom = _read_luma(frame, mesh[_SKIN_TOP]), _read_luma(frame, mesh[_SKIN_BOTTOM])
    return Attributes(
        *face.pose_rad,
        mouth_open=lips / width,
        smile=corners / width,
        eye_left=lids_left / width,
        eye_right=lids_right / width,
        brows=(brow_left + brow_right) / (2 * max(eyes, 1.0)),
        light=(left + right) / 2,
        light_side=_compare(right, left),
        light_down=_compare(bottom, top),
    )


def _read_luma(frame: Frame, points: NDArray[np.float32]) -> float:
    """Return the mean luma, 0..1, at (n, 2 or 3) points; those outside count at the edge."""
    x = np.clip(points[:, 0], 0, frame.width - 1).astype(np.intp)
    y = np.clip(points[:, 1], 0, frame.height - 1).astype(np.intp)
    mean = float(frame.y[y, x].mean())
    if frame.colour.full_range:
        return mean / 255.0
    return min(max((mean - _BLACK) / _RANGE, 0.0), 1.0)


def _compare(one: float, other: float) -> float:
    return (one - other) / max(one + other, 1e-3)
