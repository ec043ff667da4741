"""The mark into a frame's luma: two additions, and a strength that follows the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.publish.luma.pattern import REFERENCE_PX, TILE_PX, Patterns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame

    Plane = NDArray[np.uint8]

MIN_SIDE_PX: Final = 144
_MIN_SCALE: Final = 1 / 3
_AMPLITUDE: Final = 1.5  # RMS in 8-bit levels where the gain is 1
_TILE_UNIT: Final = 80  # what 1 of the tile is in 8 bits; its peak is 1.8
_GAIN_UNIT: Final = 100
_DITHER: Final = 0.2
_PARTS: Final = 9  # so many frames until the gain is new everywhere: 0.3 s

# The gain: this much in flat places, this much in busy ones, and what is flat and busy, in levels
# between the lightest and the darkest of nine neighbours.
_FLAT_GAIN, _BUSY_GAIN = 0.4, 1.3
_FLAT, _BUSY = 2.0, 14.0
_DARK_SHARE: Final = 0.67
_BLACK, _GREY = 16.0, 64.0
_SAMPLES: Final = 4  # per side of a place of the gain map
_BLUR: Final = 11
_MARGIN: Final = 2  # places beside a part that its samples' neighbours reach into


class LumaMark:
    """The mark of one job: its number, made of a key, at one frame size. One thread.

    Frames whose shorter side is below `MIN_SIDE_PX` stay as they are: so few and so small tiles
    are not found again. From there to 360 px the tile has half its size at 720 px, above it grows
    with the frame.
    """

    def __init__(self, key: int, number: int) -> None:
        self._key, self._number = key, number
        self._tile: NDArray[np.float32] | None = None
        self._size = (0, 0)
        self._canvas: _Canvas | None = None

    def draw(self, frame: Frame, *, anew: bool = False) -> None:
        """Lay the mark over `frame` in place; `anew` when it is not like the one before.

        0.3 ms at 720p, on the first frame of a size 15 ms, on the first of all 40 ms more.
        """
        frame.fill_planes()
        if self._size != (frame.width, frame.height):
            self._size = (frame.width, frame.height)
            self._canvas = self._create_canvas(*self._size)
        if self._canvas is not None:
            self._canvas.lay(frame.y, anew=anew)

    def _create_canvas(self, width: int, height: int) -> _Canvas | None:
        if min(width, height) < MIN_SIDE_PX:
            return None
        if self._tile is None:
            self._tile = Patterns(self._key).create_tile(self._number)
        return _Canvas(self._tile, width, height)


class _Canvas:
    """The mark at one size, times the gain of the pictures before: what is added, what taken away.

    Each frame brings a part of the gain up to date, all of it the first one.
    """

    def __init__(self, tile: NDArray[np.float32], width: int, height: int) -> None:
        scale = get_tile_scale(width, height)
        self._more, self._less = _cut(_tile(tile, width, height, scale))
        self._add, self._take = np.empty_like(self._more), np.empty_like(self._less)
        self._gain = _GainMap(width, height, scale)
        self._next = -1

    def lay(self, luma: Plane, *, anew: bool) -> None:
        if self._next < 0 or anew:
            self._renew(luma, 0, self._gain.rows)
            self._next = 0
        else:
            step = -(-self._gain.rows // _PARTS)
            end = min(self._next + step, self._gain.rows)
            self._renew(luma, self._next, end)
            self._next = end % self._gain.rows
        cv2.add(luma, self._add, dst=luma)
        cv2.subtract(luma, self._take, dst=luma)

    def _renew(self, luma: Plane, begin: int, end: int) -> None:
        """Bring the rows `begin` to `end` of the gain map up to date, and what hangs on them."""
        gain, rows = self._gain.read(luma, begin, end)
        unit = _AMPLITUDE / (_TILE_UNIT * _GAIN_UNIT)
        cv2.multiply(self._more[rows], gain, dst=self._add[rows], scale=unit)
        cv2.multiply(self._less[rows], gain, dst=self._take[rows], scale=unit)


class _GainMap:
    """How strong the mark may be in each place, noise-aware: grain hides it as texture does.

    So single samples are looked at, not averages, which would hide the grain.
    """

    def __init__(self, width: int, height: int, scale: float) -> None:
        self._width, self._height = width, height
        self._step = max(round(_SAMPLES * scale), 1)
        self._place = self._step * _SAMPLES
        self.rows, self._columns = -(-height // self._place), -(-width // self._place)

    def read(self, luma: Plane, begin: int, end: int) -> tuple[Plane, slice]:
        """Return the gain of each px of the map's rows `begin` to `end`, and which rows these are.

        It is the same whichever rows are asked for together, so parts join without a seam.
        """
        above, below = max(begin - 1, 0), min(end + 1, self.rows)  # between which is interpolated
        first, last = max(above - _MARGIN, 0), min(below + _MARGIN, self.rows)
        places = _read_gain(self._sample(luma, first, last))[above - first : below - first]
        size = (self._columns * self._place, (below - above) * self._place)
        gain = cv2.resize(places, size, interpolation=cv2.INTER_LINEAR)
        top, bottom = begin * self._place, min(end * self._place, self._height)
        shift = above * self._place
        part = gain[top - shift : bottom - shift, : self._width]
        return np.asarray(part, np.uint8), slice(top, bottom)

    def _sample(self, luma: Plane, first: int, last: int) -> Plane:
        """Return the samples of the map's rows, _SAMPLES a place; the last ones are repeated."""
        half = self._step // 2
        rows = luma[first * self._place : last * self._place]
        samples = np.ascontiguousarray(rows[half :: self._step, half :: self._step])
        below = (last - first) * _SAMPLES - samples.shape[0]
        right = self._columns * _SAMPLES - samples.shape[1]
        if below or right:
            samples = np.pad(samples, ((0, below), (0, right)), mode="edge")
        return samples


def get_tile_scale(width: int, height: int) -> float:
    """Return how many px of a frame of that size one px of the tile takes."""
    return max(min(width, height) / REFERENCE_PX, _MIN_SCALE)


def _read_gain(samples: Plane) -> Plane:
    rows, columns = samples.shape[0] // _SAMPLES, samples.shape[1] // _SAMPLES
    spread = cv2.morphologyEx(samples, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    spread = cv2.blur(spread, (_BLUR, _BLUR), borderType=cv2.BORDER_REPLICATE)
    spread, luma = (
        cv2.resize(plane, (columns, rows), interpolation=cv2.INTER_AREA).astype(np.float32)
        for plane in (spread, samples)
    )
    slope = (_BUSY_GAIN - _FLAT_GAIN) / (_BUSY - _FLAT)
    gain = np.clip(_FLAT_GAIN + (spread - _FLAT) * slope, _FLAT_GAIN, _BUSY_GAIN)
    light = np.clip((luma - _BLACK) / (_GREY - _BLACK), 0, 1)
    gain *= _DARK_SHARE + (1 - _DARK_SHARE) * light
    return np.asarray(np.rint(gain * _GAIN_UNIT), np.uint8)


def _tile(tile: NDArray[np.float32], width: int, height: int, scale: float) -> NDArray[np.float32]:
    """Return the tile over the whole frame, from its upper left corner on."""
    sides = (int(np.ceil(side / scale)) + 1 for side in (height, width))
    rows, columns = (np.arange(side) % TILE_PX for side in sides)
    whole: NDArray[np.float32] = tile[rows[:, None], columns[None, :]]
    if scale != 1:
        shape = np.asarray([[scale, 0, 0], [0, scale, 0]], np.float32)
        scaled = cv2.warpAffine(whole, shape, (width, height), flags=cv2.INTER_CUBIC)
        whole = np.asarray(scaled, np.float32)
    return whole[:height, :width]


def _cut(whole: NDArray[np.float32]) -> tuple[Plane, Plane]:
    """Return what is to be added and what is to be taken away, in _TILE_UNIT.

    Rounded to whole levels afterwards, so a little fixed noise lets weak places count in the mean.
    """
    noise = np.random.default_rng(0).random(whole.shape, np.float32)
    levels = whole + (noise - 0.5) * (2 * _DITHER)
    more, less = (
        cv2.convertScaleAbs(np.maximum(part, 0), alpha=_TILE_UNIT) for part in (levels, -levels)
    )
    return np.asarray(more, np.uint8), np.asarray(less, np.uint8)
