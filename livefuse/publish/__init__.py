"""Frames out: one encode, then RTMP, HTTP-FLV, WebRTC, files, a virtual camera.

The path of a frame through the files; base.py says what all ways out have in common:

    luma/, mark.py        before the encode: the mark that nobody sees, the label that people see;
                          mark_windows.py, label_search.py find them again
    encode.py, audio.py   a frame -> H.264 packets, sound -> AAC packets, once for all outputs
    sei.py                a signed record on each keyframe; container_mark.py says the same in words
    sample_line.py        where decoded sound belongs, before it is encoded again
    sound_line.py         what is missing of the sound is silence (silence.py)
    fanout.py             each packet to every output; keyframes.py joins their wishes for one,
                          start.py says who must be there, delay.py makes the delay constant
    rtmp.py               rtmp_state.py (queue) -> rtmp_session.py (one connection) -> rtmp_link.py
                          (pipe) -> rtmp_child.py; rtmp_failure.py, backoff.py when it fails;
                          rtmp_dial.py says where it may dial
    flv.py                the stream for players, FLV or MPEG-TS
    whep.py               the stream for browsers by WebRTC; whep_viewer.py is one of them, opus.py
                          makes its sound
    record.py             files: record_file.py opens them, mux.py muxes, recording_signer.py has
                          them signed at their end, by c2pa_child.py; c2pa_read.py reads that
    virtualcam.py         pictures before the encode
    flv_writer.py ts_writer.py h264.py gop_queue.py timeline.py state_cell.py    what these share

This module stays light, the RTMP child passes through it: what a target needs is loaded with it.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from livefuse.errors import ConfigError
from livefuse.publish.base import FILE_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.publish.base import FrameOutput, Output
    from livefuse.publish.recording_signer import RecordingSigner

    Factory = Callable[[str, Config, Clock, Callable[[], None]], Output | FrameOutput]


def create_output(
    url: str,
    config: Config,
    clock: Clock,
    request_keyframe: Callable[[], None],
    *,
    lossless: bool,
    signer: RecordingSigner | None = None,
) -> Output | FrameOutput:
    """Return the output for `url`, checked, not yet opened.

    With `lossless` a file makes its sender wait instead of dropping; `signer` signs it at its end.

    Raises:
        ConfigError: nothing can be sent there; the choices are named.
        PublishConnectError: the file cannot be written.
    """
    path = find_file_path(url)
    if path is not None:
        from livefuse.publish.record import FileOutput  # noqa: PLC0415 - loads FFmpeg

        return FileOutput(path, config.record, lossless=lossless, clock=clock, signer=signer)
    scheme = url.partition(":")[0].lower()
    factory = _FACTORIES.get(scheme)
    if factory is None:
        raise _build_unknown_error(scheme, is_path=url.lower().endswith(FILE_SUFFIXES))
    return factory(url, config, clock, request_keyframe)


def is_file_url(url: str) -> bool:
    """Return whether `url` means a file: a path or file:///path."""
    scheme, colon, _ = url.partition(":")
    return not colon or "/" in scheme or "." in scheme or scheme.lower() == "file"


def find_file_path(url: str) -> Path | None:
    """Return the path that a target means, None when it is no file."""
    if not is_file_url(url):
        return None
    path = unquote(urlsplit(url).path) if url.lower().startswith("file:") else url
    return Path(path).expanduser()


def _create_rtmp(
    url: str, config: Config, clock: Clock, request_keyframe: Callable[[], None]
) -> Output:
    from livefuse.publish.rtmp import RtmpOutput  # noqa: PLC0415 - not for the child

    return RtmpOutput(url, config.rtmp, clock, request_keyframe, config.access)


def _create_virtual_camera(
    url: str, _config: Config, clock: Clock, _request_keyframe: Callable[[], None]
) -> FrameOutput:
    from livefuse.publish.virtualcam import VirtualCameraOutput  # noqa: PLC0415 - loads numpy

    return VirtualCameraOutput(url.partition(":")[2].removeprefix("//"), clock=clock)


_FACTORIES: Final[dict[str, Factory]] = {
    "rtmp": _create_rtmp,
    "rtmps": _create_rtmp,
    "virtualcam": _create_virtual_camera,
}


def _build_unknown_error(scheme: str, *, is_path: bool) -> ConfigError:
    near = difflib.get_close_matches(scheme, _FACTORIES, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}:? " if near else ""
    if scheme in ("http", "https"):
        guess = "players fetch the stream from livefuse itself, see http.port; "
    elif is_path and not near:
        guess = "write ./ before the name of a file that has a colon; "
    schemes = ", ".join(f"{name}:" for name in _FACTORIES)
    return ConfigError(
        # Not the rest of it: in what was meant for rtmp it may hold a stream key.
        f"cannot publish to {scheme}:..., an unknown scheme",
        hint=f"{guess}use {schemes} or a file that ends in {', '.join(FILE_SUFFIXES)}",
    )
