"""Make-up that is soft: blush, contour, highlight, eye shadow, as a sum of Gaussian blobs.

A Gaussian is a product of one in x and one in y, so any number of blobs, each with its changes of
Y, U and V, is one matrix product. Where folds and shades under the eyes lie comes the same way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.pipeline.effects.beauty_canvas import multiply_matrices
from livefuse.pipeline.effects.beauty_masks import ORDINARY_U, ORDINARY_V

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_amounts import Yuv
    from livefuse.pipeline.effects.beauty_canvas import Canvas, Floats
    from livefuse.pipeline.effects.beauty_geometry import FaceGeometry
    from livefuse.pipeline.effects.beauty_masks import SkinTone

_PAINT_LUMA: Final = 150.0  # of the skin that the amounts were made for
_CHANNELS: Final = 5
_FOLDS, _CIRCLES = 3, 4


class Blobs(NamedTuple):
    """Fixed places: each a weighted sum of mesh points. Size in mm."""

    places: NDArray[np.float32]  # (n, points)
    points: NDArray[np.intp]
    sizes_mm: NDArray[np.float32]


def _place(rows: list[tuple[dict[int, float], float]]) -> Blobs:
    points = sorted({index for mix, _ in rows for index in mix})
    places = np.zeros((len(rows), len(points)), np.float32)
    for row, (mix, _) in enumerate(rows):
        for index, share in mix.items():
            places[row, points.index(index)] = share
    sizes = np.array([size for _, size in rows], np.float32)
    return Blobs(places, np.array(points, np.intp), sizes)


def _mix(*parts: tuple[float, dict[int, float]]) -> dict[int, float]:
    out: dict[int, float] = {}
    for share, part in parts:
        for index, value in part.items():
            out[index] = out.get(index, 0.0) + share * value
    return out


def _lerp(a: int, b: int, t: float) -> dict[int, float]:
    return {a: 1.0 - t, b: t}


def _list_blush() -> list[tuple[dict[int, float], float]]:
    rows: list[tuple[dict[int, float], float]] = []
    for cheek, nose, fold, under, bone, ear in (
        (50, 36, 205, 101, 117, 227),
        (280, 266, 425, 330, 346, 447),
    ):
        apple = {cheek: 0.45, nose: 0.20, fold: 0.20, under: 0.15}
        outward, up = _lerp(cheek, bone, 0.30), _lerp(cheek, ear, 0.35)
        sweep = _mix((0.45, apple), (0.55, outward), (0.5, up), (-0.5, {cheek: 1.0}))
        rows += [(apple, 11.0), (sweep, 12.0)]
    return rows


_CONTOUR_STEPS: Final = (-0.05, 0.15, 0.35, 0.55, 0.75)


def _list_contour() -> list[tuple[dict[int, float], float]]:
    rows: list[tuple[dict[int, float], float]] = []
    for ear, fold, jaw in ((132, 205, 215), (361, 425, 435)):
        rows += [
            (_mix((0.75, _lerp(ear, fold, t)), (0.25, _lerp(ear, jaw, t))), 7.5)
            for t in _CONTOUR_STEPS
        ]
    rows += [({p: 1.0}, 8.0) for p in (172, 136, 150, 397, 365, 379)]
    rows += [({p: 1.0}, 9.0) for p in (21, 54, 251, 284)]
    rows += [({a: 0.5, b: 0.5}, 3.2) for a, b in ((122, 196), (198, 196), (351, 419), (420, 419))]
    return rows


_CONTOUR_LUMA: Final = np.array(
    [-4.6 * (1 - 0.8 * t) for t in _CONTOUR_STEPS] * 2 + [-4.5] * 6 + [-7.0] * 4 + [-6.0] * 4
)
_HIGHLIGHT_ROWS: Final[list[tuple[dict[int, float], float, float]]] = [
    *(({p: 1.0}, 3.4, 7.0) for p in (168, 6, 197, 195, 5)),
    *(({p: 1.0}, 8.0, 5.0) for p in (9, 151)),
    *(({117: 0.5, p: 0.5}, 6.0, 9.0) for p in (118, 116)),
    *(({346: 0.5, p: 0.5}, 6.0, 9.0) for p in (347, 345)),
    ({0: 1.0}, 2.6, 7.0),
    ({199: 1.0}, 6.0, 5.0),
]
_CUPID_ROW: Final = 11
_CUPID_MM: Final = 2.0  # above the lip
_SHADOW_LIDS: Final = (247, 30, 29, 27, 28, 56, 467, 260, 259, 257, 258, 286)
_SHADOW_CORNERS: Final = (130, 226, 359, 446)
_FOLD_POINTS: Final = (205, 206, 216, 425, 426, 436)
_UNDER_EYES: Final = ((228, 229), (230, 229), (231, 230), (232, 231),
                      (448, 449), (450, 449), (451, 450), (452, 451))  # fmt: skip

_BLUSH: Final = _place(_list_blush())
_CONTOUR: Final = _place(_list_contour())
_HIGHLIGHT: Final = _place([(mix, size) for mix, size, _ in _HIGHLIGHT_ROWS])
_HIGHLIGHT_LUMA: Final = np.array([luma for *_, luma in _HIGHLIGHT_ROWS])
_SHADOW: Final = _place(
    [({p: 1.0}, 3.4) for p in _SHADOW_LIDS] + [({p: 1.0}, 3.6) for p in _SHADOW_CORNERS]
)
_SHADOW_LUMA: Final = np.array([-9.0] * len(_SHADOW_LIDS) + [-7.0] * len(_SHADOW_CORNERS))
_SHADOW_CHROMA: Final = np.array([0.16] * len(_SHADOW_LIDS) + [0.15] * len(_SHADOW_CORNERS))
_FOLD: Final = _place([({p: 1.0}, 7.0) for p in _FOLD_POINTS])
_CIRCLE: Final = _place([({a: 0.6, b: 0.4}, 4.2) for a, b in _UNDER_EYES])


class _Palette:
    """Collects blobs: places on the coarse grid, sizes, amounts in each channel."""

    def __init__(self, geometry: FaceGeometry) -> None:
        self._geometry = geometry
        self._centres: list[Floats] = []
        self._sizes: list[Floats] = []
        self._amounts: list[Floats] = []

    def add(self, blobs: Blobs, channel_amounts: dict[int, NDArray[np.float64] | float]) -> Floats:
        """Add `blobs`; return their centres, which may be moved."""
        centres: Floats = blobs.places @ self._geometry.coarse[blobs.points]
        amounts = np.zeros((len(blobs.sizes_mm), _CHANNELS), np.float32)
        for channel, amount in channel_amounts.items():
            amounts[:, channel] = amount
        self._centres.append(centres)
        self._sizes.append(blobs.sizes_mm * np.float32(self._geometry.mm_coarse))
        self._amounts.append(amounts)
        return centres

    def paint(self, width: int, height: int) -> Floats | None:
        """Return float32 (channels, height, width), None when nothing was added."""
        if not self._centres:
            return None
        centres = np.concatenate(self._centres)
        sizes = np.concatenate(self._sizes)[:, None]
        amounts = np.concatenate(self._amounts)
        x = (np.arange(width, dtype=np.float32) - centres[:, :1]) / sizes
        y = (np.arange(height, dtype=np.float32) - centres[:, 1:]) / sizes
        along_x, along_y = np.exp(-0.5 * x * x), np.exp(-0.5 * y * y)
        weighted = (amounts[:, :, None] * along_x[:, None, :]).reshape(len(sizes), -1)
        field = multiply_matrices(np.ascontiguousarray(along_y.T), weighted)
        return field.reshape(height, _CHANNELS, width).transpose(1, 0, 2)


def paint_soft(canvas: Canvas) -> tuple[Floats | None, Floats | None]:
    """Add the soft make-up; return where folds and shades under the eyes are (None: not asked)."""
    amounts = canvas.amounts
    palette = _Palette(canvas.geometry)
    _add_paints(canvas, palette)
    has_paint = amounts.has_any("blush", "contour", "highlight", "shadow")
    if amounts["folds"] > 0.0:
        palette.add(_FOLD, {_FOLDS: 0.6})
    if amounts["dark_circles"] > 0.0:
        palette.add(_CIRCLE, {_CIRCLES: 0.55})
    width, height = canvas.grid.coarse
    field = palette.paint(width, height)
    if field is None:
        return None, None
    if has_paint:
        weight = canvas.masks.features * np.minimum(canvas.masks.skin + np.float32(0.25), 1.0)
        canvas.lift += field[0] * weight
        weight *= np.float32(canvas.tone.colourful)
        canvas.lift_u += field[1] * weight
        canvas.lift_v += field[2] * weight
    return field[_FOLDS], field[_CIRCLES]


def _add_paints(canvas: Canvas, palette: _Palette) -> None:
    amounts, tone = canvas.amounts, canvas.tone
    light = tone.y / _PAINT_LUMA
    left, right = fade_sides(canvas.geometry)
    if (blush := amounts["blush"]) > 0.0:
        dark = min(max((150.0 - tone.y) / 90.0, 0.0), 1.0)
        share = np.array([0.50, 0.34, 0.50, 0.34]) * np.array([left, left, right, right]) * blush
        du, dv = _aim(canvas, amounts.colours["blush_color"], 0.30)
        palette.add(_BLUSH, {0: share * (-1.5 - 5.0 * dark), 1: share * du, 2: share * dv})
    if (contour := amounts["contour"]) > 0.0:
        luma = _CONTOUR_LUMA * light * contour
        palette.add(_CONTOUR, {0: luma, 1: -0.15 * contour, 2: 0.3 * contour})
    if (highlight := amounts["highlight"]) > 0.0:
        centres = palette.add(_HIGHLIGHT, {0: _HIGHLIGHT_LUMA * light * highlight})
        geometry = canvas.geometry
        centres[_CUPID_ROW] -= geometry.down * np.float32(_CUPID_MM * geometry.mm_coarse)
    if (shadow := amounts["shadow"] * tone.lids) > 0.0:
        sides = np.array([left] * 6 + [right] * 6 + [left] * 2 + [right] * 2) * shadow
        du, dv = _aim(canvas, amounts.colours["shadow_color"], 1.0)
        chroma = _SHADOW_CHROMA * sides
        palette.add(_SHADOW, {0: _SHADOW_LUMA * light * sides, 1: chroma * du, 2: chroma * dv})


def _aim(canvas: Canvas, colour: Yuv, share: float) -> tuple[float, float]:
    """Return the way from the skin's chroma to `colour`'s, times `share`."""
    u, v = light_colour(canvas.tone, colour)
    return share * (u - canvas.tone.u), share * (v - canvas.tone.v)


def light_colour(tone: SkinTone, colour: Yuv) -> tuple[float, float]:
    """Return the chroma of `colour` under the face's light: a club's moves it as it moves skin."""
    return (
        colour[1] + tone.cast * (tone.u - ORDINARY_U),
        colour[2] + tone.cast * (tone.v - ORDINARY_V),
    )


def fade_sides(geometry: FaceGeometry) -> tuple[float, float]:
    """Return what is left of paint on each side, 0..1: none on one turned away by 70 degrees.

    An eye's width against the eyes' distance tells: 0.44 from the front, 0.17 at 60 degrees.
    """
    points, eyes_px = geometry.points, geometry.eyes_px
    left = _appear(math.dist(points[33], points[133]) / eyes_px)
    right = _appear(math.dist(points[263], points[362]) / eyes_px)
    return (left, 1.0) if geometry.left_half < geometry.right_half else (1.0, right)


def _appear(eye_width: float) -> float:
    return min(max((eye_width - 0.13) / 0.08, 0.0), 1.0)
