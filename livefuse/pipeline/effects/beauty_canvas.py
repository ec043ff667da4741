"""One face on the table: its pixels at three scales, and what is to be added to them.

Soft effects are sums of small changes, worked out where a px is one or two millimetres, brought to
the frame's px once and added once: detail finer than the working grid is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.pipeline.effects.beauty_amounts import Amounts
    from livefuse.pipeline.effects.beauty_geometry import FaceGeometry, Grid
    from livefuse.pipeline.effects.beauty_masks import Masks, SkinTone

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

_GEMM_MAX: Final = 250_000  # above this OpenBLAS wakes its threads, which cost more than they save


class Buffers:
    """Arrays kept from frame to frame by name: fresh large ones are dear. One thread."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.uint8]] = {}

    def get_bytes(self, name: str, height: int, width: int) -> NDArray[np.uint8]:
        """Return uint8 (height, width) with undefined values."""
        kept = self._kept.get(name)
        if kept is None or kept.size < height * width:
            kept = self._kept[name] = np.empty(height * width, np.uint8)
        return kept[: height * width].reshape(height, width)

    def get_floats(self, name: str, height: int, width: int, channels: int = 1) -> Floats:
        """Return float32 (height, width[, channels]) with undefined values."""
        bare = self.get_bytes(name, 4 * channels, height * width).reshape(-1).view(np.float32)
        return bare.reshape((height, width) if channels == 1 else (height, width, channels))


_CALM_S: Final = 0.4


class Calm:
    """Numbers measured in each frame, steadied over time by name. One per track."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._share = 1.0

    def advance(self, dt_s: float) -> None:
        """Begin a frame, `dt_s` after the one before."""
        self._share = min(dt_s / _CALM_S, 1.0)

    def settle(self, name: str, value: float) -> float:
        """Return `value` drawn to what it was before; the first comes back as is."""
        before = self._values.get(name, value)
        self._values[name] = calm = before + self._share * (value - before)
        return calm


@dataclass(slots=True, eq=False)
class Canvas:
    """A face's region. `y`, `u`, `v` are uint8, the frame's own px (or stand for them at its rim).

    At working scale `luma` (float32); on the coarse grid `coarse_luma`, `coarse_u`, `coarse_v`
    (uint8) and `smooth_luma` (float32), which is luma without what lies on the skin.
    `visible` (coarse, 0..1; None: all) is 0 where something stands before the face; `black` is the
    luma of black.

    What is added, float32: luma gets `gain` (coarse) times `luma`, `lift` (coarse) and `detail`
    (working scale, None: nothing); chroma gets `lift_u`, `lift_v` (coarse).
    """

    y: NDArray[np.uint8]
    u: NDArray[np.uint8]
    v: NDArray[np.uint8]
    grid: Grid
    geometry: FaceGeometry
    amounts: Amounts
    tone: SkinTone
    masks: Masks
    luma: Floats
    coarse_luma: NDArray[np.uint8]
    coarse_u: NDArray[np.uint8]
    coarse_v: NDArray[np.uint8]
    smooth_luma: Floats
    gain: Floats | None
    lift: Floats
    lift_u: Floats
    lift_v: Floats
    detail: Floats | None
    visible: Floats | None
    calm: Calm
    black: float

    def get_detail(self) -> Floats:
        """Return `detail`, zeros at first."""
        if self.detail is None:
            width, height = self.grid.work
            self.detail = np.zeros((height, width), np.float32)
        return self.detail


class Region:
    """The frame's planes around a face; px beyond the frame's right and bottom repeat its rim."""

    def __init__(self, frame: Frame, grid: Grid, buffers: Buffers) -> None:
        x1, y1 = grid.x + grid.width, grid.y + grid.height
        half = (grid.x // 2, grid.y // 2, x1 // 2, y1 // 2)
        self._whole = x1 <= frame.width and y1 <= frame.height
        self._parts = [
            frame.y[grid.y : y1, grid.x : x1],
            *(plane[half[1] : half[3], half[0] : half[2]] for plane in (frame.u, frame.v)),
        ]
        self.planes = self._parts
        if not self._whole:
            self.planes = [
                _extend(part, grid, level, buffers)
                for level, part in zip(("y", "u", "v"), self._parts, strict=True)
            ]

    def write_back(self) -> None:
        """Bring edits of `planes` into the frame, where they are not the frame's own."""
        if self._whole:
            return
        for part, plane in zip(self._parts, self.planes, strict=True):
            part[:] = plane[: part.shape[0], : part.shape[1]]


def _extend(part: NDArray[np.uint8], grid: Grid, name: str, buffers: Buffers) -> NDArray[np.uint8]:
    half = 1 if name == "y" else 2
    height, width = grid.height // half, grid.width // half
    whole = buffers.get_bytes(f"rim_{name}", height, width)
    down, right = height - part.shape[0], width - part.shape[1]
    cv2.copyMakeBorder(part, 0, down, 0, right, cv2.BORDER_REPLICATE, dst=whole)
    return whole


def halve(plane: NDArray[np.uint8], times: int) -> NDArray[np.uint8]:
    """Return `plane` shrunk by 2^times, each step the mean of 2 x 2 px."""
    for _ in range(times):
        half = np.empty((plane.shape[0] // 2, plane.shape[1] // 2), np.uint8)
        cv2.resize(plane, half.shape[::-1], dst=half, interpolation=cv2.INTER_AREA)
        plane = half
    return plane


def blur_box(image: Floats, side_px: int) -> Floats:
    """Return the mean over `side_px` squared px (odd); the picture goes on at its rim."""
    out = np.empty_like(image)
    cv2.blur(image, (side_px, side_px), dst=out, borderType=cv2.BORDER_REPLICATE)
    return out


def look_up(levels: NDArray[np.uint8], table: NDArray[np.float32]) -> Floats:
    """Return what `table` (256) says of each level."""
    out = np.empty(levels.shape, np.float32)
    cv2.LUT(levels, table, dst=out)
    return out


def clip(values: Floats, low: float, high: float) -> Floats:
    """Return `values`, an array of its own, held within two bounds in place."""
    np.maximum(values, np.float32(low), out=values)
    return np.minimum(values, np.float32(high), out=values)


def enlarge(image: Floats, size: tuple[int, int]) -> Floats:
    """Return `image` at (width, height), bilinear, px centres in place."""
    out = np.empty((size[1], size[0]), np.float32)
    cv2.resize(image, size, dst=out, interpolation=cv2.INTER_LINEAR)
    return out


def multiply_matrices(left: Floats, right: Floats) -> Floats:
    """Return left @ right in pieces small enough for BLAS to stay in this thread."""
    rows, inner = left.shape
    step = max(1, _GEMM_MAX // max(inner * right.shape[1], 1))
    if step >= rows:
        return left @ right
    out = np.empty((rows, right.shape[1]), np.float32)
    for at in range(0, rows, step):
        np.matmul(left[at : at + step], right, out=out[at : at + step])
    return out


def apply_lifts(canvas: Canvas, buffers: Buffers) -> None:
    """Add what the canvas has gathered to the planes, in place."""
    size = canvas.grid.work
    lift = enlarge(canvas.lift, size)
    if canvas.gain is not None:
        gain = enlarge(canvas.gain, size)
        np.multiply(gain, canvas.luma, out=gain)
        lift += gain
    if canvas.detail is not None:
        lift += canvas.detail
    visible = canvas.visible
    if visible is not None:
        lift *= enlarge(visible, size)
        canvas.lift_u *= visible
        canvas.lift_v *= visible
    _add(canvas.y, lift, buffers)
    _add(canvas.u, canvas.lift_u, buffers)
    _add(canvas.v, canvas.lift_v, buffers)


def _add(plane: NDArray[np.uint8], change: Floats, buffers: Buffers) -> None:
    """Add `change`, which may be of a smaller grid."""
    height, width = plane.shape
    if change.shape == plane.shape:
        cv2.add(plane, change, dst=plane, dtype=cv2.CV_8U)
        return
    large = buffers.get_floats("change", height, width)
    cv2.resize(change, (width, height), dst=large, interpolation=cv2.INTER_LINEAR)
    cv2.add(plane, large, dst=plane, dtype=cv2.CV_8U)
