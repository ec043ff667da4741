"""An avatar's eyes: they look where the wearer looks, and close as his do.

Painted at full size onto the warped drawing, in Y, U, V, region only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.avatar_patch import (
    blend,
    cut_box,
    draw_line,
    draw_polygon,
    to_yuv,
)
from livefuse.pipeline.planes import convert_colour
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour
    from livefuse.pipeline.effects.avatar_patch import Part, Rgb
    from livefuse.pipeline.effects.mesh_render import Layers

    Values = NDArray[np.float32]

_EYES: Final = ((EYE_LEFT, 0), (EYE_RIGHT, 5))
"""Outline (16 points: upper lid, then the lower one back), and its iris's middle of the ten."""

_UPPER: Final = 9  # of an outline's points are the upper lid's
_STEPS: Final = 256
_REACH: Final = 1.25  # of the iris's radius is in the table of colours; beyond is the eye's white
_FACING: Final = (0.05, 0.2)  # a normal's z from which an eye is painted, and over how much
_MAX_GAZE: Final = 0.32  # of the eye's width
_SMALLEST_PX: Final = 3.0
_PUPIL_LONG: Final = 0.8  # of the iris's radius: half the height of a slit
_PUPIL_EDGE: Final = 0.36  # where the iris's own colours begin
_GLINTS: Final = (((-0.36, -0.4), 0.2, 150.0), ((0.4, 0.42), 0.13, 60.0))
"""Places in iris radii, sizes, and luma at a style's glint 1."""


class EyeStyle(NamedTuple):
    """How an eye is drawn. Lengths are in eye widths, `rings` are (radius 0..1, colour).

    `grow` scales the opening across and along; `slit` narrows the innermost rings to a cat's
    pupil (1: round). `glow`: it shines by itself, whatever the wearer's light is.
    """

    white: Rgb
    rings: tuple[tuple[float, Rgb], ...]
    iris: float = 0.23
    grow: tuple[float, float] = (1.0, 1.0)
    line: Rgb | None = None
    line_width: float = 0.06
    shadow: float = 0.5
    glint: float = 1.0
    slit: float = 1.0
    glow: bool = False


class PaintedEye(NamedTuple):
    """An eye's colours as Y, U, V for frames of one colour."""

    table: Values  # (256, 3) by distance from the iris's middle
    line: tuple[float, float, float]


@dataclass(slots=True, frozen=True, eq=False)
class Gaze:
    """One eye of one frame, px of the region. `facing` 0..1: how far it is turned to the camera."""

    outline: Values
    iris: Values
    width_px: float
    facing: float


def convert_eye(style: EyeStyle, colour: Colour) -> PaintedEye:
    """Return the style's colours for frames of `colour`."""
    radii = np.linspace(0, _REACH, _STEPS)
    at = [radius for radius, _ in style.rings] + [1.02, _REACH]
    rgb = np.array([ring for _, ring in style.rings] + [style.white, style.white], np.float32)
    red, green, blue = (np.rint(np.interp(radii, at, rgb[:, i])).astype(np.uint8) for i in range(3))
    table = np.stack(convert_colour((red, green, blue), colour), axis=1).astype(np.float32)
    return PaintedEye(table, to_yuv(style.line or style.white, colour))


def find_gazes(points: Values, irises: Values | None, normals: Values) -> list[Gaze]:
    """Return both eyes. `points` (n, 3) px, `irises` (10, 2) px or None, `normals` outwards.

    Without irises an eye looks straight ahead, seen from its own corners.
    """
    gazes = []
    for outline, iris_index in _EYES:
        places = np.asarray(points[outline, :2], np.float32)
        corners = points[outline[[0, _UPPER - 1]]]
        width_px = float(np.linalg.norm(corners[1] - corners[0]))
        middle = corners[:, :2].mean(axis=0)
        iris = middle if irises is None else irises[iris_index]
        off = np.asarray(iris - middle, np.float32)
        length = float(np.hypot(*off))
        most = _MAX_GAZE * width_px
        if length > most > 0.0:
            off *= most / length
        z = float(normals[outline, 2].mean())
        facing = min(max((z - _FACING[0]) / _FACING[1], 0.0), 1.0)
        gazes.append(Gaze(places, middle + off, width_px, facing))
    return gazes


def paint_eye(layers: Layers, gaze: Gaze, style: EyeStyle, painted: PaintedEye) -> None:
    """Paint one eye in place; what the lids leave open of it."""
    outline = _grow_outline(gaze, style)
    pad = (style.line_width if style.line is not None else 0.0) * gaze.width_px + 3
    box = cut_box(layers, outline, pad)
    if box is None or gaze.facing <= 0.0 or gaze.width_px < _SMALLEST_PX:
        return
    share = draw_polygon(outline, box)
    iris = _place_iris(gaze, style)
    colours = _colour_eye(iris, style, painted, box)
    if style.shadow > 0.0:
        _shade_eye(colours, share, max(1, round(0.1 * gaze.width_px)), style.shadow)
    if style.glint > 0.0:
        _add_glints(colours, iris, style, box)
    if style.line is not None:
        lids = _draw_lids(outline, max(1, round(style.line_width * gaze.width_px)), box)
        colours += (np.array(painted.line, np.float32) - colours) * lids[..., None]
        share = np.maximum(share, lids)
    blend(layers, box, share * np.float32(gaze.facing), colours)


def _place_iris(gaze: Gaze, style: EyeStyle) -> tuple[float, float, float]:
    """Return x, y and radius of the iris, px of the region, in an eye that `style` grows."""
    middle = gaze.outline[[0, _UPPER - 1]].mean(axis=0)
    x, y = (middle + (gaze.iris - middle) * np.array(style.grow, np.float32)).tolist()
    return x, y, max(style.iris * gaze.width_px * style.grow[0], 1.0)


def _shade_eye(colours: Values, opening: Values, down: int, strength: float) -> None:
    """Darken what lies under the upper lid, `down` px deep."""
    lower = np.zeros_like(opening)
    lower[down:] = opening[:-down]
    lower = np.asarray(cv2.GaussianBlur(lower, (0, 0), 0.6 * down), np.float32)
    luma = colours[:, :, 0]
    luma -= (luma - 16) * (np.float32(strength) * np.clip(opening - lower, 0, 1))


def _draw_lids(outline: Values, width: int, box: Part) -> Values:
    """Return the share of the lids' lines: the upper one strong, the lower one faint."""
    upper = draw_line(outline[:_UPPER], width, box)
    lower = draw_line(np.vstack([outline[_UPPER - 1 :], outline[:1]]), max(1, width // 3), box)
    return np.asarray(np.maximum(upper, 0.5 * lower), np.float32)


def _grow_outline(gaze: Gaze, style: EyeStyle) -> Values:
    middle = gaze.outline[[0, _UPPER - 1]].mean(axis=0)
    along = gaze.outline[_UPPER - 1] - gaze.outline[0]
    length = max(float(np.hypot(*along)), 1e-3)
    x, y = (along / length).tolist()
    turn = np.array([[x, y], [-y, x]], np.float32)
    local = (gaze.outline - middle) @ turn.T
    local *= np.array(style.grow, np.float32)
    return np.asarray(local @ turn + middle, np.float32)


def _colour_eye(
    iris: tuple[float, float, float], style: EyeStyle, painted: PaintedEye, box: Part
) -> Values:
    """Return Y, U, V float32 of each px of the box: rings about the iris, white beyond."""
    x0, y0, x1, y1 = box
    at_x, at_y, radius = iris
    x = (np.arange(x0, x1, dtype=np.float32) - at_x)[None, :] / radius
    y = (np.arange(y0, y1, dtype=np.float32) - at_y)[:, None] / radius
    apart = np.sqrt(x * x + y * y)
    if style.slit < 1.0:
        narrow = np.sqrt((x / style.slit) ** 2 + y * y)
        pupil = np.clip((_PUPIL_LONG - narrow) * radius * style.slit + 0.5, 0, 1)
        apart = np.maximum(apart, _PUPIL_EDGE) * (1 - pupil)
    index = np.minimum(apart * ((_STEPS - 1) / _REACH), _STEPS - 1).astype(np.intp)
    return np.asarray(painted.table[index], np.float32)


def _add_glints(
    colours: Values, iris: tuple[float, float, float], style: EyeStyle, box: Part
) -> None:
    x0, y0, x1, y1 = box
    at_x, at_y, radius = iris
    for (off_x, off_y), size, luma in _GLINTS:
        spread = 2 * (size * radius) ** 2
        x = np.arange(x0, x1, dtype=np.float32) - (at_x + off_x * radius)
        y = np.arange(y0, y1, dtype=np.float32) - (at_y + off_y * radius)
        along = np.exp(-y * y / spread) * np.float32(luma * style.glint)
        colours[:, :, 0] += along[:, None] * np.exp(-x * x / spread)[None, :]
