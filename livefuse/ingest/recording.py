"""Record what comes in: a bounded queue in front of a thread that writes.

The ingest's thread never waits for the disc. Where the disc is too slow packets are left out and
told of in the side-car; where it says no the recording ends with one sentence, and what feeds it
goes on.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from livefuse import __version__
from livefuse.errors import PublishConnectError, PublishError
from livefuse.ingest.recording_file import About, Event, RecordingFile, Taken
from livefuse.ingest.sidecar import Gap
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from livefuse.clock import Clock

_MAX_QUEUE_BYTES: Final = 64 << 20
_MAX_QUEUE_EVENTS: Final = 20_000
_EVENT_BYTES: Final = 200


class Recorder:
    """Writes events to `path` and its side-car in a thread of its own.

    Raises:
        PublishConnectError: the files cannot be made, or are there already.
    """

    def __init__(self, path: Path, source: str, clock: Clock, *, overwrite: bool = False) -> None:
        """Make the files and start the thread; `source` is a URL that may hold secrets."""
        self.packets = 0
        self.dropped = 0
        self.size_bytes = 0
        self.error: PublishError | None = None
        self._path = path
        self._file = RecordingFile(path, describe_recording(source, clock))
        self._file.open(overwrite=overwrite)
        self._changed = threading.Condition()
        self._queue: deque[Event] = deque()
        self._queue_bytes = 0
        self._gap = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="livefuse-recorder", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Take an event, or leave it out when too much waits; from any thread, never blocks.

        What is not a packet is rare and small: it is taken while twice as much waits.
        """
        with self._changed:
            if self._is_closing or self.error is not None:
                return
            if self._is_full(1 if isinstance(event, Taken) else 2):
                self.dropped += 1
                self._gap += 1
                return
            if self._gap and isinstance(event, Taken):
                self._append(Gap(at=event.line.at, packets=self._gap))
                self._gap = 0
            self._append(event)
            self._changed.notify_all()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write what waits and finish the files; False when that takes longer."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _append(self, event: Event) -> None:
        self._queue.append(event)
        self._queue_bytes += measure_event(event)

    def _is_full(self, times: int) -> bool:
        return (
            self._queue_bytes > times * _MAX_QUEUE_BYTES
            or len(self._queue) > times * _MAX_QUEUE_EVENTS
        )

    def _run(self) -> None:
        try:
            while (event := self._take()) is not None:
                self._file.write(event)
                self.packets += isinstance(event, Taken)
                self.size_bytes = self._file.size_bytes
            self._file.close()
        except Exception as error:  # noqa: BLE001 - told once; whoever feeds it goes on
            with contextlib.suppress(Exception):
                self._file.close()
            with self._changed:
                self.error = explain_write_error(error, self._path)
                self._queue.clear()
                self._queue_bytes = 0

    def _take(self) -> Event | None:
        with self._changed:
            while not self._queue and not self._is_closing:
                self._changed.wait()
            if not self._queue:
                return None
            event = self._queue.popleft()
            self._queue_bytes -= measure_event(event)
            return event


def write_events(
    events: Iterable[Event], path: Path, about: About, *, overwrite: bool = False
) -> None:
    """Write a whole recording at once, in the caller's thread.

    Raises:
        PublishError: it cannot be written.
    """
    file = RecordingFile(path, about)
    file.open(overwrite=overwrite)
    try:
        for event in events:
            file.write(event)
        file.close()
    except Exception as error:  # noqa: BLE001 - whoever asked is told in words, as by a Recorder
        with contextlib.suppress(OSError):
            file.close()
        raise explain_write_error(error, path) from None


def describe_recording(source: str, clock: Clock) -> About:
    """Return what a recording made now of `source` (which may hold secrets) says of itself."""
    begun = datetime.fromtimestamp(clock.epoch_s(), UTC).isoformat(timespec="seconds")
    return About(redact_url(source), begun, f"livefuse {__version__}")


def measure_event(event: Event) -> int:
    """Return about how many bytes of memory `event` takes."""
    return _EVENT_BYTES + (len(event.data) if isinstance(event, Taken) else 0)


def explain_write_error(error: Exception, path: Path) -> PublishError:
    """Return what to tell about `error`, met while writing."""
    if isinstance(error, PublishError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PublishConnectError(
            f"the disc of {path} is full: the recording ends here",
            hint="what was written until now can be played and replayed",
        )
    reason = getattr(error, "strerror", None) or str(error)
    return PublishConnectError(
        f"cannot write {path} any more ({reason})",
        hint="what was written until now can be played and replayed",
    )
