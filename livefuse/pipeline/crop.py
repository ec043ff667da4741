"""Square crops of faces, read straight from a frame's planes: only the face's region is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.geometry import Similarity, create_matrix
from livefuse.pipeline.planes import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame

_MAX_SHRINK: Final = 2.0  # a bilinear warp that shrinks by more than this skips px


class CropReader:
    """Warps the planes into a small I420 picture and turns that into RGB. One thread.

    Always by BT.601's matrix: networks do not see the difference, and OpenCV has it ready.
    """

    def __init__(self, size: int) -> None:
        """Make crops of `size` x `size` px; `size` is a multiple of 4."""
        self.size = size
        self._buffer = np.empty((size * 3 // 2, size), np.uint8)
        flat = self._buffer.reshape(-1)
        self._y = self._buffer[:size]
        half = size // 2
        self._u = flat[size * size : size * size + half * half].reshape(half, half)
        self._v = flat[size * size + half * half :].reshape(half, half)
        self._rgb = np.empty((size, size, 3), np.uint8)
        self._scratch = Scratch()

    def read(self, frame: Frame, to_crop: Similarity) -> NDArray[np.uint8]:
        """Return RGB (size, size, 3), kept: valid until the next call.

        `to_crop` takes px of the frame to px of the crop; outside the frame its edge is repeated.
        """
        self.read_planes(frame, to_crop)
        cv2.cvtColor(self._buffer, cv2.COLOR_YUV2RGB_I420, dst=self._rgb)
        return self._rgb

    def read_planes(
        self, frame: Frame, to_crop: Similarity
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        """Return Y (size, size), U and V (half of it), kept and otherwise as `read`."""
        _warp(frame.y, _plan(frame.y.shape, to_crop, self.size), self._y, self._scratch)
        plan = _plan(frame.u.shape, _halve(to_crop), self.size // 2)
        _warp(frame.u, plan, self._u, self._scratch)
        _warp(frame.v, plan, self._v, self._scratch)
        return self._y, self._u, self._v


class _Plan(NamedTuple):
    """How a plane is warped: what of it is read, how often halved, and the rest as a matrix."""

    x0: int
    y0: int
    x1: int
    y1: int
    halvings: int
    matrix: NDArray[np.float64]


def _plan(shape: tuple[int, ...], transform: Similarity, size: int) -> _Plan:
    """Return how a crop of `size` is read from a plane of `shape`: by plain floats, for speed."""
    x0, y0, x1, y1 = _cut_region(shape, transform, size)
    a, b, tx, ty = transform
    tx, ty = a * x0 - b * y0 + tx, b * x0 + a * y0 + ty
    scale, halvings, side = transform.scale, 0, min(x1 - x0, y1 - y0)
    # While it is much larger it is halved by area.
    while scale * _MAX_SHRINK < 1.0 and side >= 4:  # noqa: PLR2004 - two px of the half
        # x = 2 x_half + 0.5
        tx, ty = tx + 0.5 * (a - b), ty + 0.5 * (a + b)
        a, b, scale = 2 * a, 2 * b, 2 * scale
        halvings, side = halvings + 1, side // 2
    return _Plan(x0, y0, x1, y1, halvings, create_matrix(Similarity(a, b, tx, ty)))


class FloatReader:
    """Warps the planes into float32, which OpenCV does in two thirds of the time. One thread."""

    def __init__(self, size: int) -> None:
        """Make crops of `size` x `size` px; `size` is a multiple of 4."""
        self.size = size
        self._u = np.empty((size // 2, size // 2), np.float32)
        self._v = np.empty((size // 2, size // 2), np.float32)
        self._scratch = Scratch()

    def read(
        self, frame: Frame, to_crop: Similarity, y: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Put Y (size, size) into `y` and return U and V (half of it), kept; all 0..255.

        `to_crop` is as in `CropReader.read`.
        """
        _warp(frame.y, _plan(frame.y.shape, to_crop, self.size), y, self._scratch)
        plan = _plan(frame.u.shape, _halve(to_crop), self.size // 2)
        _warp(frame.u, plan, self._u, self._scratch)
        _warp(frame.v, plan, self._v, self._scratch)
        return self._u, self._v


def _halve(to_crop: Similarity) -> Similarity:
    """Return the way between the chroma planes: x_luma = 2 x_chroma + 0.5, on both sides."""
    a, b, tx, ty = to_crop
    return Similarity(a, b, (tx + 0.5 * (a - b) - 0.5) / 2, (ty + 0.5 * (a + b) - 0.5) / 2)


def _warp(
    plane: NDArray[np.uint8],
    plan: _Plan,
    out: NDArray[np.uint8] | NDArray[np.float32],
    scratch: Scratch,
) -> None:
    """Warp what of `plane` the crop shows into `out`."""
    region = plane[plan.y0 : plan.y1, plan.x0 : plan.x1]
    for level in range(plan.halvings):
        height, width = region.shape[0] // 2, region.shape[1] // 2
        half = scratch.get(f"half{level}", height, width)
        even = region[: 2 * height, : 2 * width]
        cv2.resize(even, (width, height), dst=half, interpolation=cv2.INTER_AREA)
        region = half
    source: NDArray[np.uint8] | NDArray[np.float32] = region
    if out.dtype == np.float32:
        source = scratch.get("floats", region.shape[0], 4 * region.shape[1]).view(np.float32)
        np.copyto(source, region)
    cv2.warpAffine(
        source,
        plan.matrix,
        (out.shape[1], out.shape[0]),
        dst=out,
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )


def _cut_region(
    shape: tuple[int, ...], transform: Similarity, size: int
) -> tuple[int, int, int, int]:
    """Return x0, y0, x1, y1 of what a crop of `size` shows of a plane: at least one px."""
    a, b, tx, ty = transform
    square = a * a + b * b
    # The image of the crop's corner, and of its sides.
    x, y = -(a * tx + b * ty) / square, (b * tx - a * ty) / square
    across, down = size * a / square, size * b / square
    height, width = shape
    x0 = min(max(int(x + min(0.0, across) + min(0.0, down)) - 2, 0), width - 1)
    y0 = min(max(int(y + min(0.0, across) + min(0.0, -down)) - 2, 0), height - 1)
    x1 = max(min(int(x + max(0.0, across) + max(0.0, down)) + 3, width), x0 + 1)
    y1 = max(min(int(y + max(0.0, across) + max(0.0, -down)) + 3, height), y0 + 1)
    return x0, y0, x1, y1
