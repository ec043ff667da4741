"""Where a network's crop may be painted: soft masks drawn in the crop's own space.

Drawn small (128 px or a little more): a soft edge loses nothing by it, and `Paster` enlarges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.geometry import Ellipse, Similarity, create_matrix
from livefuse.pipeline.effects.mask import SoftMask
from livefuse.pipeline.planes import Scratch
from livefuse.pipeline.templates import get_template
from livefuse.pipeline.topology import OVAL

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.pipeline.state import FrameState

_SIDE: Final = 128
_EDGE: Final = 0.06  # of the crop's side, over which it fades towards its rim
_INSET: Final = 0.92  # of the oval: the soft edge ends 2 % of its width outside the jaw
_SOFT: Final = 0.06  # of the oval's width: half of the edge, which is nought beyond
_SHIFT: Final = 4
_OPAQUE: Final = 255
# The ellipse of a face about its template's eyes (e apart) and mouth, in units of e.
_ACROSS, _ALONG, _DOWN = 1.02, 1.42, 0.42


class CropMask:
    """Draws the mask of one kind of crop. One instance for one thread."""

    def __init__(self, shape: Literal["ellipse", "hull"], template: str, size: int) -> None:
        """`template` and `size` (px) are the crop's."""
        self._shape = shape
        self.size = size
        # A whole number of times smaller, as `Paster` wants it.
        most = max(1, size // _SIDE)
        self._small = size // next(k for k in range(most, 0, -1) if size % k == 0)
        self._scratch = Scratch()
        self._edge = _draw_edge(self._small)
        self._ellipse = _draw_ellipse(template, self._small)
        cv2.multiply(self._ellipse, self._edge, dst=self._ellipse, scale=1 / _OPAQUE)

    def draw(
        self, state: FrameState, face: Face, to_crop: Similarity, amount: float
    ) -> NDArray[np.uint8]:
        """Return the mask, square, at most 255 * `amount`, 0 along its rim; kept.

        What stands before the face (`face.occlusion`) and what is not the person
        (`state.person_mask`) is left out.
        """
        ratio = self._small / self.size
        a, b, tx, ty = to_crop
        # A px's centre keeps its place: x_small + 0.5 = (x + 0.5) * ratio.
        shift = (ratio - 1.0) / 2
        small = Similarity(a * ratio, b * ratio, tx * ratio + shift, ty * ratio + shift)
        mask = self._draw_shape(face, small)
        self._leave_out(mask, state, face, small)
        if amount < 1.0:
            cv2.convertScaleAbs(mask, dst=mask, alpha=amount)
        return mask

    def _draw_shape(self, face: Face, to_small: Similarity) -> NDArray[np.uint8]:
        mask = self._scratch.get("mask", self._small, self._small)
        if self._shape == "ellipse" or face.mesh is None:
            np.copyto(mask, self._ellipse)
            return mask
        points, width = _place_oval(face.mesh[OVAL, :2], to_small)
        mask.fill(0)
        cv2.fillPoly(mask, [points], _OPAQUE, cv2.LINE_AA, _SHIFT)
        # Two box blurs make a soft edge that ends, as a Gaussian's does not.
        side = 2 * max(1, round(_SOFT * width / 2)) + 1
        for _ in range(2):
            cv2.blur(mask, (side, side), dst=mask, borderType=cv2.BORDER_REPLICATE)
        cv2.multiply(mask, self._edge, dst=mask, scale=1 / _OPAQUE)
        return mask

    def _leave_out(
        self, mask: NDArray[np.uint8], state: FrameState, face: Face, to_small: Similarity
    ) -> None:
        other = self._scratch.get("other", self._small, self._small)
        if face.occlusion is not None and face.occlusion_box is not None:
            box = face.occlusion_box
            height, width = face.occlusion.shape
            way = _from_picture(to_small, box.x0, box.y0, box.width / width, box.height / height)
            self._warp(face.occlusion, way, other, outside=0)
            cv2.bitwise_not(other, dst=other)
            cv2.multiply(mask, other, dst=mask, scale=1 / _OPAQUE)
        if state.person_mask is not None:
            height, width = state.person_mask.shape
            across, along = state.frame.width / width, state.frame.height / height
            way = _from_picture(to_small, 0.0, 0.0, across, along)
            self._warp(state.person_mask, way, other, outside=_OPAQUE)
            cv2.multiply(mask, other, dst=mask, scale=1 / _OPAQUE)

    def _warp(
        self,
        picture: NDArray[np.uint8],
        matrix: NDArray[np.float64],
        out: NDArray[np.uint8],
        outside: int,
    ) -> None:
        size = (self._small, self._small)
        cv2.warpAffine(
            picture,
            matrix,
            size,
            dst=out,
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_CONSTANT,
            borderValue=outside,
        )


def _place_oval(oval: NDArray[np.float32], to_small: Similarity) -> tuple[NDArray[np.int32], float]:
    """Return the oval drawn in a little, in px of the small crop, fixed point; its width, px."""
    # OpenCV and plain floats: numpy's way through so few points takes three times as long.
    points = np.ascontiguousarray(oval)[None]
    x, y = cv2.mean(points)[:2]
    a, b, tx, ty = to_small
    rest = 1.0 - _INSET
    turn = np.array(
        [
            [_INSET * a, -_INSET * b, tx + rest * (a * x - b * y)],
            [_INSET * b, _INSET * a, ty + rest * (b * x + a * y)],
        ]
    )
    placed = cv2.transform(points, turn * (1 << _SHIFT))[0]
    fixed = np.rint(placed).astype(np.int32)
    left, right = cv2.minMaxLoc(placed[:, 0])[:2]
    return fixed, (right - left) / (_INSET * (1 << _SHIFT))


def _from_picture(
    to_small: Similarity, x: float, y: float, across: float, along: float
) -> NDArray[np.float64]:
    """Return the (2, 3) matrix from px of a picture to px of the small crop.

    The picture begins at (x, y) of the frame, and one px of it is `across` x `along` px there.
    """
    matrix = create_matrix(to_small)
    place = np.array([x + (across - 1.0) / 2, y + (along - 1.0) / 2])
    moved = matrix[:, :2] @ place + matrix[:, 2]
    return np.column_stack([matrix[:, :2] * (across, along), moved])


def _draw_edge(side: int) -> NDArray[np.uint8]:
    distance = np.minimum(np.arange(side), np.arange(side)[::-1]).astype(np.float64)
    share = np.clip(distance / (_EDGE * side), 0.0, 1.0)
    soft = share * share * (3 - 2 * share)
    return np.rint(_OPAQUE * np.outer(soft, soft)).astype(np.uint8)


def _draw_ellipse(template: str, side: int) -> NDArray[np.uint8]:
    points = get_template(template) * side
    apart = float(points[1, 0] - points[0, 0])
    x, y = points[:2].mean(axis=0).tolist()
    ellipse = Ellipse(x, y + _DOWN * apart, _ACROSS * apart, _ALONG * apart, 0.0)
    mask = np.empty((side, side), np.uint8)
    return SoftMask(0.25).draw(ellipse, (0.0, 0.0), mask)
