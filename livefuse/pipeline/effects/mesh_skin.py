"""What of an unwrapped source is skin: hair, fringe, straps and rim light are not.

Robust colour distance (median and MAD, in CIELAB of 8 bits) to patches that are skin on any face;
asked only where hair can be, at the forehead and the sides, and never on features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_lowband import MAD_TO_SD, blur
from livefuse.pipeline.effects.mesh_regions import (
    BROW_GROW_PX,
    BROW_HULLS,
    UV_PX,
    draw_hair_zone,
    draw_polygons,
    get_regions,
    smooth_step,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Values = NDArray[np.float32]

_PATCHES: Final = (50, 280, 205, 425, 101, 330, 36, 266, 195, 5, 118, 347)
_PATCH_REACH_PX: Final = 6
_LEAST_SD_LAB: Final = np.array([14, 4, 5], np.float32)
_PASSES: Final = 2
_LIGHTNESS_SHARE, _BRIGHTER_SHARE = 0.7, 0.55


def find_skin(unwrapped: Values, find_low: Callable[[Values], Values]) -> Values:
    """Return 0..1 (512, 512): 1 is skin or a feature. `unwrapped` is RGB 0..255, (512, 512, 3).

    `find_low` gives the low band of the px that a (512, 512) mask 0..1 lets through.
    """
    lab = _to_lab(unwrapped)
    zone = draw_hair_zone((120, 150), (130, 175), (330, 380))
    skin = 1 - zone
    for _ in range(_PASSES):
        skin = _judge(lab, *_choose_reference(lab, _to_lab(find_low(skin))))
    # Along the jaw a beard is the source's own; hair that falls there falls on one side only.
    jaw = draw_hair_zone((0, 1), (120, 165), (440, 480)) * skin[:, ::-1] ** 2
    zone = np.maximum(zone, jaw)
    hidden = (1 - skin) * zone
    grown = np.asarray(cv2.dilate(hidden, np.ones((15, 15), np.uint8)), np.float32)
    # A brow is no skin, but with hair just above or beside it, it is not all brow either.
    near = np.maximum(_widen(zone), get_regions().features * _find_brows())
    return np.asarray(1 - blur(np.asarray(grown * near, np.float32), 4.0), np.float32)


def _choose_reference(lab: Values, low: Values) -> tuple[Values, Values]:
    """Return what skin should look like at each px, and its standard deviation.

    In even light that is the patches' median, half of it the local light; the more the patches
    differ from one another and not from their local light, the more the latter counts: a face lit
    from the side is skin on both sides.
    """
    patches = np.concatenate([_cut_patch(lab, point) for point in _PATCHES])
    local = np.concatenate([_cut_patch(low, point) for point in _PATCHES])
    median = np.median(patches, axis=0)
    apart = MAD_TO_SD * np.median(np.abs(patches - median), axis=0)
    within = MAD_TO_SD * np.median(np.abs(patches - local), axis=0)
    sd = np.maximum(np.minimum(apart, 1.5 * within), _LEAST_SD_LAB)
    share = np.clip(1.5 - 1.5 * within / np.maximum(apart, _LEAST_SD_LAB), 0.5, 1.0)
    reference = (1 - share) * median + share * low
    return np.asarray(reference, np.float32), np.asarray(sd, np.float32)


def _find_brows() -> Values:
    """Return 1 on the brows' half of the features, 0 on eyes, nostrils and lips."""
    return draw_polygons(*BROW_HULLS, grow_px=BROW_GROW_PX)


def _judge(lab: Values, reference: Values, sd: Values) -> Values:
    error = (lab - reference) / sd
    lightness = error[:, :, 0] * _LIGHTNESS_SHARE
    error[:, :, 0] = np.where(lightness > 0, _BRIGHTER_SHARE * lightness, lightness)
    distance = blur(np.sqrt((error * error).sum(axis=2)).astype(np.float32), 2.5)
    return 1 - smooth_step(2.6, 4.2, distance)


def _widen(zone: Values) -> Values:
    return np.asarray(cv2.dilate(zone, np.ones((15, 15), np.uint8)), np.float32)


def _to_lab(rgb: Values) -> Values:
    """Return CIELAB scaled as in 8 bits: lightness 0..255, a and b about 128."""
    lab = np.asarray(cv2.cvtColor(np.clip(rgb / 255, 0, 1).astype(np.float32), cv2.COLOR_RGB2Lab))
    return np.asarray(lab * (2.55, 1.0, 1.0) + (0, 128, 128), np.float32)


def _cut_patch(lab: Values, point: int) -> Values:
    x, y = (round(float(value)) for value in UV_PX[point])
    reach = _PATCH_REACH_PX
    return lab[y - reach : y + reach + 1, x - reach : x + reach + 1].reshape(-1, 3)
