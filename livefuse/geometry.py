"""Plane geometry of faces: similarity transforms, boxes, ellipses. Pure; px, y down, radians.

A positive angle turns x towards y, which on a picture (y down) looks clockwise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from livefuse.face import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Points = NDArray[np.float32] | NDArray[np.float64]

_TINY = 1e-9


class Similarity(NamedTuple):
    """x' = a x - b y + tx, y' = b x + a y + ty: turn, even scale, shift."""

    a: float = 1.0
    b: float = 0.0
    tx: float = 0.0
    ty: float = 0.0

    @property
    def scale(self) -> float:
        """How many times larger the image of a length is."""
        return math.hypot(self.a, self.b)

    @property
    def angle_rad(self) -> float:
        """The turn, in (-pi, pi]."""
        return math.atan2(self.b, self.a)


class Ellipse(NamedTuple):
    """A turned ellipse: centre, half-axes across and along the face, roll. All px but the roll."""

    x: float
    y: float
    half_width: float
    half_height: float
    roll_rad: float


def fit_similarity(
    source: Points, target: Points, weights: NDArray[np.float64] | None = None
) -> Similarity:
    """Return the transform with the least (weighted) squares error from (n, 2) to (n, 2) points.

    In closed form: with points as complex numbers z -> w, the best factor is
    sum(conj(z) w) / sum(|z|^2) about the centroids (Umeyama 1991, without reflections).

    Raises:
        ValueError: fewer than two points, or the source points coincide.
    """
    if len(source) < 2:  # noqa: PLR2004 - a turn and a scale need two points
        raise ValueError("a similarity needs two points")
    share = np.full(len(source), 1.0) if weights is None else weights
    share = share / share.sum()
    z = np.asarray(source, np.float64) @ np.array([1, 1j])
    w = np.asarray(target, np.float64) @ np.array([1, 1j])
    z_mean, w_mean = share @ z, share @ w
    z, w = z - z_mean, w - w_mean
    spread = float(share @ (z.real**2 + z.imag**2))
    if not spread > _TINY:
        raise ValueError("the source points coincide")
    factor = complex(share @ (z.conj() * w)) / spread
    shift = complex(w_mean - factor * z_mean)
    return Similarity(factor.real, factor.imag, shift.real, shift.imag)


def apply_similarity(transform: Similarity, points: Points) -> NDArray[np.float32]:
    """Return float32 (n, 2) images of (n, 2) points."""
    a, b, tx, ty = transform
    x, y = points[:, 0], points[:, 1]
    return np.stack([a * x - b * y + tx, b * x + a * y + ty], axis=1).astype(np.float32)


def invert_similarity(transform: Similarity) -> Similarity:
    """Return the transform that undoes `transform`.

    Raises:
        ValueError: its scale is zero.
    """
    a, b, tx, ty = transform
    square = a * a + b * b
    if not square > 0.0:
        raise ValueError("a transform of scale zero cannot be undone")
    a, b = a / square, -b / square
    return Similarity(a, b, b * ty - a * tx, -b * tx - a * ty)


def create_similarity(scale: float, angle_rad: float, x: float, y: float) -> Similarity:
    """Return the transform that scales and turns about the origin, then puts it at (x, y)."""
    return Similarity(scale * math.cos(angle_rad), scale * math.sin(angle_rad), x, y)


def create_matrix(transform: Similarity) -> NDArray[np.float64]:
    """Return `transform` as the (2, 3) matrix that OpenCV's warps take."""
    a, b, tx, ty = transform
    return np.array([[a, -b, tx], [b, a, ty]])


def compute_iou(one: Box, other: Box) -> float:
    """Return intersection over union of two boxes, 0 when they do not meet or are empty."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    if width <= 0.0 or height <= 0.0:
        return 0.0
    common = width * height
    return common / (one.width * one.height + other.width * other.height - common)


def clip_box(box: Box, width: float, height: float) -> Box:
    """Return the part of `box` that lies in a picture of `width` x `height`; empty when none."""
    x0, y0 = min(max(box.x0, 0.0), width), min(max(box.y0, 0.0), height)
    x1, y1 = min(max(box.x1, x0), width), min(max(box.y1, y0), height)
    return Box(x0, y0, x1, y1)


def create_box(x: float, y: float, width: float, height: float) -> Box:
    """Return the box of that centre and size."""
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def compute_roll(landmarks5: Points) -> float:
    """Return the head's roll: the direction from the mouth to the eyes against "up".

    Both the line of the eyes and that from mouth to eyes count, the longer one more: on a face
    in profile the eyes fall together, on one that looks up mouth and eyes come close.
    """
    points = np.asarray(landmarks5, np.float64)
    eyes = points[1] - points[0]
    down = (points[3] + points[4] - points[0] - points[1]) / 2
    # Turned back by a quarter, "down" points to the right as the eyes' line does.
    x, y = eyes[0] + down[1], eyes[1] - down[0]
    return math.atan2(float(y), float(x))


def get_bounds(ellipse: Ellipse) -> Box:
    """Return the smallest upright box around `ellipse`."""
    cosine, sine = math.cos(ellipse.roll_rad), math.sin(ellipse.roll_rad)
    half_x = math.hypot(ellipse.half_width * cosine, ellipse.half_height * sine)
    half_y = math.hypot(ellipse.half_width * sine, ellipse.half_height * cosine)
    return Box(ellipse.x - half_x, ellipse.y - half_y, ellipse.x + half_x, ellipse.y + half_y)


def measure_radius(ellipse: Ellipse, points: Points) -> NDArray[np.float64]:
    """Return each point's place: 0 at the ellipse's centre, 1 on its line, above 1 outside."""
    cosine, sine = math.cos(ellipse.roll_rad), math.sin(ellipse.roll_rad)
    x = np.asarray(points, np.float64)[:, 0] - ellipse.x
    y = np.asarray(points, np.float64)[:, 1] - ellipse.y
    across = (cosine * x + sine * y) / ellipse.half_width
    along = (cosine * y - sine * x) / ellipse.half_height
    return np.hypot(across, along)
