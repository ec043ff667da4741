"""Meshes on faces of several sizes and turns, and the sets of points that are read off them."""

from __future__ import annotations

import math

import cv2
import numpy as np

from livefuse.pipeline.landmarks import get_landmarks
from livefuse.pipeline.topology import (
    BROW_LEFT,
    BROW_RIGHT,
    EYE_LEFT,
    EYE_RIGHT,
    LIPS_INNER,
    LIPS_OUTER,
    OVAL,
    TRIANGLES,
)
from tests.faces import analyse, create_face_frame, read_bgr
from tests.sheets._grid import lay_out

_CELL = 320
_SHIFT = 4
_FEATURES = (OVAL, EYE_LEFT, EYE_RIGHT, BROW_LEFT, BROW_RIGHT, LIPS_OUTER, LIPS_INNER)


def draw_sheet():
    """Return the sheet, BGR."""
    pictures = [draw_mesh(f"{px} px", px) for px in (50, 90, 180, 360)]
    pictures += [draw_mesh(f"roll {degrees}", 180, degrees) for degrees in (-35, 35, 90, 180)]
    pictures += [draw_points(count) for count in (5, 68, 106, 468)]
    return lay_out(pictures, 4, _CELL)


def look(px, degrees=0.0):
    """Return the face, the picture cut around it, and how px of the frame go to px of that."""
    # A positive roll in create_face_frame turns against the clock, as OpenCV's rotations do.
    frame = create_face_frame(px, (960, 720), roll=-math.radians(degrees))
    face = analyse(frame).faces[0]
    assert face.mesh is not None
    x, y = face.mesh[:468, :2].mean(axis=0).tolist()
    half = 0.85 * px
    scale = 2 * _CELL / (2 * half)
    matrix = np.array([[scale, 0, scale * (half - x)], [0, scale, scale * (half - y)]])
    cut = cv2.warpAffine(
        read_bgr(frame),
        matrix,
        (2 * _CELL, 2 * _CELL),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return face, cut, matrix


def draw_mesh(text, px, degrees=0.0):
    """Return the label and the picture of a mesh with its pose."""
    face, picture, matrix = look(px, degrees)
    points = place(face.mesh[:, :2], matrix)
    lines = picture.copy()
    cv2.polylines(lines, list(points[TRIANGLES]), True, (220, 200, 120), 1, cv2.LINE_AA, _SHIFT)
    picture = cv2.addWeighted(lines, 0.35, picture, 0.65, 0)
    for feature in _FEATURES:
        cv2.polylines(picture, [points[feature]], True, (80, 230, 80), 1, cv2.LINE_AA, _SHIFT)
    for iris in (468, 473):
        cv2.circle(
            picture, points[iris].tolist(), 4 << _SHIFT, (60, 60, 255), -1, cv2.LINE_AA, _SHIFT
        )
    yaw, pitch, roll = (math.degrees(angle) for angle in face.pose_rad)
    return f"{text}: yaw {yaw:.0f} pitch {pitch:.0f} roll {roll:.0f}", picture


def draw_points(count):
    """Return the label and the picture of one set of points, numbered where they are few."""
    face, picture, matrix = look(360)
    for index, (x, y) in enumerate(place(get_landmarks(face, count), matrix).tolist()):
        cv2.circle(picture, (x, y), 3 << _SHIFT, (60, 60, 255), -1, cv2.LINE_AA, _SHIFT)
        if count < 200:
            at = ((x >> _SHIFT) + 4, (y >> _SHIFT) - 2)
            cv2.putText(picture, str(index), at, 0, 0.38, (80, 255, 80), 1, cv2.LINE_AA)
    return f"{count} points", picture


def place(points, matrix):
    """Return (n, 2) px of the frame as px of the cut picture with `_SHIFT` binary places."""
    moved = points @ matrix[:, :2].T + matrix[:, 2]
    return np.rint(moved * (1 << _SHIFT)).astype(np.int32)
