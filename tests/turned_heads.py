"""The portrait of `demo:` turned, nodding, speaking, smiling: pictures for the live match.

The head is turned by its own mesh: how deep each point lies is spread over the picture, and every
pixel goes where it would go on a head that turns. Also flat photographs of it, held askew.
"""

from __future__ import annotations

import math
from functools import cache

import cv2
import numpy as np

from livefuse.config import Config
from livefuse.ingest.scene import face_phases
from livefuse.ingest.scene.talking_head import load_portrait
from livefuse.pipeline.analysis.portrait import analyse_portrait
from tests.faces import share_sessions

SIZE = (1280, 720)
_CELL_PX = 8
_CENTRE = (632.0, 300.0)
_RADII = (240.0, 310.0)


@cache
def find_mesh():
    """Return the portrait's mesh, float32 (478, 3) px."""
    rgb = cv2.cvtColor(load_portrait(), cv2.COLOR_BGR2RGB)
    return analyse_portrait(np.asarray(rgb, np.uint8), share_sessions(), Config()).mesh


@cache
def _spread():
    """Return depth (px, 0 at the mean) and how much of a turn each cell makes, on a coarse grid."""
    mesh = find_mesh()
    columns, rows = SIZE[0] // _CELL_PX, SIZE[1] // _CELL_PX
    xs, ys = np.meshgrid((np.arange(columns) + 0.5) * _CELL_PX, (np.arange(rows) + 0.5) * _CELL_PX)
    cells = np.stack([xs, ys], -1).reshape(-1, 1, 2)
    square = ((cells - mesh[None, :, :2]) ** 2).sum(-1)
    weight = np.exp(-square / (2 * 22.0**2)) + 1e-12
    depth = (weight * (mesh[:, 2] - mesh[:, 2].mean())).sum(1) / weight.sum(1)
    distance = np.hypot((xs - _CENTRE[0]) / _RADII[0], (ys - _CENTRE[1]) / _RADII[1])
    share = np.clip((1.25 - distance) / 0.5, 0.0, 1.0)
    share = share * share * (3 - 2 * share)
    # Beyond the face the depth of its rim, fading: hair and ears go along.
    return cv2.GaussianBlur(depth.reshape(rows, columns), (0, 0), 1.5), share


def draw_head(yaw_deg=0.0, pitch_deg=0.0, *, mouth=0.0, smile=0.0, shift=(0.0, 0.0), scale=1.0):
    """Return BGR (720, 1280, 3): yaw > 0 turns the nose to the right, pitch > 0 lifts it."""
    portrait = load_portrait()
    if mouth:
        portrait = face_phases.open_mouth(portrait, mouth)
    depth, share = _spread()
    rows, columns = depth.shape
    xs, ys = np.meshgrid((np.arange(columns) + 0.5) * _CELL_PX, (np.arange(rows) + 0.5) * _CELL_PX)
    yaw, pitch = math.radians(yaw_deg), math.radians(pitch_deg)
    x, y = xs - _CENTRE[0], ys - _CENTRE[1]
    # z grows away from the camera: what is near (z < 0) goes the way of the nose.
    dx = (x * (math.cos(yaw) - 1) - depth * math.sin(yaw)) * share
    dy = (y * (math.cos(pitch) - 1) + depth * math.sin(pitch)) * share
    if smile:
        for vertex, side in ((61, -1.0), (291, 1.0)):
            px, py = find_mesh()[vertex, :2]
            near = np.exp(-((xs - px) ** 2 + (ys - py) ** 2) / (2 * 30.0**2))
            dx += side * 14.0 * smile * near
            dy -= 8.0 * smile * near
    field = cv2.resize(np.dstack([dx, dy]).astype(np.float32), SIZE)
    to_x, to_y = np.meshgrid(
        np.arange(SIZE[0], dtype=np.float32), np.arange(SIZE[1], dtype=np.float32)
    )
    from_x, from_y = to_x, to_y
    for _ in range(3):  # the field says where pixels go; what comes from where is its inverse
        moved = cv2.remap(field, from_x, from_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        from_x, from_y = to_x - moved[..., 0], to_y - moved[..., 1]
    turned = cv2.remap(portrait, from_x, from_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return _place(turned, shift, scale)


def hold_photo(yaw_deg=0.0, pitch_deg=0.0, *, shift=(0.0, 0.0), scale=1.0, distance=3.0):
    """Return the portrait as a flat photograph turned before a camera, BGR (720, 1280, 3).

    `distance` of the camera in heights of the photograph.
    """
    width, height = SIZE
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    x, y = corners[:, 0] - _CENTRE[0], corners[:, 1] - _CENTRE[1]
    yaw, pitch = math.radians(yaw_deg), math.radians(pitch_deg)
    z = x * math.sin(yaw) + y * math.sin(pitch)
    far = 1 + z / (distance * height)
    seen = np.stack(
        [_CENTRE[0] + x * math.cos(yaw) / far, _CENTRE[1] + y * math.cos(pitch) / far], 1
    )
    matrix = cv2.getPerspectiveTransform(corners, seen.astype(np.float32))
    held = cv2.warpPerspective(load_portrait(), matrix, SIZE, borderValue=(90, 90, 90))
    return _place(held, shift, scale)


def _place(bgr, shift, scale):
    matrix = np.array(
        [
            [scale, 0, shift[0] + (1 - scale) * _CENTRE[0]],
            [0, scale, shift[1] + (1 - scale) * _CENTRE[1]],
        ],
        np.float32,
    )
    return cv2.warpAffine(bgr, matrix, SIZE, borderMode=cv2.BORDER_REPLICATE)
