"""People before a wall, drawn so that each face's place is known exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np

from tests.faces import FACE_CENTRE, read_picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]
    Matrix = NDArray[np.float64]

FACE_HEIGHT_PX = 112.0
"""Of the face in the photo, brow to chin with the forehead."""
_SIZE = 512
_SWAY_PX = 1.5
_FEATHER_PX = 4.0


class Place(NamedTuple):
    """Where a face is: its centre as shares of the picture, its height in px of the canvas.

    `squeeze` is its width, 1 from the front; less looks as if it was turned away.
    """

    x: float
    y: float
    height_px: float
    roll_rad: float = 0.0
    squeeze: float = 1.0


@dataclass(frozen=True)
class Actor:
    """Somebody who is at each of `path` (frame, place) and moves evenly from one to the next."""

    who: int
    path: tuple[tuple[int, Place], ...]
    phase: float = 0.0

    def find_place(self, index: int) -> Place | None:
        """Return where the face is at frame `index`; None: not there."""
        if not self.path[0][0] <= index < self.path[-1][0]:
            return None
        for (start, one), (end, other) in zip(self.path, self.path[1:], strict=False):
            if start <= index < end:
                share = (index - start) / (end - start)
                return Place(*(a + share * (b - a) for a, b in zip(one, other, strict=True)))
        return None


@dataclass(frozen=True)
class Scene:
    """What is filmed from frame `start` on, until the next scene."""

    start: int
    wall: int
    light: float
    actors: tuple[Actor, ...]


@dataclass(frozen=True)
class TrueFace:
    """A face in a picture: `matrix` (2 x 3) takes px of the photo to px of the picture.

    `key` names this person in this scene.
    """

    key: tuple[int, int]
    matrix: Matrix
    height_px: float

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle in px."""
        x, y = self.matrix @ (*FACE_CENTRE, 1.0)
        return float(x), float(y)

    def move(self, scale: float, left: float, top: float) -> TrueFace:
        """Return it in a picture that was scaled, then moved."""
        matrix = self.matrix * scale
        matrix[:, 2] += (left, top)
        return TrueFace(self.key, matrix, self.height_px * scale)


def draw_scene(
    scene: Scene, index: int, size: tuple[int, int], scale: float
) -> tuple[Picture, list[TrueFace]]:
    """Return frame `index` in BGR, `size` px large, and its faces, who is behind first.

    `scale` is px of this picture to a px of the canvas.
    """
    picture = _draw_wall(scene.wall, size).copy()
    faces = []
    for actor in scene.actors:
        place = actor.find_place(index)
        if place is None:
            continue
        matrix = _place(place, actor, index, size, scale)
        _paste(picture, get_person(actor.who), matrix)
        faces.append(TrueFace((scene.start, actor.who), matrix, place.height_px * scale))
    if scene.light != 1.0:
        cv2.convertScaleAbs(picture, dst=picture, alpha=scene.light)
    return picture, faces


def find_seen(faces: list[TrueFace], index: int, inner: tuple[int, int, int, int]) -> Picture:
    """Return 255 wherever `faces[index]` can be seen: not outside, not behind somebody else.

    `inner` is the filmed part of the picture: left, top, right, bottom; the whole is returned with
    what surrounds it evenly.
    """
    left, top, right, bottom = inner
    seen = np.zeros((bottom + top, right + left), np.uint8)
    seen[top:bottom, left:right] = 255
    for other in faces[index + 1 :]:
        alpha = get_person(other.key[1])[:, :, 3]
        before = cv2.warpAffine(alpha, other.matrix, seen.shape[::-1], flags=cv2.INTER_LINEAR)
        seen[before > 0] = 0
    return seen


def _place(place: Place, actor: Actor, index: int, size: tuple[int, int], scale: float) -> Matrix:
    zoom = place.height_px * scale / FACE_HEIGHT_PX
    cosine, sine = math.cos(place.roll_rad) * zoom, math.sin(place.roll_rad) * zoom
    matrix = np.array([[cosine * place.squeeze, -sine, 0.0], [sine * place.squeeze, cosine, 0.0]])
    sway = _SWAY_PX * scale * math.sin(index / 5.0 + actor.phase)
    middle = np.array([place.x * size[0] + sway, place.y * size[1]])
    matrix[:, 2] = middle - matrix[:, :2] @ FACE_CENTRE
    return matrix


def _paste(picture: Picture, person: NDArray[np.uint8], matrix: Matrix) -> None:
    height, width = picture.shape[:2]
    layer = cv2.warpAffine(
        person,
        matrix,
        (width, height),
        flags=cv2.INTER_AREA if abs(matrix[1, 1]) < 1 else cv2.INTER_LINEAR,
    )
    keep = cv2.merge([255 - layer[:, :, 3]] * 3)
    cv2.multiply(picture, keep, dst=picture, scale=1 / 255)
    cv2.add(picture, np.ascontiguousarray(layer[:, :, :3]), dst=picture)


@cache
def get_person(who: int) -> NDArray[np.uint8]:
    """Return person `who` as premultiplied BGRA of the photo's size: 0 the astronaut, 1 her mirror
    image in other colours, 2 one with other light."""
    bgr = read_picture()
    if who == 1:
        mirror = np.array([[-1.0, 0.0, 2 * FACE_CENTRE[0]], [0.0, 1.0, 0.0]])
        bgr = cv2.warpAffine(bgr, mirror, (_SIZE, _SIZE), borderMode=cv2.BORDER_REFLECT)
        tint = np.array([0.75, 0.86, 0.92], np.float32)
        bgr = np.clip(np.asarray(bgr) * tint, 0, 255).astype(np.uint8)
    elif who == 2:
        ramp = np.linspace(1.15, 0.65, _SIZE, dtype=np.float32)[None, :, None]
        bgr = np.clip(bgr * ramp, 0, 255).astype(np.uint8)
    alpha = np.zeros((_SIZE, _SIZE), np.uint8)
    cv2.ellipse(alpha, (227, 104), (74, 96), 0, 0, 360, 255, -1)
    cv2.ellipse(alpha, (212, 350), (140, 180), 0, 0, 360, 255, -1)
    soft = cv2.GaussianBlur(alpha, (0, 0), _FEATHER_PX)
    premultiplied = (bgr * (soft[:, :, None] / np.float32(255))).astype(np.uint8)
    return np.dstack([premultiplied, soft])


@cache
def _draw_wall(seed: int, size: tuple[int, int]) -> Picture:
    """Return a wall with stripes, boxes and grain: structure, but nobody."""
    rng = np.random.default_rng(seed)
    width, height = size
    noise = rng.normal(0, 1, (height, width, 3)).astype(np.float32)
    wall = cv2.GaussianBlur(noise, (0, 0), width / 20)
    wall = rng.uniform(60, 190, 3).astype(np.float32) + 26 * wall / (wall.std() + 1e-6)
    for _ in range(int(rng.integers(3, 8))):
        corner = rng.uniform(0, 1, 2) * size
        box = rng.uniform(0.05, 0.3, 2) * size
        colour = rng.uniform(20, 230, 3).tolist()
        low, high = corner.astype(int), (corner + box).astype(int)
        cv2.rectangle(wall, low.tolist(), high.tolist(), colour, -1)
    wall += cv2.GaussianBlur(noise, (0, 0), 0.8) * 12
    drawn: Picture = np.clip(wall, 0, 255).astype(np.uint8)
    return drawn
