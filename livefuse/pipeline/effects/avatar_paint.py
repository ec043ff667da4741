"""A canvas for drawing avatars as seen from the front: soft shapes in face widths.

Twice as fine as the texture, so that edges come out smooth. All places are float (n, 2) in face
widths (see `avatar_shape`), colours are R, G, B 0..255.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.canonical import CANONICAL
from livefuse.pipeline.effects.avatar_shape import HEIGHT_PX, LEFT, TEXTURE_PX, TOP, WIDTH_PX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Values = NDArray[np.float32]
    Rgb = tuple[float, float, float]

_FINER: Final = 2
_SHIFT: Final = 4
_PX: Final = TEXTURE_PX * _FINER


class Mask(NamedTuple):
    """A part of the canvas from (x, y) on: float32 0..1."""

    x: int
    y: int
    share: Values


class Canvas:
    """R, G, B and alpha as planes, float32, painted over and over."""

    def __init__(self, ground: Rgb) -> None:
        """Begin with one colour all over, and nothing opaque."""
        rows, columns = HEIGHT_PX * _FINER, WIDTH_PX * _FINER
        self._planes = [np.full((rows, columns), value, np.float32) for value in ground]
        self._alpha = np.zeros((rows, columns), np.float32)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in px of the canvas."""
        rows, columns = self._alpha.shape
        return columns, rows

    def fill_polygon(self, points: ArrayLike, blur: float = 0.0) -> Mask:
        """Return the mask of a polygon, blurred by a sigma in face widths."""
        return self._draw(points, blur, 0.0, -1)

    def draw_line(
        self, points: ArrayLike, width: float, blur: float = 0.0, *, closed: bool = False
    ) -> Mask:
        """Return the mask of a line of that width, in face widths."""
        return self._draw(points, blur, width, int(closed))

    def paint(self, mask: Mask, colour: Rgb, opacity: float = 1.0) -> None:
        """Lay `colour` where `mask` says."""
        share = mask.share if opacity >= 1.0 else mask.share * np.float32(opacity)
        for part, value in zip(self._cut(mask), colour, strict=True):
            change = np.float32(value) - part
            change *= share
            np.add(part, change, out=part)

    def shade(self, mask: Mask, gain: float) -> None:
        """Multiply what is there by `gain` where `mask` says."""
        gains = 1 + np.float32(gain - 1) * mask.share
        for part in self._cut(mask):
            np.multiply(part, gains, out=part)

    def glow(self, mask: Mask, colour: Rgb) -> None:
        """Add `colour` where `mask` says."""
        for part, value in zip(self._cut(mask), colour, strict=True):
            np.add(part, np.float32(value) * mask.share, out=part)

    def show(self, mask: Mask) -> None:
        """Make what `mask` covers opaque."""
        rows, columns = mask.share.shape
        part = self._alpha[mask.y : mask.y + rows, mask.x : mask.x + columns]
        np.maximum(part, mask.share, out=part)

    def multiply(self, gains: Values) -> None:
        """Multiply all by `gains`, (rows, columns) or what spreads to that."""
        for plane in self._planes:
            np.multiply(plane, gains, out=plane)

    def add(self, values: Values) -> None:
        """Add grey `values`, (rows, columns), to all."""
        for plane in self._planes:
            np.add(plane, values, out=plane)

    def get_places(self) -> tuple[Values, Values]:
        """Return x (1, columns) and y (rows, 1) of all px in face widths."""
        columns, rows = self.size
        x = np.linspace(0.5, columns - 0.5, columns, dtype=np.float32) / np.float32(_PX)
        y = np.linspace(0.5, rows - 0.5, rows, dtype=np.float32) / np.float32(_PX)
        return x[None, :] + np.float32(LEFT), y[:, None] + np.float32(TOP)

    def finish(self) -> NDArray[np.uint8]:
        """Return the drawing as texture, uint8 (HEIGHT_PX, WIDTH_PX, 4), R, G, B, alpha."""
        drawn = np.empty((HEIGHT_PX, WIDTH_PX, 4), np.uint8)
        for index, plane in enumerate((*self._planes, self._alpha * 255)):
            small = cv2.resize(plane, (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_AREA)
            drawn[:, :, index] = np.clip(np.rint(small), 0, 255)
        return drawn

    def _draw(self, points: ArrayLike, blur: float, width: float, closed: int) -> Mask:
        places = (np.asarray(points, np.float64)[:, :2] - (LEFT, TOP)) * _PX - 0.5
        sigma = blur * _PX
        pad = 3 * sigma + width * _PX + 3
        columns, rows = self.size
        low = np.clip(np.floor(places.min(axis=0) - pad).astype(int), 0, (columns - 1, rows - 1))
        high = np.clip(np.ceil(places.max(axis=0) + pad).astype(int), low + 1, (columns, rows))
        share = np.zeros((high[1] - low[1], high[0] - low[0]), np.uint8)
        fixed = np.rint((places - low) * (1 << _SHIFT)).astype(np.int32)
        if closed < 0:
            cv2.fillPoly(share, [fixed], 255, cv2.LINE_AA, _SHIFT)
        else:
            thick = max(1, round(width * _PX))
            cv2.polylines(share, [fixed], bool(closed), 255, thick, cv2.LINE_AA, _SHIFT)
        return Mask(
            int(low[0]), int(low[1]), soften(share.astype(np.float32) * np.float32(1 / 255), sigma)
        )

    def _cut(self, mask: Mask) -> list[Values]:
        rows, columns = mask.share.shape
        return [plane[mask.y : mask.y + rows, mask.x : mask.x + columns] for plane in self._planes]


def soften(values: Values, sigma_px: float) -> Values:
    """Return `values` blurred; wide blurs are made on a coarser grid."""
    if sigma_px < 0.3:  # noqa: PLR2004 - less than the px's own width
        return values
    step = max(1, int(sigma_px / 4))
    if step == 1:
        return np.asarray(
            cv2.GaussianBlur(values, (0, 0), sigma_px, borderType=cv2.BORDER_REPLICATE), np.float32
        )
    rows, columns = values.shape[:2]
    small = cv2.resize(
        values, (max(1, columns // step), max(1, rows // step)), interpolation=cv2.INTER_AREA
    )
    small = cv2.GaussianBlur(small, (0, 0), sigma_px / step, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(small, (columns, rows)), np.float32)


def get_points(indices: Sequence[int] | NDArray[np.int32]) -> Values:
    """Return where the canonical face has these points, (n, 2)."""
    return np.asarray(CANONICAL[np.asarray(indices, np.int32), :2])


def move(points: ArrayLike, x: float, y: float) -> Values:
    """Return the points moved by x, y."""
    return np.asarray(np.asarray(points, np.float32) + np.array([x, y], np.float32), np.float32)


def mirror(points: ArrayLike) -> Values:
    """Return the points on the other side of the face."""
    return np.asarray(np.asarray(points, np.float32) * (-1, 1), np.float32)


def flip(points: ArrayLike, side: float) -> Values:
    """Return the first two of each point's values: as they are for side -1, mirrored for side 1."""
    p = np.asarray(points, np.float32)[:, :2]
    return p if side < 0 else mirror(p)


def bend(points: ArrayLike, *, closed: bool = False, steps: int = 10) -> Values:
    """Return a smooth curve through `points` (Catmull-Rom spline)."""
    p = np.asarray(points, np.float64)
    ends = (p[-1:], p[:2]) if closed else (2 * p[:1] - p[1:2], 2 * p[-1:] - p[-2:-1])
    q = np.concatenate([ends[0], p, ends[1]])
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    pieces = [
        0.5
        * (
            2 * q[i]
            + (q[i + 1] - q[i - 1]) * t
            + (2 * q[i - 1] - 5 * q[i] + 4 * q[i + 1] - q[i + 2]) * t**2
            + (3 * q[i] - q[i - 1] - 3 * q[i + 1] + q[i + 2]) * t**3
        )
        for i in range(1, len(q) - 2)
    ]
    if not closed:
        pieces.append(p[-1:])
    return np.concatenate(pieces).astype(np.float32)


def grow(points: ArrayLike, by: float) -> Values:
    """Return a closed outline moved outwards from its middle by `by` face widths."""
    p = np.asarray(points, np.float32)
    away = p - p.mean(axis=0)
    length = np.hypot(away[:, 0], away[:, 1])[:, None]
    return np.asarray(p + away / np.maximum(length, 1e-6) * np.float32(by), np.float32)
