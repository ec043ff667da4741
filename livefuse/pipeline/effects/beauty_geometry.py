"""Where a face lies, in which unit it is measured, at which scales it is worked on.

One millimetre is 1/63 of the distance of the eyes, in depth too, so that a look is the same at any
distance and turn. Three grids share one corner: the frame's px, `work` (k px; about 1 mm) and
`coarse` (2 k px); the corner is a multiple of 4 k, so that grids stay put while the face moves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.pipeline.topology import (
    BROW_LEFT,
    BROW_RIGHT,
    EYE_LEFT,
    EYE_RIGHT,
    LIPS_OUTER,
    OVAL,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EYE_DISTANCE_MM: Final = 63.0
_WORK_EYES_PX: Final = 54.0  # distance of the eyes at working scale, the middle of 38 and 76
_STAY: Final = 0.08  # of the band's ends: how far a face leaves it before the scale changes
_STEADY: Final = 0.05
_FAR_PX: Final = 1e5
_MAX_SCALE: Final = 8
_MIN_EYES_PX: Final = 10.0
_MIN_AXIS_SHARE: Final = 0.12  # eyes nearer to one another than this: a profile
_TRUST_SIZES: Final = 0.6  # above the smallest face, in its own size
_TRUST_AXIS: Final = 0.2
_HALF_FACE: Final = 0.68  # of the eye distance, from nose bridge to ear: less is turned away
_MIN_HALF: Final = 0.12
_POINTS: Final = 468
_MARGIN_X: Final = 0.5
_MARGIN_Y: Final = 0.48
SHIFT: Final = 4  # binary places of px that OpenCV's drawing is given
_FIXED: Final = float(1 << SHIFT)


class Grid(NamedTuple):
    """A face's region: corner and size in px of the frame, all multiples of 4 k.

    Right and bottom may lie outside the frame.
    """

    x: int
    y: int
    width: int
    height: int
    k: int

    @property
    def work(self) -> tuple[int, int]:
        """Width and height at working scale."""
        return self.width // self.k, self.height // self.k

    @property
    def coarse(self) -> tuple[int, int]:
        """Width and height of the coarse grid."""
        return self.width // (2 * self.k), self.height // (2 * self.k)


class FaceGeometry(NamedTuple):
    """Points are float32 (n, 2). `eyes_px` is the distance of the eyes, `mm` is px a millimetre.

    `steady_px` is that distance too, but kept until it has changed by some percent: for what comes
    in whole px, which would flicker. `across` and `down` are the face's axes in the picture;
    `left_half`, `right_half` say how much of the picture's left and right side of the face is
    seen, 1 from the front. `trust` falls to 0 on faces too small or too far in profile, so that
    what is done to them goes without a pop.
    """

    points: NDArray[np.float32]
    grid: Grid
    eyes_px: float
    steady_px: float
    across: NDArray[np.float32]
    down: NDArray[np.float32]
    left_half: float
    right_half: float
    trust: float
    work: NDArray[np.float32]
    coarse: NDArray[np.float32]

    @property
    def mm(self) -> float:
        """Px of the frame a millimetre."""
        return self.eyes_px / _EYE_DISTANCE_MM

    @property
    def mm_work(self) -> float:
        """Px of the working grid a millimetre."""
        return self.mm / self.grid.k

    @property
    def mm_coarse(self) -> float:
        """Px of the coarse grid a millimetre."""
        return self.mm / (2 * self.grid.k)

    def count_coarse(self, length_mm: float) -> int:
        """Return an odd number of coarse px, nearest to `length_mm`."""
        return _round_odd(length_mm * self.steady_px / _EYE_DISTANCE_MM / (2 * self.grid.k))

    def count_work(self, length_mm: float) -> int:
        """Return an odd number of px at working scale, nearest to `length_mm`."""
        return _round_odd(length_mm * self.steady_px / _EYE_DISTANCE_MM / self.grid.k)


def measure_face(
    mesh: NDArray[np.float32], size: tuple[int, int], before: FaceGeometry | None
) -> FaceGeometry | None:
    """Return the geometry of a face in a frame of `size` px; None: nothing to work on.

    `before` is the geometry of the frame before: its scale stays unless the face has clearly
    outgrown it. None for points that are not numbers of this world, faces too small, in profile,
    or out of the picture.
    """
    if mesh.shape[0] < _POINTS or not (np.abs(mesh) < _FAR_PX).all():
        return None
    way = (mesh[362] + mesh[263] - mesh[33] - mesh[133]).tolist()
    eyes_px = math.hypot(*way) / 2
    line = mesh[263, :2] - mesh[33, :2]
    length = math.hypot(*line.tolist())
    if not eyes_px >= _MIN_EYES_PX or length < _MIN_AXIS_SHARE * eyes_px:
        return None
    points = np.ascontiguousarray(mesh[:, :2], np.float32)
    k = choose_scale(eyes_px, before.grid.k if before else 0)
    grid = _place_grid(points, size, eyes_px, k)
    if grid is None:
        return None
    across = (line / length).astype(np.float32)
    ears = (points[[234, 454]] - points[168]) @ across / (_HALF_FACE * eyes_px)
    left, right = np.clip(ears * np.array([-1.0, 1.0]), _MIN_HALF, 1.0).tolist()
    corner = np.array([grid.x, grid.y], np.float32)
    moved = points - corner + np.float32(0.5)
    return FaceGeometry(
        points=points,
        grid=grid,
        eyes_px=eyes_px,
        steady_px=_steady(eyes_px, before),
        across=across,
        down=np.array([-across[1], across[0]], np.float32),
        left_half=left,
        right_half=right,
        trust=min(
            (eyes_px / _MIN_EYES_PX - 1.0) / _TRUST_SIZES,
            (length / eyes_px - _MIN_AXIS_SHARE) / _TRUST_AXIS,
            1.0,
        ),
        work=moved * np.float32(1 / k) - np.float32(0.5),
        coarse=moved * np.float32(0.5 / k) - np.float32(0.5),
    )


def _round_odd(length_px: float) -> int:
    return 2 * max(round((length_px - 1) / 2), 0) + 1


def _steady(eyes_px: float, before: FaceGeometry | None) -> float:
    if before and abs(eyes_px - before.steady_px) <= _STEADY * before.steady_px:
        return before.steady_px
    return eyes_px


def choose_scale(eyes_px: float, kept: int) -> int:
    """Return k, a power of two: `kept` (if not 0) while `eyes_px` is near its band."""
    ideal = eyes_px / _WORK_EYES_PX
    edge = math.sqrt(2.0)
    if kept:
        low = 0.0 if kept == 1 else kept / edge * (1 - _STAY)
        high = math.inf if kept == _MAX_SCALE else kept * edge * (1 + _STAY)
        if low <= ideal <= high:
            return kept
    return min(1 << max(0, round(math.log2(ideal))), _MAX_SCALE)


def _place_grid(
    points: NDArray[np.float32], size: tuple[int, int], eyes_px: float, k: int
) -> Grid | None:
    oval = points[OVAL]
    step = 4 * k
    margin = (_MARGIN_X * eyes_px, _MARGIN_Y * eyes_px)
    low, high = oval.min(axis=0).tolist(), oval.max(axis=0).tolist()
    corner, end = [0, 0], [0, 0]
    for axis in (0, 1):
        last = -(-size[axis] // step) * step
        corner[axis] = max(math.floor((low[axis] - margin[axis]) / step) * step, 0)
        end[axis] = min(math.ceil((high[axis] + margin[axis]) / step) * step, last)
    width, height = end[0] - corner[0], end[1] - corner[1]
    if width < 2 * step or height < 2 * step:
        return None
    return Grid(corner[0], corner[1], width, height, k)


_PARTS: Final = (OVAL, EYE_LEFT, EYE_RIGHT, LIPS_OUTER, BROW_LEFT, BROW_RIGHT)
_PART_SIZES: Final = np.array([len(part) for part in _PARTS])
_PART_STARTS: Final = np.concatenate([[0], np.cumsum(_PART_SIZES)[:-1]])
_PART_POINTS: Final = np.concatenate(_PARTS)
_PART_OF_POINT: Final = np.repeat(np.arange(len(_PARTS)), _PART_SIZES)
_PART_SCALES: Final = np.array(
    [(0.955, 0.955), (1.2, 1.45), (1.2, 1.45), (1.1, 1.1), (1.12, 1.7), (1.12, 1.7)], np.float32
)[_PART_OF_POINT]


def trace_parts(geometry: FaceGeometry) -> list[NDArray[np.int32]]:
    """Return polygons of the coarse grid, fixed point: oval, eyes, lips, brows.

    Each scaled about its own middle along the face's axes: the oval a little within the face, the
    features with some room around them.
    """
    points = geometry.coarse[_PART_POINTS]
    sums: NDArray[np.float32] = np.add.reduceat(points, _PART_STARTS, axis=0)
    middles = (sums / _PART_SIZES[:, None])[_PART_OF_POINT]
    axes = np.stack([geometry.across, geometry.down])
    scaled = (((points - middles) @ axes.T) * _PART_SCALES) @ axes + middles
    fixed = to_fixed(scaled)
    return np.split(fixed, _PART_STARTS[1:])


def to_fixed(points: NDArray[np.floating]) -> NDArray[np.int32]:
    """Return points as OpenCV's drawing takes them with `shift=SHIFT`."""
    fixed: NDArray[np.int32] = np.rint(points * _FIXED).astype(np.int32)
    return fixed
