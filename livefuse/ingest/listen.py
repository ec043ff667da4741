"""Be the RTMP server that OBS pushes to: `listen:rtmp://127.0.0.1:1935/live/key`.

FFmpeg's listener holds the thread it runs in until somebody comes, so it lives in a child process,
`listen_child`, which takes one push and ends; the next push gets another child, which has been
started meanwhile: OBS does not try again by itself where its first try finds nobody listening. Only
the host of the URL is bound, and only its app and stream key are let in.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

import av
import msgspec
from av.codec.context import CodecContext

from livefuse.clock import NS_PER_MS
from livefuse.errors import (
    IngestAuthError,
    IngestConnectError,
    IngestError,
    IngestUnsupportedError,
)
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.child import ReadingChild
from livefuse.ingest.connection import Connection
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.diagnose import free_error
from livefuse.ingest.dial import build_whitelists
from livefuse.ingest.listen_child import NO_STAMP, Hello, Order, Renewal
from livefuse.ingest.reader import Abandoned, Reader
from livefuse.ingest.source import NewExtradata, Source, build_options, set_up_decoder
from livefuse.packet import Packet, encode_info, iter_messages
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from av.stream import Stream
    from av.video.codeccontext import VideoCodecContext

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.stage import Stage, StageMaker
    from livefuse.packet import AudioInfo, VideoInfo

PREFIX: Final = "listen:"
_TIME_BASE: Final = Fraction(1, TIME_BASE_HZ)
_RTMP_PORT: Final = 1935
_RETRY_NS: Final = 1000 * NS_PER_MS


class ListenIngest:
    """Waits for a push, takes it, waits for the next, until stopped."""

    def __init__(
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        *,
        make_stage: StageMaker = DecodeStage,
    ) -> None:
        self._url = url.removeprefix(PREFIX)
        self._make_stage = make_stage
        self._config = config
        self._clock = clock
        self._stopping = threading.Event()
        self._reader: Reader | None = None
        self._abandoned = Abandoned()
        self._lock = threading.Lock()
        self._next: _ListenChild | None = None

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` from one push after the other until stopped.

        Raises:
            IngestConnectError: the address cannot be listened on.
        """
        check_address(self._url)
        stage = self._make_stage(sink, self._config, self._clock, self._stopping, is_live=True)
        sink.on_state("connecting")
        while not self._stopping.is_set():
            before = stage.frames
            error = self._play(sink, stage)
            if self._stopping.is_set():
                break
            if stage.frames > before:
                sink.count("reconnect")
            else:
                self._clock.wait(self._stopping, _RETRY_NS)
            sink.on_state("lost" if stage.has_media else "connecting", error)
        child = self._take_next()
        if child is not None:
            child.close()
        sink.on_state("ended")

    def stop(self) -> None:
        """Ask `run` to return; from any thread, returns at once."""
        self._stopping.set()
        reader = self._reader
        if reader is not None:
            reader.interrupt()

    def _play(self, sink: IngestSink, stage: Stage) -> IngestError | None:
        child = self._take_next() or _ListenChild(self._url, self._config)
        child.on_push = self._prepare_next
        reader = self._reader = Reader(child.open_source, self._clock, cancel=child.stop)
        try:
            link = Connection(self._url, self._config, self._clock, self._stopping, sink, stage)
            link.run(reader, waits_for_ever=True)
        except IngestError as error:
            return free_error(error)
        finally:
            self._abandoned.close(reader, sink)
        return None

    def _prepare_next(self) -> None:
        """Start the child of the next push; in the reader's thread."""
        with self._lock:
            if self._next is None and not self._stopping.is_set():
                self._next = _ListenChild(self._url, self._config)

    def _take_next(self) -> _ListenChild | None:
        with self._lock:
            child, self._next = self._next, None
        if child is not None and not child.is_running:
            child.close()
            return None
        return child


class _ListenChild:
    """The process that listens, once it is told to. `on_push` is called when somebody pushes."""

    def __init__(self, url: str, config: IngestConfig) -> None:
        """Start it; it waits for `open_source`."""
        self.on_push: Callable[[], None] = _do_nothing
        self._url = url
        self._config = config
        options = build_options("rtmp", config, is_live=True) | {"listen": "1"}
        options |= build_whitelists("rtmp", is_restricted=True)
        self._order = Order(url, config.read_timeout_ms, options)
        self._child = ReadingChild(
            [sys.executable, "-m", "livefuse.ingest.listen_child"],
            takes_order=True,
            environment=os.environ | {"PYTHONPATH": _find_import_path()},
        )
        self.stop, self.close = self._child.stop, self._child.close

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._child.is_running

    def open_source(self) -> Source:
        """Listen, and return the push as a source; blocks until somebody pushes.

        Raises:
            IngestError: the address is taken, the key is another one, or there is no video.
        """
        self._child.tell(encode_info(self._order))
        messages = iter_messages(self._child.stdout)
        first = next(messages, b"")
        try:
            hello = msgspec.msgpack.decode(cast("bytes", first), type=Hello)
        except (msgspec.DecodeError, msgspec.ValidationError, TypeError):
            hello = Hello(fault="gone")
        if hello.streams is None or hello.streams.video is None:
            self.close()
            raise describe_fault(hello.fault, self._url)
        self.on_push()
        try:
            return self._create_source(hello.streams.video, hello.streams.audio, messages)
        except BaseException:
            self.close()
            raise

    def _create_source(
        self, video: VideoInfo, audio: AudioInfo | None, messages: Iterator[Packet | bytes]
    ) -> Source:
        decoder = cast("VideoCodecContext", CodecContext.create(video.codec, "r"))
        if video.extradata:
            decoder.extradata = video.extradata
        set_up_decoder(decoder, self._config, is_live=True)
        return Source(
            url=self._url,
            decoder=decoder,
            time_base=_TIME_BASE,
            audio=audio if self._config.audio else None,
            fps=video.fps_num / video.fps_den,
            aspect=None,
            decoder_name=decoder.name,
            packets=_iter_packets(messages),
            close=self.close,
        )


def check_address(url: str) -> None:
    """Bind the address of `url` for a moment, to say what is wrong with it in words.

    Nobody is listened to: who dials in that moment would be hung up on.

    Raises:
        IngestConnectError: no such host, not an address of this machine, or the port is taken.
    """
    parts = urlsplit(url)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((parts.hostname or "", parts.port or _RTMP_PORT))
    except OSError as error:
        raise describe_fault(error.strerror or "no such address", url) from None


def describe_fault(fault: str, url: str) -> IngestError:
    """Return the error for what the child said."""
    shown = redact_url(url)
    if fault == "key":
        return IngestAuthError(
            f"a push to {shown} came with another app or stream key and was refused",
            hint="use the server and stream key of the listen: URL in OBS",
        )
    if fault == "no_video":
        return IngestUnsupportedError(
            f"a push to {shown} had no video", hint="add a video source in OBS"
        )
    if fault and fault != "gone":
        return IngestConnectError(
            f"cannot listen on {shown} ({fault})",
            hint="choose a free port and an address of this machine",
        )
    return IngestError(
        f"a push to {shown} ended before its first picture", hint="start streaming again in OBS"
    )


def _find_import_path() -> str:
    """Return a PYTHONPATH by which a child finds this very package, installed or not."""
    own = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([own, inherited]) if inherited else own


def _iter_packets(
    messages: Iterator[Packet | bytes],
) -> Iterator[tuple[bool, av.Packet[Stream]]]:
    """Yield PyAV packets for the decoder, and whether they are of the pictures."""
    renewed: NewExtradata | None = None
    for message in messages:
        if not isinstance(message, Packet):
            renewed = NewExtradata(msgspec.msgpack.decode(message, type=Renewal).extradata)
        else:
            packet: av.Packet[Stream] = av.Packet(message.data)
            packet.time_base = _TIME_BASE
            packet.pts = None if message.pts == NO_STAMP else message.pts
            packet.dts = None if message.dts == NO_STAMP else message.dts
            packet.duration = message.duration
            packet.is_keyframe = message.is_keyframe
            if message.kind == "video":
                packet.opaque, renewed = renewed, None
            yield message.kind == "video", packet


def _do_nothing() -> None:
    """Nobody wants to know."""
