"""A portrait that moves as the wearer does, in place of the whole picture.

The face follows his mesh, two rings around it bend hair and neck, beyond them the portrait is
still. Nothing of his picture is left but the inside of his open mouth (a drawn avatar paints even
that).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import cv2
import numpy as np

from livefuse.geometry import apply_similarity, fit_similarity
from livefuse.pipeline.canonical import fit_head
from livefuse.pipeline.effects.avatar_portrait import draw_empty_portrait
from livefuse.pipeline.effects.avatar_render import AvatarRenderer, Wearer
from livefuse.pipeline.effects.mesh_raster import GridBox, paint_triangles, sort_triangles
from livefuse.pipeline.effects.mesh_regions import SIDES
from livefuse.pipeline.effects.puppet_motion import Motion, move_portrait
from livefuse.pipeline.effects.puppet_stage import Stage, create_stage
from livefuse.pipeline.planes import Scratch, blend_plane
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER, OVAL, TRIANGLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import PuppetConfig
    from livefuse.face import SourceFace
    from livefuse.frame import Frame
    from livefuse.pipeline.canonical import Pose
    from livefuse.pipeline.effects.avatar_render import Drawing

    Values = NDArray[np.float32]
    Plane = NDArray[np.uint8]

# Rings round the oval: how far out (1 is the oval) and how much of the head's move they follow.
_RINGS: Final = ((1.45, 0.8), (2.1, 0.35), (3.0, 0.0))
_RING_DEPTH: Final = 0.25  # face widths behind the oval, each ring
_GRID_ACROSS_PX: Final = 110.0
_COARSEST: Final = 0.25
_OPEN_MOUTH: Final = 0.015  # face widths
_MOUTH_BLUR: Final = 0.006
_DIMMEST, _BRIGHTEST = 0.6, 1.6  # the mouth's luma against the wearer's
_CHEEKS: Final = (50, 280)
_STIFF: Final = 20.0
_LASHES_FROM: Final = 0.6  # closed so far, lashes show as a line
_LASH_WIDTH: Final = 0.07  # eye widths
_LASH_DARK: Final = 0.7
_RESTS: Final = 1e-3


class Puppet(Protocol):
    """Shows one portrait. One instance for one thread."""

    def show(self, frame: Frame, motion: Motion, wearer: Values | None) -> Values:
        """Replace the whole picture; return the portrait's mesh (468, 3) as it is shown, px.

        `wearer` is his mesh in `frame`, None when he is not to be seen.
        """
        ...


class _Mouth(NamedTuple):
    """The wearer's mouth, cut out before the picture is replaced."""

    x: int
    y: int
    planes: tuple[Plane, Plane, Plane]
    skin: float


class PhotoPuppet:
    """A photo that moves. See `Puppet`."""

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
        mouth = _cut_mouth(frame, wearer) if is_open and wearer is not None else None
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
        moved = np.concatenate([face, self._move_rings(head)])
        self._warp(frame, stage, moved)
        for eye, closed in zip((EYE_LEFT, EYE_RIGHT), motion.closed, strict=True):
            _draw_lashes(frame, face[eye[:9], :2], (closed - _LASHES_FROM) / (1 - _LASHES_FROM))
        if mouth is not None and wearer is not None:
            self._lay_mouth(frame, mouth, wearer, face)
        return face

    def _get_stage(self, frame: Frame) -> Stage:
        stage = self._stage
        if stage is None or not stage.fits(frame):
            stage = create_stage(
                self._picture, self._mesh, frame.width, frame.height, frame.colour
            )
            self._stage = stage
            self._still, self._triangles = create_bust(stage.mesh)
        return stage

    def _move_rings(self, head: Pose) -> Values:
        rings = self._still[468:]
        share = np.repeat([share for _, share in _RINGS], len(OVAL)).astype(np.float32)[:, None]
        return np.asarray(rings + (head.apply(rings) - rings) * share, np.float32)

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
        places = cv2.resize(uv, (box.width, box.height))
        _remap(stage.planes[0][full], places, frame.y[full])
        small = cv2.resize(uv, (box.width // 2, box.height // 2))
        small = (small - np.float32(0.5)) * np.float32(0.5)  # chroma px lie between two luma px
        _remap(stage.planes[1][half], small, frame.u[half])
        _remap(stage.planes[2][half], small, frame.v[half])

    def _lay_mouth(self, frame: Frame, mouth: _Mouth, wearer: Values, face: Values) -> None:
        """Bring the inside of the wearer's mouth into the portrait's, in that one's light."""
        lips = wearer[LIPS_INNER, :2] - (mouth.x, mouth.y)
        to = face[LIPS_INNER, :2]
        face_px = float(np.linalg.norm(face[SIDES[1]] - face[SIDES[0]]))
        blur_px = _MOUTH_BLUR * face_px + 0.4
        box = _find_part(to, 3 * blur_px + 2, frame)
        if box is None:
            return
        x0, y0, x1, y1 = box
        to = np.asarray(to - (x0, y0), np.float32)
        move = _fit_affine(lips, to)
        mask = _draw_inner(to, (y1 - y0, x1 - x0), blur_px)
        # What is outside the wearer's own inner lips is his lips, which must not come along.
        own = _draw_inner(lips, mouth.planes[0].shape, 0.0)
        own = np.asarray(cv2.warpAffine(own, move, (x1 - x0, y1 - y0)), np.uint8)
        cv2.min(mask, cv2.GaussianBlur(own, (0, 0), blur_px), dst=mask)
        light = _measure_skin(frame, face), mouth.skin
        for index, plane in enumerate((frame.y, frame.u, frame.v)):
            step = 2 if index else 1
            part = plane[y0 // step : y1 // step, x0 // step : x1 // step]
            cover = _warp_mouth(mouth.planes[index], move, step, part.shape)
            if index:
                share = np.asarray(cv2.resize(mask, part.shape[::-1], interpolation=cv2.INTER_AREA))
            else:
                share = mask
                gain = min(max((light[0] - 16) / max(light[1] - 16, 1.0), _DIMMEST), _BRIGHTEST)
                cover = cv2.convertScaleAbs(cover, alpha=gain, beta=16 * (1 - gain))
            blend_plane(part, np.asarray(cover, np.uint8), np.asarray(share, np.uint8), self._scratch)


class AvatarPuppet:
    """A drawn avatar on its own shoulders. See `Puppet`."""

    def __init__(self, drawing: Drawing, config: PuppetConfig) -> None:
        self._renderer = AvatarRenderer(drawing)
        self._picture, self._mesh = draw_empty_portrait(drawing)
        self._config = config
        self._wearer = Wearer()
        self._stage: Stage | None = None

    def show(self, frame: Frame, motion: Motion, wearer: Values | None) -> Values:
        """See `Puppet.show`."""
        stage = self._stage
        if stage is None or not stage.fits(frame):
            stage = create_stage(
                self._picture, self._mesh, frame.width, frame.height, frame.colour
            )
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


def create_bust(mesh: Values) -> tuple[Values, NDArray[np.int32]]:
    """Return a portrait's mesh with rings round it and its mouth closed: points, triangles.

    The 36 points of each ring lie outwards of the oval's, a little behind.
    """
    oval = mesh[OVAL]
    middle = oval.mean(axis=0)
    face_px = float(np.linalg.norm(mesh[SIDES[1]] - mesh[SIDES[0]]))
    points, triangles = [mesh], [np.asarray(TRIANGLES), close_mouth()]
    inner = np.asarray(OVAL, np.int32)
    for index, (reach, _) in enumerate(_RINGS):
        ring = middle + (oval - middle) * np.float32(reach)
        ring[:, 2] = oval[:, 2] + _RING_DEPTH * face_px * (index + 1)
        outer = np.arange(len(OVAL), dtype=np.int32) + 468 + index * len(OVAL)
        points.append(ring)
        after, beyond = np.roll(inner, -1), np.roll(outer, -1)
        triangles.append(np.stack([inner, outer, after], axis=1))
        triangles.append(np.stack([after, outer, beyond], axis=1))
        inner = outer
    still = np.concatenate(points).astype(np.float32)
    joined = np.concatenate(triangles).astype(np.int32)
    a, b, c = (still[joined[:, i]] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    wrong = (area < 0) & (np.arange(len(joined)) >= len(TRIANGLES))
    joined[wrong] = joined[wrong][:, ::-1]
    return still, joined


def close_mouth() -> NDArray[np.int32]:
    """Return triangles (18, 3) between the inner lips, which the mesh leaves open."""
    lips = LIPS_INNER.tolist()
    upper, lower = lips[:11], [lips[0], *lips[:10:-1], lips[10]]
    triangles = []
    for i in range(10):
        if i:
            triangles.append((upper[i], upper[i + 1], lower[i]))
        if i < 9:  # noqa: PLR2004 - the last corner has one triangle only
            triangles.append((upper[i + 1], lower[i + 1], lower[i]))
    return np.array(triangles, np.int32)


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


def _remap(source: Plane, places: NDArray[np.floating], out: Plane) -> None:
    none = None
    moved = cv2.remap(  # type: ignore[call-overload]  # the stubs forbid the None that a joint map needs
        source, places, none, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    np.copyto(out, moved)


def _cut_mouth(frame: Frame, wearer: Values) -> _Mouth | None:
    box = _find_part(wearer[LIPS_INNER, :2], 8.0, frame)
    if box is None:
        return None
    x0, y0, x1, y1 = box
    half = (slice(y0 // 2, y1 // 2), slice(x0 // 2, x1 // 2))
    planes = frame.y[y0:y1, x0:x1].copy(), frame.u[half].copy(), frame.v[half].copy()
    return _Mouth(x0, y0, planes, _measure_skin(frame, wearer))


def _find_part(points: Values, pad: float, frame: Frame) -> tuple[int, int, int, int] | None:
    """Return the even box around `points` within the frame, or None when there is nothing."""
    if not np.isfinite(points).all():
        return None
    low, high = points.min(axis=0) - pad, points.max(axis=0) + pad
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1 = min(int(high[0]) // 2 * 2 + 2, frame.width)
    y1 = min(int(high[1]) // 2 * 2 + 2, frame.height)
    if x1 - x0 < 4 or y1 - y0 < 4:  # noqa: PLR2004 - px: nothing to see
        return None
    return x0, y0, x1, y1


def _measure_skin(frame: Frame, mesh: Values) -> float:
    """Return the luma of both cheeks."""
    found = []
    for index in _CHEEKS:
        x, y = mesh[index, :2].tolist()
        row, column = min(max(int(y), 4), frame.height - 5), min(max(int(x), 4), frame.width - 5)
        found.append(float(frame.y[row - 4 : row + 5, column - 4 : column + 5].mean()))
    return sum(found) / len(found)


def _draw_lashes(frame: Frame, lid: Values, share: float) -> None:
    """Darken the line on which closed lids meet; the eye's white would glitter through there."""
    width_px = float(np.hypot(*(lid[-1] - lid[0])))
    thick = max(1.0, _LASH_WIDTH * width_px)
    box = _find_part(lid, 3 * thick + 2, frame) if share > 0.0 else None
    if box is None:
        return
    x0, y0, x1, y1 = box
    line = np.zeros((y1 - y0, x1 - x0), np.uint8)
    fixed = np.rint((lid - (x0, y0)) * 16).astype(np.int32)
    cv2.polylines(
        line, [fixed], isClosed=False, color=255, thickness=max(1, round(thick)),
        lineType=cv2.LINE_AA, shift=4,
    )  # fmt: skip
    line = np.asarray(cv2.GaussianBlur(line, (0, 0), max(0.6, 0.4 * thick)), np.uint8)
    part = frame.y[y0:y1, x0:x1]
    dark = cv2.convertScaleAbs(line, alpha=min(share, 1.0) * _LASH_DARK)
    cv2.multiply(part, cv2.bitwise_not(dark), dst=part, scale=1 / 255)


def _fit_affine(source: Values, target: Values) -> NDArray[np.float64]:
    """Return the (2, 3) matrix with the least squares error from (n, 2) to (n, 2) points.

    A mouth that is hardly open lies nearly on a line: then lengths across it are not stretched.
    """
    middle = source.mean(axis=0)
    known = np.column_stack([source - middle, np.ones(len(source))]).astype(np.float64)
    even = fit_similarity(source, target)
    guess = np.column_stack([[even.a, even.b], [-even.b, even.a]])
    # Tikhonov's pull towards the similarity, in squared px.
    pull = np.diag([_STIFF, _STIFF, 0.0])
    wanted = known.T @ target + pull[:, :2] @ guess.T
    found = np.linalg.solve(known.T @ known + pull, wanted)
    shift = found[2] - middle @ found[:2]
    return np.column_stack([found[:2].T, shift])


def _draw_inner(lips: Values, shape: tuple[int, ...], blur_px: float) -> Plane:
    mask = np.zeros(shape[:2], np.uint8)
    cv2.fillPoly(mask, [np.rint(lips * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    if blur_px > 0.0:
        mask = np.asarray(cv2.GaussianBlur(mask, (0, 0), blur_px), np.uint8)
    return mask


def _warp_mouth(
    plane: Plane, move: NDArray[np.float64], step: int, shape: tuple[int, ...]
) -> Plane:
    middle = (step - 1) / 2  # a chroma px lies between two luma px
    turn = move[:, :2]
    shift = (turn @ [middle, middle] + move[:, 2] - middle) / step
    return np.asarray(
        cv2.warpAffine(
            plane,
            np.column_stack([turn, shift]),
            (shape[1], shape[0]),
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        ),
        np.uint8,
    )
