"""Another person made of the one photo there is, and that photo in other light: for swaps."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np

from livefuse.pipeline.topology import LIPS_INNER, LIPS_OUTER
from tests.faces import FACE_CENTRE, FACE_WIDTH_PX, analyse, create_frame_by_bgr, read_picture


def place_photo(face_px, size, place=(0.5, 0.5), roll=0.0, stretch=1.0):
    """Return the astronaut's photo (BGR) with the face `face_px` wide, `stretch` times as tall."""
    scale = face_px / FACE_WIDTH_PX
    matrix = cv2.getRotationMatrix2D(FACE_CENTRE, np.degrees(roll), scale)
    matrix[:, :2] = matrix[:, :2] @ np.diag([1.0, stretch])
    matrix[:, 2] = np.array(size) * place - matrix[:, :2] @ np.array(FACE_CENTRE)
    return cv2.warpAffine(
        read_picture(), matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT
    )


def find_mesh(bgr):
    """Return the mesh (478, 3) of the face in the middle of `bgr`."""
    meshes = [face.mesh for face in analyse(create_frame_by_bgr(bgr)).faces]
    middle = np.array(bgr.shape[1::-1]) / 2
    return min(
        (mesh for mesh in meshes if mesh is not None),
        key=lambda mesh: np.linalg.norm(mesh[:, :2].mean(axis=0) - middle),
    )


@cache
def create_other_person():
    """Return (BGR picture, mesh): a longer face, full red lips, a broad nose, dark brows, moles."""
    bgr = place_photo(300, (640, 720), place=(0.5, 0.48), stretch=1.08)
    mesh = find_mesh(bgr)
    bgr = _grow(bgr, mesh[13, :2], (0.24, 0.16), (1.0, 1.22))
    bgr = _grow(bgr, mesh[2, :2] - (0, 6), (0.17, 0.13), (1.22, 1.0))
    mesh = find_mesh(bgr)
    paint = np.ones((*bgr.shape[:2], 3), np.float32)
    lips = [mesh[LIPS_OUTER, :2], mesh[LIPS_INNER, :2]]
    _multiply(paint, lips, (0.52, 0.48, 0.86), 2.0)
    for point, radius in ((50, 4), (205, 3), (432, 4)):
        x, y = mesh[point, :2]
        cv2.circle(paint, (round(float(x)), round(float(y))), radius, (0.4, 0.42, 0.5), -1)
    paint = cv2.GaussianBlur(paint, (0, 0), 1.0)
    for upper, lower in (
        ((70, 63, 105, 66, 107), (46, 53, 52, 65, 55)),
        ((336, 296, 334, 293, 300), (285, 295, 282, 283, 276)),
    ):
        _draw_brow(paint, mesh[list(upper), :2], mesh[list(lower), :2])
    return np.clip(bgr * paint, 0, 255).astype(np.uint8), mesh


def _draw_brow(paint, upper, lower):
    """Draw hairs from the lower to the upper line of a brow, leaning outwards."""
    random = np.random.default_rng(7)
    outwards = np.sign(upper[0, 0] - upper[-1, 0]) * np.sign(upper[-1, 0] - upper[0, 0] or 1)
    layer = np.ones_like(paint)
    for _ in range(420):
        t = random.random() * (len(upper) - 1)
        i, f = int(t), t % 1
        high = upper[i] * (1 - f) + upper[min(i + 1, len(upper) - 1)] * f
        low = lower[i] * (1 - f) + lower[min(i + 1, len(lower) - 1)] * f
        start = low + (high - low) * random.random() * 0.8
        tip = start + (high - low) * 0.45 + (outwards * 4 * random.random(), 0)
        a, b = (tuple(np.rint(p * 16).astype(int).tolist()) for p in (start, tip))
        cv2.line(layer, a, b, (0.52, 0.55, 0.60), 1, cv2.LINE_AA, 4)
    paint *= cv2.GaussianBlur(layer, (0, 0), 0.8)
    middle = (upper + lower) / 2
    body = np.vstack([middle + (upper - middle) * 0.8, (middle + (lower - middle) * 0.8)[::-1]])
    _multiply(paint, [body], (0.56, 0.58, 0.62), 2.4)


def _grow(bgr, centre, reach, factor):
    """Return `bgr` with what lies within `reach` (of 300 px) of `centre` grown by `factor`."""
    y, x = np.mgrid[: bgr.shape[0], : bgr.shape[1]].astype(np.float32)
    dx, dy = x - np.float32(centre[0]), y - np.float32(centre[1])
    share = np.exp(-((dx / (300 * reach[0])) ** 2) - (dy / (300 * reach[1])) ** 2)
    map_x = x - dx * share * (1 - 1 / factor[0])
    map_y = y - dy * share * (1 - 1 / factor[1])
    return cv2.remap(bgr, map_x.astype(np.float32), map_y.astype(np.float32), cv2.INTER_CUBIC)


def _multiply(paint, outlines, colour, blur_px):
    mask = np.zeros(paint.shape[:2], np.float32)
    cv2.fillPoly(mask, [np.rint(o * 16).astype(np.int32) for o in outlines], 1.0, cv2.LINE_AA, 4)
    mask = cv2.GaussianBlur(mask, (0, 0), blur_px)[:, :, None]
    paint *= 1 + mask * (np.float32(colour) - 1)


def relight(bgr, kind):
    """Return `bgr` as it is (plain), or in other light: see below."""
    picture = bgr.astype(np.float32)
    width = bgr.shape[1]
    if kind == "side":
        ramp = np.linspace(-1.0, 1.0, width, dtype=np.float32)[None, :, None]
        picture = picture * (0.72 - 0.55 * np.tanh(4.0 * ramp))
    elif kind == "window":
        ramp = np.linspace(-1.0, 1.0, width, dtype=np.float32)[None, :, None]
        picture = picture * (0.76 - 0.24 * np.tanh(3.0 * ramp))
    elif kind == "dim":
        picture = picture * 0.34
    elif kind == "cold":
        picture = picture * (1.08, 0.86, 0.62)
    elif kind == "mono":
        picture = np.repeat(picture @ np.array([[0.114], [0.587], [0.299]], np.float32), 3, axis=2)
    elif kind == "soft":
        picture = cv2.GaussianBlur(picture, (0, 0), 2.5)
    elif kind == "noisy":
        picture = picture + np.random.default_rng(1).normal(0, 7, picture.shape)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)
