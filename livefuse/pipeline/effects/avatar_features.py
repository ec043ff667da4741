"""What of an avatar lives: eyes that look where the wearer looks and close as his do, and a mouth.

Painted at full size onto the warped drawing, in Y, U, V, region only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.planes import convert_colour
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour
    from livefuse.pipeline.effects.mesh_render import Layers

    Values = NDArray[np.float32]
    Rgb = tuple[float, float, float]

EYES: Final = ((EYE_LEFT, 468, -1), (EYE_RIGHT, 473, 1))
"""Outline (16 points: upper lid, then lower lid back), the iris's middle, which side."""

_SHIFT: Final = 4
_UPPER: Final = 9  # of an outline's points are the upper lid's
_STEPS: Final = 256
_REACH: Final = 1.25  # of the iris's radius is in the table of colours; beyond is the eye's white
_FACING: Final = (0.05, 0.2)  # a normal's z from which an eye is painted, and over how much
_MAX_GAZE: Final = 0.32  # of the eye's width
_OPEN_MOUTH: Final = 0.012  # of the face's width


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


class MouthStyle(NamedTuple):
    """The inside of an open mouth: its depth, and what is seen in it; `bars` are lamps."""

    depth: Rgb
    tongue: Rgb | None = None
    teeth: Rgb | None = None
    fangs: Rgb | None = None
    bars: Rgb | None = None


class Painted(NamedTuple):
    """A style's colours as Y, U, V for frames of one colour."""

    eye: NDArray[np.float32]  # (256, 3) by distance from the iris's middle
    line: tuple[float, float, float]
    depth: tuple[float, float, float]
    tongue: tuple[float, float, float]
    teeth: tuple[float, float, float]
    fangs: tuple[float, float, float]
    bars: tuple[float, float, float]


@dataclass(slots=True, frozen=True, eq=False)
class Gaze:
    """One eye of one frame, px of the region. `facing` 0..1: how far it is turned to the camera."""

    outline: Values
    iris: Values
    width_px: float
    facing: float


def convert_styles(eye: EyeStyle, mouth: MouthStyle, colour: Colour) -> Painted:
    """Return the styles' colours for frames of `colour`."""
    radii = np.linspace(0, _REACH, _STEPS)
    at = [radius for radius, _ in eye.rings] + [1.02, _REACH]
    rgb = np.array([ring for _, ring in eye.rings] + [eye.white, eye.white], np.float32)
    table = [np.interp(radii, at, rgb[:, i]).astype(np.float32) for i in range(3)]
    y, u, v = convert_colour((table[0], table[1], table[2]), colour)  # type: ignore[type-var] # any array will do
    return Painted(
        np.stack([y, u, v], axis=1).astype(np.float32),
        _to_yuv(eye.line or eye.white, colour),
        _to_yuv(mouth.depth, colour),
        _to_yuv(mouth.tongue or mouth.depth, colour),
        _to_yuv(mouth.teeth or mouth.depth, colour),
        _to_yuv(mouth.fangs or mouth.depth, colour),
        _to_yuv(mouth.bars or mouth.depth, colour),
    )


def _to_yuv(rgb: Rgb, colour: Colour) -> tuple[float, float, float]:
    y, u, v = convert_colour((round(rgb[0]), round(rgb[1]), round(rgb[2])), colour)
    return float(y), float(u), float(v)


def find_gazes(points: Values, irises: Values | None, normals: Values) -> list[Gaze]:
    """Return both eyes. `points` (n, 3) px, `irises` (10, 2) px or None, `normals` outwards.

    Without irises an eye looks straight ahead, seen from its own corners.
    """
    gazes = []
    for outline, iris_index, _ in EYES:
        places = np.asarray(points[outline, :2], np.float32)
        corners = points[outline[[0, _UPPER - 1]]]
        width_px = float(np.linalg.norm(corners[1] - corners[0]))
        middle = corners[:, :2].mean(axis=0)
        iris = middle if irises is None else irises[iris_index - 468]
        off = np.asarray(iris - middle, np.float32)
        length = float(np.hypot(*off))
        most = _MAX_GAZE * width_px
        if length > most > 0.0:
            off *= most / length
        z = float(normals[outline, 2].mean())
        facing = min(max((z - _FACING[0]) / _FACING[1], 0.0), 1.0)
        gazes.append(Gaze(places, middle + off, width_px, facing))
    return gazes


def paint_eye(layers: Layers, gaze: Gaze, style: EyeStyle, painted: Painted) -> None:
    """Paint one eye in place; what the lids leave open of it."""
    outline = _grow_outline(gaze, style)
    box = _cut_box(layers, outline, 0.25 * gaze.width_px + 3)
    if box is None or gaze.facing <= 0.0 or gaze.width_px < 3.0:  # noqa: PLR2004 - px: a dot
        return
    x0, y0, x1, y1 = box
    opening = _draw_polygon(outline, box) * np.float32(gaze.facing)
    colours = _colour_eye(gaze, style, painted, box)
    if style.shadow > 0.0:
        down = max(1, round(0.1 * gaze.width_px))
        lower = np.zeros_like(opening)
        lower[down:] = opening[:-down]
        lower = cv2.GaussianBlur(lower, (0, 0), 0.6 * down)
        colours[:, :, 0] -= (
            (colours[:, :, 0] - 16) * style.shadow * np.clip(opening - lower, 0, 1)
        )
    if style.glint > 0.0:
        _add_glints(colours, gaze, style, box)
    _blend(layers, (x0, y0, x1, y1), opening, colours)
    if style.line is not None:
        width = max(1, round(style.line_width * gaze.width_px))
        lid = _draw_line(outline[:_UPPER], width, box)
        low = _draw_line(np.vstack([outline[_UPPER - 1 :], outline[:1]]), max(1, width // 3), box)
        share = np.maximum(lid, 0.5 * low) * np.float32(gaze.facing)
        flat = np.empty_like(colours)
        flat[:] = painted.line
        _blend(layers, box, share, flat)


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
    gaze: Gaze, style: EyeStyle, painted: Painted, box: tuple[int, int, int, int]
) -> Values:
    """Return Y, U, V float32 of each px of the box: rings about the iris, white beyond."""
    x0, y0, x1, y1 = box
    middle = gaze.outline[[0, _UPPER - 1]].mean(axis=0)
    iris_x, iris_y = (middle + (gaze.iris - middle) * np.array(style.grow, np.float32)).tolist()
    radius = max(style.iris * gaze.width_px * style.grow[0], 1.0)
    x = (np.arange(x0, x1, dtype=np.float32) - iris_x)[None, :] / radius
    y = (np.arange(y0, y1, dtype=np.float32) - iris_y)[:, None] / radius
    apart = np.sqrt(x * x + y * y)
    if style.slit < 1.0:
        # Near the middle across counts for more than along: a pupil like a cat's.
        narrow = np.sqrt((x / style.slit) ** 2 + y * y)
        apart = np.minimum(np.maximum(narrow * 0.55, apart * 0.55 + 0.0), apart + 0.0) + np.where(
            narrow < 1, 0, 0
        )
        apart = np.where(narrow < 0.8, apart * 0.3, np.sqrt(x * x + y * y))
    index = np.minimum(apart * ((_STEPS - 1) / _REACH), _STEPS - 1).astype(np.intp)
    return np.asarray(painted.eye[index], np.float32)


def _add_glints(
    colours: Values, gaze: Gaze, style: EyeStyle, box: tuple[int, int, int, int]
) -> None:
    radius = max(style.iris * gaze.width_px * style.grow[0], 1.0)
    x0, y0, x1, y1 = box
    for at, size, luma in (((-0.36, -0.4), 0.2, 150.0), ((0.4, 0.42), 0.13, 60.0)):
        x = (np.arange(x0, x1, dtype=np.float32) - (gaze.iris[0] + at[0] * radius)) / radius
        y = (np.arange(y0, y1, dtype=np.float32) - (gaze.iris[1] + at[1] * radius)) / radius
        spot = np.exp(-(y[:, None] ** 2 + x[None, :] ** 2) / (2 * size * size))
        colours[:, :, 0] += spot * np.float32(luma * style.glint)


def paint_mouth(
    layers: Layers, points: Values, face_px: float, style: MouthStyle, painted: Painted
) -> bool:
    """Paint the inside of an open mouth in place and make it opaque; False when it is closed.

    A closed mouth is made opaque too: the mesh has no triangles there.
    """
    outline = np.asarray(points[LIPS_INNER, :2], np.float32)
    box = _cut_box(layers, outline, 4.0)
    if box is None:
        return False
    x0, y0, x1, y1 = box
    share = _draw_polygon(outline, box)
    hole = _draw_line(np.vstack([outline, outline[:1]]), 3, box)
    alpha = layers.alpha[y0:y1, x0:x1]
    np.maximum(alpha, (np.maximum(share, hole) * 255).astype(np.uint8), out=alpha)
    gap = float(np.linalg.norm(points[13] - points[14]))
    colours = np.empty((y1 - y0, x1 - x0, 3), np.float32)
    colours[:] = painted.depth
    is_open = gap >= _OPEN_MOUTH * face_px
    if is_open:
        _fill_mouth(colours, outline, style, painted, box)
    share = cv2.GaussianBlur(np.maximum(share, 0.6 * hole), (0, 0), max(0.5, 0.004 * face_px))
    _blend(layers, box, np.asarray(share, np.float32), colours)
    return is_open


def _fill_mouth(
    colours: Values,
    outline: Values,
    style: MouthStyle,
    painted: Painted,
    box: tuple[int, int, int, int],
) -> None:
    """Put tongue, teeth and fangs in, in places that go with the lips."""
    left, right = outline[0], outline[10]
    top, low = outline[5], outline[15]
    width, gap = max(float(np.hypot(*(right - left))), 1.0), float(np.hypot(*(low - top)))
    if style.tongue is not None:
        tongue = low + (top - low) * 0.12
        _dab(colours, tongue, (0.26 * width, 0.42 * gap + 1.0), painted.tongue, box)
    if style.teeth is not None:
        row = outline[[1, 2, 3, 4, 5, 6, 7, 8, 9]]
        depth = min(0.3 * gap, 0.09 * width)
        down = (low - top) / max(gap, 1e-3)
        shape = np.vstack([row - down, (row + down * depth)[::-1]])
        share = _draw_polygon(shape, box)[..., None]
        colours += (np.array(painted.teeth, np.float32) - colours) * share
    if style.bars is not None:
        _draw_bars(colours, outline, painted.bars, box)
    if style.fangs is not None:
        down = (low - top) / max(gap, 1e-3)
        across = (right - left) / width
        long = min(0.55 * gap, 0.13 * width)
        for index in (3, 7):
            root = outline[index]
            shape = np.stack(
                [root - across * 0.045 * width, root + across * 0.045 * width, root + down * long]
            )
            share = _draw_polygon(np.asarray(shape, np.float32), box)[..., None]
            colours += (np.array(painted.fangs, np.float32) - colours) * share


def _draw_bars(
    colours: Values, outline: Values, yuv: tuple[float, float, float], box: tuple[int, int, int, int]
) -> None:
    """Draw upright lamps across the mouth, as high as it is open there: a voice made visible."""
    for index in range(1, 10):
        top, low = outline[index], outline[20 - index]
        height = float(np.hypot(*(low - top)))
        middle = (top + low) / 2
        shape = (0.045 * float(np.hypot(*(outline[10] - outline[0]))) * 0.8, 0.33 * height)
        x0, y0, x1, y1 = box
        x = np.abs(np.arange(x0, x1, dtype=np.float32) - middle[0]) / max(shape[0], 0.7)
        y = np.abs(np.arange(y0, y1, dtype=np.float32) - middle[1]) / max(shape[1], 0.7)
        share = np.clip(1.5 - np.maximum(x[None, :], y[:, None]), 0, 1)
        glow = 0.28 * np.exp(-0.5 * (x[None, :] ** 2 / 4 + y[:, None] ** 2 / 1.4))
        mixed = np.maximum(share, glow)[..., None]
        colours += (np.array(yuv, np.float32) - colours) * mixed


def _dab(
    colours: Values,
    middle: Values,
    radii: tuple[float, float],
    yuv: tuple[float, float, float],
    box: tuple[int, int, int, int],
) -> None:
    x0, y0, x1, y1 = box
    x = (np.arange(x0, x1, dtype=np.float32) - middle[0]) / np.float32(radii[0])
    y = (np.arange(y0, y1, dtype=np.float32) - middle[1]) / np.float32(radii[1])
    share = np.clip(1.6 - 1.3 * np.sqrt(y[:, None] ** 2 + x[None, :] ** 2), 0, 1)[..., None]
    colours += (np.array(yuv, np.float32) - colours) * share


def _cut_box(layers: Layers, outline: Values, pad: float) -> tuple[int, int, int, int] | None:
    """Return the even box around `outline` within the region, or None."""
    height, width = layers.luma.shape
    low, high = outline.min(axis=0) - pad, outline.max(axis=0) + pad
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1, y1 = min(int(high[0]) // 2 * 2 + 2, width), min(int(high[1]) // 2 * 2 + 2, height)
    return (x0, y0, x1, y1) if x1 - x0 >= 2 and y1 - y0 >= 2 else None  # noqa: PLR2004 - a chroma px


def _draw_polygon(outline: Values, box: tuple[int, int, int, int]) -> Values:
    x0, y0, x1, y1 = box
    share = np.zeros((y1 - y0, x1 - x0), np.uint8)
    fixed = np.rint((outline - (x0, y0)) * (1 << _SHIFT)).astype(np.int32)
    cv2.fillPoly(share, [fixed], 255, cv2.LINE_AA, _SHIFT)
    return share.astype(np.float32) * np.float32(1 / 255)


def _draw_line(points: Values, width: int, box: tuple[int, int, int, int]) -> Values:
    x0, y0, x1, y1 = box
    share = np.zeros((y1 - y0, x1 - x0), np.uint8)
    fixed = np.rint((points - (x0, y0)) * (1 << _SHIFT)).astype(np.int32)
    cv2.polylines(share, [fixed], isClosed=False, color=255, thickness=width,
                  lineType=cv2.LINE_AA, shift=_SHIFT)  # fmt: skip
    return share.astype(np.float32) * np.float32(1 / 255)


def _blend(layers: Layers, box: tuple[int, int, int, int], share: Values, yuv: Values) -> None:
    x0, y0, x1, y1 = box
    _mix(layers.luma[y0:y1, x0:x1], yuv[:, :, 0], share)
    size = ((x1 - x0) // 2, (y1 - y0) // 2)
    half = cv2.resize(yuv, size, interpolation=cv2.INTER_AREA)
    half_share = cv2.resize(share, size, interpolation=cv2.INTER_AREA)
    rows, columns = slice(y0 // 2, y1 // 2), slice(x0 // 2, x1 // 2)
    for index, plane in ((1, layers.u), (2, layers.v)):
        _mix(plane[rows, columns], half[:, :, index], half_share)


def _mix(plane: NDArray[np.uint8], values: NDArray[np.float32], share: Values) -> None:
    mixed = plane + (values - plane) * share
    plane[:] = np.clip(np.rint(mixed), 0, 255)
