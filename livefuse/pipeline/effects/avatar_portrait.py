"""An avatar as a picture of its own: head, neck and shoulders before a plain wall."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.frame import create_frame
from livefuse.pipeline.canonical import CANONICAL
from livefuse.pipeline.effects.avatar_paint import bend, mirror, move, soften
from livefuse.pipeline.effects.avatar_render import AvatarRenderer, Wearer
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.avatar_render import Drawing

    Values = NDArray[np.float32]

SIZE: Final = (1280, 720)
_FACE_PX: Final = 270.0
_CENTRE: Final = (640.0, 372.0)
_EYES_OPEN: Final = 1.45  # the canonical face's are half closed
_WALL: Final = ((168, 176, 190), (92, 100, 118))  # R, G, B: behind the head, and at the corners


def draw_empty_portrait(drawing: Drawing) -> tuple[NDArray[np.uint8], Values]:
    """Return what is behind and below the avatar, and where it goes: see `draw_portrait`."""
    mesh = _create_rest() * np.float32(_FACE_PX) + np.array([*_CENTRE, 0], np.float32)
    picture = _draw_wall().copy()
    _draw_body(picture, drawing.coat)
    if drawing.hood:
        _draw_hood(picture, drawing.coat)
    return picture, mesh


def draw_portrait(drawing: Drawing) -> tuple[NDArray[np.uint8], Values]:
    """Return RGB uint8 (720, 1280, 3) of the avatar at rest, and its mesh (468, 3) in its px."""
    width, height = SIZE
    picture, mesh = draw_empty_portrait(drawing)
    frame = create_frame(width, height)
    frame.buffer[:] = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420)
    frame.colour = frame.colour._replace(matrix="bt601")  # as OpenCV converts
    AvatarRenderer(drawing).draw(frame, mesh, Wearer(light=None))
    return np.asarray(cv2.cvtColor(frame.buffer, cv2.COLOR_YUV2RGB_I420), np.uint8), mesh


def _create_rest() -> Values:
    """Return the canonical face with its mouth closed and its eyes open."""
    rest = CANONICAL.copy()
    lips = LIPS_INNER
    for upper, lower in zip(lips[1:10].tolist(), lips[:10:-1].tolist(), strict=True):
        rest[[upper, lower], 1] = rest[[upper, lower], 1].mean()
    for eye in (EYE_LEFT, EYE_RIGHT):
        middle = rest[eye[[0, 8]], 1].mean()
        rest[eye, 1] = middle + (rest[eye, 1] - middle) * _EYES_OPEN
    return np.asarray(rest, np.float32)


@cache
def _draw_wall() -> NDArray[np.uint8]:
    width, height = SIZE
    x = (np.arange(width, dtype=np.float32) - _CENTRE[0])[None, :] / width
    y = (np.arange(height, dtype=np.float32) - _CENTRE[1])[:, None] / height
    share = np.clip(np.sqrt(x * x * 1.6 + y * y * 1.2) * 1.5, 0, 1)[..., None]
    near, far = (np.array(rgb, np.float32) for rgb in _WALL)
    return np.rint(near + (far - near) * share * share * (3 - 2 * share)).astype(np.uint8)


def _draw_body(picture: NDArray[np.uint8], coat: tuple[float, float, float]) -> None:
    """Draw neck, collar and shoulders in place (in face widths from the face's middle)."""
    left = [(-0.24, 0.35), (-0.25, 0.62), (-0.36, 0.80), (-0.72, 0.93), (-1.05, 1.12), (-1.2, 1.6)]
    shoulders = np.vstack([bend(left), mirror(bend(left))[::-1]])
    neck = [(-0.22, 0.3), (-0.225, 0.66), (0.0, 0.95), (0.225, 0.66), (0.22, 0.3)]
    collar = [(-0.27, 0.60), (-0.20, 0.80), (0.0, 1.02), (0.20, 0.80), (0.27, 0.60)]
    dark = tuple(0.55 * value for value in coat)
    light = tuple(min(1.25 * value, 255.0) for value in coat)
    _paint(picture, shoulders, coat, 0.0)
    _paint(picture, move(shoulders, 0.0, 0.32), dark, 0.12, opacity=0.6)
    _paint(picture, neck, dark, 0.01)
    _paint(picture, np.array(neck) * (1.0, 0.9), (24, 26, 32), 0.05, opacity=0.7)
    line = bend(collar)
    _paint(picture, np.vstack([line, (move(line, 0.0, 0.075))[::-1]]), light, 0.006)
    _paint(picture, [(-0.008, 1.05), (0.008, 1.05), (0.008, 1.6), (-0.008, 1.6)], dark, 0.002)


def _draw_hood(picture: NDArray[np.uint8], coat: tuple[float, float, float]) -> None:
    """Draw a hood that a mask looks out of."""
    side = [(0.0, -0.98), (-0.34, -0.90), (-0.60, -0.62), (-0.70, -0.15), (-0.66, 0.38),
            (-0.52, 0.78), (-0.30, 0.98), (0.0, 1.04)]  # fmt: skip
    half = bend(side)
    outer = np.vstack([half, mirror(half)[::-1]])
    inner = outer * (0.86, 0.84) + (0.0, 0.03)
    dark = tuple(0.22 * value for value in coat)
    light = tuple(min(1.12 * value, 255.0) for value in coat)
    _paint(picture, move(outer, 0.0, 0.03), (20, 22, 30), 0.05, opacity=0.5)
    _paint(picture, outer, coat, 0.004)
    _paint(picture, outer * (0.93, 0.92) + (0.0, 0.015), light, 0.03, opacity=0.7)
    _paint(picture, inner, dark, 0.012)


def _paint(
    picture: NDArray[np.uint8],
    points: object,
    rgb: tuple[float, ...],
    blur: float,
    opacity: float = 1.0,
) -> None:
    places = np.asarray(points, np.float64) * _FACE_PX + _CENTRE
    rows, columns = picture.shape[:2]
    top = max(int(places[:, 1].min() - 3 * blur * _FACE_PX) - 1, 0)
    mask = np.zeros((rows - top, columns), np.uint8)
    fixed = np.rint((places - (0, top)) * 16).astype(np.int32)
    cv2.fillPoly(mask, [fixed], 255, cv2.LINE_AA, 4)
    share = soften(mask.astype(np.float32) * np.float32(opacity / 255), blur * _FACE_PX)
    for channel, value in enumerate(rgb):
        part = picture[top:, :, channel]
        part[:] = np.rint(part + (np.float32(value) - part) * share)
