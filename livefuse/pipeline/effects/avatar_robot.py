"""The robot: steel plates with seams, shutters for lids, lamps for eyes that look about."""

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
    mirror,
    move,
    soften,
)
from livefuse.pipeline.effects.avatar_render import Drawing
from livefuse.pipeline.effects.avatar_shape import Ring, create_shape
from livefuse.pipeline.effects.mesh_regions import EYE_RINGS
from livefuse.pipeline.topology import BROW_LEFT, EYE_LEFT, LIPS_INNER, LIPS_OUTER, OVAL

_STEEL: Final = (150, 160, 173)
_LIGHT: Final = (205, 214, 225)
_SEAM: Final = (38, 44, 54)
_HELMET: Final = (72, 90, 118)
_SOCKET: Final = (30, 35, 44)
_CYAN: Final = (90, 235, 255)
_EYE: Final = EyeStyle(
    white=(10, 18, 26),
    rings=(
        (0.0, (235, 255, 255)),
        (0.28, (205, 255, 255)),
        (0.42, (60, 220, 250)),
        (0.74, (30, 190, 235)),
        (0.8, (12, 60, 84)),
        (0.88, (25, 150, 190)),
        (0.98, (10, 40, 56)),
    ),
    iris=0.25,
    grow=(1.06, 1.12),
    line=(20, 24, 30),
    line_width=0.07,
    shadow=0.25,
    glint=0.35,
    glow=True,
)


def draw_robot() -> Drawing:
    """Return the drawing."""
    canvas = Canvas(_HELMET)
    shape = create_shape((Ring(0.11, 0.05, 0.035, 0.06), Ring(0.28, 0.115, 0.09, 0.26)))
    outer = bend(shape.rest[468 + len(OVAL) :, :2], closed=True, steps=6)
    middle = outer.mean(axis=0)
    canvas.show(canvas.fill_polygon(middle + (outer - middle) * 0.955, 0.003))
    _draw_helmet(canvas)
    _draw_plates(canvas)
    _draw_forehead(canvas)
    for side in (1.0, -1.0):
        _draw_side(canvas, side)
    _draw_nose(canvas)
    _draw_mouth(canvas)
    _brush(canvas)
    gloss = Gloss(
        form=0.75,
        wearer=0.9,
        sigma=0.08,
        spots=((-0.32, -0.42, 0.13, 95.0), (0.3, -0.3, 0.3, 26.0), (-0.75, 0.1, 0.12, 40.0)),
        rim=34.0,
    )
    mouth = MouthStyle((9, 11, 15), bars=(70, 225, 250))
    return Drawing(canvas.finish(), shape, _EYE, mouth, gloss, coat=(58, 66, 80))


def _seam(canvas: Canvas, points: object, width: float = 0.008, *, closed: bool = False) -> None:
    """Draw a gap between two plates: dark, with a light edge below it."""
    line = np.asarray(points, np.float32)
    canvas.paint(
        canvas.draw_line(move(line, 0.003, 0.007), width, 0.003, closed=closed), _LIGHT, 0.75
    )
    canvas.paint(canvas.draw_line(line, width * 3, 0.010, closed=closed), _SEAM, 0.22)
    canvas.paint(canvas.draw_line(line, width, closed=closed), _SEAM)


def _plate(canvas: Canvas, outline: object, colour: tuple[float, float, float]) -> None:
    """Draw a raised plate: lit edge above, shadow below."""
    line = np.asarray(outline, np.float32)
    canvas.shade(canvas.fill_polygon(move(line, 0.0, 0.014), 0.012), 0.72)
    canvas.paint(canvas.fill_polygon(line), colour)
    canvas.paint(canvas.draw_line(move(line, 0.0, 0.006), 0.007, 0.004, closed=True), _LIGHT, 0.55)
    canvas.paint(canvas.draw_line(line, 0.006, 0.0015, closed=True), _SEAM, 0.9)


def _bolt(canvas: Canvas, x: float, y: float, radius: float = 0.021) -> None:
    turn = np.linspace(0, 2 * np.pi, 40)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    canvas.shade(canvas.fill_polygon(move(circle * radius * 1.35, x, y + 0.006), 0.006), 0.6)
    canvas.paint(canvas.fill_polygon(move(circle * radius, x, y)), (112, 122, 136))
    canvas.paint(
        canvas.fill_polygon(move(circle * radius * 0.7, x - 0.003, y - 0.004), 0.004), _LIGHT, 0.8
    )
    tilt = np.array([[-0.6, -0.35], [0.6, 0.35]]) * radius
    canvas.paint(canvas.draw_line(move(tilt, x, y), 0.005), _SEAM)


def _draw_helmet(canvas: Canvas) -> None:
    _, y = canvas.get_places()
    canvas.multiply(np.clip(1.12 - 0.35 * (y + 0.7), 0.6, 1.2))
    top = bend(
        [
            (-0.5, -0.22),
            (-0.4, -0.52),
            (-0.2, -0.64),
            (0, -0.675),
            (0.2, -0.64),
            (0.4, -0.52),
            (0.5, -0.22),
        ]
    )
    canvas.paint(canvas.draw_line(top, 0.03, 0.012), (120, 146, 182), 0.6)
    stripe = [(-0.055, -0.8), (0.055, -0.8), (0.045, -0.5), (-0.045, -0.5)]
    canvas.paint(canvas.fill_polygon(stripe), (226, 92, 52))
    canvas.paint(canvas.draw_line(stripe, 0.006, closed=True), _SEAM)


def _draw_plates(canvas: Canvas) -> None:
    """Draw the face plate over the helmet."""
    oval = get_points(OVAL)
    middle = np.array([0.0, 0.08], np.float32)
    plate = middle + (oval - middle) * (1.02, 1.0)
    canvas.shade(canvas.fill_polygon(plate, 0.03), 0.55)
    mask = canvas.fill_polygon(plate, 0.002)
    canvas.paint(mask, _STEEL)
    for at, size, gain in (((0, -0.36), (0.3, 0.14), 1.08), ((0.0, 0.5), (0.2, 0.12), 1.05)):
        turn = np.linspace(0, 2 * np.pi, 40)
        spot = np.stack([np.cos(turn) * size[0] + at[0], np.sin(turn) * size[1] + at[1]], axis=1)
        canvas.shade(canvas.fill_polygon(spot, 0.06), gain)
    canvas.paint(canvas.draw_line(plate, 0.012, closed=True), _SEAM)
    inner = middle + (plate - middle) * 0.975
    canvas.paint(canvas.draw_line(inner, 0.010, 0.004, closed=True), _LIGHT, 0.6)


def _draw_forehead(canvas: Canvas) -> None:
    _plate(
        canvas,
        [(-0.13, -0.475), (0.13, -0.475), (0.075, -0.275), (-0.075, -0.275)],
        (168, 178, 191),
    )
    diamond = [(0, -0.425), (0.034, -0.375), (0, -0.325), (-0.034, -0.375)]
    canvas.paint(canvas.fill_polygon(grow(diamond, 0.014)), _SEAM)
    canvas.glow(canvas.fill_polygon(grow(diamond, 0.03), 0.03), (12, 60, 70))
    canvas.paint(canvas.fill_polygon(diamond, 0.003), _CYAN)
    canvas.paint(canvas.fill_polygon(grow(diamond, -0.016), 0.006), (225, 255, 255))
    for side in (1, -1):
        _seam(canvas, bend([(side * 0.14, -0.40), (side * 0.26, -0.375), (side * 0.40, -0.30)]))
        _bolt(canvas, side * 0.285, -0.425)


def _draw_side(canvas: Canvas, side: float) -> None:
    ring = flip(get_points(EYE_RINGS[0]), side)
    socket = grow(ring, 0.028)
    canvas.shade(canvas.fill_polygon(grow(ring, 0.06), 0.03), 0.75)
    canvas.paint(canvas.fill_polygon(bend(socket, closed=True), 0.006), (96, 106, 120))
    canvas.paint(canvas.draw_line(bend(socket, closed=True), 0.012, 0.003, closed=True), _SEAM)
    # The lids are shutters: pale slats that the dark opening cuts.
    canvas.paint(canvas.fill_polygon(bend(ring, closed=True), 0.01), (128, 138, 152))
    eye = flip(get_points(EYE_LEFT), side)
    for share, dark in ((0.40, 0.5), (0.72, 0.5)):
        upper = (1 - share) * eye[:9] + share * _resample(ring, eye[:9])
        canvas.paint(canvas.draw_line(upper, 0.006), _SEAM, dark)
    canvas.paint(canvas.draw_line(np.vstack([eye, eye[:1]]), 0.014, 0.004), _SOCKET, 0.9)
    canvas.paint(canvas.fill_polygon(eye), _SOCKET)
    brow = flip(get_points(BROW_LEFT), side)
    _plate(canvas, grow(brow, 0.006), (58, 66, 80))
    # Cheek.
    _seam(
        canvas,
        bend(
            flip(
                [(-0.125, 0.05), (-0.2, 0.12), (-0.265, 0.235), (-0.255, 0.38), (-0.19, 0.56)], side
            )
        ),
        0.009,
    )
    _seam(canvas, bend(flip([(-0.262, 0.25), (-0.35, 0.245), (-0.47, 0.16)], side)))
    for row in range(3):
        start = np.array([-0.43 + 0.012 * row, 0.035 + 0.04 * row])
        slot = np.array([start, start + np.array([0.11, 0.03])])
        canvas.paint(canvas.draw_line(move(flip(slot, side), 0, 0.007), 0.017, 0.003), _LIGHT, 0.7)
        canvas.paint(canvas.draw_line(flip(slot, side), 0.016), _SEAM)
    _bolt(canvas, side * 0.325, 0.36)


def _resample(ring: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return for each point of the upper lid the ring's point above it."""
    upper = ring[:9]
    order = np.argsort(upper[:, 0])
    y = np.interp(like[:, 0], upper[order, 0], upper[order, 1])
    return np.stack([like[:, 0], y], axis=1)


def _draw_nose(canvas: Canvas) -> None:
    half = [
        (-0.05, -0.225),
        (-0.042, -0.1),
        (-0.055, 0.02),
        (-0.092, 0.10),
        (-0.085, 0.145),
        (-0.04, 0.165),
    ]
    outline = np.vstack([half, mirror(half)[::-1]])
    _plate(canvas, outline, (160, 170, 183))
    ridge = [(-0.02, -0.2), (0.02, -0.2), (0.026, 0.06), (-0.026, 0.06)]
    canvas.paint(canvas.fill_polygon(ridge, 0.008), (206, 214, 224), 0.9)
    for side in (1, -1):
        vent = np.array([(0.026, 0.135), (0.062, 0.122)]) * (side, 1)
        canvas.paint(canvas.draw_line(vent, 0.02, 0.003), _SEAM)


def _draw_mouth(canvas: Canvas) -> None:
    lips = get_points(LIPS_OUTER)
    panel = bend(
        [
            (-0.235, 0.30),
            (-0.19, 0.225),
            (-0.08, 0.21),
            (0, 0.215),
            (0.08, 0.21),
            (0.19, 0.225),
            (0.235, 0.30),
            (0.2, 0.40),
            (0.1, 0.44),
            (0, 0.45),
            (-0.1, 0.44),
            (-0.2, 0.40),
        ],
        closed=True,
    )
    _plate(canvas, panel, (132, 141, 154))
    canvas.shade(canvas.fill_polygon(grow(lips, 0.02), 0.014), 0.6)
    canvas.paint(canvas.fill_polygon(bend(grow(lips, 0.006), closed=True), 0.003), (56, 64, 77))
    upper, low = lips[:11], lips[10:]
    canvas.paint(canvas.draw_line(move(upper, 0, 0.016), 0.008, 0.005), (122, 134, 150), 0.8)
    canvas.paint(canvas.draw_line(move(low[2:-2], 0, -0.026), 0.010, 0.006), (122, 134, 150), 0.7)
    inner = get_points(LIPS_INNER)
    canvas.paint(canvas.draw_line(inner, 0.008, closed=True), (14, 17, 22))
    for side in (1, -1):
        _bolt(canvas, side * 0.205, 0.315, 0.013)
        _seam(canvas, bend([(side * 0.15, 0.50), (side * 0.17, 0.56), (side * 0.16, 0.63)]))
    _seam(canvas, bend([(-0.15, 0.50), (0, 0.53), (0.15, 0.50)]))


def _brush(canvas: Canvas) -> None:
    """Give the metal its grain: fine streaks from left to right."""
    rng = np.random.default_rng(7)
    columns, rows = canvas.size
    grain = rng.standard_normal((rows, columns), np.float32)
    streaks = soften(grain, 0.6)
    streaks = np.asarray(cv2.blur(streaks, (61, 1)), np.float32) * 22
    canvas.add(np.clip(streaks, -9, 9))
