"""A blurred background at three strengths, and a picture in its place."""

from __future__ import annotations

import tempfile
from pathlib import Path

import cv2
import msgspec
import numpy as np

from livefuse.config import BackgroundConfig, Config
from livefuse.token import create_token
from tests.faces import create_face_frame, create_pipeline, read_bgr
from tests.sheets._grid import lay_out


def _draw_evening(path):
    rows = np.linspace(0, 1, 540)[:, None, None]
    picture = (1 - rows) * np.array([110, 60, 40]) + rows * np.array([120, 150, 240])
    picture = np.repeat(picture, 960, axis=1).astype(np.uint8)
    cv2.circle(picture, (720, 400), 60, (190, 225, 255), -1, cv2.LINE_AA)
    hills = 440 + 40 * np.sin(np.arange(960) / 120) + 18 * np.sin(np.arange(960) / 37)
    for x, top in enumerate(hills.astype(int)):
        picture[top:, x] = (70, 45, 50)
    cv2.imwrite(str(path), picture)


def _show(config, frame):
    pipeline = create_pipeline(
        msgspec.structs.replace(Config(), background=config), every_frame=True
    )
    token = create_token(["background"], now_epoch_s=0.0)
    pipeline.prepare(token)
    outcome = pipeline.process(frame, token)
    assert outcome.vouched, outcome.error
    return read_bgr(frame)


def draw_sheet():
    """Return the sheet as BGR."""
    cells = [("input", read_bgr(create_face_frame(200)))]
    for strength in (0.3, 0.6, 1.0):
        picture = _show(BackgroundConfig(strength=strength), create_face_frame(200))
        cells.append((f"blur, strength {strength}", picture))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evening.png"
        _draw_evening(path)
        config = BackgroundConfig(style="picture", picture=str(path))
        cells.append(("picture", _show(config, create_face_frame(200))))
        cells.append(("picture, close", _show(config, create_face_frame(330, place=(0.4, 0.5)))))
    return lay_out(cells, 2, 640)
