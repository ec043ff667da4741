"""Where skin is: a shape from the landmarks, times how well each px fits the face's own colour.

Skin colour is only ever this face's own, measured at points of its cheeks, nose and forehead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import blur_box
from livefuse.pipeline.effects.beauty_geometry import SHIFT, FaceGeometry, to_fixed, trace_parts
from livefuse.pipeline.topology import OVAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_canvas import Floats

_SAMPLES: Final = np.array([50, 280, 205, 425, 101, 330, 36, 266, 195, 151, 9, 108, 337, 118, 347])
_LIDS: Final = np.array([27, 28, 29, 257, 258, 259])
_MIDDLE: Final = len(_SAMPLES) // 2
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
# Mean distance of a region's chroma from grey: below the first a black-and-white picture.
_GREY: Final = 0.8
_COLOURFUL: Final = 2.0
# Distance of skin from grey at which the light is coloured: fixed targets of colour end there.
_CAST: Final = (30.0, 45.0)


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
    at = np.rint(geometry.coarse[_SAMPLES]).astype(np.intp)
    columns = np.clip(at[:, 0], 0, width - 1)
    rows = np.clip(at[:, 1], 0, height - 1)
    values = np.stack([plane[rows, columns] for plane in yuv]).astype(np.float32)
    middle = np.partition(values, _MIDDLE, axis=1)[:, _MIDDLE]
    off = np.abs(values - middle[:, None])
    spread = np.partition(off, _MIDDLE, axis=1)[:, _MIDDLE] * (_MAD_TO_SIGMA * _WIDTH)
    y, u, v = middle.tolist()
    grey = float(cv2.mean(cv2.absdiff(yuv[1], 128.0))[0] + cv2.mean(cv2.absdiff(yuv[2], 128.0))[0])
    far = max(abs(u - 128), abs(v - 128))
    now = SkinTone(
        y,
        u,
        v,
        *spread.tolist(),
        colourful=_rise(grey, _GREY, _COLOURFUL),
        cast=_rise(far, *_CAST),
        lids=1.0,
    )
    now = now._replace(lids=_match_lids(geometry, yuv, now))
    if before is None or max(abs(now[i] - before[i]) for i in range(3)) > _JUMP:
        return now
    share = min(dt_s / _SETTLE_S, 1.0)
    return SkinTone(*(old + share * (new - old) for old, new in zip(before, now, strict=True)))


def _match_lids(
    geometry: FaceGeometry, yuv: tuple[NDArray[np.uint8], ...], tone: SkinTone
) -> float:
    """Return how far the upper lids look like skin, 0..1: lenses and hair do not."""
    height, width = yuv[0].shape
    at = np.rint(geometry.coarse[_LIDS]).astype(np.intp)
    columns, rows = np.clip(at[:, 0], 0, width - 1), np.clip(at[:, 1], 0, height - 1)
    y, u, v = (np.sort(plane[rows, columns])[2:4].mean() for plane in yuv)
    off = ((u - tone.u) / max(tone.spread_u, 12.0)) ** 2
    off += ((v - tone.v) / max(tone.spread_v, 12.0)) ** 2
    fits = float(np.exp(-0.5 * off)) * _rise(float(y), 0.22 * tone.y, 0.5 * tone.y)
    return _rise(fits, 0.25, 0.6)


def _rise(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


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
    weight = cv2.LUT(yuv[0], table[0])
    weight *= cv2.LUT(yuv[1], table[1])
    weight *= cv2.LUT(yuv[2], table[2])
    return weight


def _measure_fade(geometry: FaceGeometry, height: int, width: int) -> Floats:
    """Return 1 within the face's oval, falling softly to 0 at 32 mm from it."""
    outside = np.full((height, width), _OPAQUE, np.uint8)
    cv2.fillPoly(outside, [to_fixed(geometry.coarse[OVAL])], 0, shift=SHIFT)
    away = cv2.distanceTransform(outside, cv2.DIST_L2, 3)
    scale = 1.0 / (_FADE_MM * geometry.mm_coarse)
    share = np.clip(1.0 + 2.0 / _FADE_MM - away * np.float32(scale), 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)
