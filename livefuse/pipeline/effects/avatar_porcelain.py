"""The porcelain mask: glazed white, cobalt flowers, and old cracks mended with gold."""

from __future__ import annotations

from typing import Final

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
from livefuse.pipeline.effects.avatar_shape import Ring, create_shape
from livefuse.pipeline.topology import BROW_LEFT, EYE_LEFT, LIPS_INNER, LIPS_OUTER, OVAL

_GLAZE: Final = (216, 215, 211)
_COBALT: Final = (38, 66, 150)
_PALE_COBALT: Final = (112, 140, 204)
_GOLD: Final = (206, 158, 62)
_BRIGHT_GOLD: Final = (255, 226, 140)
_EYE: Final = EyeStyle(
    white=(238, 238, 234),
    rings=(
        (0.0, (8, 10, 20)),
        (0.40, (10, 14, 30)),
        (0.48, (40, 72, 160)),
        (0.80, (74, 116, 206)),
        (0.95, (24, 40, 100)),
    ),
    iris=0.24,
    grow=(1.04, 1.10),
    line=(26, 34, 66),
    line_width=0.07,
    shadow=0.55,
    glint=1.1,
)

_CRACKS: Final = (
    (
        [(0.47, -0.30), (0.39, -0.19), (0.36, -0.03), (0.27, 0.06), (0.24, 0.20), (0.13, 0.24)],
        0.013,
    ),
    ([(0.36, -0.03), (0.44, 0.06), (0.50, 0.07)], 0.010),
    ([(0.27, 0.06), (0.19, 0.03), (0.145, -0.045)], 0.008),
    ([(0.24, 0.20), (0.31, 0.31), (0.30, 0.45), (0.37, 0.53)], 0.010),
    ([(-0.20, -0.60), (-0.245, -0.47), (-0.20, -0.36), (-0.255, -0.24), (-0.225, -0.19)], 0.010),
    ([(-0.20, -0.36), (-0.11, -0.31), (-0.07, -0.22)], 0.008),
    ([(-0.33, 0.56), (-0.24, 0.47), (-0.25, 0.38), (-0.17, 0.34)], 0.009),
)
"""Paths and widths, face widths."""


def draw_porcelain() -> Drawing:
    """Return the drawing."""
    canvas = Canvas(_GLAZE)
    shape = create_shape((Ring(0.07, 0.03, 0.02, 0.04), Ring(0.15, 0.075, 0.055, 0.13)))
    outer = bend(shape.rest[468 + len(OVAL) :, :2], closed=True, steps=6)
    middle = outer.mean(axis=0)
    canvas.show(canvas.fill_polygon(middle + (outer - middle) * 0.952, 0.002))
    for side in (-1.0, 1.0):
        _draw_relief(canvas, side)
        _draw_face(canvas, side)
        _draw_ornament(canvas, side)
    _draw_middle(canvas)
    _draw_lips(canvas)
    _draw_cracks(canvas)
    _draw_rim(canvas, middle, outer)
    gloss = Gloss(
        form=0.6,
        wearer=0.75,
        sigma=0.08,
        spots=((-0.34, -0.46, 0.085, 150.0), (-0.30, -0.40, 0.24, 30.0), (0.5, 0.2, 0.2, 14.0)),
        rim=10.0,
    )
    return Drawing(
        canvas.finish(), shape, _EYE, MouthStyle((22, 10, 14)), gloss, coat=(44, 62, 128), hood=True
    )


def _draw_relief(canvas: Canvas, side: float) -> None:
    """Shade what a bare white surface would lack: sockets, the nose's flanks, the cheek."""
    eye = flip(grow(get_points(EYE_LEFT), 0.06), side)
    canvas.shade(canvas.fill_polygon(eye, 0.03), 0.88)
    flank = bend(flip([(-0.06, -0.2), (-0.055, -0.05), (-0.085, 0.07), (-0.105, 0.12)], side))
    canvas.shade(canvas.draw_line(flank, 0.045, 0.025), 0.90)
    canvas.shade(
        canvas.draw_line(
            bend(flip([(-0.10, 0.145), (-0.06, 0.165), (-0.02, 0.172)], side)), 0.02, 0.010
        ),
        0.80,
    )
    turn = np.linspace(0, 2 * np.pi, 30)
    blush = np.stack([np.cos(turn) * 0.10 - 0.30, np.sin(turn) * 0.065 + 0.10], axis=1)
    canvas.paint(canvas.fill_polygon(flip(blush, side), 0.045), (232, 142, 130), 0.55)


def _draw_face(canvas: Canvas, side: float) -> None:
    brow = get_points(BROW_LEFT)
    low = np.array([0.0, 0.012, 0.012, 0.012, 0.02], np.float32)
    line = bend(flip(brow[:5] + np.stack([0 * low, low], axis=1), side))
    for width, blur, opacity in ((0.022, 0.006, 0.35), (0.012, 0.002, 0.9)):
        canvas.paint(canvas.draw_line(line, width, blur), (36, 46, 92), opacity)
    eye = get_points(EYE_LEFT)
    canvas.paint(canvas.fill_polygon(flip(grow(eye, 0.028), side), 0.012), _PALE_COBALT, 0.45)
    canvas.paint(canvas.fill_polygon(flip(grow(eye, 0.010), side), 0.006), (222, 220, 222))
    tail = bend(flip([(-0.26, -0.175), (-0.315, -0.185), (-0.365, -0.225)], side))
    canvas.paint(canvas.draw_line(tail, 0.010, 0.002), _COBALT, 0.9)
    for index in (0, 1, 2):
        x, y = -0.335 + 0.014 * index, -0.105 + 0.032 * index
        dot = [(x, y), (x + 0.001, y)]
        canvas.paint(canvas.draw_line(flip(dot, side), 0.016 - 0.003 * index, 0.001), _COBALT, 0.9)


def _draw_ornament(canvas: Canvas, side: float) -> None:
    """Paint cobalt scrolls and leaves at forehead and jaw."""
    scrolls = (
        [
            (-0.06, -0.43),
            (-0.16, -0.46),
            (-0.27, -0.43),
            (-0.34, -0.36),
            (-0.33, -0.305),
            (-0.285, -0.31),
            (-0.295, -0.345),
        ],
        [(-0.15, -0.455), (-0.20, -0.40), (-0.19, -0.355), (-0.155, -0.365), (-0.165, -0.39)],
        [
            (-0.44, 0.02),
            (-0.435, 0.17),
            (-0.38, 0.30),
            (-0.30, 0.355),
            (-0.255, 0.325),
            (-0.285, 0.295),
        ],
        [
            (-0.41, 0.235),
            (-0.37, 0.39),
            (-0.28, 0.48),
            (-0.20, 0.485),
            (-0.195, 0.45),
            (-0.225, 0.452),
        ],
    )
    for scroll in scrolls:
        line = bend(flip(scroll, side))
        canvas.paint(canvas.draw_line(line, 0.022, 0.010), _PALE_COBALT, 0.35)
        canvas.paint(canvas.draw_line(line, 0.009, 0.0015), _COBALT, 0.92)
    leaves = (
        (-0.22, -0.465, 0.6),
        (-0.30, -0.435, 0.9),
        (-0.36, -0.33, 1.8),
        (-0.455, 0.10, 1.5),
        (-0.42, 0.32, 1.0),
        (-0.33, 0.44, 0.6),
        (-0.245, 0.515, 0.2),
    )
    for x, y, angle in leaves:
        for away in (-0.5, 0.5):
            tip = np.array([np.cos(angle + away), np.sin(angle + away)]) * 0.05
            across = np.array([-tip[1], tip[0]]) * 0.28
            leaf = move(np.stack([0 * tip, tip * 0.5 + across, tip, tip * 0.5 - across]), x, y)
            canvas.paint(
                canvas.fill_polygon(bend(flip(leaf, side), closed=True), 0.001), _COBALT, 0.85
            )


def _draw_middle(canvas: Canvas) -> None:
    """Paint a flower on the forehead and one petal on the chin."""
    middle = np.array([0.0, -0.375])
    for ring, reach, colour, count in ((0, 0.088, _PALE_COBALT, 8), (1, 0.062, _COBALT, 8)):
        for petal in range(count):
            angle = 2 * np.pi * (petal + 0.5 * ring) / count
            along = np.array([np.cos(angle), np.sin(angle)])
            across = np.array([-along[1], along[0]])
            shape = middle + np.stack(
                [
                    along * 0.012,
                    along * reach * 0.6 + across * reach * 0.26,
                    along * reach,
                    along * reach * 0.6 - across * reach * 0.26,
                ]
            )
            canvas.paint(canvas.fill_polygon(bend(shape, closed=True), 0.0015), colour, 0.9)
    turn = np.linspace(0, 2 * np.pi, 24)
    heart = np.stack([np.cos(turn), np.sin(turn)], axis=1) * 0.017 + middle
    canvas.paint(canvas.fill_polygon(heart, 0.001), _GOLD)
    canvas.glow(canvas.fill_polygon(move(heart, -0.004, -0.005), 0.006), (50, 46, 30))


def _draw_lips(canvas: Canvas) -> None:
    lips = get_points(LIPS_OUTER)
    middle = lips.mean(axis=0)
    small = middle + (lips - middle) * (0.86, 0.94)
    canvas.shade(canvas.fill_polygon(grow(lips, 0.02), 0.02), 0.94)
    canvas.paint(canvas.fill_polygon(bend(small, closed=True), 0.004), (186, 36, 48))
    canvas.paint(
        canvas.draw_line(move(small[11:-1], 0, -0.028), 0.014, 0.008), (240, 120, 124), 0.75
    )
    canvas.paint(canvas.draw_line(get_points(LIPS_INNER), 0.010, 0.002, closed=True), (70, 10, 20))
    canvas.shade(canvas.draw_line(bend([(-0.09, 0.43), (0, 0.445), (0.09, 0.43)]), 0.03, 0.02), 0.9)


def _draw_cracks(canvas: Canvas) -> None:
    """Mend cracks with gold: from the temple over the cheek, at the brow, at the jaw."""
    rng = np.random.default_rng(17)
    for path, width in _CRACKS:
        _draw_crack(canvas, np.asarray(path), width, rng)


def _draw_crack(canvas: Canvas, path: np.ndarray, width: float, rng: np.random.Generator) -> None:
    steps = np.linspace(0, len(path) - 1, 7 * len(path))
    line = np.stack([np.interp(steps, np.arange(len(path)), path[:, i]) for i in (0, 1)], axis=1)
    line[1:-1] += rng.normal(0, 0.006, (len(line) - 2, 2))
    canvas.shade(canvas.draw_line(move(line, 0.003, 0.007), width * 1.7, 0.004), 0.6)
    for start in range(len(line) - 1):
        swell = width * (0.75 + 0.6 * rng.random())
        piece = line[start : start + 2]
        canvas.paint(canvas.draw_line(piece, swell), _GOLD)
    canvas.paint(
        canvas.draw_line(move(line, -0.0015, -0.0025), width * 0.35, 0.0015), _BRIGHT_GOLD, 0.9
    )


def _draw_rim(canvas: Canvas, middle: np.ndarray, outer: np.ndarray) -> None:
    for share, width, colour, opacity in (
        (0.932, 0.030, (150, 110, 40), 1.0),
        (0.934, 0.022, _GOLD, 1.0),
        (0.939, 0.007, _BRIGHT_GOLD, 0.8),
    ):
        line = middle + (outer - middle) * share
        canvas.paint(canvas.draw_line(line, width, 0.002, closed=True), colour, opacity)
    inner = middle + (outer - middle) * 0.902
    canvas.shade(canvas.draw_line(inner, 0.02, 0.010, closed=True), 0.85)
