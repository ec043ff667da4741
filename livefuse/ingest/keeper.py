"""The last seconds of what came in, in memory: written down when asked, or when something is wrong.

The ring holds encoded packets, cut at keyframes, bounded in time and in bytes. What it writes is a
recording like any other. It shows what the source showed, faces bare: it is off unless asked for,
and its folder is for its owner only.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.clock import NS_PER_S
from livefuse.errors import JobError, LivefuseError, PublishConnectError
from livefuse.ingest.recording import describe_recording, measure_event, write_events
from livefuse.ingest.recording_file import Event, Taken
from livefuse.ingest.sidecar import Opened, get_sidecar_path
from livefuse.ingest.tap import Tap
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import ReplayConfig

_PAUSE_NS: Final = 60 * NS_PER_S
_MB: Final = 1 << 20


class PacketRing:
    """The newest events, from a keyframe on. `put` from one thread, `list_events` from any."""

    def __init__(self, keep_ns: int, max_bytes: int) -> None:
        self._keep_ns = keep_ns
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        # Each group begins with a keyframe or a new connection.
        self._groups: deque[list[Event]] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._opened: Opened | None = None
        self._waits_for_keyframe = False

    def put(self, event: Event) -> None:
        """Take an event; what is too old or too much goes, oldest first."""
        with self._lock:
            begins = isinstance(event, Opened) or _is_keyframe(event)
            if begins or not self._groups:
                self._waits_for_keyframe = False
                self._groups.append([])
                self._sizes.append(0)
            elif self._waits_for_keyframe:
                return
            self._groups[-1].append(event)
            size = measure_event(event)
            self._sizes[-1] += size
            self._bytes += size
            self._trim(_get_time(event))

    def list_events(self) -> list[Event]:
        """Return what is kept, as a recording begins: with its connection. Empty: nothing is."""
        with self._lock:
            events = [event for group in self._groups for event in group]
            opened = self._opened
        if events and opened is not None and not isinstance(events[0], Opened):
            events.insert(0, msgspec.structs.replace(opened, at=_get_time(events[0])))
        return events if any(isinstance(event, Taken) for event in events) else []

    def measure(self) -> int:
        """Return about how many bytes are kept."""
        return self._bytes

    def _trim(self, now_ns: int) -> None:
        while len(self._groups) > 1 and (
            _get_time(self._groups[1][0]) <= now_ns - self._keep_ns or self._bytes > self._max_bytes
        ):
            self._drop_oldest()
        if self._sizes[0] > self._max_bytes:
            # One group of pictures is too much: what comes before the next keyframe is no use.
            self._drop_oldest()
            self._waits_for_keyframe = True
            self._groups.append([])
            self._sizes.append(0)

    def _drop_oldest(self) -> None:
        self._bytes -= self._sizes.popleft()
        for event in self._groups.popleft():
            if isinstance(event, Opened):
                self._opened = event
            elif isinstance(event, Taken) and self._opened is not None:
                self._opened = _update(self._opened, event)


class Keeper:
    """A job's ring and what is written of it. Its methods may be called from any thread."""

    def __init__(self, config: ReplayConfig, job_id: str, source: str, clock: Clock) -> None:
        self._config = config
        self._job_id = re.sub(r"[^\w-]", "_", job_id)
        self._source = source
        self._clock = clock
        self._ring = PacketRing(int(config.keep_s * NS_PER_S), config.keep_mb * _MB)
        self._log = get_logger("replay")
        self._lock = threading.Lock()
        self._next_ns = 0
        self._thread: threading.Thread | None = None

    @classmethod
    def create(cls, config: ReplayConfig, job_id: str, source: str, clock: Clock) -> Keeper | None:
        """Return one, or None when nothing is to be kept."""
        return cls(config, job_id, source, clock) if config.keep_s else None

    @property
    def tap(self) -> Tap:
        """What the job's ingest tells of its packets."""
        return Tap(self._ring.put)

    def write(self, path: Path | None = None) -> Path:
        """Write what is kept to `path`, or into the folder; return where. Takes up to a second.

        Raises:
            JobError: nothing came in yet.
            PublishError: it cannot be written.
        """
        events = self._ring.list_events()
        if not events:
            raise JobError("nothing is kept yet", hint="ask again when the input is live")
        path = path or self._choose_path("asked")
        write_events(events, path, describe_recording(self._source, self._clock))
        return path

    def note(self, reason: str) -> None:
        """Write what is kept because of `reason` (a word), at most once a minute; at once back."""
        now_ns = self._clock.now_ns()
        with self._lock:
            if now_ns < self._next_ns:
                return
            events = self._ring.list_events()
            if not events:
                return
            self._next_ns = now_ns + _PAUSE_NS
            self._thread = threading.Thread(
                target=self._write_noted,
                args=(events, reason),
                name="livefuse-keeper",
                daemon=True,
            )
            self._thread.start()

    def end(self, reason: str = "", timeout_s: float = 5.0) -> None:
        """Write what is kept if there is a `reason`; wait for what is being written."""
        if reason:
            self.note(reason)
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def _write_noted(self, events: list[Event], reason: str) -> None:
        try:
            path = self._choose_path(reason)
            write_events(events, path, describe_recording(self._source, self._clock))
        except LivefuseError as error:
            self._log.warning("recording", job=self._job_id, error=str(error))
        else:
            self._log.warning("recording", job=self._job_id, reason=reason, file=str(path))

    def _choose_path(self, reason: str) -> Path:
        folder = Path(self._config.folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prune(folder)
        except OSError as error:
            raise PublishConnectError(
                f"cannot use the folder {folder} ({error.strerror})",
                hint="set replay.folder to one that you may write to",
            ) from None
        stamp = datetime.fromtimestamp(self._clock.epoch_s(), UTC).strftime("%Y%m%dT%H%M%S%fZ")
        return folder / f"{self._job_id}-{stamp}-{reason}.mkv"

    def _prune(self, folder: Path) -> None:
        """Make room for one more of this job's files."""
        mine = sorted(folder.glob(f"{self._job_id}-????????T*Z-*.mkv"))
        for path in mine[: max(len(mine) - self._config.keep_files + 1, 0)]:
            path.unlink(missing_ok=True)
            get_sidecar_path(path).unlink(missing_ok=True)


def _get_time(event: Event) -> int:
    return event.line.at if isinstance(event, Taken) else event.at


def _is_keyframe(event: Event) -> bool:
    return isinstance(event, Taken) and event.line.key and not event.line.sound


def _update(opened: Opened, taken: Taken) -> Opened:
    """Return `opened` with the parameter sets that came with a packet."""
    extradata = taken.line.side.get("new_extradata")
    if extradata is None:
        return opened
    video = msgspec.structs.replace(opened.video, extradata=extradata)
    return msgspec.structs.replace(opened, video=video)
