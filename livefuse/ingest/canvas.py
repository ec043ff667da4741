"""Decoded pictures of any size and pixel format -> frames of the job's one fixed canvas.

The first picture decides size, matrix and range (cases C45, C47, C48, C49). A picture that already
fits is lent, and copied only when its planes are wanted; all else goes the slow way. The decoder's
memory is only ever read.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import cv2
import numpy as np
from av.video.format import VideoFormat
from av.video.reformatter import VideoReformatter

from livefuse.frame import Colour
from livefuse.ingest.hdr import tone_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.video.frame import VideoFrame
    from av.video.plane import VideoPlane
    from numpy.typing import NDArray

    from livefuse.frame import Frame, Matrix
    from livefuse.ingest.hdr import Transfer

    Plane = NDArray[np.uint8]
    Planes = tuple[Plane, Plane, Plane]

# FFmpeg's numbers (ISO/IEC 23091-2) for matrices, ranges and transfer functions.
_MATRICES: Final[dict[int, Matrix]] = {
    1: "bt709", 4: "bt601", 5: "bt601", 6: "bt601", 7: "bt601", 9: "bt709", 10: "bt709",
}  # fmt: skip
_CODES: Final[dict[Matrix, int]] = {"bt709": 1, "bt601": 5}
_WIDE_GAMUT: Final = frozenset({9, 10})
_BT2020: Final = 9
_LIMITED, _FULL = 1, 2
_TRANSFERS: Final[dict[int, Transfer]] = {16: "pq", 18: "hlg"}
_HD_HEIGHT: Final = 720
_PLAIN: Final = frozenset({"yuv420p", "yuvj420p"})
_TURNS: Final = {
    90: cv2.ROTATE_90_COUNTERCLOCKWISE,
    180: cv2.ROTATE_180,
    270: cv2.ROTATE_90_CLOCKWISE,
}
_EIGHT_BIT: Final = 8
_SQUARE: Final = Fraction(1)


class _Shape(NamedTuple):
    """All that decides how a picture is treated; equal shapes are treated alike."""

    pixel_format: str
    width: int
    height: int
    matrix_code: int
    range_code: int
    transfer_code: int
    rotation: int


class Canvas:
    """The fixed picture of a job. Made from the first picture; used from one thread."""

    def __init__(
        self, first: VideoFrame, *, size: str = "source", aspect: Fraction | None = None
    ) -> None:
        """Plan for `first`; `size` is `source` or `WxH`, `aspect` the pixels' width to height."""
        self._aspect = aspect or _SQUARE
        self._reformatter = VideoReformatter()
        self._shape = _read_shape(first)
        self.colour = choose_colour(first)
        shown = self._get_shown_size(self._shape)
        width, height = shown if size == "source" else map(int, size.split("x"))
        self.width, self.height = max(width & ~1, 2), max(height & ~1, 2)
        self.notes = self._describe(self._shape, shown)
        self._fill = self._choose(self._shape)

    def set_aspect(self, aspect: Fraction | None) -> None:
        """Take the pixels' width to height of a newly opened source."""
        self._aspect = aspect or _SQUARE
        self._fill = self._choose(self._shape)

    def fill(self, source: VideoFrame, target: Frame) -> bool:
        """Write `source` into the pixels and colour of `target`, which is of the canvas's size.

        Where nothing is to be converted `source` is only lent: see `Frame.lend`.

        Returns:
            Whether the source's size, format or colour differ from those of the picture before.
        """
        shape = _read_shape(source)
        has_changed = shape != self._shape
        if has_changed:
            self._shape = shape
            self._fill = self._choose(shape)
        self._fill(source, target)
        target.colour = self.colour
        return has_changed

    def _choose(self, shape: _Shape) -> Callable[[VideoFrame, Frame], None]:
        fits = (shape.width & ~1, shape.height & ~1) == (self.width, self.height)
        is_same = (
            shape.pixel_format in _PLAIN
            and fits
            and not shape.rotation
            and self._aspect == _SQUARE
            and self._is_same_colour(shape)
        )
        if not is_same:
            return self._convert
        is_whole = (shape.width, shape.height) == (self.width, self.height)
        return _lend if is_whole and shape.pixel_format == "yuv420p" else _copy_planes

    def _is_same_colour(self, shape: _Shape) -> bool:
        return (
            _get_colour(shape) == self.colour
            and shape.matrix_code not in _WIDE_GAMUT
            and shape.transfer_code not in _TRANSFERS
        )

    def _convert(self, source: VideoFrame, target: Frame) -> None:
        """The slow way: format and colour, tone, turn, then fit."""
        shape = self._shape
        planes = self._to_planes(source, shape)
        transfer = _TRANSFERS.get(shape.transfer_code)
        if transfer is not None:
            planes = tone_map(*planes, transfer, full_range=self.colour.full_range)
        turn = _TURNS.get(shape.rotation)
        if turn is not None:
            y, u, v = (np.asarray(cv2.rotate(plane, turn), np.uint8) for plane in planes)
            planes = y, u, v
        fit_planes(planes, target, self._get_shown_size(shape), full_range=self.colour.full_range)

    def _to_planes(self, source: VideoFrame, shape: _Shape) -> Planes:
        """Return 8-bit planes in the canvas's colour, sides even; views where that is enough."""
        if self._is_same_colour(shape):
            if shape.pixel_format in _PLAIN:
                return _view_planes(source)
            if shape.pixel_format == "nv12":
                return _view_nv12(source)
        own = _get_colour(shape)
        is_wide = shape.matrix_code in _WIDE_GAMUT
        converted = self._reformatter.reformat(
            source,
            format="yuv420p",
            src_colorspace=_BT2020 if is_wide else _CODES[own.matrix],
            dst_colorspace=_CODES[self.colour.matrix],
            src_color_range=_FULL if own.full_range or _is_rgb(shape.pixel_format) else _LIMITED,
            dst_color_range=_FULL if self.colour.full_range else _LIMITED,
        )
        return _view_planes(converted)

    def _get_shown_size(self, shape: _Shape) -> tuple[int, int]:
        """Return width and height as meant to be seen: square pixels, turned upright, in px."""
        width, height = shape.width, shape.height
        if self._aspect != _SQUARE:
            width = round(width * self._aspect)
        return (height, width) if shape.rotation in {90, 270} else (width, height)

    def _describe(self, shape: _Shape, shown: tuple[int, int]) -> tuple[str, ...]:
        width, height = shown
        notes = []
        if (width & ~1, height & ~1) != (self.width, self.height):
            notes.append(
                f"the picture of {width}x{height} is fitted into {self.width}x{self.height}"
            )
        elif (width, height) != (self.width, self.height):
            notes.append(
                f"the picture is cropped from {width}x{height} to {self.width}x{self.height}: "
                "both sides have to be even"
            )
        if self._aspect != _SQUARE:
            notes.append(
                f"its pixels ({self._aspect.numerator}:{self._aspect.denominator}) are made square"
            )
        if shape.rotation:
            notes.append(f"the picture is turned by {shape.rotation} degrees, as it asks for")
        if shape.transfer_code in _TRANSFERS:
            kind = _TRANSFERS[shape.transfer_code].upper()
            notes.append(f"the HDR picture ({kind}) is tone-mapped to 8-bit BT.709")
        elif _has_more_bits(shape.pixel_format):
            notes.append(f"the picture ({shape.pixel_format}) is reduced to 8 bits")
        return tuple(notes)


def choose_colour(frame: VideoFrame) -> Colour:
    """Return how a job that starts with `frame` codes its colours.

    Untagged pictures are BT.709 from 720 lines up and BT.601 below, as players assume.
    """
    return _get_colour(_read_shape(frame))


def fit_planes(planes: Planes, target: Frame, shown: tuple[int, int], *, full_range: bool) -> None:
    """Write `planes` into `target`: as they are if the size fits, else scaled with black margins.

    `shown` is the picture's width and height in square pixels, which decides its shape.
    """
    width, height = target.width, target.height
    y, u, v = planes
    if (y.shape[1] & ~1, y.shape[0] & ~1) == (width, height) == (shown[0] & ~1, shown[1] & ~1):
        target.y[:] = y[:height, :width]
        target.u[:] = u[: height // 2, : width // 2]
        target.v[:] = v[: height // 2, : width // 2]
        return
    scale = min(width / shown[0], height / shown[1])
    inner_w = min(max(round(shown[0] * scale) & ~1, 2), width)
    inner_h = min(max(round(shown[1] * scale) & ~1, 2), height)
    left, top = (width - inner_w) // 4 * 2, (height - inner_h) // 4 * 2
    black = 0 if full_range else 16
    _scale(y, target.y, (left, top, inner_w, inner_h), black)
    half = (left // 2, top // 2, inner_w // 2, inner_h // 2)
    _scale(u, target.u, half, 128)
    _scale(v, target.v, half, 128)


def _scale(source: Plane, target: Plane, box: tuple[int, int, int, int], margin: int) -> None:
    left, top, width, height = box
    target[:top] = margin
    target[top + height :] = margin
    target[top : top + height, :left] = margin
    target[top : top + height, left + width :] = margin
    is_smaller = width < source.shape[1]
    cv2.resize(
        source,
        (width, height),
        dst=target[top : top + height, left : left + width],
        interpolation=cv2.INTER_AREA if is_smaller else cv2.INTER_LINEAR,
    )


def _lend(source: VideoFrame, target: Frame) -> None:
    target.lend(source, partial(_copy_planes, source, target))


def _copy_planes(source: VideoFrame, target: Frame) -> None:
    planes = source.planes
    for plane, wanted in zip(planes, (target.y, target.u, target.v), strict=False):
        rows, columns = wanted.shape
        lines = _view(plane)
        if lines.shape[1] == columns:
            wanted.reshape(-1)[:] = lines.reshape(-1)[: rows * columns]
        else:
            wanted[:] = lines[:rows, :columns]


def _view(plane: VideoPlane) -> Plane:
    """Return a plane as (rows, line size); a line is often longer than the picture is wide."""
    return np.frombuffer(cast("memoryview", plane), np.uint8).reshape(-1, plane.line_size)


def _view_planes(frame: VideoFrame) -> Planes:
    y, u, v = (_view(p)[: p.height, : p.width] for p in frame.planes[:3])
    return y, u, v


def _view_nv12(frame: VideoFrame) -> Planes:
    luma, chroma = frame.planes[:2]
    pairs = _view(chroma)[: chroma.height, : chroma.width * 2]
    return _view(luma)[: luma.height, : luma.width], pairs[:, 0::2], pairs[:, 1::2]


def _read_shape(frame: VideoFrame) -> _Shape:
    return _Shape(
        frame.format.name,
        frame.width,
        frame.height,
        int(frame.colorspace),
        int(frame.color_range),
        int(frame.color_trc),
        round(frame.rotation / 90) * 90 % 360,
    )


def _get_colour(shape: _Shape) -> Colour:
    by_height: Matrix = "bt709" if shape.height >= _HD_HEIGHT else "bt601"
    if _is_rgb(shape.pixel_format):
        return Colour(by_height, full_range=False)
    full_range = shape.range_code == _FULL or shape.pixel_format.startswith("yuvj")
    return Colour(_MATRICES.get(shape.matrix_code, by_height), full_range=full_range)


def _is_rgb(pixel_format: str) -> bool:
    return pixel_format == "pal8" or VideoFormat(pixel_format).is_rgb


def _has_more_bits(pixel_format: str) -> bool:
    return any(part.bits > _EIGHT_BIT for part in VideoFormat(pixel_format).components)
