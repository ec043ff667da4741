"""The fox: fur, a white muzzle, ears that ride on the head, amber eyes with slit pupils."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from livefuse.pipeline.effects.avatar_eyes import EyeStyle
from livefuse.pipeline.effects.avatar_light import Gloss
from livefuse.pipeline.effects.avatar_mouth import MouthStyle
from livefuse.pipeline.effects.avatar_paint import (
    Canvas,
    bend,
    flip,
    get_points,
    grow,
    move,
)
from livefuse.pipeline.effects.avatar_render import Drawing
from livefuse.pipeline.effects.avatar_shape import (
    LEFT,
    TEXTURE_PX,
    TOP,
    WIDTH_PX,
    Ear,
    Ring,
    create_shape,
)
from livefuse.pipeline.topology import EYE_LEFT, LIPS_INNER, LIPS_OUTER, OVAL

_ORANGE: Final = (226, 124, 46)
_RUST: Final = (176, 80, 26)
_CREAM: Final = (250, 240, 224)
_DARK: Final = (44, 26, 22)
_EYE: Final = EyeStyle(
    white=(252, 246, 226),
    rings=(
        (0.0, (14, 10, 8)),
        (0.30, (18, 12, 8)),
        (0.38, (255, 206, 70)),
        (0.62, (250, 170, 36)),
        (0.88, (196, 104, 20)),
        (0.97, (70, 34, 12)),
    ),
    iris=0.27,
    grow=(1.16, 1.42),
    line=_DARK,
    line_width=0.11,
    shadow=0.55,
    glint=1.0,
    slit=0.45,
)
_EAR: Final = Ear(
    feet=(21, 54, 103, 67, 109),
    middle=(-0.41, -0.72, -0.15),
    rim=(
        (-0.18, -0.84, -0.23),
        (-0.31, -1.00, -0.17),
        (-0.44, -1.11, -0.11),
        (-0.55, -1.00, -0.07),
        (-0.62, -0.74, -0.03),
    ),
)
# The left ear as drawn: from the outer foot over the tip to the inner one.
_EAR_LINE: Final = (
    (-0.485, -0.37), (-0.52, -0.61), (-0.487, -0.845), (-0.435, -1.025), (-0.32, -0.885),
    (-0.208, -0.75), (-0.11, -0.60), (-0.2, -0.4),
)  # fmt: skip
_PAD: Final = (
    (-0.01, 0.20), (-0.10, 0.19), (-0.19, 0.255), (-0.18, 0.34), (-0.08, 0.33), (-0.01, 0.28),
)  # fmt: skip
_NOSE: Final = (
    (-0.088, 0.085), (-0.05, 0.045), (0, 0.035), (0.05, 0.045), (0.088, 0.085), (0.07, 0.135),
    (0.02, 0.175), (-0.02, 0.175), (-0.07, 0.135),
)  # fmt: skip


def draw_fox() -> Drawing:
    """Return the drawing."""
    canvas = Canvas(_ORANGE)
    shape = create_shape((Ring(0.10, 0.08, 0.05, 0.05), Ring(0.21, 0.20, 0.13, 0.17)), (_EAR,))
    _, y = canvas.get_places()
    canvas.multiply(np.clip(1.0 + 0.18 * (y + 0.1), 0.82, 1.08))
    for side in (-1.0, 1.0):
        _draw_ear(canvas, side)
    _draw_head(canvas)
    for side in (-1.0, 1.0):
        _draw_cheek(canvas, side)
    _draw_bridge(canvas)
    _draw_fur(canvas)
    for side in (-1.0, 1.0):
        _draw_eye_markings(canvas, side)
    for side in (-1.0, 1.0):
        _draw_muzzle(canvas, side)
    _draw_nose(canvas)
    _draw_mouth(canvas)
    gloss = Gloss(form=0.55, wearer=0.6, sigma=0.09, spots=((-0.3, -0.5, 0.35, 14.0),), rim=16.0)
    mouth = MouthStyle((52, 14, 20), tongue=(226, 104, 112), fangs=(255, 252, 244))
    return Drawing(canvas.finish(), shape, _EYE, mouth, gloss, coat=(70, 92, 78))


def _draw_ear(canvas: Canvas, side: float) -> None:
    outline = bend(flip(_EAR_LINE, side), steps=8)
    canvas.show(canvas.fill_polygon(outline, 0.002))
    canvas.paint(canvas.fill_polygon(outline, 0.004), _RUST)
    tip = flip([(-0.56, -0.80), (-0.46, -1.09), (-0.30, -0.88), (-0.42, -0.84)], side)
    canvas.paint(canvas.fill_polygon(bend(tip, closed=True), 0.02), _DARK)
    inner = flip(
        [(-0.455, -0.45), (-0.485, -0.66), (-0.45, -0.92), (-0.33, -0.80), (-0.20, -0.60)], side
    )
    canvas.paint(canvas.fill_polygon(bend(inner, closed=True), 0.012), (92, 50, 40))
    core = flip(
        [(-0.42, -0.46), (-0.44, -0.64), (-0.42, -0.82), (-0.33, -0.70), (-0.25, -0.56)], side
    )
    canvas.paint(canvas.fill_polygon(bend(core, closed=True), 0.03), (238, 196, 178), 0.85)
    rng = np.random.default_rng(3)
    for _ in range(34):
        start = np.array([-0.35, -0.47]) + rng.normal(0, (0.05, 0.02))
        long = np.array([rng.normal(-0.03, 0.02), -0.08 - 0.12 * rng.random()])
        hair = start + np.stack([0 * long, long / 2, long])
        line = bend(flip(hair, side), steps=5)
        canvas.paint(canvas.draw_line(line, 0.010, 0.005), _CREAM, 0.35)


def _draw_head(canvas: Canvas) -> None:
    """Make the head opaque up to a furry edge."""
    middle = np.array([0.0, 0.06])
    oval = bend(get_points(OVAL), closed=True, steps=12)
    away = oval - middle
    length = np.hypot(away[:, 0], away[:, 1])[:, None]
    direction = away / length
    count = len(oval)
    rng = np.random.default_rng(5)
    # Tufts: longest at the cheeks, where the head is widest, short at the crown.
    low = np.clip((oval[:, 1] + 0.05) / 0.3, 0, 1) * np.clip(np.abs(oval[:, 0]) / 0.3, 0, 1)
    crown = np.clip(-oval[:, 1] - 0.25, 0, 0.2) / 0.2
    reach = 0.045 + 0.06 * low + 0.085 * crown
    saw = np.interp(np.arange(count), *_create_tufts(count, rng))
    edge = oval + direction * (reach + (0.014 + 0.05 * low + 0.012 * crown) * saw)[:, None]
    canvas.shade(canvas.fill_polygon(move(edge, 0, 0.02), 0.02), 0.85)
    mask = canvas.fill_polygon(edge, 0.0015)
    canvas.show(mask)
    canvas.paint(canvas.fill_polygon(middle + (edge - middle) * 0.97, 0.02), _ORANGE)
    crown = [(-0.32, -0.62), (0.32, -0.62), (0.2, -0.42), (0, -0.34), (-0.2, -0.42)]
    canvas.paint(canvas.fill_polygon(bend(crown, closed=True), 0.05), _RUST, 0.55)


def _create_tufts(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return places along the edge and heights there: uneven tufts, steep on one side."""
    places: list[float] = []
    heights: list[float] = []
    at = 0.0
    while at < count:
        long = rng.uniform(3.0, 9.0)
        places += [at, at + 0.62 * long]
        heights += [0.0, rng.uniform(0.45, 1.0)]
        at += long
    return np.array(places), np.array(heights)


def _draw_cheek(canvas: Canvas, side: float) -> None:
    cheek = [
        (-0.66, 0.10),
        (-0.50, 0.015),
        (-0.36, 0.035),
        (-0.20, 0.0),
        (-0.115, 0.05),
        (-0.075, 0.12),
        (0.0, 0.15),
        (0.0, 0.80),
        (-0.30, 0.78),
        (-0.62, 0.55),
    ]
    canvas.paint(canvas.fill_polygon(bend(flip(cheek, side), closed=True), 0.016), _CREAM)
    edge = bend(flip([(-0.52, 0.02), (-0.36, 0.045), (-0.20, 0.012)], side))
    canvas.paint(canvas.draw_line(edge, 0.03, 0.02), _RUST, 0.35)


def _draw_bridge(canvas: Canvas) -> None:
    ridge = [
        (-0.075, -0.2),
        (-0.05, -0.02),
        (-0.055, 0.06),
        (0.0, 0.075),
        (0.055, 0.06),
        (0.05, -0.02),
        (0.075, -0.2),
    ]
    canvas.paint(canvas.fill_polygon(bend(ridge, closed=True), 0.02), (240, 148, 66), 0.9)
    blaze = [(-0.022, -0.46), (0.022, -0.46), (0.036, -0.3), (0.0, -0.17), (-0.036, -0.3)]
    canvas.paint(canvas.fill_polygon(bend(blaze, closed=True), 0.018), _CREAM, 0.75)


def _draw_fur(canvas: Canvas) -> None:
    """Lay thousands of short hairs, all pointing away from the nose."""
    rng = np.random.default_rng(11)
    columns, rows = canvas.size
    hairs = np.full((rows, columns), 128, np.uint8)
    finer = columns / WIDTH_PX
    count = 9000
    x, y = rng.uniform(-0.62, 0.62, count), rng.uniform(-1.05, 0.8, count)
    away = np.stack([x * 1.0, y - 0.1], axis=1)
    away /= np.maximum(np.hypot(away[:, 0], away[:, 1]), 0.05)[:, None]
    away[:, 1] += 0.25
    away += rng.normal(0, 0.22, away.shape)
    long = rng.uniform(0.02, 0.05, count)[:, None]
    starts = np.stack([x, y], axis=1)
    ends = starts + away * long
    tones = 128 + rng.normal(0, 34, count)
    scale = TEXTURE_PX * finer
    starts, ends = ((p - (LEFT, TOP)) * scale * 8 for p in (starts, ends))
    for start, end, tone in zip(
        starts.astype(int).tolist(), ends.astype(int).tolist(), np.clip(tones, 30, 226), strict=True
    ):
        cv2.line(hairs, start, end, float(tone), 2, cv2.LINE_AA, 3)
    fur = cv2.GaussianBlur(hairs, (0, 0), 0.8).astype(np.float32) - 128
    fur *= 0.34
    canvas.add(fur)


def _draw_eye_markings(canvas: Canvas, side: float) -> None:
    eye = get_points(EYE_LEFT)
    outline = flip(grow(eye, 0.035), side)
    canvas.paint(canvas.fill_polygon(bend(outline, closed=True), 0.016), _DARK, 0.55)
    tail = flip(
        [(-0.27, -0.165), (-0.345, -0.175), (-0.40, -0.215), (-0.34, -0.145), (-0.28, -0.115)], side
    )
    canvas.paint(canvas.fill_polygon(bend(tail, closed=True), 0.006), _DARK, 0.85)
    tear = flip([(-0.135, -0.13), (-0.085, -0.085), (-0.07, -0.03), (-0.105, -0.09)], side)
    canvas.paint(canvas.fill_polygon(bend(tear, closed=True), 0.008), _DARK, 0.7)
    # The lid's own colour: seen in a blink.
    lid = flip(grow(eye, 0.012), side)
    canvas.paint(canvas.fill_polygon(bend(lid, closed=True), 0.01), (206, 110, 44))
    brow = flip(
        [(-0.355, -0.305), (-0.25, -0.33), (-0.15, -0.275), (-0.20, -0.258), (-0.28, -0.272)], side
    )
    canvas.paint(canvas.fill_polygon(bend(brow, closed=True), 0.014), _CREAM, 0.85)
    top = bend(flip([(-0.365, -0.312), (-0.25, -0.342), (-0.135, -0.28)], side))
    canvas.paint(canvas.draw_line(top, 0.014, 0.008), _RUST, 0.7)


def _draw_muzzle(canvas: Canvas, side: float) -> None:
    pad = flip(_PAD, side)
    canvas.paint(canvas.fill_polygon(bend(pad, closed=True), 0.02), (255, 250, 240), 0.7)
    shadow = bend(flip([(-0.105, 0.12), (-0.17, 0.20), (-0.215, 0.30)], side))
    canvas.shade(canvas.draw_line(shadow, 0.03, 0.02), 0.86)
    for x, y in ((-0.10, 0.235), (-0.135, 0.262), (-0.09, 0.268)):
        dot = np.array([(x, y), (x + 0.001, y)])
        canvas.paint(canvas.draw_line(flip(dot, side), 0.013, 0.002), (96, 66, 54), 0.8)
    for rise, reach in ((-0.06, 0.42), (-0.015, 0.45), (0.035, 0.42)):
        end = (-reach - 0.03, 0.255 + rise * 2.2)
        whisker = bend(flip([(-0.13, 0.25 + rise * 0.2), (-0.28, 0.235 + rise), end], side))
        canvas.paint(canvas.draw_line(whisker, 0.005, 0.0015), (255, 255, 250), 0.85)
        canvas.shade(canvas.draw_line(move(whisker, 0, 0.006), 0.005, 0.003), 0.8)


def _draw_nose(canvas: Canvas) -> None:
    canvas.shade(canvas.fill_polygon(bend(grow(_NOSE, 0.02), closed=True), 0.02), 0.75)
    canvas.paint(canvas.fill_polygon(bend(_NOSE, closed=True), 0.004), (34, 24, 26))
    gleam = [(-0.04, 0.062), (0.0, 0.054), (0.04, 0.062), (0.0, 0.075)]
    canvas.glow(canvas.fill_polygon(gleam, 0.010), (120, 120, 130))
    for side in (-1.0, 1.0):
        nostril = flip([(-0.062, 0.115), (-0.03, 0.125), (-0.04, 0.145)], side)
        canvas.paint(canvas.fill_polygon(nostril, 0.006), (8, 5, 6))
    canvas.paint(canvas.draw_line([(0, 0.17), (0, 0.275)], 0.010, 0.003), _DARK, 0.9)


def _draw_mouth(canvas: Canvas) -> None:
    lips = get_points(LIPS_OUTER)
    canvas.paint(canvas.fill_polygon(bend(lips, closed=True), 0.012), (214, 176, 160), 0.55)
    inner = get_points(LIPS_INNER)
    canvas.paint(canvas.draw_line(inner, 0.018, 0.004, closed=True), _DARK)
    for side in (-1.0, 1.0):
        corner = bend(flip([(-0.145, 0.322), (-0.185, 0.315), (-0.215, 0.29)], side))
        canvas.paint(canvas.draw_line(corner, 0.011, 0.003), _DARK, 0.9)
