"""Plane geometry of faces: similarity transforms, boxes, ellipses. Pure; px, y down, radians.

A positive angle turns x towards y, which on a picture (y down) looks clockwise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.face import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Points = NDArray[np.float32] | NDArray[np.float64]

_TINY: Final = 1e-9
_FEW: Final = 16  # points
_FACE_RATIO: Final = 1.3  # height to width of an ordinary face


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

    In closed form (Umeyama 1991, without reflections): about the centroids, with the points as
    complex numbers z -> w, the best factor a + ib is sum(conj(z) w) / sum(|z|^2).

    Raises:
        ValueError: fewer than two points, or the source points coincide.
    """
    if len(source) < 2:  # noqa: PLR2004 - a turn and a scale need two points
        raise ValueError("a similarity needs two points")
    if weights is None and len(source) <= _FEW:
        return _fit_few(source, target)
    share = np.ones(len(source)) if weights is None else weights
    share = share / share.sum()
    x, y = np.asarray(source, np.float64).T
    u, v = np.asarray(target, np.float64).T
    x_mean, y_mean = float(share @ x), float(share @ y)
    u_mean, v_mean = float(share @ u), float(share @ v)
    x, y, u, v = x - x_mean, y - y_mean, u - u_mean, v - v_mean
    xs, ys = share * x, share * y
    spread = float(xs @ x + ys @ y)
    if not spread > _TINY:
        raise ValueError("the source points coincide")
    a, b = float(xs @ u + ys @ v) / spread, float(xs @ v - ys @ u) / spread
    return Similarity(a, b, u_mean - a * x_mean + b * y_mean, v_mean - b * x_mean - a * y_mean)


def _fit_few(source: Points, target: Points) -> Similarity:
    """See `fit_similarity`; plain floats are five times faster for a handful of points."""
    z = [complex(x, y) for x, y in source.tolist()]
    w = [complex(u, v) for u, v in target.tolist()]
    z_mean, w_mean = sum(z) / len(z), sum(w) / len(w)
    spread = sum(abs(p - z_mean) ** 2 for p in z)
    if not spread > _TINY:
        raise ValueError("the source points coincide")
    pairs = zip(z, w, strict=True)
    factor = sum((p - z_mean).conjugate() * (q - w_mean) for p, q in pairs) / spread
    shift = w_mean - factor * z_mean
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


def fit_ellipse(box: Box, roll_rad: float) -> Ellipse:
    """Return the ellipse of a face with this roll whose upright bounds are `box`, nearly.

    For any roll the squares of the half-axes add up to those of the box's half-sides. How they
    share that sum is read from the box when the head is upright or lies; near 45 degrees the box
    is square whatever the face, and an ordinary face's ratio takes over.
    """
    cosine = math.cos(2 * roll_rad)
    half_width, half_height = max(box.width, 1.0) / 2, max(box.height, 1.0) / 2
    seen = math.log(half_height / half_width) * (1 if cosine >= 0 else -1)
    ratio = math.exp((1 - abs(cosine)) * math.log(_FACE_RATIO) + abs(cosine) * seen)
    across = math.sqrt((half_width**2 + half_height**2) / (1 + ratio**2))
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return Ellipse(x, y, across, across * ratio, roll_rad)


def scale_ellipse(ellipse: Ellipse, across: float, along: float) -> Ellipse:
    """Return `ellipse` with its half-axes multiplied."""
    return ellipse._replace(
        half_width=ellipse.half_width * across, half_height=ellipse.half_height * along
    )
