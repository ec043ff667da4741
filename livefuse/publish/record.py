"""Files that are being written and already playable: fragmented MP4, Matroska, FLV, MPEG-TS.

A file has its final name from the first byte and loses at most a second when the process is killed.
It is made when the first keyframe comes: a job that never starts leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import shlex
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Final

from livefuse.errors import ConfigError, PublishConnectError
from livefuse.publish.base import FILE_SUFFIXES, OutputState, OutputStatus
from livefuse.publish.gop_queue import GopQueue
from livefuse.publish.mux import open_file_muxer
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import RecordConfig
    from livefuse.packet import Packet, StreamsInfo

_KILL_S: Final = 1.0


class FileOutput:
    """An `Output` to a file; its suffix says which container.

    With `lossless` a full queue makes `send` wait; else it drops to the next keyframe, counted.

    Raises:
        ConfigError: the suffix is none of `FILE_SUFFIXES`.
        PublishConnectError: the folder cannot be written, or the file is there already.
    """

    def __init__(self, path: Path, config: RecordConfig, *, lossless: bool = False) -> None:
        if path.suffix.lower() not in FILE_SUFFIXES:
            raise ConfigError(
                f"cannot write {path.name}: {path.suffix or 'no suffix'} is not a container",
                hint=f"use one of {', '.join(FILE_SUFFIXES)}",
            )
        _check_writable(path, overwrite=config.overwrite)
        self._path = path
        self._overwrite = config.overwrite
        self._lossless = lossless
        self._changed = threading.Condition()
        self._queue: GopQueue[Packet] = GopQueue(config.queue_packets)
        # Sound that comes before the first picture is part of a file that is to be complete.
        self._queue.waits_for_keyframe = not lossless
        self._state: OutputState = "connecting"
        self._error = ""
        self._packets = self._dropped = 0
        self._is_closing = self._has_failed = False
        self._thread: threading.Thread | None = None

    def open(self, streams: StreamsInfo) -> None:
        """Start the writing thread."""
        self._thread = threading.Thread(
            target=self._run, args=(streams,), name="livefuse-record", daemon=True
        )
        self._thread.start()

    def send(self, packet: Packet) -> None:
        """Take a packet; waits for room only when lossless and the file can be written."""
        is_keyframe = packet.kind == "video" and packet.is_keyframe
        with self._changed:
            while self._lossless and self._queue.is_full() and not self._is_over():
                self._changed.wait()
            if self._is_over():
                self._dropped += 1
                return
            self._queue.put(packet, is_keyframe=is_keyframe)
            self._changed.notify_all()

    def close(self, timeout_s: float) -> None:
        """Write what waits and finish the file; what is not done in `timeout_s` is left."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        with self._changed:
            if self._has_failed:
                return
            self._state = "closed"
            if self._thread is not None and self._thread.is_alive():
                self._state = "stalled"
                shown = redact_url(str(self._path))
                self._error = f"{shown} could not be finished in {timeout_s:g} s"

    def status(self) -> OutputStatus:
        """Return a snapshot."""
        with self._changed:
            return OutputStatus(
                kind="file",
                url=redact_url(str(self._path)),
                state=self._state,
                connected=self._state == "live",
                packets=self._packets,
                dropped=self._dropped + self._queue.dropped,
                error=self._error,
                watch=f"ffplay {shlex.quote(redact_url(str(self._path)))}",
            )

    # The thread.

    def _is_over(self) -> bool:
        return self._is_closing or self._has_failed

    def _run(self, streams: StreamsInfo) -> None:
        try:
            self._write_all(streams)
        except Exception as error:  # noqa: BLE001 - whatever it is, only this file is lost
            reason = getattr(error, "strerror", None) or str(error)
            with self._changed:
                self._has_failed = True
                self._state = "refused"
                self._error = f"cannot write {redact_url(str(self._path))}: {reason}"
                self._queue.skip()
                self._changed.notify_all()

    def _write_all(self, streams: StreamsInfo) -> None:
        packet = self._take()
        if packet is None:
            return
        with self._open_file() as file:
            muxer = open_file_muxer(self._path.suffix.lower(), file, streams)
            with self._changed:
                self._state = "live"
            try:
                while packet is not None:
                    muxer.write(packet)
                    with self._changed:
                        self._packets += 1
                    packet = self._take()
            except Exception:
                # What went wrong first is what is told.
                with contextlib.suppress(Exception):
                    muxer.close()
                raise
            muxer.close()

    def _take(self) -> Packet | None:
        """Return the next packet; None at the end."""
        with self._changed:
            while (packet := self._queue.get()) is None and not self._is_closing:
                self._changed.wait()
            self._changed.notify_all()
            return packet

    def _open_file(self) -> IO[bytes]:
        """Open for writing from the start, once nobody else writes there."""
        file = self._path.open("ab" if self._overwrite else "xb", buffering=0)
        if not lock_file(file):
            file.close()
            raise _explain_lock(self._path)
        if self._overwrite:
            file.close()  # "ab" writes at the end only; the lock is taken again at once
            file = self._path.open("r+b", buffering=0)
            lock_file(file)
            file.truncate(0)
        return file


def lock_file(file: IO[bytes]) -> bool:
    """Say that we write here, until the file is closed; False when somebody else does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _explain_lock(path: Path) -> PublishConnectError:
    return PublishConnectError(
        f"another livefuse is writing {path}", hint="choose another name, or stop that one"
    )


def _check_writable(path: Path, *, overwrite: bool) -> None:
    """Refuse what would fail later.

    A file is really made and taken away again: rights alone do not tell of read-only systems.
    """
    if path.is_dir():
        raise PublishConnectError(f"{path} is a folder", hint="add a file name, such as out.mp4")
    if path.exists() and not overwrite:
        raise PublishConnectError(
            f"{path} is there already", hint="choose another name, or set record.overwrite = true"
        )
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.exists():
            with path.open("ab") as file:
                is_free = lock_file(file)
            if not is_free:
                raise _explain_lock(path)
    except OSError as error:
        raise PublishConnectError(
            f"cannot write into the folder {path.parent} ({error.strerror})",
            hint="make the folder, or choose one that you may write to",
        ) from None
