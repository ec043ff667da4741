"""A connection of a recording, as an opened source: its decoder made anew, nothing to read from."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

import av
import av.error
from av.codec.context import CodecContext

from livefuse.errors import IngestUnsupportedError
from livefuse.ingest.matroska_tracks import NAL_CODECS
from livefuse.ingest.source import Source, set_up_decoder

if TYPE_CHECKING:
    from pathlib import Path

    from av.video.codeccontext import VideoCodecContext

    from livefuse.config import IngestConfig
    from livefuse.ingest.sidecar import Opened, VideoParameters


def create_recorded_source(line: Opened, path: Path, config: IngestConfig) -> Source:
    """Return a connection of the recording at `path`: a new decoder, told what the first was.

    Raises:
        IngestUnsupportedError: this FFmpeg has no such decoder.
    """
    video = line.video
    decoder = _create_decoder(video.decoder, video.codec, path)
    try:
        _tell(decoder, video)
    except (av.error.FFmpegError, ValueError, OverflowError):
        raise _explain(path, f"pictures of {video.width}x{video.height} {video.pix_fmt}") from None
    set_up_decoder(decoder, config, is_live=True)
    return Source(
        url=str(path),
        decoder=decoder,
        time_base=Fraction(*video.base) if video.base is not None else None,
        audio=line.audio if config.audio else None,
        fps=video.fps,
        aspect=Fraction(*video.aspect) if video.aspect is not None else None,
        decoder_name=decoder.name,
        packets=iter(()),
        close=_do_nothing,
        is_finite=line.is_finite,
        opened_ns=line.at,
    )


def _create_decoder(name: str, codec: str, path: Path) -> VideoCodecContext:
    for choice in (name, codec):
        try:
            return cast("VideoCodecContext", CodecContext.create(choice, "r"))
        except (av.codec.codec.UnknownCodecError, ValueError):
            continue
    raise _explain(path, codec)


def _tell(decoder: VideoCodecContext, video: VideoParameters) -> None:
    if video.extradata:
        decoder.extradata = video.extradata
    if video.width and video.height:
        decoder.width, decoder.height = video.width, video.height
    if video.pix_fmt and video.codec not in NAL_CODECS:  # those say it themselves
        decoder.pix_fmt = video.pix_fmt
    if video.reorder_depth:
        decoder.reorder_depth = video.reorder_depth


def _explain(path: Path, what: str) -> IngestUnsupportedError:
    return IngestUnsupportedError(
        f"the recording {path} holds {what}, which cannot be decoded here",
        hint="replay it on the machine that recorded it",
    )


def _do_nothing() -> None:
    """Close what was never open."""
