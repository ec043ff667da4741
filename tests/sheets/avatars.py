"""The drawn avatars: at three sizes, in dim and side light, tilted, turned, in a blink, smiling."""

from __future__ import annotations

import cv2
import msgspec
import numpy as np

from livefuse.pipeline.canonical import CANONICAL
from livefuse.pipeline.effects.avatar import AVATARS, get_drawing
from livefuse.pipeline.effects.avatar_render import AvatarRenderer, Wearer
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER
from livefuse.token import create_token
from tests.faces import create_face_frame, create_frame_by_bgr, create_pipeline, read_bgr
from tests.sheets._grid import lay_out

_SIZE = (720, 720)


def _wear(name, frame):
    token = msgspec.structs.replace(
        create_token(["detect", "align", "swap"], now_epoch_s=0.0), source_face=f"avatar:{name}"
    )
    pipeline = create_pipeline(every_frame=True)
    pipeline.prepare(token)
    outcome = pipeline.process(frame, token)
    assert outcome.vouched, outcome.error
    return read_bgr(frame)


def _create_wearers():
    dim = (read_bgr(create_face_frame(250, _SIZE)) * 0.35).astype(np.uint8)
    side = read_bgr(create_face_frame(250, _SIZE)) * np.linspace(0.2, 1.2, _SIZE[0])[None, :, None]
    close = create_face_frame(420, _SIZE)
    return {
        "130 px": create_face_frame(130, _SIZE),
        "250 px": create_face_frame(250, _SIZE),
        "420 px": close,
        "tilted": create_face_frame(250, _SIZE, roll=0.4),
        "dim": create_frame_by_bgr(dim),
        "side light": create_frame_by_bgr(np.clip(side, 0, 255).astype(np.uint8)),
    }


def _pose(name, *, turn=0.0, gap=0.0, closed=0.0, look=0.0):
    """Return the avatar on a mesh that does what is said; nobody wears it."""
    rest = CANONICAL.copy()
    for upper, lower in zip(LIPS_INNER[1:10].tolist(), LIPS_INNER[:10:-1].tolist(), strict=True):
        rest[[upper, lower], 1] = rest[[upper, lower], 1].mean()
    # What lies below the mouth goes down with the jaw, most in the middle.
    jaw = np.clip((rest[:, 1] - 0.33) / 0.1, 0, 1)
    jaw[LIPS_INNER[11:]] = 1.0
    jaw *= np.clip(1 - (rest[:, 0] / 0.2) ** 2, 0.25, 1)
    jaw[LIPS_INNER[[0, 10]]] = 0.15
    rest[:, 1] += gap * jaw
    irises = []
    for eye in (EYE_LEFT, EYE_RIGHT):
        rest[eye[1:8], 1] -= 0.022
        upper, lower = rest[eye[1:8]], rest[eye[:8:-1]]
        rest[eye[1:8]] = upper + (lower - upper) * np.float32(closed)
        middle = rest[eye[[0, 8]]].mean(axis=0) + np.array([look, 0, 0], np.float32)
        irises.append(np.repeat(middle[None], 5, axis=0))
    points = np.concatenate([rest, *irises]).astype(np.float32)
    rotation = cv2.Rodrigues(np.array([0.0, turn, 0.0]))[0].astype(np.float32)
    mesh = points @ rotation.T * np.float32(300) + np.array([360, 390, 0], np.float32)
    frame = create_frame_by_bgr(np.full((720, 720, 3), (170, 172, 178), np.uint8))
    assert AvatarRenderer(get_drawing(name)).draw(frame, np.asarray(mesh, np.float32), Wearer())
    return read_bgr(frame)


_POSES = {
    "looks left": {"look": -0.03},
    "turned 30 degrees": {"turn": np.radians(30), "look": 0.02},
    "turned -45 degrees": {"turn": np.radians(-45)},
    "blinks": {"closed": 1.0},
    "speaks": {"gap": 0.1},
}


def draw_sheet():
    """Return the sheet as BGR."""
    cells = []
    for name in AVATARS:
        for text, frame in _create_wearers().items():
            cells.append((f"{name}, {text}", _wear(name, frame)))
        for text, pose in _POSES.items():
            cells.append((f"{name}, {text}", _pose(name, **pose)))
        cells.append(("", np.full((720, 720, 3), 32, np.uint8)))
    return lay_out(cells, 6, 300)
