"""Where skin is: a shape from the landmarks, times how well each px fits the face's own colour.

Skin colour is only ever this face's own, measured at points of its cheeks, nose and forehead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import blur_box, clip, look_up
from livefuse.pipeline.effects.beauty_geometry import SHIFT, FaceGeometry, to_fixed, trace_parts
from livefuse.pipeline.topology import OVAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_canvas import Floats

_SAMPLES: Final = np.array([50, 280, 205, 425, 101, 330, 36, 266, 195, 151, 9, 108, 337, 118, 347])
_LIDS: Final = np.array([27, 28, 29, 257, 258, 259])
_MEASURED: Final = np.concatenate([_SAMPLES, _LIDS])
_MIDDLE: Final = len(_SAMPLES) // 2
_LID_MIDDLE: Final = slice(2, 4)
_FROM_GREY: Final = np.abs(np.arange(256) - 128).astype(np.uint8)
_MAD_TO_SIGMA: Final = 1.48
_WIDTH: Final = 2.5
_MIN_SIGMA: Final = 9.0
_TONE_SIGMA: Final = 12.0
_TYPICAL_LUMA: Final = 110.0
_LEVELS: Final = np.arange(256, dtype=np.float32)
_FADE_MM: Final = 30.0
_SETTLE_S: Final = 1.0
_JUMP: Final = 20.0
_OPAQUE: Final = 255
# On the coarse grid: how much a face may turn or talk for its masks to be moved along with it, and
# what counts as no movement.
_SHAPE_CHANGE: Final = 0.6
_AT_REST: Final = 0.03
_OUTLINE: Final = np.concatenate([OVAL[::4], [33, 133, 263, 362, 61, 291, 0, 17, 105, 334]])
# Mean distance of a region's chroma from grey: below the first a black-and-white picture.
_GREY: Final = 0.8
_COLOURFUL: Final = 2.0
# Chroma of ordinary skin in ordinary light, and the distances from it at which the light must be
# coloured: fixed targets of colour fade out between them.
ORDINARY_U: Final = 113.0
ORDINARY_V: Final = 148.0
_CAST: Final = (24.0, 40.0)


class SkinTone(NamedTuple):
    """The face's own colour: medians of Y, U, V, their spreads (as sigma), and the light's kind.

    `colourful` is 0 for a black-and-white picture, 1 for one in colour; `cast` is 1 under strongly
    coloured light. `lids` says how far the eyelids look like skin: 0 behind dark lenses.
    """

    y: float
    u: float
    v: float
    spread_y: float
    spread_u: float
    spread_v: float
    colourful: float
    cast: float
    lids: float

    @property
    def light(self) -> float:
        """Luma against that of ordinary skin in ordinary light."""
        return self.y / _TYPICAL_LUMA


@dataclass(slots=True, eq=False)
class Masks:
    """On the coarse grid, float32 0..1.

    `skin` is the face without eyes, lips, brows, hair; `features` the same by shape alone; `oval`
    the face whole; `tone` skin with ears and neck; `fade` 1 on the face, 0 at 30 mm from it.
    """

    skin: Floats
    features: Floats
    oval: Floats
    tone: Floats
    fade: Floats


def measure_tone(
    geometry: FaceGeometry, yuv: tuple[NDArray[np.uint8], ...], before: SkinTone | None, dt_s: float
) -> SkinTone:
    """Return the face's colour from coarse planes, calmed by the one `before` unless it jumped."""
    height, width = yuv[0].shape
    at = np.rint(geometry.coarse[_MEASURED]).astype(np.intp)
    columns = np.minimum(np.maximum(at[:, 0], 0), width - 1)
    rows = np.minimum(np.maximum(at[:, 1], 0), height - 1)
    found = np.stack([plane[rows, columns] for plane in yuv]).astype(np.float32)
    values = found[:, : len(_SAMPLES)]
    middle = np.partition(values, _MIDDLE, axis=1)[:, _MIDDLE]
    off = np.abs(values - middle[:, None])
    spread = np.partition(off, _MIDDLE, axis=1)[:, _MIDDLE] * np.float32(_MAD_TO_SIGMA * _WIDTH)
    y, u, v = middle.tolist()
    spread_y, spread_u, spread_v = spread.tolist()
    now = SkinTone(
        y=y,
        u=u,
        v=v,
        spread_y=spread_y,
        spread_u=spread_u,
        spread_v=spread_v,
        colourful=_rise(_measure_chroma(yuv), _GREY, _COLOURFUL),
        cast=_rise(max(abs(u - ORDINARY_U), abs(v - ORDINARY_V)), *_CAST),
        lids=1.0,
    )
    lids = np.sort(found[:, len(_SAMPLES) :], axis=1)[:, _LID_MIDDLE].sum(axis=1) / 2
    now = now._replace(lids=_match_lids(lids.tolist(), now))
    if before is None or max(abs(now[i] - before[i]) for i in range(3)) > _JUMP:
        return now
    share = min(dt_s / _SETTLE_S, 1.0)
    return SkinTone(*(old + share * (new - old) for old, new in zip(before, now, strict=True)))


def _measure_chroma(yuv: tuple[NDArray[np.uint8], ...]) -> float:
    """Return the mean distance of chroma from grey, U's and V's together."""
    return sum(float(cv2.mean(cv2.LUT(plane, _FROM_GREY))[0]) for plane in yuv[1:])


def _match_lids(yuv: list[float], tone: SkinTone) -> float:
    """Return how far the upper lids look like skin, 0..1: lenses and hair do not."""
    y, u, v = yuv
    off = ((u - tone.u) / max(tone.spread_u, 12.0)) ** 2
    off += ((v - tone.v) / max(tone.spread_v, 12.0)) ** 2
    fits = math.exp(-0.5 * off) * _rise(y, 0.22 * tone.y, 0.5 * tone.y)
    return _rise(fits, 0.25, 0.6)


def _rise(value: float, low: float, high: float) -> float:
    return min(max((value - low) / max(high - low, 1e-6), 0.0), 1.0)


class MaskKeeper:
    """Makes the masks of one face on every other frame, and moves them along in between.

    They are soft, and their making is a sixth of a light look's cost.
    """

    def __init__(self) -> None:
        self._masks: Masks | None = None
        self._geometry: FaceGeometry | None = None
        self.is_fresh = False

    def get(self, geometry: FaceGeometry) -> Masks | None:
        """Return the last frame's masks moved along; None: they must be made."""
        before, masks = self._geometry, self._masks
        if not self.is_fresh or before is None or masks is None:
            return None
        self.is_fresh = False
        if before.grid[2:] != geometry.grid[2:]:
            return None
        moves = geometry.coarse[_OUTLINE] - before.coarse[_OUTLINE]
        way = moves.sum(axis=0) / len(_OUTLINE)
        if np.abs(moves - way).max() > _SHAPE_CHANGE:
            return None
        return _move_masks(masks, float(way[0]), float(way[1]))

    def keep(self, masks: Masks, geometry: FaceGeometry) -> None:
        """Remember masks just made."""
        self._masks, self._geometry, self.is_fresh = masks, geometry, True


def _move_masks(masks: Masks, x: float, y: float) -> Masks:
    if math.hypot(x, y) < _AT_REST:
        return replace(masks)
    matrix = np.array([[1.0, 0.0, x], [0.0, 1.0, y]])
    fields = (masks.skin, masks.features, masks.oval, masks.tone, masks.fade)
    size = (masks.skin.shape[1], masks.skin.shape[0])
    moved = [np.empty_like(one) for one in fields]
    for one, out in zip(fields, moved, strict=True):
        cv2.warpAffine(one, matrix, size, dst=out, flags=cv2.INTER_LINEAR)
    return Masks(*moved)


def create_masks(
    geometry: FaceGeometry, yuv: tuple[NDArray[np.uint8], ...], tone: SkinTone
) -> Masks:
    """Return the masks of a face from its coarse planes; `tone` is not yet fitted to edges."""
    height, width = yuv[0].shape
    features, oval = _draw_shapes(geometry, height, width)
    skin_table, wide_table = _create_tables(tone)
    skin = blur_box(_match(yuv, skin_table), geometry.count_coarse(4.0))
    skin *= features
    fade = _measure_fade(geometry, height, width)
    wide = _match(yuv, wide_table)
    wide *= fade
    return Masks(skin=skin, features=features, oval=oval, tone=wide, fade=fade)


def _draw_shapes(geometry: FaceGeometry, height: int, width: int) -> tuple[Floats, Floats]:
    """Return the face without its features and whole, both soft."""
    drawn = np.zeros((height, width), np.uint8)
    oval, *parts = trace_parts(geometry)
    cv2.fillPoly(drawn, [oval], _OPAQUE, shift=SHIFT)
    whole = drawn.copy()
    for part in parts:
        cv2.fillPoly(drawn, [part], 0, shift=SHIFT)
    both = cv2.merge([drawn, whole])
    side = geometry.count_coarse(5.0)
    for _ in (0, 1):
        both = cv2.blur(both, (side, side), borderType=cv2.BORDER_REPLICATE)
    soft = np.multiply(both, np.float32(1 / _OPAQUE))
    return np.ascontiguousarray(soft[..., 0]), np.ascontiguousarray(soft[..., 1])


def _create_tables(tone: SkinTone) -> tuple[Floats, Floats]:
    """Return (3, 256) weights of each level of Y, U, V: for skin, and for ears and neck too."""
    sigma = np.array(
        [
            [max(_MIN_SIGMA, tone.spread_u), max(_MIN_SIGMA, tone.spread_v)],
            [_TONE_SIGMA * min(max(tone.light, 0.4), 1.0)] * 2,
        ],
        np.float32,
    )
    middle = np.array([tone.u, tone.v], np.float32)
    off = (_LEVELS - middle[None, :, None]) / sigma[:, :, None]
    chroma = np.exp(-0.5 * off * off)
    low = np.array([0.28, 0.20], np.float32)[:, None] * tone.y
    rise = np.array([0.30, 0.35], np.float32)[:, None] * max(tone.y, 1.0)
    luma = np.clip((_LEVELS - low) / rise, 0.0, 1.0)
    tables = np.concatenate([luma[:, None], chroma], axis=1).astype(np.float32)
    return tables[0], tables[1]


def _match(yuv: tuple[NDArray[np.uint8], ...], table: Floats) -> Floats:
    weight = look_up(yuv[0], table[0])
    weight *= look_up(yuv[1], table[1])
    weight *= look_up(yuv[2], table[2])
    return weight


def _measure_fade(geometry: FaceGeometry, height: int, width: int) -> Floats:
    """Return 1 within the face's oval, falling softly to 0 at 32 mm from it."""
    outside = np.full((height, width), _OPAQUE, np.uint8)
    cv2.fillPoly(outside, [to_fixed(geometry.coarse[OVAL])], 0, shift=SHIFT)
    away = cv2.distanceTransform(outside, cv2.DIST_L2, 3)
    scale = 1.0 / (_FADE_MM * geometry.mm_coarse)
    share = clip(np.float32(1.0 + 2.0 / _FADE_MM) - away * np.float32(scale), 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)
