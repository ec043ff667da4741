"""A file or a stream that is only looked at: its luma and its keyframes as they came, for a while.

Not a job's way in: nothing is made to fit, dialled again or kept. Used by `livefuse mark read`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import av.error
import cv2
import msgspec
import numpy as np

from livefuse.clock import NS_PER_S
from livefuse.errors import ConfigError, IngestError, IngestUnsupportedError
from livefuse.ingest import PULL_SCHEMES, check_url, get_file_path, get_kind
from livefuse.ingest.diagnose import FOREIGN_ERRORS, create_timeout_error, diagnose_open_error
from livefuse.ingest.dial import Dial, build_whitelists
from livefuse.ingest.source import open_source
from livefuse.ingest.srt import start_srt
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from fractions import Fraction

    from av.packet import Packet
    from av.stream import Stream
    from av.video.frame import VideoFrame
    from numpy.typing import NDArray

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.source import Source

    Timed = tuple[float, NDArray[np.uint8]]

_LOOKED_AT: Final = (*PULL_SCHEMES, "file")
_SPARE_S: Final = 5.0  # a live stream may take so much longer than its pictures last
_LUMA_FIRST: Final = frozenset({"yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "nv12"})
_MAX_METADATA: Final = 64
_MAX_TEXT: Final = 400
_MAX_ASPECT: Final = 4


class Glimpse(NamedTuple):
    """One packet of pictures: `unit` is its bytes if it is an H.264 keyframe, else empty.

    `lumas` are the pictures that came out of the decoder with it, as (seconds since the first,
    luma uint8 (height, width)); they may belong to packets before.
    """

    unit: bytes
    lumas: list[Timed]


class Material:
    """What is looked at. One thread, that of `read`.

    Args:
        url: a file, or a stream that can be dialled; it may hold secrets.
        config: the section `ingest`.
        clock: what time it is.

    Raises:
        ConfigError: it is neither of these.
    """

    def __init__(self, url: str, config: IngestConfig, clock: Clock) -> None:
        check_url(url)
        self._kind = get_kind(url)
        if self._kind not in _LOOKED_AT:
            raise ConfigError(
                f"{redact_url(url)} is neither a file nor a stream that can be dialled",
                hint=f"name a file, or a URL of {', '.join(PULL_SCHEMES)}",
            )
        self._url, self._clock = url, clock
        self._config = msgspec.structs.replace(config, audio=False)
        self.metadata: dict[str, str] = {}
        """What the container says of itself, known once `read` has yielded. Bounded, any text."""
        self._first_pts: float | None = None
        self._last_s = 0.0

    def read(self, seconds: float) -> Generator[Glimpse]:
        """Yield what is in the first `seconds` of the pictures; blocks while none come.

        Raises:
            IngestError: it cannot be opened, or holds no picture that can be decoded.
        """
        started_ns = self._clock.now_ns()
        with ExitStack() as stack:
            source = self._open(stack, started_ns)
            yield from self._read(source, seconds, started_ns)

    def _read(self, source: Source, seconds: float, started_ns: int) -> Iterator[Glimpse]:
        is_live = self._kind != "file" and not source.is_finite
        limit_ns = started_ns + round((seconds + _SPARE_S) * NS_PER_S) if is_live else None
        has_any = False
        try:
            for _, packet in source.packets:
                glimpse = self._look(source, packet)
                has_any = has_any or bool(glimpse.lumas)
                yield glimpse
                if self._last_s >= seconds or (limit_ns and self._clock.now_ns() > limit_ns):
                    break
            else:
                yield Glimpse(b"", self._take_lumas(_decode(source, None), source))
        except FOREIGN_ERRORS as error:
            # What is left of it cannot be read; what was read counts.
            if not has_any:
                raise self._explain(error, started_ns) from None
        has_any = has_any or self._first_pts is not None
        if not has_any and limit_ns is not None:
            raise create_timeout_error(self._url, (self._clock.now_ns() - started_ns) / NS_PER_S)
        if not has_any:
            raise IngestUnsupportedError(
                f"{redact_url(self._url)} holds no picture that can be decoded",
                hint="check that the file is complete",
            )

    def _look(self, source: Source, packet: Packet[Stream]) -> Glimpse:
        if not self.metadata:
            self.metadata = _read_metadata(packet.stream)
        is_keyframe = packet.is_keyframe and source.decoder_name.startswith("h264")
        unit = bytes(cast("bytes", packet)) if is_keyframe else b""
        return Glimpse(unit, self._take_lumas(_decode(source, packet), source))

    def _take_lumas(self, frames: list[VideoFrame], source: Source) -> list[Timed]:
        return [(self._tell_s(frame), _get_luma(frame, source.aspect)) for frame in frames]

    def _tell_s(self, frame: VideoFrame) -> float:
        """Return when the picture is shown; one without a stamp comes right after the one before.

        So it does where a stream begins anew.
        """
        base = frame.time_base
        at_s = float(frame.pts * base) if frame.pts is not None and base else None
        if self._first_pts is None:
            self._first_pts = at_s or 0.0
        passed_s = at_s - self._first_pts if at_s is not None else 0.0
        if not self._last_s <= passed_s <= self._last_s + _SPARE_S:
            passed_s = self._last_s + 1 / 30
        self._last_s = passed_s
        return passed_s

    def _open(self, stack: ExitStack, started_ns: int) -> Source:
        try:
            source = open_source(
                self._choose_dial(stack),
                self._config,
                is_live=self._kind != "file",
                url=self._url,
            )
        except IngestError:
            raise
        except FOREIGN_ERRORS as error:
            raise self._explain(error, started_ns) from None
        stack.callback(source.close)
        return source

    def _choose_dial(self, stack: ExitStack) -> object:
        target = self._choose_target(stack)
        if not isinstance(target, str):
            return target
        return Dial(target, build_whitelists(self._kind, is_restricted=False))

    def _choose_target(self, stack: ExitStack) -> object:
        if self._kind == "file":
            return f"file:{get_file_path(self._url)}"
        if self._kind == "srt":
            child = start_srt(self._url)
            stack.callback(child.close)
            return child.stdout
        scheme, _, rest = self._url.partition("://")
        return f"{'https' if self._kind == 'hls' else scheme.lower()}://{rest}"

    def _explain(self, error: Exception, started_ns: int) -> IngestError:
        elapsed_s = (self._clock.now_ns() - started_ns) / NS_PER_S
        return diagnose_open_error(error, self._url, self._config, elapsed_s)


def _decode(source: Source, packet: Packet[Stream] | None) -> list[VideoFrame]:
    """Return the pictures that come out, none of what cannot be decoded."""
    try:
        return list(source.decoder.decode(packet))
    except av.error.FFmpegError:
        return []


def _get_luma(frame: VideoFrame, aspect: Fraction | None) -> NDArray[np.uint8]:
    """Return the luma of the picture, its pixels made square."""
    if frame.format.name not in _LUMA_FIRST:
        frame = frame.reformat(format="yuv420p")
    plane = frame.planes[0]
    lines = np.frombuffer(cast("memoryview", plane), np.uint8).reshape(-1, plane.line_size)
    luma = lines[: plane.height, : plane.width]
    if aspect is None or aspect == 1 or not 1 / _MAX_ASPECT < aspect < _MAX_ASPECT:
        return luma.copy()
    size = (max(round(plane.width * aspect), 1), plane.height)
    return np.asarray(cv2.resize(luma, size, interpolation=cv2.INTER_AREA), np.uint8)


def _read_metadata(stream: Stream) -> dict[str, str]:
    """Return what container and stream say of themselves, within bounds."""
    container = stream.container
    pairs = [*container.metadata.items(), *stream.metadata.items()]
    return {str(key)[:_MAX_TEXT]: str(text)[:_MAX_TEXT] for key, text in pairs[:_MAX_METADATA]}
