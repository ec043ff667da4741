"""Pictures in the order of time -> means of two seconds each, in which marks are looked for.

What moves fades in a mean; a mark, which stands still, stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.publish.luma.fold import join, whiten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

WINDOW_S: Final = 2.0
_MIN_WINDOW_S: Final = 0.25
_MAX_SIDE_PX: Final = 1080
_REDUCED_PX: Final = 720


class MeanPicture(NamedTuple):
    """The mean of the pictures shown from `first_s` to `last_s`: their luma and their detail.

    The detail is that of luma/fold.py, of a size of its own.
    """

    luma: NDArray[np.float32]
    detail: NDArray[np.float32]
    first_s: float
    last_s: float


def take_mean(lumas: Iterable[NDArray[np.uint8]]) -> MeanPicture:
    """Return the mean of pictures of one size, at least one."""
    total: _Sum | None = None
    for luma in lumas:
        total = total or _Sum(luma, 0.0)
        total.add(luma, 0.0)
    if total is None:
        raise ValueError("a mean is of one picture at least")
    return total.get()


class MeanWindows:
    """Cuts pictures into windows; keeps two sums of a picture, no more. One thread."""

    def __init__(self) -> None:
        self._window: _Sum | None = None
        self._whole: _Sum | None = None
        self._closed = 0

    def add(self, luma: NDArray[np.uint8], time_s: float) -> MeanPicture | None:
        """Take the picture shown at `time_s`; return the window that is over with it, if one is.

        Pictures come in order. A change of size ends a window too.
        """
        luma = _reduce(luma)
        over, window = None, self._window
        if window is not None and not (window.fits(luma) and time_s < window.first_s + WINDOW_S):
            over, window = window.get(), None
            self._closed += 1
        self._window = window or _Sum(luma, time_s)
        self._window.add(luma, time_s)
        if self._whole is None or not self._whole.fits(luma):
            self._whole = _Sum(luma, time_s)
        self._whole.add(luma, time_s)
        return over

    def finish(self) -> MeanPicture | None:
        """Return what is left; None when that is next to nothing and there were others."""
        window, self._window = self._window, None
        if window is None:
            return None
        is_short = window.last_s - window.first_s < _MIN_WINDOW_S
        return None if is_short and self._closed else window.get()

    def get_whole(self) -> MeanPicture | None:
        """Return the mean of all since the last change of size, None when that was one window."""
        whole = self._whole
        return whole.get() if whole is not None and self._closed else None


class _Sum:
    def __init__(self, luma: NDArray[np.uint8], time_s: float) -> None:
        self._sum = np.zeros(luma.shape, np.float32)
        self._whitened: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._count = 0
        self.first_s = self.last_s = time_s

    def fits(self, luma: NDArray[np.uint8]) -> bool:
        return luma.shape == self._sum.shape

    def add(self, luma: NDArray[np.uint8], time_s: float) -> None:
        cv2.accumulate(luma, self._sum)
        weighted, weights = whiten(luma)
        if self._whitened is None:
            self._whitened = weighted, weights
        else:
            cv2.add(self._whitened[0], weighted, dst=self._whitened[0])
            cv2.add(self._whitened[1], weights, dst=self._whitened[1])
        self._count += 1
        self.last_s = time_s

    def get(self) -> MeanPicture:
        count = max(self._count, 1)
        luma = np.asarray(self._sum / count, np.float32)
        detail = join(*(self._whitened or whiten(luma)), count)
        return MeanPicture(luma, detail, self.first_s, self.last_s)


def _reduce(luma: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return what is larger than needed in a size that bounds memory and time."""
    side = min(luma.shape)
    if side <= _MAX_SIDE_PX:
        return luma
    factor = _REDUCED_PX / side
    reduced = cv2.resize(luma, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    return np.asarray(reduced, np.uint8)
