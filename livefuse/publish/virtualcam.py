"""A virtual camera for programs that take only cameras, through pyvirtualcam (an extra).

A missing package or driver is a warning in the status, never a failure: the job goes on without,
and a device that is not there, or went away, is looked for again and again.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from livefuse.clock import NS_PER_S, Clock, SystemClock
from livefuse.publish.backoff import Backoff
from livefuse.publish.base import OutputStatus
from livefuse.publish.state_cell import StateCell

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.frame import Frame

_FPS: Final = 30.0
_STALL_NS: Final = 2 * NS_PER_S
_RETRY_MIN_MS, _RETRY_MAX_MS = 1000, 30_000
_PACKAGE_HINT: Final = "the package pyvirtualcam is missing: pip install 'livefuse[virtualcam]'"
_DRIVER_HINT: Final = (
    "there is no virtual camera: on Linux install v4l2loopback (apt-get install v4l2loopback-dkms, "
    "then modprobe v4l2loopback); on Windows and macOS install OBS"
)


class VirtualCameraOutput:
    """A `FrameOutput`: one frame waits at most, a newer one takes its place.

    Args:
        device: a device such as /dev/video10; empty for the first that is found.
        load: returns the module pyvirtualcam; for tests.
    """

    def __init__(
        self,
        device: str = "",
        load: Callable[[], Any] | None = None,
        *,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._device = device
        self._clock = clock or SystemClock()
        self._backoff = backoff or Backoff(_RETRY_MIN_MS, _RETRY_MAX_MS)
        self._load = load if load is not None else _import_pyvirtualcam
        self._changed = threading.Condition()
        self._waiting: NDArray[np.uint8] | None = None
        self._spare: NDArray[np.uint8] | None = None
        self._cell = StateCell(self._clock)
        self._name = ""
        self._shown = self._dropped = self._opened = 0
        self._given_ns: int | None = None  # since when the camera has a picture to take
        self._is_closing = False
        self._thread: threading.Thread | None = None

    def show(self, frame: Frame) -> None:
        """Copy `frame` for the camera; replaces one that was not taken yet."""
        with self._changed:
            if self._is_closing or self._cell.state == "refused":
                self._dropped += 1
                return
            if self._waiting is not None:
                self._dropped += 1
            buffer = self._waiting if self._waiting is not None else self._spare
            if buffer is None or buffer.shape != frame.buffer.shape:
                buffer = np.empty_like(frame.buffer)
            np.copyto(buffer, frame.buffer)
            self._waiting, self._spare = buffer, None
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="livefuse-virtualcam", daemon=True
            )
            self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Let go of the camera."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        with self._changed:
            if self._cell.state != "refused":
                self._cell.change("closed")

    def status(self) -> OutputStatus:
        """Return a snapshot."""
        with self._changed:
            self._note_stall()
            return OutputStatus(
                kind="virtualcam",
                url=f"virtualcam:{self._device}",
                state=self._cell.state,
                connected=self._cell.state == "live",
                packets=self._shown,
                dropped=self._dropped,
                reconnects=max(self._opened - 1, 0),
                error=self._cell.error,
                watch=f"choose the camera {self._name}" if self._name else "",
                state_s=self._cell.count_seconds(),
            )

    def _note_stall(self) -> None:
        if self._cell.state != "live" or self._given_ns is None:
            return
        if self._clock.now_ns() - self._given_ns > _STALL_NS:
            self._cell.change("stalled", f"{self._name} takes no more pictures")

    # The thread.

    def _run(self) -> None:
        while not self._is_closing:
            opened = self._opened
            try:
                self._feed()
            except ImportError:
                self._refuse(_PACKAGE_HINT)
                return  # it does not come while we run
            except (RuntimeError, OSError, ValueError) as error:
                if self._opened == opened:
                    self._refuse(f"{_DRIVER_HINT} ({error})")
                else:
                    self._refuse(f"{self._name} has gone ({error}); it is looked for again")
                    self._backoff.reset()
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, self._backoff.next_ms() / 1000)
                if not self._is_closing:
                    # Pictures are taken again: the next one is the next try.
                    self._cell.change("connecting", self._cell.error)

    def _refuse(self, warning: str) -> None:
        with self._changed:
            self._cell.change("refused", warning)
            self._waiting = self._spare = self._given_ns = None

    def _feed(self) -> None:
        module = self._load()
        buffer = self._take()
        if buffer is None:
            return
        height, width = buffer.shape[0] * 2 // 3, buffer.shape[1]
        with module.Camera(
            width=width,
            height=height,
            fps=_FPS,
            fmt=module.PixelFormat.I420,
            device=self._device or None,
        ) as camera:
            with self._changed:
                self._cell.change("live")
                self._name = str(camera.device)
                self._opened += 1
            while buffer is not None:
                camera.send(buffer.reshape(-1))
                with self._changed:
                    self._shown += 1
                    self._spare, self._given_ns = buffer, None
                    if not self._is_closing:
                        self._cell.change("live")
                buffer = self._take()

    def _take(self) -> NDArray[np.uint8] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._is_closing)
            buffer, self._waiting = self._waiting, None
            self._given_ns = self._clock.now_ns()
            return None if self._is_closing else buffer


def _import_pyvirtualcam() -> Any:  # noqa: ANN401 - the package has no types
    return importlib.import_module("pyvirtualcam")
