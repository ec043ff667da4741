"""A recording being written: one Matroska file and its side-car, packet by packet, at once on disc.

Both files are written without a buffer of ours, the bytes before the line that tells of them: a
process that is killed loses what it was just writing. No thread and no clock in here.
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import zlib
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.errors import PublishConnectError
from livefuse.ingest.matroska import MatroskaWriter
from livefuse.ingest.matroska_tracks import AUDIO_TRACK, VIDEO_TRACK
from livefuse.ingest.recording_layout import Layout, Times
from livefuse.ingest.sidecar import (
    VERSION,
    End,
    Gap,
    Happened,
    Head,
    Opened,
    Stored,
    get_sidecar_path,
)

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.ingest.sidecar import Line

UUID_BYTES: Final = 16


class Taken(NamedTuple):
    """A packet's bytes and what is known of it; `line.at` is the clock's time, not yet from 0."""

    data: bytes
    line: Stored


Event = Taken | Opened | Happened | Gap
"""What comes into a recording. `at` is the clock's time in ns."""


class About(NamedTuple):
    """What a recording says of itself. `source` holds no secrets, `begun` is a date for people.

    An empty `uuid` stands for a random one.
    """

    source: str
    begun: str
    program: str
    uuid: bytes = b""


class RecordingFile:
    """Takes events in order. The files are made by `open`, the first bytes at the first connection.

    Raises (all methods):
        OSError: the disc said no.
    """

    def __init__(self, path: Path, about: About) -> None:
        self._path = path
        self._about = about
        self._file: IO[bytes] | None = None
        self._lines: IO[bytes] | None = None
        self._writer: MatroskaWriter | None = None
        self._encoder = msgspec.json.Encoder()
        self._start_ns: int | None = None
        self._last_ns = 0
        self._times = Times()
        self._layout = Layout()

    def open(self, *, overwrite: bool = False) -> None:
        """Make both files.

        Raises:
            PublishConnectError: they cannot be made, or are there already.
        """
        try:
            self._file = _open_file(self._path, overwrite=overwrite)
            self._lines = _open_file(get_sidecar_path(self._path), overwrite=overwrite)
        except FileExistsError as error:
            self._drop_new_file()
            raise PublishConnectError(
                f"{error.filename} is there already",
                hint="choose another name, or set record.overwrite = true",
            ) from None
        except BlockingIOError:
            self._drop_new_file()
            raise PublishConnectError(
                f"another livefuse is writing {self._path}",
                hint="choose another name, or stop that one",
            ) from None
        except OSError as error:
            self._drop_new_file()
            raise PublishConnectError(
                f"cannot write {self._path} ({error.strerror})",
                hint="make the folder, or choose one that you may write to",
            ) from None

    def write(self, event: Event) -> None:
        """Write one event."""
        at = event.line.at if isinstance(event, Taken) else event.at
        if isinstance(event, Opened):
            # What was waited for before is no part of it: a listener may wait for hours.
            self._start_ns = at if self._start_ns is None else self._start_ns
            self._begin_connection(event)
        if self._start_ns is None:
            return
        # Not always in order: packets are read while those before them are being decoded.
        at = max(at - self._start_ns, 0)
        self._last_ns = max(at, self._last_ns)
        if isinstance(event, Taken):
            self._write_line(self._store(event.data, msgspec.structs.replace(event.line, at=at)))
        else:
            self._write_line(msgspec.structs.replace(event, at=at))

    def close(self) -> None:
        """Finish both files, as far as the disc lets; twice is once."""
        file, lines, writer = self._file, self._lines, self._writer
        self._file = self._lines = self._writer = None
        try:
            if writer is not None and lines is not None:
                writer.close()
                _write_all(lines, self._encoder.encode(End(at=self._last_ns)) + b"\n")
        finally:
            for each in (file, lines):
                if each is not None:
                    each.close()
            if writer is None and file is not None:
                # Nothing came in: nothing is left behind.
                self._path.unlink(missing_ok=True)
                get_sidecar_path(self._path).unlink(missing_ok=True)

    @property
    def size_bytes(self) -> int:
        """How large the Matroska file is by now."""
        return self._file.tell() if self._file is not None else 0

    def _drop_new_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            if not self._path.stat().st_size:
                self._path.unlink()

    def _begin_connection(self, opened: Opened) -> None:
        self._times.begin_connection()
        if self._writer is None and self._file is not None:
            about = self._about
            uuid = about.uuid or secrets.token_bytes(UUID_BYTES)
            head = Head(
                version=VERSION,
                id=uuid.hex(),
                source=about.source,
                made_by=about.program,
                begun=about.begun,
            )
            tracks = self._layout.begin_file(opened.video, opened.audio)
            self._writer = MatroskaWriter(self._file, uuid, about.program, tracks)
            self._write_line(head)
        else:
            self._layout.begin_connection(opened.video, opened.audio)

    def _store(self, data: bytes, line: Stored) -> Stored:
        """Put the packet's bytes into the Matroska file; return its line."""
        line = msgspec.structs.replace(line, crc=zlib.crc32(data))
        writer = self._writer
        if writer is None:  # closed meanwhile
            return msgspec.structs.replace(line, raw=data)
        time_ms = self._times.place(line)
        form = self._layout.fit(data, line)
        if form is None:
            pos = writer.write_aside(time_ms, data)
            return msgspec.structs.replace(line, pos=pos, size=len(data))
        pos = writer.write_block(
            AUDIO_TRACK if line.sound else VIDEO_TRACK,
            time_ms,
            form.data,
            prefix=form.prefix,
            is_keyframe=line.key or line.sound,
        )
        return msgspec.structs.replace(
            line, pos=pos, size=len(form.data), head=form.head, starts=form.starts
        )

    def _write_line(self, line: Line) -> None:
        if self._lines is not None:
            _write_all(self._lines, self._encoder.encode(line) + b"\n")


def _open_file(path: Path, *, overwrite: bool) -> IO[bytes]:
    """Return the empty file at `path`; BlockingIOError: somebody else writes there."""
    file: IO[bytes] = path.open("ab" if overwrite else "xb", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    except OSError:
        pass  # a file system without locks
    if overwrite:
        file.close()  # "ab" writes at the end only; the lock is taken again at once
        file = path.open("r+b", buffering=0)
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
    return file


def _write_all(file: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
