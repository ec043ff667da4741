"""Lips and teeth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.effects.beauty_canvas import blur_box, clip
from livefuse.pipeline.effects.beauty_makeup import fade_sides, light_colour
from livefuse.pipeline.effects.beauty_patch import (
    add_chroma,
    cut_patch,
    fill_polygons,
    find_median,
    read_chroma,
)
from livefuse.pipeline.topology import LIPS_INNER, LIPS_OUTER

if TYPE_CHECKING:
    from livefuse.pipeline.effects.beauty_canvas import Canvas, Floats
    from livefuse.pipeline.effects.beauty_patch import Patch

_CLOSED_MM: Final = 1.5  # lips nearer than this show no teeth
_OPEN_MM: Final = 2.5
_LIP_SPREAD: Final = 392.0  # 2 * 14^2: teeth, tongue and a microphone lie further off
_FEW: Final = 8
# Share of the mouth that looks like lips: below the first it is covered, all but some edges.
_HIDDEN: Final = 0.2
_SEEN_RISE: Final = 0.25
_PROFILE: Final = 0.4  # what is left of the tint where half the mouth is guessed


def paint_mouth(canvas: Canvas) -> None:
    """`lips`, `gloss`, `teeth`."""
    if not canvas.amounts.has_any("lips", "gloss", "teeth"):
        return
    work = canvas.geometry.work
    patch = cut_patch(canvas, work[LIPS_OUTER], 2.5)
    if patch is None:
        return
    luma = canvas.luma[patch.box]
    u, v = read_chroma(canvas, patch)
    if canvas.amounts.has_any("lips", "gloss"):
        _tint_lips(canvas, patch, luma, u, v)
    opening = math.dist(work[13], work[14]) / canvas.geometry.mm_work
    share = min(max((opening - _CLOSED_MM) / (_OPEN_MM - _CLOSED_MM), 0.0), 1.0)
    if canvas.amounts["teeth"] * share > 0.0:
        _clear_teeth(canvas, patch, share, luma, u, v)


def _tint_lips(canvas: Canvas, patch: Patch, luma: Floats, u: Floats, v: Floats) -> None:
    amounts, tone = canvas.amounts, canvas.tone
    work = canvas.geometry.work
    weight = fill_polygons(patch, [(work[LIPS_OUTER], 1.0), (work[LIPS_INNER], 0.0)], 3)
    inside = weight > 0.5  # noqa: PLR2004 - more lip than not
    if int(inside.sum()) < _FEW:
        return
    calm = canvas.calm
    mean_u = calm.settle("lips_u", find_median(u[inside]))
    mean_v = calm.settle("lips_v", find_median(v[inside]))
    mean_y = calm.settle("lips_y", find_median(luma[inside]))
    whole = float(weight.sum())
    weight *= np.exp(((u - mean_u) ** 2 + (v - mean_v) ** 2) * np.float32(-1 / _LIP_SPREAD))
    weight *= _keep_off_skin(canvas, luma, u, v)
    seen = calm.settle("lips_seen", float(weight.sum()) / whole)
    weight *= np.float32(min(max((seen - _HIDDEN) / _SEEN_RISE, 0.0), 1.0))
    weight *= np.float32(_PROFILE + (1.0 - _PROFILE) * min(fade_sides(canvas.geometry)))
    target = amounts.colours["lip_color"]
    tint = amounts["lips"]
    change = weight * np.float32(tint * min(max(0.5 * (target[0] - mean_y), -38.0), 14.0))
    change += (
        clip(luma - np.float32(mean_y + 6.0), 0.0, 40.0)
        * weight
        * np.float32(0.8 * amounts["gloss"])
    )
    detail = canvas.get_detail()
    detail[patch.box] += change
    if tint > 0.0:
        weight *= np.float32(0.66 * tint * tone.colourful)
        to_u, to_v = light_colour(tone, target)
        add_chroma(canvas, patch, weight * (to_u - u), weight * (to_v - v))


def _keep_off_skin(canvas: Canvas, luma: Floats, u: Floats, v: Floats) -> Floats:
    """Return 0 where the lips look like the skin around: a finger before the mouth does.

    In a black-and-white picture only luma is left to tell them apart.
    """
    tone = canvas.tone
    off = np.abs(v - tone.v) + np.abs(u - tone.u)
    off += np.abs(luma - tone.y) * np.float32(0.3 + 0.3 * (1.0 - tone.colourful))
    around = blur_box(off, canvas.geometry.count_work(4.0))
    return clip((around - np.float32(5.0)) * np.float32(1 / 8), 0.0, 1.0)


def _clear_teeth(
    canvas: Canvas, patch: Patch, share: float, luma: Floats, u: Floats, v: Floats
) -> None:
    """Take the yellow from what is bright and nearly grey between the lips."""
    tone = canvas.tone
    weight = fill_polygons(patch, [(canvas.geometry.work[LIPS_INNER], 1.0)], 3)
    weight *= clip(
        (luma - np.float32(0.62 * tone.y)) * np.float32(4.0 / max(tone.y, 1.0)), 0.0, 1.0
    )
    weight *= clip(1.2 - np.abs(v - np.float32(128)) * np.float32(1 / 26), 0.0, 1.0)
    weight *= np.float32(canvas.amounts["teeth"] * share)
    detail = canvas.get_detail()
    detail[patch.box] += weight * np.minimum(np.float32(0.10) * luma, np.float32(18.0))
    weight *= np.float32(tone.colourful * (1.0 - tone.cast))
    add_chroma(canvas, patch, 0.65 * weight * (129.0 - u), 0.6 * weight * (127.5 - v))
