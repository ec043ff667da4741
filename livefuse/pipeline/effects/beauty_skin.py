"""Skin: smoothing that keeps pores, even colour, lighter folds and shades under the eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import blur_box, clip, enlarge

if TYPE_CHECKING:
    from livefuse.pipeline.effects.beauty_canvas import Buffers, Canvas, Floats

_SMOOTH_MM: Final = 13.0  # side of the window: 6 mm to each side
_SMOOTH_EPS: Final = 260.0
_TONE_EPS: Final = 120.0
_EVEN_MM: Final = 11.0
_FOLDS_MM: Final = 9.0
# What works within the tone mask.
TONE_NAMES: Final = ("brighten", "whiten", "rosy", "warm", "contrast", "saturation")


def smooth_skin(canvas: Canvas) -> None:
    """Take blotches of half a mm to 6 mm from the skin, and fit the tone mask to edges.

    A guided filter of luma by itself (He, Sun, Tang 2010; its fast form, 2015): a Y + b with a, b
    from variance and mean of a window, on the coarse grid; a falls to 0 where the variance is well
    below eps. Dark pictures have little contrast, so eps shrinks with their luma.
    """
    light = min(canvas.tone.light, 1.0)
    side = canvas.geometry.count_coarse(_SMOOTH_MM)
    luma = canvas.coarse_luma.astype(np.float32)
    mean = blur_box(luma, side)
    variance = blur_box(luma * luma, side)
    variance -= mean * mean
    np.maximum(variance, 0.0, out=variance)
    if canvas.amounts.has_any(*TONE_NAMES):
        _fit_tone_mask(canvas, luma, mean, variance, side)
    eps = np.float32(_SMOOTH_EPS * max(light * light, 0.15))
    slope: Floats = variance / (variance + eps)
    b = blur_box(mean - slope * mean, side)
    a = blur_box(slope, side)
    canvas.smooth_luma = a * luma + b
    amount = canvas.amounts["smooth"]
    if amount > 0.0:
        weight = canvas.masks.skin * np.float32(amount)
        a -= 1.0
        canvas.gain = np.multiply(a, weight, out=a)
        canvas.lift += np.multiply(b, weight, out=b)


def _fit_tone_mask(canvas: Canvas, luma: Floats, mean: Floats, variance: Floats, side: int) -> None:
    """Let the tone mask end where luma does: background beside the jaw would glow."""
    mask = canvas.masks.tone
    light = min(canvas.tone.light, 1.0)
    mask_mean = blur_box(mask, side)
    slope = blur_box(mask * luma, side)
    slope -= mask_mean * mean
    slope /= variance + np.float32(_TONE_EPS * max(light * light, 0.02))
    offset = mask_mean - slope * mean
    fitted = blur_box(slope, side) * luma
    fitted += blur_box(offset, side)
    clip(fitted, 0.0, 1.0)
    fitted *= np.minimum(canvas.masks.fade * 4.0, 1.0)
    canvas.masks.tone = fitted


def flatten_pores(canvas: Canvas, buffers: Buffers) -> None:
    """Take what is finer than the working grid too: `texture` below 1. On the frame's px."""
    amount = canvas.amounts["smooth"] * (1.0 - canvas.amounts["texture"])
    if amount <= 0.0:
        return
    height, width = canvas.y.shape
    size = (width, height)
    coarser = buffers.get_floats("coarser", height, width)
    if canvas.grid.k == 1:
        cv2.blur(canvas.luma, (3, 3), dst=coarser, borderType=cv2.BORDER_REPLICATE)
    else:
        cv2.resize(canvas.luma, size, dst=coarser, interpolation=cv2.INTER_LINEAR)
    change = np.subtract(coarser, canvas.y, out=coarser)
    change *= enlarge(canvas.masks.skin * np.float32(amount), size)
    cv2.add(canvas.y, change, dst=canvas.y, dtype=cv2.CV_8U)


def even_colour(canvas: Canvas) -> None:
    """Draw chroma towards its mean over the skin around."""
    amount = canvas.amounts["even"] * canvas.tone.colourful
    if amount <= 0.0:
        return
    skin = canvas.masks.skin
    weight = skin + np.float32(0.02)
    u, v = canvas.coarse_u.astype(np.float32), canvas.coarse_v.astype(np.float32)
    mean = cv2.merge([u * weight, v * weight, weight])
    side = canvas.geometry.count_coarse(_EVEN_MM)
    for _ in (0, 1):
        mean = cv2.blur(mean, (side, side), borderType=cv2.BORDER_REPLICATE)
    share = np.reciprocal(mean[..., 2])
    pull = skin * np.float32(0.8 * amount)
    canvas.lift_u += clip(mean[..., 0] * share - u, -8.0, 8.0) * pull
    canvas.lift_v += clip(mean[..., 1] * share - v, -8.0, 8.0) * pull


def fill_folds(canvas: Canvas, weight: Floats) -> None:
    """Lift the dark side of the folds beside nose and mouth; `weight` (coarse) is where."""
    amount = canvas.amounts["folds"]
    if amount <= 0.0:
        return
    side = canvas.geometry.count_coarse(_FOLDS_MM)
    around = blur_box(blur_box(canvas.smooth_luma, side), side)
    gap = clip(around - canvas.smooth_luma, 0.0, 22.0)
    canvas.lift += gap * np.minimum(weight, 1.0) * canvas.masks.skin * np.float32(amount)


def lift_dark_circles(canvas: Canvas, weight: Floats) -> None:
    """Bring luma and colour under the eyes towards the cheek's; `weight` (coarse) is where."""
    amount = canvas.amounts["dark_circles"]
    if amount <= 0.0:
        return
    tone, smooth = canvas.tone, canvas.smooth_luma
    share = np.minimum(weight, 1.0) * canvas.masks.skin * np.float32(amount)
    cheek = measure_cheek(canvas)
    canvas.lift += share * clip((cheek - smooth) * np.float32(0.75), 0.0, 26.0)
    share *= np.float32(0.35 * tone.colourful)
    canvas.lift_u += share * clip(np.float32(tone.u) - canvas.coarse_u, -6.0, 6.0)
    canvas.lift_v += share * clip(np.float32(tone.v) - canvas.coarse_v, -6.0, 6.0)


_CHEEKS: Final = np.array([50, 280, 205, 425])


def measure_cheek(canvas: Canvas) -> float:
    """Return the luma of the cheeks: the mean of the middle two of four points."""
    height, width = canvas.smooth_luma.shape
    at = np.rint(canvas.geometry.coarse[_CHEEKS]).astype(np.intp)
    rows, columns = np.clip(at[:, 1], 0, height - 1), np.clip(at[:, 0], 0, width - 1)
    low, high = np.sort(canvas.smooth_luma[rows, columns])[1:3].tolist()
    return float(low + high) / 2
