"""Decoded pictures: YUV 4:2:0 planes in a pool of our own, and handles that go stale.

A frame is never the decoder's memory: that is still a reference for pictures to come, and writing
into it corrupts them. Ingest copies (0.1 ms at 1080p) or draws into a frame acquired here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

TIME_BASE_HZ: Final = 90_000
"""All PTS and DTS inside a job are ints in 1/90000 s, on the job's own line that starts near 0."""

Matrix = Literal["bt601", "bt709"]


class Colour(NamedTuple):
    """How YCbCr maps to RGB; planes pass through untouched and outputs are tagged with this."""

    matrix: Matrix = "bt709"
    full_range: bool = False


class FrameHandle(NamedTuple):
    """A place in the pool and which use of it: a stale one answers None, never other pixels."""

    slot: int
    generation: int


@dataclass(slots=True, eq=False)
class Frame:
    """One picture in I420: `buffer` is contiguous uint8 (height * 3 / 2, width), sides even.

    `y` is (height, width); `u` and `v` are (height / 2, width / 2); all are views of `buffer`.
    `arrival_ns` is when the picture's packet reached us (monotonic): added latency counts from it.
    `ready_ns` is when the last packet came that it needed, where pictures come in another order
    than they are shown: what it waits from then on is our queue. 0: nobody said.
    `is_generated`: a face in it was made by us, so it must not leave without its marks.
    """

    buffer: NDArray[np.uint8]
    y: NDArray[np.uint8]
    u: NDArray[np.uint8]
    v: NDArray[np.uint8]
    handle: FrameHandle
    pts: int = 0
    arrival_ns: int = 0
    ready_ns: int = 0
    colour: Colour = field(default_factory=Colour)
    is_generated: bool = False
    picture: object | None = None
    _copy: Callable[[], None] | None = None

    def lend(self, picture: object, copy: Callable[[], None]) -> None:
        """Let the decoder's own `picture` stand for the planes until somebody calls `fill_planes`.

        A picture that nobody edits then goes to the encoder without a copy. `copy` writes it into
        the planes; the picture itself is never written to.
        """
        self.picture, self._copy = picture, copy

    def fill_planes(self) -> None:
        """Make the planes hold the picture: call it before they are read or written."""
        copy, self.picture, self._copy = self._copy, None, None
        if copy is not None:
            copy()

    @property
    def width(self) -> int:
        """Width in px."""
        return int(self.y.shape[1])

    @property
    def height(self) -> int:
        """Height in px."""
        return int(self.y.shape[0])


def create_frame(width: int, height: int, handle: FrameHandle | None = None) -> Frame:
    """Return a black frame of `width` x `height` px.

    Raises:
        ValueError: a side is odd or not positive.
    """
    if width <= 0 or height <= 0 or width % 2 or height % 2:
        raise ValueError(f"a frame's sides are even and positive, not {width}x{height}")
    buffer = np.empty((height * 3 // 2, width), np.uint8)
    flat = buffer.reshape(-1)
    luma, chroma = width * height, width * height // 4
    buffer[:height] = 16
    flat[luma:] = 128
    return Frame(
        buffer=buffer,
        y=buffer[:height],
        u=flat[luma : luma + chroma].reshape(height // 2, width // 2),
        v=flat[luma + chroma :].reshape(height // 2, width // 2),
        handle=handle or FrameHandle(-1, 0),
    )


class FramePool:
    """A fixed number of frames of one size, lent and taken back. Safe from any thread."""

    def __init__(self, width: int, height: int, capacity: int) -> None:
        self.width = width
        self.height = height
        self.capacity = capacity
        self._lock = threading.Lock()
        self._frames = [create_frame(width, height, FrameHandle(i, 0)) for i in range(capacity)]
        self._free = list(range(capacity))

    def acquire(self) -> Frame | None:
        """Return a frame with undefined pixels, or None when all are lent."""
        with self._lock:
            if not self._free or not self._frames:
                return None
            frame = self._frames[self._free.pop()]
        frame.handle = FrameHandle(frame.handle.slot, frame.handle.generation + 1)
        frame.is_generated, frame.ready_ns = False, 0
        return frame

    def release(self, frame: Frame) -> None:
        """Take `frame` back; its handle is stale from now on. Twice is once.

        One that was replaced is left to whoever still has it.
        """
        slot, generation = frame.handle
        with self._lock:
            if slot in self._free or self._frames[slot] is not frame:
                return
            frame.handle = FrameHandle(slot, generation + 1)
            frame.picture = frame._copy = None  # noqa: SLF001 - the pool is the frame's other half
            self._free.append(slot)

    def replace(self, frame: Frame) -> None:
        """Put a new frame in the place of `frame`, which somebody may hold, and write, for ever."""
        slot, generation = frame.handle
        with self._lock:
            if slot in self._free or self._frames[slot] is not frame:
                return
            handle = FrameHandle(slot, generation + 1)
            self._frames[slot] = create_frame(self.width, self.height, handle)
            self._free.append(slot)

    def get(self, handle: FrameHandle) -> Frame | None:
        """Return the frame that `handle` stands for, or None when it has been taken back."""
        with self._lock:
            if not 0 <= handle.slot < self.capacity or handle.slot in self._free:
                return None
            frame = self._frames[handle.slot]
            return frame if frame.handle == handle else None

    def discard(self) -> None:
        """Lend nothing any more and let go of the memory; late returns are ignored."""
        with self._lock:
            self._frames = []
            self._free = list(range(self.capacity))

    @property
    def lent(self) -> int:
        """How many frames are out."""
        with self._lock:
            return self.capacity - len(self._free)
