"""The child process that listens for one RTMP push (`python -m livefuse.ingest.listen_child`).

The order, with the URL, comes by standard input when it is time to listen, as the process list is
for all to see; the end of standard input means that the parent is gone. What goes to standard
output, in the form of `livefuse.packet`: one `Hello`, then packets (and a `Renewal` before one)
until the push ends.

FFmpeg's listener lets any app and stream key in and merely logs that they are others than expected.
This process reads that log and ends such a push before anything of it is passed on.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from typing import IO, TYPE_CHECKING, Final

import av
import av.error
import av.logging
import msgspec

from livefuse.ingest.source import describe_sound, read_fps, read_new_extradata
from livefuse.ingest.timeline import to_ticks
from livefuse.packet import (
    AudioInfo,
    Packet,
    StreamsInfo,
    VideoInfo,
    encode_info,
    encode_packet,
    iter_messages,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from av.container import InputContainer

NO_STAMP: Final = -(1 << 62)
"""Stands for a missing time stamp on the pipe."""
_PATIENCE_S: Final = 30
"""How long FFmpeg waits for a push, and then for its streams, before it listens anew."""
_REFUSALS: Final = ("Unexpected stream", "App field don't match up")
_FPS_DEN: Final = 1000
_PIPE_BYTES: Final = 4096
_BIND_ERRORS: Final = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES})


class Order(msgspec.Struct, frozen=True):
    """What the parent tells this process."""

    url: str
    read_timeout_ms: int
    options: dict[str, str]


class Hello(msgspec.Struct, frozen=True):
    """What the parent is told first: the streams of a push, or why there is none.

    `fault` is empty, `key` (another app or key), `no_video`, `gone`, or why it cannot be bound.
    """

    streams: StreamsInfo | None = None
    fault: str = ""


class Renewal(msgspec.Struct, frozen=True):
    """What comes between two packets when the pictures' parameter sets are others from here on."""

    extradata: bytes


def main() -> int:
    """Take one push and write it to standard output."""
    first = next(iter_messages(sys.stdin.buffer), b"")
    if not isinstance(first, bytes) or not first:
        return 0  # no order has come: nobody is there any more
    order = msgspec.msgpack.decode(first, type=Order)
    threading.Thread(target=_end_with_parent, name="livefuse-parent", daemon=True).start()
    hello, source = accept_push(order)
    out = sys.stdout.buffer
    try:
        out.write(encode_info(hello))
        out.flush()
        if source is not None:
            _forward(source, out)
    except (BrokenPipeError, av.error.FFmpegError):
        return 1  # Either end is gone; the parent sees it by the end of the pipe.
    return 0


def accept_push(order: Order) -> tuple[Hello, InputContainer | None]:
    """Wait until somebody pushes, and look at who it is."""
    # Nothing is printed: the capture takes the messages, which hold keys.
    av.logging.set_level(av.logging.WARNING)
    try:
        with av.logging.Capture(local=False) as logs:
            return _accept(order, logs)
    finally:
        av.logging.set_level(None)


def _accept(
    order: Order, logs: Sequence[tuple[int, str, str]]
) -> tuple[Hello, InputContainer | None]:
    source: InputContainer | None = None
    while source is None:
        try:
            source = av.open(
                order.url,
                mode="r",
                options=order.options,
                timeout=(_PATIENCE_S, order.read_timeout_ms / 1000),
            )
        except av.error.ExitError:
            continue
        except av.error.FFmpegError as error:
            return Hello(fault=_name_fault(error, logs)), None
    video = source.streams.best("video")
    if is_refused(logs) or video is None:
        source.close()
        return Hello(fault="key" if is_refused(logs) else "no_video"), None
    return Hello(_describe(source)), source


def _name_fault(error: av.error.FFmpegError, logs: Sequence[tuple[int, str, str]]) -> str:
    if is_refused(logs):
        return "key"
    return error.strerror or "" if error.errno in _BIND_ERRORS else "gone"


def is_refused(logs: Sequence[tuple[int, str, str]]) -> bool:
    """Say whether FFmpeg complained about the app or the key of who pushes."""
    return any(message.startswith(_REFUSALS) for _, _, message in logs)


def _describe(source: InputContainer) -> StreamsInfo:
    video = source.streams.video[0]
    codec = video.codec_context
    fps = read_fps(video.average_rate, video.guessed_rate)
    info = VideoInfo(
        codec=codec.codec.canonical_name if codec is not None else "",
        width=video.width,
        height=video.height,
        fps_num=round(fps * _FPS_DEN),
        fps_den=_FPS_DEN,
        extradata=(codec.extradata or b"") if codec is not None else b"",
    )
    audio: AudioInfo | None = None
    if source.streams.audio:
        audio = describe_sound(source.streams.audio[0].codec_context)
    return StreamsInfo(info, audio)


def _forward(source: InputContainer, out: IO[bytes]) -> None:
    chosen = [*source.streams.video[:1], *source.streams.audio[:1]]
    for packet in source.demux(chosen):
        base = packet.time_base
        if not packet.size or not base:
            continue
        pts, dts = (
            to_ticks(stamp, base) if stamp is not None else NO_STAMP
            for stamp in (packet.pts, packet.dts)
        )
        is_video = packet.stream_index == chosen[0].index
        extradata = read_new_extradata(packet) if is_video else None
        if extradata is not None:
            out.write(encode_info(Renewal(extradata)))
        message = Packet(
            kind="video" if is_video else "audio",
            data=bytes(packet),
            pts=pts,
            dts=dts,
            duration=to_ticks(packet.duration or 0, base),
            is_keyframe=packet.is_keyframe,
        )
        out.write(encode_packet(message))
        out.flush()


def _end_with_parent() -> None:
    # Unbuffered: a lock on standard input would stop this process from ending.
    while os.read(0, _PIPE_BYTES):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
