"""The face's shape: which way each place moves, from what a few landmarks are to do.

Each parameter is a field that moves its own landmarks as asked (Gaussian radial basis functions,
ridge-regularised, solved for their weights), or grows or turns a place; all fields together are one
matrix product, since a Gaussian is a product of one in x and one in y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.pipeline.effects.beauty_canvas import Floats, multiply_matrices
from livefuse.pipeline.topology import LIPS_OUTER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_amounts import Amounts
    from livefuse.pipeline.effects.beauty_geometry import FaceGeometry

_RIDGE: Final = 0.03
_MAX_POINTS: Final = 12
_MAX_CONTOUR: Final = 0.10  # of the eye distance: more bends what is behind the face
_CONTOUR_NAMES: Final = frozenset({"slim", "narrow", "cheekbone"})


class Pull(NamedTuple):
    """One parameter: reach (of the eye distance), points, and where each goes at amount 1.

    `inward` and `downward` are in eye distances; inward is towards the face's midline, `side` is
    -1 for the picture's left, 1 for its right, 0 for the midline.
    """

    reach: float
    points: tuple[int, ...]
    side: tuple[int, ...]
    inward: tuple[float, ...]
    downward: tuple[float, ...]


_Row = tuple[tuple[int, ...], float, float, float]


def _pull(reach: float, rows: tuple[_Row, ...]) -> Pull:
    """Return the pull of (points, weight, inward, downward); of two points the left is first."""
    points: list[int] = []
    side: list[int] = []
    inward: list[float] = []
    downward: list[float] = []
    for pair, weight, towards, down in rows:
        for index, where in zip(pair, (-1, 1) if len(pair) == 2 else (0,), strict=True):  # noqa: PLR2004 - a pair
            points.append(index)
            side.append(where)
            inward.append(weight * towards)
            downward.append(weight * down)
    return Pull(reach, tuple(points), tuple(side), tuple(inward), tuple(downward))


def _pull_pairs(
    reach: float, towards: float, down: float, pairs: dict[tuple[int, ...], float]
) -> Pull:
    return _pull(reach, tuple((pair, weight, towards, down) for pair, weight in pairs.items()))


PULLS: Final[dict[str, Pull]] = {
    "slim": _pull_pairs(0.30, 0.085, -0.010, {
        (132, 361): 0.45, (58, 288): 0.8, (172, 397): 1.0, (136, 365): 1.0, (150, 379): 0.9,
        (149, 378): 0.55,
    }),
    "narrow": _pull_pairs(0.32, 0.07, 0.0, {
        (127, 356): 0.5, (234, 454): 0.9, (93, 323): 1.0, (132, 361): 1.0, (58, 288): 0.8,
        (172, 397): 0.5,
    }),
    "cheekbone": _pull_pairs(0.22, 0.06, 0.0, {(234, 454): 0.8, (227, 447): 1.0, (93, 323): 0.5}),
    "small": _pull_pairs(0.30, 0.0, -0.10, {
        (152,): 1.0, (148, 377): 0.95, (176, 400): 0.8, (149, 378): 0.55,
    }),
    "chin": _pull_pairs(0.24, 0.0, 0.09, {(152,): 1.0, (148, 377): 0.9, (176, 400): 0.55}),
    "forehead": _pull_pairs(0.34, 0.0, -0.11, {
        (10,): 1.0, (109, 338): 0.95, (67, 297): 0.7, (151,): 0.35,
    }),
    "nose": _pull_pairs(0.105, 0.045, 0.0, {(129, 358): 1.0, (64, 294): 0.8, (198, 420): 0.45}),
    "nose_len": _pull_pairs(0.14, 0.0, 0.05, {
        (1,): 1.0, (2,): 1.0, (4,): 0.8, (98, 327): 0.8,
    }),
    "smile": _pull(0.16, (
        ((61, 291), 1.0, -0.045, -0.085), ((216, 436), 0.4, 0.0, -0.085),
        ((205, 425), 0.28, 0.0, -0.085),
    )),
    "plump": _pull(0.09, (
        ((0,), 1.0, 0.0, -0.035), ((37, 267), 1.0, 0.0, -0.035), ((17,), 1.0, 0.0, 0.03),
        ((84, 314), 1.0, 0.0, 0.03),
    )),
}  # fmt: skip
SHAPE_NAMES: Final = (*PULLS, "eyes", "eye_tilt", "mouth")

_EYES: Final = ((33, 133), (362, 263))
_EYE_REACH: Final = 0.235
_EYE_GROWTH: Final = 0.24
_EYE_TURN_RAD: Final = 0.16
_MOUTH_REACH: Final = 0.30
_MOUTH_GROWTH: Final = 0.22


class _Tables(NamedTuple):
    """The pulls side by side, each filled up to _MAX_POINTS with points that do nothing."""

    points: NDArray[np.intp]
    side: NDArray[np.float64]
    inward: NDArray[np.float64]
    downward: NDArray[np.float64]
    used: NDArray[np.bool_]
    reach: NDArray[np.float64]


def _create_tables() -> _Tables:
    shape = (len(PULLS), _MAX_POINTS)
    tables = _Tables(
        points=np.zeros(shape, np.intp),
        side=np.zeros(shape),
        inward=np.zeros(shape),
        downward=np.zeros(shape),
        used=np.zeros(shape, np.bool_),
        reach=np.array([pull.reach for pull in PULLS.values()]),
    )
    for row, pull in enumerate(PULLS.values()):
        size = len(pull.points)
        tables.points[row, :size] = pull.points
        tables.side[row, :size] = pull.side
        tables.inward[row, :size] = pull.inward
        tables.downward[row, :size] = pull.downward
        tables.used[row, :size] = True
    return tables


_TABLES: Final = _create_tables()
_IS_CONTOUR: Final = np.array([name in _CONTOUR_NAMES for name in PULLS])


class Basis(NamedTuple):
    """Sums of products: sum over rows of y-part (rows, height) times x-part (rows, width).

    `dx` and `dy` are what a row gives to either component, px of the coarse grid; a row's parts
    are Gaussians about `centres` of size `sizes`, times the distance in x or y where `slope_x`,
    `slope_y` say so.
    """

    centres: NDArray[np.float64]
    sizes: NDArray[np.float64]
    slope_x: NDArray[np.bool_]
    slope_y: NDArray[np.bool_]
    dx: NDArray[np.float64]
    dy: NDArray[np.float64]


class Axis(NamedTuple):
    """Nodes along x or y, coarse px, and what share of a movement is left there. float32 (n,)."""

    places: Floats
    weights: Floats


def create_basis(geometry: FaceGeometry, amounts: Amounts) -> Basis | None:
    """Return the movement that `amounts` ask for, in px of the coarse grid; None: none."""
    parts = [part for part in (_solve_pulls(geometry, amounts), _list_growths(geometry, amounts))
             if part is not None]  # fmt: skip
    if not parts:
        return None
    return Basis(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _solve_pulls(geometry: FaceGeometry, amounts: Amounts) -> Basis | None:
    share = np.array([amounts[name] for name in PULLS])
    active = np.flatnonzero(share)
    if not len(active):
        return None
    eyes_px = geometry.eyes_px / (2 * geometry.grid.k)
    tables = _pick_rows(_TABLES, active)
    share = _limit_contour(share)[active]
    centres = geometry.coarse[tables.points].astype(np.float64)
    sizes = tables.reach * eyes_px
    gaps = centres[:, :, None] - centres[:, None, :]
    kernel = np.exp(-(gaps * gaps).sum(axis=3) / (2 * sizes * sizes)[:, None, None])
    kernel *= tables.used[:, :, None] & tables.used[:, None, :]
    kernel += (_RIDGE + ~tables.used)[:, :, None] * np.eye(_MAX_POINTS)
    half = np.where(tables.side < 0, geometry.left_half**1.5, geometry.right_half**1.5)
    half = np.where(tables.side == 0, 1.0, half)
    inward = -tables.side * tables.inward * half
    move = inward[..., None] * geometry.across + (tables.downward * half)[..., None] * geometry.down
    move *= (share * eyes_px)[:, None, None]
    weights = np.linalg.solve(kernel, move)[tables.used]
    rows = len(weights)
    return Basis(
        centres[tables.used],
        np.repeat(sizes, tables.used.sum(axis=1)),
        np.zeros(rows, np.bool_),
        np.zeros(rows, np.bool_),
        weights[:, 0],
        weights[:, 1],
    )


def _pick_rows(tables: _Tables, rows: NDArray[np.intp]) -> _Tables:
    return _Tables(
        tables.points[rows],
        tables.side[rows],
        tables.inward[rows],
        tables.downward[rows],
        tables.used[rows],
        tables.reach[rows],
    )


def _limit_contour(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hold back what moves the contour when its parts would add up to too much."""
    strongest = np.abs(_TABLES.inward).max(axis=1)
    total = float((strongest * np.abs(share))[_IS_CONTOUR].sum())
    if total <= _MAX_CONTOUR:
        return share
    return np.where(_IS_CONTOUR, share * (_MAX_CONTOUR / total), share)


def _list_growths(geometry: FaceGeometry, amounts: Amounts) -> Basis | None:
    """Return places that grow (or turn) about their middles: two rows each, for dx and dy."""
    eyes_px = geometry.eyes_px / (2 * geometry.grid.k)
    rows: list[tuple[NDArray[np.float32], float, float, float]] = []
    if amounts.has_any("eyes", "eye_tilt"):
        for corners, half, turn in (
            (_EYES[0], geometry.left_half, 1.0),
            (_EYES[1], geometry.right_half, -1.0),
        ):
            middle = geometry.coarse[list(corners)].mean(axis=0)
            part = half**0.5
            grow = _EYE_GROWTH * amounts["eyes"] * part
            rows.append(
                (middle, _EYE_REACH, grow, turn * _EYE_TURN_RAD * amounts["eye_tilt"] * part)
            )
    if amounts["mouth"] != 0.0:
        middle = geometry.coarse[LIPS_OUTER].mean(axis=0)
        rows.append((middle, _MOUTH_REACH, _MOUTH_GROWTH * amounts["mouth"], 0.0))
    if not rows:
        return None
    growths = np.array([row[2] for row in rows])
    turns = np.array([row[3] for row in rows])
    # First rows carry the distance in x, then those with the distance in y:
    # dx = grow x - turn y, dy = grow y + turn x.
    x_first = np.repeat([True, False], len(rows))
    return Basis(
        np.tile(np.array([row[0] for row in rows], np.float64), (2, 1)),
        np.tile(np.array([row[1] * eyes_px for row in rows]), 2),
        x_first,
        ~x_first,
        np.concatenate([growths, -turns]),
        np.concatenate([turns, growths]),
    )


def compute_field(basis: Basis, x: Axis, y: Axis) -> Floats:
    """Return how far places move in x and in y, float32 (2, len(y), len(x)), at the nodes."""
    reach = (1.0 / basis.sizes[:, None]).astype(np.float32)
    centres = basis.centres.astype(np.float32)
    off_x = x.places - centres[:, :1]
    off_y = y.places - centres[:, 1:]
    along_x = _fall_off(off_x * reach)
    along_y = _fall_off(off_y * reach)
    np.multiply(along_x, off_x, out=along_x, where=basis.slope_x[:, None])
    np.multiply(along_y, off_y, out=along_y, where=basis.slope_y[:, None])
    along_x *= x.weights
    along_y *= y.weights
    moves = np.stack([basis.dx, basis.dy], axis=1).astype(np.float32)
    flat = (moves[:, :, None] * along_x[:, None, :]).reshape(len(moves), -1)
    field = multiply_matrices(np.ascontiguousarray(along_y.T), flat)
    return np.ascontiguousarray(field.reshape(len(y.places), 2, -1).transpose(1, 0, 2))


def _fall_off(distance: Floats) -> Floats:
    np.multiply(distance, distance, out=distance)
    distance *= np.float32(-0.5)
    return np.exp(distance, out=distance)
