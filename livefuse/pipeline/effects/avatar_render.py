"""A drawn avatar on a face: warped, its eyes and mouth alive, lit, laid into the planes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.avatar_eyes import (
    EyeStyle,
    PaintedEye,
    convert_eye,
    find_gazes,
    paint_eye,
)
from livefuse.pipeline.effects.avatar_light import (
    Ball,
    Gloss,
    WearerLight,
    create_ball,
    get_skin,
    look_up,
)
from livefuse.pipeline.effects.avatar_mouth import (
    MouthStyle,
    PaintedMouth,
    convert_mouth,
    paint_mouth,
)
from livefuse.pipeline.effects.avatar_shape import TEXTURE_PX, Shape
from livefuse.pipeline.effects.avatar_view import PlacedAvatar, place_mesh
from livefuse.pipeline.effects.mesh_render import Layers, MeshRenderer
from livefuse.pipeline.planes import Scratch, convert_colour, shrink_plane
from livefuse.pipeline.topology import LIPS_INNER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Box
    from livefuse.frame import Colour, Frame
    from livefuse.pipeline.effects.mesh_raster import GridBox, MeshView

    Values = NDArray[np.float32]

_FINER: Final = math.sqrt(2)  # from one size of the texture to the next
_LEVELS: Final = 6
_SHARPER: Final = 1.25  # texture px per px of the frame that are still smooth
_EDGE: Final = np.clip((np.arange(256) - 100) * (255 / 80), 0, 255).astype(np.uint8)
"""From a blurred mask to alpha: the edge lies where half of it is covered."""


class Drawing(NamedTuple):
    """An avatar as drawn: `rgba` uint8 (HEIGHT_PX, WIDTH_PX, 4) on `shape`, and how it lives.

    `coat` is the colour (R, G, B) of what it wears in a portrait; a mask has a `hood` behind it.
    """

    rgba: NDArray[np.uint8]
    shape: Shape
    eye: EyeStyle
    mouth: MouthStyle
    gloss: Gloss
    coat: tuple[float, float, float]
    hood: bool = False


class _Texture(NamedTuple):
    """The drawing for frames of one colour: Y, U, V, alpha in falling sizes, and colours."""

    levels: tuple[NDArray[np.uint8], ...]
    eye: PaintedEye
    mouth: PaintedMouth


@dataclass(slots=True)
class Wearer:
    """What is kept of one wearer from frame to frame. `light` None: the avatar's own will do."""

    light: WearerLight | None = field(default_factory=WearerLight)
    level: int = -1


class AvatarRenderer:
    """Draws one avatar. One instance for one thread; `prepare` may run in another before."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._skin = get_skin()
        self._ball: Ball = create_ball(drawing.gloss)
        self._mesh = MeshRenderer()
        self._scratch = Scratch()
        self._textures: dict[Colour, _Texture] = {}

    def prepare(self, colour: Colour) -> None:
        """Build the texture for frames of `colour` (some 30 ms)."""
        if colour not in self._textures:
            self._textures[colour] = _create_texture(self._drawing, colour)

    def draw(
        self,
        frame: Frame,
        mesh: Values,
        wearer: Wearer,
        amount: float = 1.0,
        occluder: tuple[NDArray[np.uint8], Box] | None = None,
    ) -> bool:
        """Draw on the face with this `mesh` (468 or 478, 3); False leaves the frame as it was.

        `occluder` is what stands before the face and stays: uint8 of a box px, 255 is occluded.
        """
        placed = place_mesh(self._drawing.shape, mesh, frame.width, frame.height)
        if placed is None:
            return False
        self.prepare(frame.colour)
        texture = self._textures[frame.colour]
        view, face_px = placed.view, placed.view.face_px
        wearer.level = _choose_level(face_px, wearer.level)
        scale = _FINER**-wearer.level
        full = view.uv
        # Never outside the texture: OpenCV's remap takes thrice the time there.
        view.uv = np.maximum((full + np.float32(0.5)) * np.float32(scale), 1.5) - np.float32(0.5)
        layers = self._mesh.warp(view, texture.levels[wearer.level])
        view.uv = full
        _close_edge(placed, layers)
        paint_mouth(layers, placed.points, face_px, texture.mouth)
        if not self._drawing.eye.glow:
            self._paint_eyes(layers, placed, texture)
        self._light(frame, placed, layers, wearer)
        if self._drawing.eye.glow:
            self._paint_eyes(layers, placed, texture)
        if occluder is not None:
            _keep_occluder(view.box, layers, *occluder)
        self._mesh.lay(view, layers, frame, amount)
        return True

    def _paint_eyes(self, layers: Layers, placed: PlacedAvatar, texture: _Texture) -> None:
        for gaze in find_gazes(placed.points, placed.irises, placed.normals):
            paint_eye(layers, gaze, self._drawing.eye, texture.eye)

    def _light(self, frame: Frame, placed: PlacedAvatar, layers: Layers, wearer: Wearer) -> None:
        gain, added = look_up(self._ball, placed.towards)
        if wearer.light is not None:
            light = self._measure_light(frame, placed.view, wearer.light)
            gain *= light
            added *= light
        _apply_light(layers, gain, added, self._scratch)

    def _measure_light(self, frame: Frame, view: MeshView, light: WearerLight) -> Values:
        """Return the gain of the wearer's own light on the view's grid."""
        box = view.box
        size = (max(1, box.columns // 2), max(1, box.rows // 2))
        luma = frame.y[box.y0 : box.y1, box.x0 : box.x1]
        small = self._scratch.get("small", size[1], size[0])
        shrink_plane(luma, small)
        scale = np.float32(self._skin.shape[0] / self._drawing.rgba.shape[0])
        places = cv2.resize(view.uv, size, interpolation=cv2.INTER_NEAREST) * scale
        skin = cv2.remap(self._skin, places, None, cv2.INTER_LINEAR)  # type: ignore[call-overload]  # the stubs forbid the None that a joint map needs
        found = light.measure(small, skin, self._drawing.gloss, view.face_px * size[0] / box.width)
        return np.asarray(cv2.resize(found, (box.columns, box.rows)), np.float32)


def _apply_light(layers: Layers, gain: Values, added: Values, kept: Scratch) -> None:
    """Y' = (Y - 16) gain + added + 16; chroma goes with the gain and pales in the gloss."""
    pale = np.clip(gain, 0.0, 1.3) * (1 - np.clip(added / 220, 0, 0.85))
    more = added + 16 * (1 - gain)
    for plane, gains, offsets in (
        (layers.luma, gain, more),
        (layers.u, pale, 128 * (1 - pale)),
        (layers.v, pale, 128 * (1 - pale)),
    ):
        rows, columns = plane.shape
        wide, lit = (_get_floats(kept, name, rows, columns) for name in ("wide", "lit"))
        cv2.resize(gains, (columns, rows), dst=wide)
        cv2.multiply(plane, wide, dst=lit, dtype=cv2.CV_32F)
        cv2.resize(offsets, (columns, rows), dst=wide)
        cv2.add(lit, wide, dst=plane, dtype=cv2.CV_8U)


def _get_floats(kept: Scratch, name: str, rows: int, columns: int) -> Values:
    return kept.get(name, rows, columns * 4).view(np.float32)


def _keep_occluder(box: GridBox, layers: Layers, mask: NDArray[np.uint8], place: Box) -> None:
    """Take what stands before the face out of alpha."""
    x0, y0 = max(round(place.x0) - box.x0, 0), max(round(place.y0) - box.y0, 0)
    x1, y1 = min(round(place.x1) - box.x0, box.width), min(round(place.y1) - box.y0, box.height)
    if x1 <= x0 or y1 <= y0 or not mask.size:
        return
    across, along = mask.shape[1] / max(place.width, 1.0), mask.shape[0] / max(place.height, 1.0)
    # From px of the region to px of the mask, centres on centres.
    move = np.array(
        [
            [across, 0, (x0 + box.x0 - place.x0 + 0.5) * across - 0.5],
            [0, along, (y0 + box.y0 - place.y0 + 0.5) * along - 0.5],
        ]
    )
    size = (x1 - x0, y1 - y0)
    there = cv2.warpAffine(mask, move, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    part = layers.alpha[y0:y1, x0:x1]
    cv2.multiply(part, cv2.bitwise_not(there), dst=part, scale=1 / 255)


def _close_edge(placed: PlacedAvatar, layers: Layers) -> None:
    """Take out of alpha what lies outside the drawn triangles, smoothly."""
    view = placed.view
    solid = view.inside.copy()
    scale = np.array(view.scale, np.float32)
    lips = (placed.points[LIPS_INNER, :2] + 0.5) * scale - 0.5
    cv2.fillPoly(solid, [np.rint(lips).astype(np.int32)], 255)
    height, width = layers.alpha.shape
    soft = np.asarray(cv2.LUT(cv2.GaussianBlur(solid, (0, 0), 0.8), _EDGE), np.uint8)
    cv2.min(layers.alpha, cv2.resize(soft, (width, height)), dst=layers.alpha)


def _create_texture(drawing: Drawing, colour: Colour) -> _Texture:
    red, green, blue, alpha = (np.ascontiguousarray(drawing.rgba[:, :, i]) for i in range(4))
    y, u, v = convert_colour((red, green, blue), colour)
    full = np.dstack([y, u, v, alpha])
    rows, columns = alpha.shape
    levels = [full]
    for level in range(1, _LEVELS):
        size = (round(columns * _FINER**-level), round(rows * _FINER**-level))
        levels.append(np.asarray(cv2.resize(full, size, interpolation=cv2.INTER_AREA), np.uint8))
    return _Texture(
        tuple(np.ascontiguousarray(level) for level in levels),
        convert_eye(drawing.eye, colour),
        convert_mouth(drawing.mouth, colour),
    )


def _choose_level(face_px: float, last: int) -> int:
    """Return which size of the texture fits; the last one as long as it nearly does."""
    exact = math.log(max(TEXTURE_PX / face_px / _SHARPER, 1e-3)) / math.log(_FINER)
    if last >= 0 and abs(exact - last) < 0.7:  # noqa: PLR2004 - past half a step, so that it rests
        return last
    return min(max(round(exact), 0), _LEVELS - 1)
