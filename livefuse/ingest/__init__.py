"""Frames in. `create_ingest` chooses the way by the URL's scheme; nothing is opened yet.

    rtsp rtsps rtmp rtmps http https hls udp tcp srt    dialled (pull)
    listen:rtmp://HOST:PORT/APP/KEY                     waited for: OBS pushes to us
    whip:                                               waited for: a browser or OBS, by WebRTC
    a path, file://PATH                                 a file
    camera:NAME                                         a camera of this machine
    test: demo:                                         made here: a test picture, a talking head
    replay:FILE                                         a recording, at the pace it came in

`hls://...` is `https://...` of a playlist. The prefix `listen:` alone tells listening from pulling.

The path of a packet through the files; base.py says what all ways in have in common:

    pull.py (srt.py) listen.py (listen_child.py) whip.py (whip_feed.py) camera.py
    (camera_v4l2.py, camera_trial.py)
                          who dials, and what to do after a loss
    source.py reader.py   an opened input, and the thread that reads it and can be left behind
    dial.py relay.py      by which protocols and through which door FFmpeg dials
    connection.py         one connection's life: opens, stalls, ends; pacer.py for bursty ones
    decode.py             packets -> frames of the pool, on the job's line (timeline.py, pace.py),
                          of the job's size and colours (canvas.py, hdr.py); sound.py beside them
    ratio.py              PyAV's time bases, which are of a type of each release
    nal.py trust.py       what packets tell before they are decoded; which pictures may be seen
                          after a loss, and when a decoder or a connection is given up
    file.py               the same for a file: no thread of its own, no second try
    synthetic.py          draws (scene/) instead of decoding
    diagnose.py           what FFmpeg said -> the error a person reads

Beside them, recordings of what comes in:

    tap.py                tells somebody else of each packet on its way into the decoder
    recording.py          writes it down: recording_file.py (recording_layout.py, matroska.py,
                          matroska_tracks.py) and the side-car, sidecar.py
    keeper.py             keeps the last seconds in memory
    playback.py           reads a recording (playback_source.py); replay.py plays it

material.py looks at a file or a stream for a while, for those who ask what marks it carries.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from livefuse.errors import ConfigError
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import AccessConfig, IngestConfig, WebRtcConfig
    from livefuse.ingest.base import Ingest
    from livefuse.ingest.stage import StageMaker
    from livefuse.ingest.tap import Tap

PULL_SCHEMES: Final = (
    "rtsp", "rtsps", "rtmp", "rtmps", "http", "https", "hls", "udp", "tcp", "srt",
)  # fmt: skip
_LOCAL_SCHEMES: Final = ("camera", "test", "demo", "listen", "whip", "replay")
SCHEMES: Final = (*PULL_SCHEMES, "file", *_LOCAL_SCHEMES)
_LISTEN: Final = "listen:"
_FILE: Final = "file:"
_REPLAY: Final = "replay:"


def create_ingest(  # noqa: PLR0913 - the last is of one scheme alone
    url: str,
    config: IngestConfig,
    clock: Clock,
    *,
    paced: bool,
    every_frame: bool,
    tap: Tap | None = None,
    webrtc: WebRtcConfig | None = None,
    access: AccessConfig | None = None,
) -> Ingest:
    """Return the way in for `url`, unopened.

    Args:
        url: Where frames come from; it may hold secrets.
        config: The section `ingest`.
        clock: What time it is.
        paced: Whether a file or made picture goes at its own speed, as for a live output.
        every_frame: Whether no frame may be lost and the ingest waits for the pipeline.
        tap: Who else is told what comes in, packet by packet (tap.py).
        webrtc: The section `webrtc`, for whip:.
        access: The section `access`: where the job may dial; none: anywhere.

    Raises:
        ConfigError: the URL cannot be used.
    """
    check_url(url)
    makers: dict[str, Callable[[], Ingest]] = {
        "camera": lambda: _create_camera(url, config, clock, tap),
        "test": lambda: _create_synthetic(url, config, clock, paced=paced, every_frame=every_frame),
        "demo": lambda: _create_synthetic(url, config, clock, paced=paced, every_frame=every_frame),
        "listen": lambda: _create_listen(url, config, clock, tap),
        "whip": lambda: _create_whip(config, webrtc, clock, tap),
        "replay": lambda: _create_replay(url, config, clock, tap),
        "file": lambda: _create_file(
            url,
            config,
            clock,
            tap,
            paced=paced,
            every_frame=every_frame,
            is_restricted=access is not None and access.restrict == "on",
        ),
    }
    make = makers.get(get_kind(url))
    ingest = make() if make is not None else _create_pull(url, config, clock, tap, access)
    return ingest if tap is None else _tap_states(ingest, tap, clock)


def is_live_url(url: str) -> bool:
    """Say whether `url` is anything but a file."""
    return get_kind(url) != "file"


def get_kind(url: str) -> str:
    """Return the scheme of `url` in lower case, one of `SCHEMES` if known; `file` for a path."""
    head, colon, _ = url.partition(":")
    scheme = head.lower()
    if colon and (scheme in _LOCAL_SCHEMES or url.startswith(f"{head}://")):
        return scheme
    return "file"


def get_file_path(url: str) -> str:
    """Return the path that a file URL or a plain path names. A colon in a path means nothing."""
    if not url.lower().startswith(_FILE):
        return url
    parts = urlsplit(url)
    host = "" if parts.netloc.lower() == "localhost" else parts.netloc
    return unquote(host + parts.path)  # file://clip.mp4 is a slip of the pen, but a plain one


def get_recording_path(url: str) -> str:
    """Return the path in `replay:PATH`."""
    return url[len(_REPLAY) :]


def check_url(url: str) -> None:
    """Check all that can be known of `url` without opening it.

    Raises:
        ConfigError: unknown scheme (the nearest is named), no host, a wrong port, an SRT URL
            without its program, a listener without app and key.
    """
    kind = get_kind(url)
    if not url or kind not in SCHEMES:
        near = difflib.get_close_matches(kind, SCHEMES, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"unknown input {redact_url(url)!r}" if url else "the input is empty",
            hint=f"{guess}choose from {', '.join(SCHEMES)}, or a path",
        )
    if kind in PULL_SCHEMES:
        _check_address(url)
    elif kind == "listen":
        _check_listen(url.removeprefix(_LISTEN))
    if kind == "srt":
        from livefuse.ingest.srt import check_srt_url  # noqa: PLC0415 - only SRT needs it

        check_srt_url(url)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        has_host = False
    # udp://:5000 and udp://@:5000 receive on all addresses.
    if not has_host and get_kind(url) != "udp":
        raise ConfigError(
            f"{redact_url(url)} has no usable host or port", hint="write SCHEME://HOST:PORT/PATH"
        )


def _check_listen(url: str) -> None:
    path = urlsplit(url).path.strip("/")
    if not url.startswith("rtmp://") or path.count("/") < 1:
        raise ConfigError(
            f"cannot listen on {redact_url(url)}",
            hint="write listen:rtmp://127.0.0.1:1935/APP/KEY",
        )
    _check_address(url)


# Each way in is imported when it is used: a file job needs no camera, a camera no RTMP.


def _create_pull(
    url: str, config: IngestConfig, clock: Clock, tap: Tap | None, access: AccessConfig | None
) -> Ingest:
    from livefuse.ingest.pull import PullIngest  # noqa: PLC0415 - as said above

    return PullIngest(url, config, clock, make_stage=_choose_stage(tap), access=access)


def _create_file(  # noqa: PLR0913 - as `create_ingest`
    url: str,
    config: IngestConfig,
    clock: Clock,
    tap: Tap | None,
    *,
    paced: bool,
    every_frame: bool,
    is_restricted: bool,
) -> Ingest:
    from livefuse.ingest.file import FileIngest  # noqa: PLC0415 - as said above

    return FileIngest(
        url,
        config,
        clock,
        paced=paced,
        every_frame=every_frame,
        make_stage=_choose_stage(tap),
        is_restricted=is_restricted,
    )


def _create_replay(url: str, config: IngestConfig, clock: Clock, tap: Tap | None) -> Ingest:
    from livefuse.ingest.replay import ReplayIngest  # noqa: PLC0415 - as said above

    return ReplayIngest(url, config, clock, make_stage=_choose_stage(tap))


def _create_listen(url: str, config: IngestConfig, clock: Clock, tap: Tap | None) -> Ingest:
    from livefuse.ingest.listen import ListenIngest  # noqa: PLC0415 - as said above

    return ListenIngest(url, config, clock, make_stage=_choose_stage(tap))


def _create_whip(
    config: IngestConfig, webrtc: WebRtcConfig | None, clock: Clock, tap: Tap | None
) -> Ingest:
    from livefuse.config import WebRtcConfig as Section  # noqa: PLC0415 - as said above
    from livefuse.ingest.whip import WhipIngest  # noqa: PLC0415 - as said above

    return WhipIngest(config, webrtc or Section(), clock, make_stage=_choose_stage(tap))


def _create_camera(url: str, config: IngestConfig, clock: Clock, tap: Tap | None) -> Ingest:
    from livefuse.ingest.camera import CameraIngest  # noqa: PLC0415 - as said above

    return CameraIngest(url, config, clock, make_stage=_choose_stage(tap))


def _create_synthetic(
    url: str, config: IngestConfig, clock: Clock, *, paced: bool, every_frame: bool
) -> Ingest:
    from livefuse.ingest.synthetic import SyntheticIngest  # noqa: PLC0415 - as said above

    return SyntheticIngest(url, config, clock, paced=paced, every_frame=every_frame)


def _choose_stage(tap: Tap | None) -> StageMaker:
    if tap is None:
        from livefuse.ingest.decode import DecodeStage  # noqa: PLC0415 - as said above

        return DecodeStage
    from livefuse.ingest.tap import tap_stage  # noqa: PLC0415 - for jobs that are recorded

    return tap_stage(tap)


def _tap_states(ingest: Ingest, tap: Tap, clock: Clock) -> Ingest:
    from livefuse.ingest.tap import TappedIngest  # noqa: PLC0415 - for jobs that are recorded

    return TappedIngest(ingest, tap, clock)
