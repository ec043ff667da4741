"""A recording being written: one Matroska file and its side-car, packet by packet, at once on disc.

Both files are written without a buffer of ours, the bytes before the line that tells of them: a
process that is killed loses what it was just writing. Only their owner may read them, as they show
faces bare. No thread and no clock in here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

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
from livefuse.whole_file import open_locked

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.ingest.sidecar import Line
    from livefuse.whole_file import WholeFile

UUID_BYTES: Final = 16
_MODE: Final = 0o600


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
    """Takes events in order. `open` makes the files, the first connection brings the first bytes.

    Raises (all methods):
        OSError: the disc said no.
    """

    def __init__(self, path: Path, about: About) -> None:
        self._path = path
        self._about = about
        self._file: WholeFile | None = None
        self._lines: WholeFile | None = None
        self._writer: MatroskaWriter | None = None
        self._encoder = msgspec.json.Encoder()
        self._start_ns: int | None = None
        self._last_ns = 0
        self._times = Times()
        self._layout = Layout()

    def open(self, *, overwrite: bool = False) -> None:
        """Open both files; what was there stays until something comes in.

        Raises:
            PublishConnectError: they cannot be made, or are there already.
        """
        try:
            self._file = open_locked(self._path, overwrite=overwrite, mode=_MODE)
            sidecar = get_sidecar_path(self._path)
            self._lines = open_locked(sidecar, overwrite=overwrite, mode=_MODE)
        except OSError as error:
            self.close()
            raise _explain_open_error(error, self._path) from None

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
                lines.write(self._encoder.encode(End(at=self._last_ns)) + b"\n")
        finally:
            for each, path in ((file, self._path), (lines, get_sidecar_path(self._path))):
                if each is not None:
                    # Nothing came in: nothing is left behind, and what was there stays.
                    is_void = self._start_ns is not None or not os.fstat(each.fileno()).st_size
                    each.close()
                    if writer is None and is_void:
                        path.unlink(missing_ok=True)

    @property
    def size_bytes(self) -> int:
        """How large the Matroska file is by now."""
        return self._file.tell() if self._file is not None else 0

    def _begin_connection(self, opened: Opened) -> None:
        self._times.begin_connection()
        if self._writer is not None or self._file is None or self._lines is None:
            self._layout.begin_connection(opened.video, opened.audio)
            return
        for each in (self._file, self._lines):
            each.truncate(0)
            with contextlib.suppress(OSError):  # a file system without rights, another's file
                os.fchmod(each.fileno(), _MODE)
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
            self._lines.write(self._encoder.encode(line) + b"\n")


def _explain_open_error(error: OSError, path: Path) -> PublishConnectError:
    if isinstance(error, FileExistsError):
        return PublishConnectError(
            f"{error.filename} is there already",
            hint="choose another name, or set record.overwrite = true",
        )
    if isinstance(error, BlockingIOError):
        return PublishConnectError(
            f"another livefuse is writing {path}", hint="choose another name, or stop that one"
        )
    return PublishConnectError(
        f"cannot write {error.filename or path} ({error.strerror})",
        hint="make the folder, or choose one that you may write to",
    )
