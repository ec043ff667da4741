"""Packets into files: FLV and TS by our own writers, MP4 and Matroska by FFmpeg, one interface.

FFmpeg is used without encoders: a stream is copied from an empty template, then told what it is
(PyAV's `add_mux_stream` cannot carry an AudioSpecificConfig).
"""

from __future__ import annotations

import io
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

import av

from livefuse.errors import PublishError
from livefuse.frame import TIME_BASE_HZ
from livefuse.publish.container_mark import find_container_mark
from livefuse.publish.flv_writer import FlvWriter
from livefuse.publish.late_mark import LateMark
from livefuse.publish.timeline import Timeline
from livefuse.publish.ts_writer import TsWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.audio.codeccontext import AudioCodecContext
    from av.container.output import OutputContainer
    from av.stream import Stream
    from av.video.codeccontext import VideoCodecContext

    from livefuse.packet import AudioInfo, Kind, Packet, StreamsInfo, VideoInfo

# BT.709 and BT.601 (SMPTE 170M): the same numbers for primaries, transfer and matrix (H.273).
COLOUR_CODES: Final = {"bt709": 1, "bt601": 6}
RANGE_CODES: Final = {False: 1, True: 2}
_INTERLEAVE_US: Final = "100000"
_FRAGMENT_US: Final = "500000"
_MAX_WAITING: Final = 64
"""Sound that comes before the first picture: more than a second of it."""
# One empty ADTS frame: enough for FFmpeg to make an AAC stream of it.
_EMPTY_ADTS: Final = b"\xff\xf1\x4c\x80\x01\x1f\xfc\x00"


class PacketWriter(Protocol):
    """Turns packets into bytes at once; nothing waits for another stream."""

    def build_header(self) -> bytes:
        """Return what comes before the first packet."""
        ...

    def write(self, packet: Packet) -> bytes:
        """Return `packet` as bytes, perhaps none."""
        ...


class FileMuxer(Protocol):
    """Writes packets to an open file. One thread. OSError passes through."""

    def write(self, packet: Packet) -> None:
        """Write a packet."""
        ...

    def close(self) -> None:
        """Write what belongs at the end; the file itself stays open."""
        ...


class _Container(NamedTuple):
    format: str
    options: dict[str, str]
    ticks_per_unit: int


# Matroska counts in ms. Fragments and clusters of half a second: what a killed writer loses;
# `delay_moov` lets the index say at which time each stream really starts.
_CONTAINERS: Final = {
    ".mp4": _Container(
        "mp4",
        {
            "movflags": "frag_keyframe+empty_moov+default_base_moof+delay_moov+use_metadata_tags",
            "frag_duration": _FRAGMENT_US,
            "flush_packets": "1",
        },
        1,
    ),
    ".mkv": _Container("matroska", {"cluster_time_limit": "500", "flush_packets": "1"}, 90),
}
_WRITERS: Final[dict[str, Callable[[StreamsInfo], PacketWriter]]] = {
    ".flv": FlvWriter,
    ".ts": TsWriter,
}


def create_packet_writer(suffix: str, streams: StreamsInfo) -> PacketWriter:
    """Return the writer for `.flv` or `.ts`."""
    return _WRITERS[suffix](streams)


def open_file_muxer(suffix: str, file: io.FileIO, streams: StreamsInfo) -> FileMuxer:
    """Return a muxer for one of `base.FILE_SUFFIXES` that writes to `file` (unbuffered, seekable).

    Raises:
        PublishError: the streams do not fit the container.
        OSError: the file cannot be written.
    """
    if suffix in _WRITERS:
        return _WriterMuxer(create_packet_writer(suffix, streams), file)
    return _ContainerMuxer(_CONTAINERS[suffix], file, streams)


class _WriterMuxer:
    def __init__(self, writer: PacketWriter, file: io.FileIO) -> None:
        self._writer = writer
        self._file = file
        file.write(writer.build_header())

    def write(self, packet: Packet) -> None:
        self._file.write(self._writer.write(packet))

    def close(self) -> None:
        self._file.flush()


class _ContainerMuxer:
    def __init__(self, container: _Container, file: io.FileIO, streams: StreamsInfo) -> None:
        self._ticks_per_unit = container.ticks_per_unit
        self._timeline = Timeline(container.ticks_per_unit)
        options = {**container.options, "max_interleave_delta": _INTERLEAVE_US}
        self._late = LateMark(file) if container.format == "mp4" else None
        self._container = av.open(self._late or file, "w", format=container.format, options=options)
        self._streams: dict[Kind, Stream] = {}
        if streams.video is not None:
            self._streams["video"] = add_video(self._container, streams.video)
        if streams.audio is not None:
            self._streams["audio"] = add_audio(self._container, streams.audio)
        self._format = container.format
        # Until the first picture says what the header is to say of it.
        self._waiting: list[Packet] | None = []

    def write(self, packet: Packet) -> None:
        if self._waiting is not None:
            self._waiting.append(packet)
            if packet.kind == "video" or len(self._waiting) >= _MAX_WAITING:
                self._begin()
        else:
            if self._late is not None and (mark := find_container_mark(packet)) is not None:
                self._late.reveal(mark)
                self._late = None
            self._put(packet)

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        mark = next(filter(None, map(find_container_mark, waiting)), None)
        if mark is not None:
            self._late = None  # it is said from the beginning
            self._container.metadata.update(mark.build_fields())
        elif self._late is not None:
            self._container.metadata.update(self._late.hide())
        try:
            self._container.start_encoding()
        except av.FFmpegError as error:
            _raise_os_error(error)
            raise PublishError(f"the streams do not fit {self._format}: {error}") from None
        for packet in waiting:
            self._put(packet)

    def _put(self, packet: Packet) -> None:
        dts = self._timeline.place(packet.kind, packet.dts)
        stream = self._streams.get(packet.kind)
        if dts is None or stream is None:
            return
        wrapped = av.Packet(packet.data)
        wrapped.stream = stream
        wrapped.time_base = Fraction(1, TIME_BASE_HZ)
        wrapped.dts = dts * self._ticks_per_unit
        wrapped.pts = wrapped.dts + max(packet.pts - packet.dts, 0)
        wrapped.duration = max(packet.duration, 0)
        wrapped.is_keyframe = packet.is_keyframe
        try:
            self._container.mux_one(wrapped)
        except av.FFmpegError as error:
            _raise_os_error(error)
            raise PublishError(f"a packet could not be written: {error.strerror}") from None

    def close(self) -> None:
        if self._waiting:
            self._begin()
        try:
            self._container.close()
        except av.FFmpegError as error:
            _raise_os_error(error)
            raise PublishError(f"the file could not be finished: {error.strerror}") from None


def _raise_os_error(error: av.FFmpegError) -> None:
    """Pass on as OSError what the file system said."""
    if isinstance(error, OSError) and error.errno is not None:
        raise OSError(error.errno, error.strerror) from None


def add_video(container: OutputContainer, info: VideoInfo) -> Stream:
    """Add a stream for H.264 packets that are encoded already."""
    stream = _add_from_template(container, "h264", b"")
    context = cast("VideoCodecContext", stream.codec_context)
    context.extradata = info.extradata
    context.width, context.height = info.width, info.height
    context.pix_fmt = "yuv420p"
    context.framerate = Fraction(info.fps_num, info.fps_den)
    code = COLOUR_CODES.get(info.matrix, 2)
    context.colorspace = context.color_primaries = context.color_trc = code
    context.color_range = RANGE_CODES[info.full_range]
    return stream


def add_audio(container: OutputContainer, info: AudioInfo) -> Stream:
    """Add a stream for AAC packets that are encoded already."""
    stream = _add_from_template(container, "aac", _EMPTY_ADTS)
    context = cast("AudioCodecContext", stream.codec_context)
    context.extradata = info.extradata
    context.sample_rate = info.sample_rate_hz
    context.layout = "mono" if info.channels == 1 else "stereo"
    return stream


def _add_from_template(container: OutputContainer, codec: str, empty: bytes) -> Stream:
    with av.open(io.BytesIO(empty), format=codec) as template:
        stream: Stream = container.add_stream_from_template(template.streams[0], opaque=True)
    stream.time_base = Fraction(1, TIME_BASE_HZ)
    return stream
