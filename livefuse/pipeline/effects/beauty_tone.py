"""Light and colour of the skin, about the face's own; and contrast of what is not skin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import blur_box, clip, enlarge, look_up
from livefuse.pipeline.effects.beauty_skin import TONE_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_amounts import Amounts
    from livefuse.pipeline.effects.beauty_canvas import Buffers, Canvas, Floats
    from livefuse.pipeline.effects.beauty_masks import SkinTone

_LEVELS: Final = np.arange(256, dtype=np.float32)
_NEUTRAL: Final = 128.0
# A logarithmic curve that lifts the middle most and leaves black and white.
_FAIR_CURVE: Final = 255.0 * np.log1p(2.2 / 255.0 * _LEVELS) / np.float32(math.log(3.2)) - _LEVELS
_FAIR_U: Final = 119.0
_FAIR_V: Final = 139.0
_SHINE_MM: Final = 14.0
_CLARITY_MM: Final = 8.0
_WIDE_BLUR_EYES_PX: Final = 130.0


def change_tone(canvas: Canvas) -> None:
    """Brighten, whiten, rosy, warm, contrast, saturation: all within the tone mask."""
    amounts, tone = canvas.amounts, canvas.tone
    if not amounts.has_any(*TONE_NAMES):
        return
    mask = canvas.masks.tone
    lift, strength = _create_curves(amounts, tone)
    level = clip(canvas.smooth_luma + np.float32(0.5), 0.0, 255.0).astype(np.uint8)
    canvas.lift += look_up(level, lift) * mask
    gain = look_up(level, strength)
    fair = 1.0 - tone.cast
    pull = amounts["whiten"] * get_lightness(tone) * fair
    shift_u, shift_v = _shift_colour(amounts, tone)
    mask = mask * np.float32(tone.colourful)
    for lift_by, plane, share, shift, fair_level in (
        (canvas.lift_u, canvas.coarse_u, 0.22 * pull, shift_u, _FAIR_U),
        (canvas.lift_v, canvas.coarse_v, 0.18 * pull, shift_v, _FAIR_V),
    ):
        change = gain - np.float32(share)
        change *= plane.astype(np.float32) - np.float32(_NEUTRAL)
        change += np.float32(shift + share * (fair_level - _NEUTRAL))
        change *= mask
        np.add(lift_by, change, out=lift_by)


def get_lightness(tone: SkinTone) -> float:
    """Return 0 for dark skin, 1 for fair: pulling dark skin towards a fair hue turns it grey."""
    return min(max((tone.y - 60.0) / 90.0, 0.0), 1.0)


def _create_curves(
    amounts: Amounts, tone: SkinTone
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return 256 luma changes by luma, and 256 factors of what chroma gains with it."""
    exponent = 1.0 - 0.5 * amounts["brighten"] * min(max((160.0 - tone.y) / 80.0, 0.2), 1.0)
    bright = 255.0 * (_LEVELS / 255.0) ** np.float32(exponent) - _LEVELS
    fair = 0.85 * amounts["whiten"] * (0.45 + 0.55 * get_lightness(tone)) * _FAIR_CURVE
    contrast = 0.35 * amounts["contrast"] * np.clip(_LEVELS - tone.y, -60.0, 60.0)
    # Luma alone makes skin look grey: chroma grows in step.
    gain = 0.85 * bright / (_LEVELS + 16.0) + 0.6 * fair / (_LEVELS + 24.0)
    gain += 0.5 * amounts["saturation"]
    return (bright + fair + contrast).astype(np.float32), gain.astype(np.float32)


def _shift_colour(amounts: Amounts, tone: SkinTone) -> tuple[float, float]:
    rosy, warm = amounts["rosy"], amounts["warm"]
    if warm > 0.0:
        # What is warm already has less room: it would turn orange.
        u = -8.0 * warm * min(max((tone.u - 92.0) / 16.0, 0.15), 1.0)
        v = 4.0 * warm * min(max((164.0 - tone.v) / 16.0, 0.15), 1.0)
    else:
        u, v = -8.0 * warm, 4.0 * warm
    return u - 1.5 * rosy, v + 7.0 * rosy


def change_shine(canvas: Canvas) -> None:
    """Strengthen or tame broad highlights."""
    amount = canvas.amounts["shine"]
    if amount == 0.0:
        return
    around = blur_box(canvas.smooth_luma, canvas.geometry.count_coarse(_SHINE_MM))
    above = clip(canvas.smooth_luma - around, 0.0, 30.0)
    canvas.lift += above * canvas.masks.skin * np.float32(0.9 * amount)


def clear_features(canvas: Canvas) -> None:
    """`clarity`: contrast over some millimetres, mostly off the skin. At working scale."""
    amount = canvas.amounts["clarity"]
    if amount <= 0.0:
        return
    side = canvas.geometry.count_work(_CLARITY_MM)
    gap = canvas.luma - blur_box(blur_box(canvas.luma, side), side)
    clip(gap, -35.0, 35.0)
    gap *= enlarge(weigh_features(canvas) * np.float32(0.26 * amount), canvas.grid.work)
    detail = canvas.get_detail()
    detail += gap


def weigh_features(canvas: Canvas, skin_share: float = 0.65) -> Floats:
    """Return where sharpening goes: the face, less so its skin. On the coarse grid."""
    masks = canvas.masks
    return masks.oval * (1.0 - np.float32(skin_share) * masks.skin)


def sharpen(canvas: Canvas, extra: float, buffers: Buffers) -> None:
    """Unsharp masking of luma on the frame's px, in place.

    `extra` makes up for what a bilinear warp will blur. In saturating bytes, up and down apart:
    four times quicker than signed or float numbers.
    """
    amount = canvas.amounts["sharpen"] + extra
    if amount <= 0.0:
        return
    weight = (weigh_features(canvas, 0.75) * np.float32(255)).astype(np.uint8)
    scale = 2 * canvas.grid.k
    rows, columns = bound_weight(weight)
    y = canvas.y[
        rows.start * scale : rows.stop * scale, columns.start * scale : columns.stop * scale
    ]
    height, width = y.shape
    if not y.size:
        return
    blurred = buffers.get_bytes("blurred", height, width)
    _blur_fine(y, canvas.geometry.eyes_px, blurred)
    large = buffers.get_bytes("weight", height, width)
    cv2.resize(weight[rows, columns], (width, height), dst=large, interpolation=cv2.INTER_LINEAR)
    up = buffers.get_bytes("up", height, width)
    cv2.subtract(y, blurred, dst=up)
    cv2.subtract(blurred, y, dst=blurred)
    cv2.multiply(up, large, dst=up, scale=0.85 * amount / 255.0)
    cv2.multiply(blurred, large, dst=blurred, scale=0.85 * amount / 255.0)
    cv2.add(y, up, dst=y)
    cv2.subtract(y, blurred, dst=y)


def _blur_fine(y: NDArray[np.uint8], eyes_px: float, out: NDArray[np.uint8]) -> None:
    if eyes_px > _WIDE_BLUR_EYES_PX:
        side = 2 * max(1, round(0.0075 * eyes_px)) + 1
        cv2.blur(y, (side, side), dst=out, borderType=cv2.BORDER_REPLICATE)
        cv2.blur(out, (side, side), dst=out, borderType=cv2.BORDER_REPLICATE)
    else:
        sigma = max(0.8, 0.010 * eyes_px)
        cv2.GaussianBlur(y, (5, 5), sigma, dst=out, borderType=cv2.BORDER_REPLICATE)


def bound_weight(weight: NDArray[np.uint8]) -> tuple[slice, slice]:
    """Return the rows and columns within which `weight` is above 0."""
    x, y, width, height = cv2.boundingRect(weight)
    return slice(y, y + height), slice(x, x + width)
