"""Glasses: a frame is seen where no face has a dark line, and then stays in front.

The bridge of the nose is bright: on 15 pictures without glasses the darkest place down its middle
measured 0.92 to 0.97 of the median, under a drawn frame 0.11 to 0.60. (Under the eyes lashes cross
the skin as well: 0.33 and more.) With a bar there for a while, all that is clearly darker than the
wearer's light around the eyes is kept. Thin metal and rimless frames are not seen, and vanish.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_lowband import blur
from livefuse.pipeline.effects.mesh_regions import (
    BROW_HULLS,
    UV_SIDE,
    draw_polygons,
    get_rows_columns,
    smooth_step,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.mesh_light import Light
    from livefuse.pipeline.effects.mesh_raster import MeshView

    Values = NDArray[np.float32]

_BRIDGE: Final = (168, 195)  # between the brows .. the middle of the nose
_SAMPLES: Final = 48
_ASIDE: Final = (-0.025, 0.0, 0.025)  # of the face's width: a bar is dark in all three columns
_DARK: Final = 0.75  # of the line's median
_SEEN: Final = 4  # looks in a row
_STEP: Final = 0.2
_KEEP_BELOW, _KEEP_OVER = 0.80, 0.14  # of the wearer's low band


class GlassesWatch:
    """Follows whether one wearer has glasses on. One face, one thread."""

    def __init__(self) -> None:
        self._count = 0
        self.share = 0.0

    def look(self, view: MeshView, luma: NDArray[np.uint8], black: float) -> None:
        """Take in a frame's luma of the view's box; `share` moves towards 0 or 1."""
        is_seen = _find_darkest(view, luma, _BRIDGE, black) < _DARK
        self._count = min(max(self._count + (1 if is_seen else -1), 0), 2 * _SEEN)
        aim = 1.0 if self._count >= _SEEN else 0.0
        self.share += min(max(aim - self.share, -_STEP), _STEP)


def keep_frames(
    view: MeshView,
    light: Light,
    planes: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    share: float,
    black: float,
) -> None:
    """Take what is dark around the wearer's eyes out of alpha, by `share`.

    `planes` are the wearer's luma and alpha (changed in place), both of the view's box.
    """
    luma, alpha = planes
    band = cv2.remap(  # type: ignore[call-overload]  # the stubs forbid the None a joint map needs
        _draw_band(), view.uv, None, cv2.INTER_LINEAR
    )
    rows = np.flatnonzero(band.max(axis=1))
    if not rows.size:
        return
    scale = view.box.height / view.box.rows
    y0, y1 = int(rows[0] * scale), min(int((rows[-1] + 1) * scale), view.box.height)
    size = (view.box.width, view.box.height)
    where = cv2.resize(band, size, interpolation=cv2.INTER_LINEAR)[y0:y1]
    low = cv2.resize(light.low[:, :, 0], size, interpolation=cv2.INTER_LINEAR)[y0:y1]
    own = luma[y0:y1].astype(np.float32) - np.float32(black)
    dark = np.clip((_KEEP_BELOW - own / np.maximum(low, 4.0)) / _KEEP_OVER, 0, 1)
    kept = blur(np.asarray(dark, np.float32), 0.8) * (np.asarray(where) * (share / 255))
    alpha[y0:y1] = np.rint(alpha[y0:y1] * (1 - np.clip(kept, 0, 1))).astype(np.uint8)


def _find_darkest(
    view: MeshView, luma: NDArray[np.uint8], line: tuple[int, int], black: float
) -> float:
    """Return the darkest place on a line over the median, 1 when it is too short."""
    start, end = view.points[line[0], :2], view.points[line[1], :2]
    along = end - start
    length = float(np.linalg.norm(along))
    if length < 4.0:  # noqa: PLR2004 - px: too few to see a bar in
        return 1.0
    across = np.array([-along[1], along[0]], np.float32) / length * view.face_px
    steps = np.linspace(0.0, 1.0, _SAMPLES, dtype=np.float32)[:, None]
    maps = np.stack([start + along * steps + across * aside for aside in _ASIDE]).astype(np.float32)
    sampled = cv2.remap(  # type: ignore[call-overload]  # as above
        luma, maps, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    profile = np.asarray(sampled, np.float32).max(axis=0) - np.float32(black)
    return float(profile.min()) / max(float(np.median(profile)), 1.0)


@cache
def _draw_band() -> NDArray[np.uint8]:
    """Return where frames lie, uint8 (512, 512): around the eyes, less the brows."""
    rows, columns = get_rows_columns()
    aside = np.abs(columns - UV_SIDE / 2)
    band = smooth_step(136, 150, rows) * (1 - smooth_step(240, 262, rows))
    band = band * (1 - smooth_step(205, 230, aside)) * (1 - draw_polygons(*BROW_HULLS))
    return np.ascontiguousarray(np.rint(blur(np.asarray(band, np.float32), 2.0) * 255), np.uint8)
