"""Files that are being written and already playable: fragmented MP4, Matroska, FLV, MPEG-TS.

A file has its final name from the first byte and loses at most a second when the process is killed.
It is made when the first keyframe comes: a job that never starts leaves nothing behind. A live
stream that a disk does not take any more is recorded on, in a file of the next name, once it does.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S, Clock, SystemClock
from livefuse.errors import ConfigError
from livefuse.publish.backoff import Backoff
from livefuse.publish.base import FILE_SUFFIXES, OutputStatus
from livefuse.publish.container_mark import find_container_mark
from livefuse.publish.gop_queue import GopQueue
from livefuse.publish.mux import open_file_muxer
from livefuse.publish.record_file import check_writable, find_next, has_room, open_file
from livefuse.publish.state_cell import StateCell
from livefuse.redact import redact_url

if TYPE_CHECKING:
    import io
    from pathlib import Path

    from livefuse.config import RecordConfig
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.publish.container_mark import ContainerMark
    from livefuse.publish.recording_signer import RecordingSigner

_STALL_NS: Final = 5 * NS_PER_S
_RETRY_MIN_MS, _RETRY_MAX_MS = 1000, 30_000
_HELD_NS: Final = 60 * NS_PER_S


class FileOutput:
    """An `Output` to a file; its suffix says which container.

    With `lossless` a full queue makes `send` wait, and a disk that fails ends it; else it drops to
    the next keyframe, counted, and goes on in another file when the disk takes data again.

    Raises:
        ConfigError: the suffix is none of `FILE_SUFFIXES`.
        PublishConnectError: the folder cannot be written, or the file is there already.
    """

    def __init__(
        self,
        path: Path,
        config: RecordConfig,
        *,
        lossless: bool = False,
        clock: Clock | None = None,
        signer: RecordingSigner | None = None,
    ) -> None:
        if path.suffix.lower() not in FILE_SUFFIXES:
            raise ConfigError(
                f"cannot write {path.name}: {path.suffix or 'no suffix'} is not a container",
                hint=f"use one of {', '.join(FILE_SUFFIXES)}",
            )
        if signer is not None:
            signer.check(path)
        check_writable(path, overwrite=config.overwrite)
        self._first_path = self._path = path
        self._overwrite = config.overwrite
        self._lossless = lossless
        self._clock = clock or SystemClock()
        self._changed = threading.Condition()
        self._queue: GopQueue[Packet] = GopQueue(config.queue_packets)
        # Sound that comes before the first picture is part of a file that is to be complete.
        self._queue.waits_for_keyframe = not lossless
        self._cell = StateCell(self._clock)
        self._progress_ns = self._began_ns = 0
        self._packets = self._dropped = self._files = 0
        self._is_closing = self._has_failed = False
        self._thread: threading.Thread | None = None
        self._signer = signer
        self._mark: ContainerMark | None = None  # of the file that is being written
        self._signing: threading.Thread | None = None
        self._unsigned = ""

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
            if not len(self._queue):
                self._progress_ns = self._clock.now_ns()
            self._queue.put(packet, is_keyframe=is_keyframe)
            self._changed.notify_all()

    def close(self, timeout_s: float) -> None:
        """Write what waits and finish the file; what is not done in `timeout_s` is left.

        A signature that is not there by then comes later: nothing is lost without it.
        """
        end_ns = self._clock.now_ns() + round(timeout_s * NS_PER_S)
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        with self._changed:
            if self._has_failed:
                return
            if self._thread is not None and self._thread.is_alive():
                shown = redact_url(str(self._path))
                self._cell.change("stalled", f"{shown} could not be finished in {timeout_s:g} s")
            else:
                self._cell.change("closed", self._unsigned)
        if self._signing is not None:
            self._signing.join(max(end_ns - self._clock.now_ns(), 0) / NS_PER_S)

    def status(self) -> OutputStatus:
        """Return a snapshot."""
        shown = redact_url(str(self._path))
        with self._changed:
            self._note_stall(shown)
            return OutputStatus(
                kind="file",
                url=shown,
                state=self._cell.state,
                connected=self._cell.state == "live",
                packets=self._packets,
                dropped=self._dropped + self._queue.dropped,
                reconnects=max(self._files - 1, 0),
                error=self._cell.error,
                watch=f"ffplay {shlex.quote(shown)}",
                state_s=self._cell.count_seconds(),
            )

    def _note_stall(self, shown: str) -> None:
        """Tell of a disk that neither takes what waits nor says no (one in a network, mostly)."""
        waited_ns = self._clock.now_ns() - self._progress_ns
        if self._cell.state == "live" and len(self._queue) and waited_ns > _STALL_NS:
            seconds = _STALL_NS // NS_PER_S
            self._cell.change("stalled", f"{shown} takes no more data (for {seconds} s)")

    # The thread.

    def _is_over(self) -> bool:
        return self._is_closing or self._has_failed

    def _run(self, streams: StreamsInfo) -> None:
        backoff = Backoff(_RETRY_MIN_MS, _RETRY_MAX_MS)
        while not self._try_write(streams):
            if self._clock.now_ns() - self._began_ns >= _HELD_NS:
                backoff.reset()
            if not self._wait_for_room(backoff):
                return

    def _try_write(self, streams: StreamsInfo) -> bool:
        """Write until the end; False when it failed and may be tried again in another file."""
        try:
            self._write_all(streams)
        except Exception as error:  # noqa: BLE001 - whatever it is, only this file is lost
            is_disk = isinstance(error, OSError) and not isinstance(error, FileExistsError)
            reason = getattr(error, "strerror", None) or str(error)
            with self._changed:
                self._has_failed = True
                sentence = f"cannot write {redact_url(str(self._path))}: {reason}"
                self._cell.change("refused", sentence)
                self._queue.skip()
                self._changed.notify_all()
            return self._lossless or not is_disk
        return True

    def _wait_for_room(self, backoff: Backoff) -> bool:
        """Wait until the disk takes data again; False when the output was closed meanwhile."""
        while True:
            with self._changed:
                wait_s = backoff.next_ms() / 1000
                if self._changed.wait_for(lambda: self._is_closing, wait_s):
                    return False
            if not has_room(self._first_path):
                continue
            path = find_next(self._first_path) if self._files else self._first_path
            with self._changed:
                self._path, self._has_failed = path, False
            return True

    def _write_all(self, streams: StreamsInfo) -> None:
        packet = self._take()
        if packet is None:
            return
        # A live recording begins at 0, whenever it was asked for.
        start = 0 if self._lossless else packet.dts
        before = self._packets
        self._mark = None
        with self._open_file() as file:
            try:
                self._fill(file, streams, packet, start)
            except Exception:
                if self._packets == before:
                    with contextlib.suppress(OSError):
                        self._path.unlink()  # it got nothing
                    self._files -= 1
                raise
        self._sign()

    def _sign(self) -> None:
        """Have the file signed that was just finished, if anything in it was generated."""
        signer, mark = self._signer, self._mark
        if signer is not None and mark is not None and signer.will_sign(self._path):
            self._signing = signer.start(self._path, mark, self._tell_unsigned)

    def _tell_unsigned(self, sentence: str) -> None:
        with self._changed:
            self._unsigned = sentence
            self._cell.change(self._cell.state, sentence)

    def _fill(self, file: io.FileIO, streams: StreamsInfo, first: Packet, start: int) -> None:
        self._began_ns = self._clock.now_ns()
        self._files += 1
        muxer = open_file_muxer(self._path.suffix.lower(), file, streams)
        packet: Packet | None = first
        try:
            while packet is not None:
                self._mark = self._mark or find_container_mark(packet)
                muxer.write(replace(packet, pts=packet.pts - start, dts=packet.dts - start))
                self._note_written()
                packet = self._take()
        except Exception:
            # What went wrong first is what is told.
            with contextlib.suppress(Exception):
                muxer.close()
            raise
        muxer.close()

    def _note_written(self) -> None:
        with self._changed:
            self._packets += 1
            self._progress_ns = self._clock.now_ns()
            if not self._is_closing:
                self._cell.change("live")

    def _take(self) -> Packet | None:
        """Return the next packet; None at the end."""
        with self._changed:
            while (packet := self._queue.get()) is None and not self._is_closing:
                self._changed.wait()
            self._changed.notify_all()
            return packet

    def _open_file(self) -> io.FileIO:
        return open_file(self._path, overwrite=self._overwrite and not self._files)
