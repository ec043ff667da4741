"""A portrait that moves as the wearer does, in place of the whole picture.

The face follows his mesh, two rings around it bend hair and neck, beyond them the portrait is
still. Nothing of his picture is left but the inside of his open mouth (a drawn avatar paints even
that).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

import cv2
import numpy as np

from livefuse.geometry import apply_similarity, fit_similarity
from livefuse.pipeline.canonical import fit_head
from livefuse.pipeline.effects.avatar_portrait import draw_empty_portrait
from livefuse.pipeline.effects.avatar_render import AvatarRenderer, Wearer
from livefuse.pipeline.effects.mesh_raster import GridBox, paint_triangles, sort_triangles
from livefuse.pipeline.effects.mesh_regions import SIDES
from livefuse.pipeline.effects.puppet_bust import create_bust, move_rings
from livefuse.pipeline.effects.puppet_motion import Motion, move_portrait
from livefuse.pipeline.effects.puppet_mouth import cut_mouth, draw_lashes, lay_mouth
from livefuse.pipeline.effects.puppet_stage import Stage, create_stage
from livefuse.pipeline.planes import Scratch
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import PuppetConfig
    from livefuse.face import SourceFace
    from livefuse.frame import Frame
    from livefuse.pipeline.effects.avatar_render import Drawing

    Values = NDArray[np.float32]
    Plane = NDArray[np.uint8]

_GRID_ACROSS_PX: Final = 80.0
_COARSEST: Final = 0.25
_BYTES_PER_PLACE: Final = 8
_OPEN_MOUTH: Final = 0.015  # face widths
_RESTS: Final = 1e-3


class Puppet(Protocol):
    """Shows one portrait. One instance for one thread. `is_drawn`: it has no skin."""

    is_drawn: bool

    def show(self, frame: Frame, motion: Motion, wearer: Values | None) -> Values:
        """Replace the whole picture; return the portrait's mesh (468, 3) as it is shown, px.

        `wearer` is his mesh in `frame`, None when he is not to be seen.
        """
        ...


class PhotoPuppet:
    """A photo that moves. See `Puppet`."""

    is_drawn = False

    def __init__(self, source: SourceFace, mesh: Values, config: PuppetConfig) -> None:
        """`mesh` is that of the photo's face, (468 or 478, 3) px."""
        self._picture = source.picture_rgb
        self._mesh = np.asarray(mesh[:468], np.float32)
        self._config = config
        self._scratch = Scratch()
        self._stage: Stage | None = None
        self._still: Values = np.empty((0, 3), np.float32)
        self._triangles = np.empty((0, 3), np.int32)

    def show(self, frame: Frame, motion: Motion, wearer: Values | None) -> Values:
        """See `Puppet.show`."""
        stage = self._get_stage(frame)
        is_open = wearer is not None and motion.gap > _OPEN_MOUTH
        mouth = cut_mouth(frame, wearer) if is_open and wearer is not None else None
        stage.lay(frame)
        face, head = move_portrait(
            stage.mesh,
            fit_head(stage.mesh),
            motion,
            expression=self._config.expression,
            turn=self._config.turn,
        )
        if float(np.abs(face - stage.mesh).max()) < _RESTS:
            return face
        moved = np.concatenate([face, move_rings(self._still, head)])
        self._warp(frame, stage, moved)
        for eye, closed in zip((EYE_LEFT, EYE_RIGHT), motion.closed, strict=True):
            draw_lashes(frame, face[eye[:9], :2], closed)
        if mouth is not None and wearer is not None:
            lay_mouth(frame, mouth, wearer, face, self._scratch)
        return face

    def _get_stage(self, frame: Frame) -> Stage:
        stage = self._stage
        if stage is None or not stage.fits(frame):
            stage = create_stage(self._picture, self._mesh, frame.width, frame.height, frame.colour)
            self._stage = stage
            self._still, self._triangles = create_bust(stage.mesh)
        return stage

    def _warp(self, frame: Frame, stage: Stage, moved: Values) -> None:
        box = _find_box(moved, frame)
        if box is None:
            return
        scale = np.array([box.columns / box.width, box.rows / box.height], np.float32)
        corner = np.array([box.x0, box.y0], np.float32)
        flat = np.asarray((moved[:, :2] - corner + 0.5) * scale - 0.5, np.float32)
        order = sort_triangles(flat, moved[:, 2], self._triangles)
        painted = paint_triangles(flat, self._still[:, :2] - corner, order, box)
        if painted is None:
            return
        inside, uv = painted
        _stay_where_bare(uv, inside, scale)
        full = (slice(box.y0, box.y1), slice(box.x0, box.x1))
        half = (slice(box.y0 // 2, box.y1 // 2), slice(box.x0 // 2, box.x1 // 2))
        places = self._get_places("places", box.height, box.width)
        cv2.resize(uv, (box.width, box.height), dst=places)
        _remap(stage.planes[0][full], places, frame.y[full])
        small = self._get_places("small", box.height // 2, box.width // 2)
        uv -= np.float32(0.5)  # chroma px lie between two luma px
        uv *= np.float32(0.5)
        cv2.resize(uv, (box.width // 2, box.height // 2), dst=small)
        _remap(stage.planes[1][half], small, frame.u[half])
        _remap(stage.planes[2][half], small, frame.v[half])

    def _get_places(self, name: str, rows: int, columns: int) -> Values:
        kept = self._scratch.get(name, rows, columns * _BYTES_PER_PLACE).view(np.float32)
        return kept.reshape(rows, columns, 2)


class AvatarPuppet:
    """A drawn avatar on its own shoulders. See `Puppet`."""

    is_drawn = True

    def __init__(self, drawing: Drawing, config: PuppetConfig) -> None:
        self._renderer = AvatarRenderer(drawing)
        self._picture, self._mesh = draw_empty_portrait(drawing)
        self._config = config
        self._wearer = Wearer(light=None)
        self._stage: Stage | None = None

    def show(self, frame: Frame, motion: Motion, wearer: Values | None) -> Values:
        """See `Puppet.show`."""
        stage = self._stage
        if stage is None or not stage.fits(frame):
            stage = create_stage(self._picture, self._mesh, frame.width, frame.height, frame.colour)
            self._stage = stage
        stage.lay(frame)
        # A drawing has no wrinkles to spare: it takes the whole expression.
        face, _ = move_portrait(
            stage.mesh, fit_head(stage.mesh), motion, expression=1.0, turn=self._config.turn
        )
        irises = None if wearer is None else carry_irises(wearer, face)
        self._renderer.draw(frame, face if irises is None else irises, self._wearer)
        return face


def carry_irises(wearer: Values, face: Values) -> Values | None:
    """Return `face` (468, 3) with the wearer's irises (478, 3), each carried over by its eye."""
    if len(wearer) < 478:  # noqa: PLR2004 - a mesh without irises
        return None
    parts = [face]
    for corners, irises in (((33, 133), range(468, 473)), ((362, 263), range(473, 478))):
        ends = list(corners)
        move = fit_similarity(wearer[ends, :2], face[ends, :2])
        places = apply_similarity(move, wearer[list(irises), :2])
        parts.append(np.column_stack([places, np.full(5, face[ends[0], 2], np.float32)]))
    return np.concatenate(parts).astype(np.float32)


def _find_box(points: Values, frame: Frame) -> GridBox | None:
    face_px = float(np.linalg.norm(points[SIDES[1]] - points[SIDES[0]]))
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1 = min(math.ceil(float(high[0]) / 2) * 2, frame.width)
    y1 = min(math.ceil(float(high[1]) / 2) * 2, frame.height)
    if x1 - x0 < 4 or y1 - y0 < 4 or not math.isfinite(face_px):  # noqa: PLR2004 - px: nothing to see
        return None
    scale = max(_COARSEST, min(1.0, _GRID_ACROSS_PX / max(face_px, 1.0)))
    return GridBox(x0, y0, x1, y1, round((x1 - x0) * scale), round((y1 - y0) * scale))


def _stay_where_bare(uv: Values, inside: Plane, scale: Values) -> None:
    """Let grid px that no triangle covers show what lies below them."""
    bare = inside == 0
    if not bare.any():
        return
    rows, columns = np.nonzero(bare)
    uv[bare, 0] = (columns + 0.5) / scale[0] - 0.5
    uv[bare, 1] = (rows + 0.5) / scale[1] - 0.5


def _remap(source: Plane, places: Values, out: Plane) -> None:
    cv2.remap(  # type: ignore[call-overload]  # the stubs forbid the None that a joint map needs
        source, places, None, cv2.INTER_LINEAR, dst=out, borderMode=cv2.BORDER_REPLICATE
    )
