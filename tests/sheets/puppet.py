"""A photo and the three avatars as puppets, moved by one face that turns, speaks and blinks."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from livefuse.config import PuppetConfig
from livefuse.face import SourceFace
from livefuse.frame import create_frame
from livefuse.pipeline.canonical import CANONICAL
from livefuse.pipeline.effects.avatar import AVATARS, get_drawing
from livefuse.pipeline.effects.puppet import AvatarPuppet, PhotoPuppet
from livefuse.pipeline.effects.puppet_motion import MotionReader
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER
from tests.faces import analyse, create_frame_by_bgr, read_bgr, read_picture
from tests.sheets._grid import lay_out

_DEEDS: dict[str, dict[str, Any]] = {
    "rests": {},
    "turns": {"turn": (0.05, 0.35, 0.0)},
    "tilts": {"turn": (0.0, 0.0, 0.3)},
    "speaks": {"gap": 0.09},
    "blinks": {"closed": 1.0},
}


def _create_mesh(*, turn=(0.0, 0.0, 0.0), gap=0.0, closed=0.0):
    rest = CANONICAL.copy()
    for upper, lower in zip(LIPS_INNER[1:10].tolist(), LIPS_INNER[:10:-1].tolist(), strict=True):
        rest[[upper, lower], 1] = rest[[upper, lower], 1].mean()
    # What lies below the mouth goes down with the jaw, most in the middle.
    jaw = np.clip((rest[:, 1] - 0.33) / 0.1, 0, 1)
    jaw[LIPS_INNER[11:]] = 1.0
    jaw *= np.clip(1 - (rest[:, 0] / 0.2) ** 2, 0.25, 1)
    jaw[LIPS_INNER[[0, 10]]] = 0.15
    rest[:, 1] += gap * jaw
    for eye in (EYE_LEFT, EYE_RIGHT):
        rest[eye[1:8], 1] -= 0.022
        upper, lower = rest[eye[1:8]], rest[eye[:8:-1]]
        rest[eye[1:8]] = upper + (lower - upper) * np.float32(closed)
    rotation = cv2.Rodrigues(np.array(turn))[0].astype(np.float32)
    mesh = rest @ rotation.T * np.float32(250) + np.array([640, 360, 0], np.float32)
    return np.asarray(mesh, np.float32)


def _create_photo():
    bgr = read_picture()
    mesh = analyse(create_frame_by_bgr(bgr)).faces[0].mesh
    source = SourceFace("astronaut", cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), "0" * 64)
    return PhotoPuppet(source, mesh, PuppetConfig())


def draw_sheet():
    """Return the sheet as BGR."""
    puppets = {"photo": _create_photo()}
    puppets |= {name: AvatarPuppet(get_drawing(name), PuppetConfig()) for name in AVATARS}
    cells = []
    for name, puppet in puppets.items():
        for deed, how in _DEEDS.items():
            reader = MotionReader()
            for _ in range(3):
                reader.read(_create_mesh(), 1 / 30)
            mesh = _create_mesh(**how)
            frame = create_frame(1280, 720)
            # The wearer's own picture is seen in the mouth only: dark red.
            frame.y[:], frame.u[:], frame.v[:] = 45, 124, 142
            puppet.show(frame, reader.read(mesh, 1 / 30), mesh)
            cells.append((f"{name} {deed}", read_bgr(frame)[:, 220:1060]))
    return lay_out(cells, len(_DEEDS), 330)
