"""The child process of one RTMP target: `python -m livefuse.publish.rtmp_child`.

It reads a `Task` and then packets from standard input, writes FLV to the server, and tells on
standard output how far it is. It may block for ever in FFmpeg; its parent watches and kills it.
The URL comes through the pipe: arguments and environment can be read by other users (case C76).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import stat
import threading
import time
from typing import TYPE_CHECKING, Final

import av
import msgspec
from av import logging as av_logging

from livefuse.packet import Packet, StreamsInfo, iter_messages
from livefuse.publish.flv_writer import FlvWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.container.output import OutputContainer
    from av.stream import Stream

UNACKNOWLEDGED: Final = "nothing was acknowledged"
CONNECTED: Final = "connected"
SENT: Final = "sent"
FAILED: Final = "failed"
_IN_FD, _OUT_FD = 0, 1
_PIPE_BYTES: Final = 1 << 16
# About a second of a usual stream: the kernel's own would hide a stall for many seconds.
_SEND_BUFFER_BYTES: Final = 1 << 17
_LAST_WORDS_S: Final = 0.1
# A peer that only reads no more is seen sooner, by who waits for the buffer to empty.
_LATER_MS: Final = 1000
_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_FLUSH_PACKETS: Final = 0x200


class Task(msgspec.Struct, frozen=True):
    """What to do. `ca_file` is for rtmps; `tcurl` what the server is told that it was asked by.

    A way on which nothing is acknowledged is given up a little after `stall_ms`.
    """

    url: str
    streams: StreamsInfo
    ca_file: str = ""
    stall_ms: int = 0
    tcurl: str = ""
    parent_pid: int = 0


class _Connection:
    """FLV bytes into an RTMP connection of FFmpeg's.

    The bytes go through FFmpeg's `data` muxer, which passes them on as they are, inside its `tee`,
    which, other than PyAV, can give options to the protocol. So no interleaving delays a packet.
    """

    def __init__(self, task: Task) -> None:
        # What FFmpeg says goes to standard error, where the parent reads it, never to a log.
        av_logging.set_level(av_logging.ERROR)
        av_logging.restore_default_callback()
        self._writer = FlvWriter(task.streams)
        self._count = 0
        self._container: OutputContainer = av.open(_build_tee_name(task), "w", format="tee")
        self._container.flags |= _FLUSH_PACKETS
        self._stream: Stream = self._container.add_data_stream()
        self._container.start_encoding()
        _watch_hangup(_tune_sockets(task.stall_ms))
        self._put(self._writer.build_header())

    def write(self, packet: Packet) -> None:
        data = self._writer.write(packet)
        if data:
            self._put(data)

    def close(self) -> None:
        self._container.close()

    def _put(self, data: bytes) -> None:
        wrapped = av.Packet(data)
        wrapped.pts = wrapped.dts = self._count
        wrapped.stream = self._stream
        self._count += 1
        self._container.mux_one(wrapped)


def _build_tee_name(task: Task) -> str:
    """Return the target in the language of FFmpeg's `tee` muxer."""
    options = {"f": "data", "flush_packets": "1", "tcp_nodelay": "1"}
    if task.url.lower().startswith("rtmps:"):
        options["tls_verify"] = "1"
        if task.ca_file:
            options["ca_file"] = _escape(_escape(task.ca_file, r"\':]"), r"\'|")
    if task.tcurl:
        options["rtmp_tcurl"] = _escape(_escape(task.tcurl, r"\':]"), r"\'|")
    listed = ":".join(f"{name}={value}" for name, value in options.items())
    return f"[{listed}]{_escape(task.url, chr(92) + chr(39) + '|')}"


def _escape(text: str, special: str) -> str:
    return "".join(f"\\{c}" if c in special else c for c in text)


def _tune_sockets(stall_ms: int) -> list[int]:
    """Bound what the kernel keeps of our connections: late packets are dropped, not sent late.

    A stream of few bits would fill it slowly: so the kernel also gives up a way on which nothing
    is acknowledged.
    """
    fds: list[int] = []
    for fd in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                with socket.socket(fileno=os.dup(fd)) as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
                    if stall_ms and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
                        sock.setsockopt(
                            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stall_ms + _LATER_MS
                        )
                fds.append(fd)
    return fds


def _watch_hangup(fds: list[int]) -> None:
    """End the process soon after the server has hung up: FFmpeg sees it only when it writes."""

    def watch() -> None:
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLRDHUP)
        ready = poll.poll()
        if any(_get_error(fd) == errno.ETIMEDOUT for fd, _ in ready):
            _tell(f"{FAILED} TimeoutError {UNACKNOWLEDGED}")
            os._exit(1)
        # What the server said last is read by the next write; leave it the time.
        time.sleep(_LAST_WORDS_S)
        _tell(f"{FAILED} ConnectionResetError hung up")
        os._exit(1)

    threading.Thread(target=watch, name="livefuse-hangup", daemon=True).start()


def _get_error(fd: int) -> int:
    """Return the error of a socket (errno), which is then forgotten."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as sock:
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return 0


def _die_with_parent() -> None:
    """Let the kernel end us with the thread that started us: we may be stuck in FFmpeg then."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _tell(line: str) -> None:
    os.write(_OUT_FD, line.encode() + b"\n")


def run(task: Task, messages: Iterator[Packet | bytes]) -> int:
    """Connect, send, and tell; return the exit code."""
    sent = 0
    try:
        connection = _Connection(task)
        _tell(CONNECTED)
        for message in messages:
            if isinstance(message, Packet):
                connection.write(message)
                sent += 1
                if message.kind == "video":
                    _tell(f"{SENT} {sent}")
        _tell(f"{SENT} {sent}")
        connection.close()
    except (av.FFmpegError, OSError, ValueError) as error:
        # Not str(error): it holds the URL.
        reason = getattr(error, "strerror", None) or "unusable streams"
        _tell(f"{FAILED} {type(error).__name__} {reason}")
        return 1
    return 0


def main() -> int:
    """Run the task that comes on standard input."""
    _die_with_parent()
    with os.fdopen(_IN_FD, "rb", buffering=_PIPE_BYTES, closefd=False) as stream:
        messages = iter_messages(stream)
        first = next(messages, b"")
        if not isinstance(first, bytes) or not first:
            return 1
        task = msgspec.msgpack.decode(first, type=Task)
        if task.parent_pid and os.getppid() != task.parent_pid:
            return 1  # it was gone before the kernel was told to end us with it
        return run(task, messages)


if __name__ == "__main__":
    code = main()
    # Closing FFmpeg's connection again at exit may block on a stalled peer.
    os._exit(code)
