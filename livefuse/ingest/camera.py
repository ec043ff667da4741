"""`camera:NAME`: a camera of this machine by its stable name, through FFmpeg's v4l2.

A camera that gives black pictures, hardly any, or none in one pixel format is tried in the next
(case C56). One that was unplugged is waited for, wherever it comes back.
"""

from __future__ import annotations

import errno
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote

import av
import av.error

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import (
    IngestAuthError,
    IngestConnectError,
    IngestError,
    IngestNotFoundError,
    IngestTimeoutError,
    IngestUnsupportedError,
)
from livefuse.ingest.camera_trial import Trial
from livefuse.ingest.camera_v4l2 import FORMATS, Camera, find_camera, list_cameras
from livefuse.ingest.connection import Connection
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.diagnose import create_no_video_error, free_error
from livefuse.ingest.ratio import to_fraction
from livefuse.ingest.reader import Abandoned, Reader
from livefuse.ingest.source import Source, read_fps, set_up_decoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.stage import Stage, StageMaker

    AnyPacket = Packet[Stream]
    OpenCamera = Callable[[Camera, str, IngestConfig], Source]

__all__ = ["Camera", "CameraIngest", "list_cameras"]

_SCHEME: Final = "camera:"
_RELEASE_NS: Final = 2 * NS_PER_S
# Uncompressed first: no decoding, no artefacts. USB 2 carries it only up to 640x480 at 30.
_PREFERENCE: Final = ("yuv420p", "nv12", "yuyv422", "uyvy422", "mjpeg", "h264", "bgr24", "rgb24")
_USUAL: Final = ("mjpeg", "yuyv422", "")


class CameraIngest:
    """A camera by name. The first failure is raised; one that goes away later is waited for."""

    def __init__(
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        *,
        find_cameras: Callable[[], list[Camera]] = list_cameras,
        open_camera: OpenCamera | None = None,
        make_stage: StageMaker = DecodeStage,
    ) -> None:
        self._url = url
        self._wanted = unquote(url.removeprefix(_SCHEME).removeprefix("//")).strip()
        self._config = config
        self._clock = clock
        self._find_cameras = find_cameras
        self._open_camera = open_camera or open_v4l2_source
        self._make_stage = make_stage
        self._stopping = threading.Event()
        self._attempt = threading.Event()
        self._released = threading.Event()
        self._released.set()
        self._reader: Reader | None = None
        self._abandoned = Abandoned()

    def stop(self) -> None:
        """Ask `run` to return and so to release the device; from any thread."""
        self._stopping.set()
        self._attempt.set()
        reader = self._reader
        if reader is not None:
            reader.interrupt()

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` until stopped.

        Raises:
            IngestNotFoundError: there is no such camera; the hint lists those there are.
            IngestError: it cannot be opened, or gives nothing of use in any pixel format.
        """
        trial = Trial(sink, self._config, self._clock, self._attempt)
        stage = self._make_stage(trial, self._config, self._clock, self._stopping, is_live=True)
        delay_ns = self._config.reconnect_min_ms * NS_PER_MS
        has_worked = False
        while not self._stopping.is_set():
            sink.on_state("connecting")
            error = self._try_formats(trial, stage)
            if self._stopping.is_set():
                break
            has_worked = has_worked or trial.is_passed
            if error is not None and not has_worked:
                raise error
            sink.on_state("lost", error)
            sink.count("reconnect")
            self._clock.wait(self._stopping, delay_ns)
        sink.on_state("ended")

    def _try_formats(self, trial: Trial, stage: Stage) -> IngestError | None:
        """Live with the first pixel format that works until it is lost; return why it ended."""
        try:
            camera = choose_camera(self._wanted, self._find_cameras())
        except IngestNotFoundError as missing:
            return missing
        formats = choose_formats(camera, self._config)
        error: IngestError | None = None
        for pixel_format in formats:
            error = self._play(camera, pixel_format, trial, stage)
            is_final = isinstance(error, (IngestAuthError, IngestConnectError))
            if self._stopping.is_set() or trial.is_passed or is_final:
                return error
        return self._describe_failure(camera, formats, trial, error)

    def _play(
        self, camera: Camera, pixel_format: str, trial: Trial, stage: Stage
    ) -> IngestError | None:
        self._attempt.clear()
        if self._stopping.is_set():
            return None
        trial.begin()
        reader = self._reader = Reader(lambda: self._open(camera, pixel_format), self._clock)
        try:
            link = Connection(self._url, self._config, self._clock, self._attempt, trial, stage)
            link.run(reader)
        except IngestError as error:
            return free_error(error)
        finally:
            self._abandoned.close(reader, trial)
            # A camera is for one at a time: the next attempt would find it busy.
            self._clock.wait(self._released, _RELEASE_NS)
        return None

    def _open(self, camera: Camera, pixel_format: str) -> Source:
        """Open in the reader's thread, and note when the device is free again."""
        source = self._open_camera(camera, pixel_format, self._config)
        self._released.clear()

        def close() -> None:
            try:
                source.close()
            finally:
                self._released.set()

        return replace(source, close=close)

    def _describe_failure(
        self, camera: Camera, formats: tuple[str, ...], trial: Trial, error: IngestError | None
    ) -> IngestError | None:
        tried = ", ".join(name or "its own choice" for name in formats)
        if trial.verdict == "black":
            return IngestUnsupportedError(
                f"the camera {camera.name} gives only black pictures",
                hint=f"open its shutter, or end the program that uses it (tried {tried})",
            )
        if trial.verdict == "slow":
            return IngestUnsupportedError(
                f"the camera {camera.name} gives only {trial.fps:.1f} pictures a second",
                hint=f"more light, or a smaller ingest.camera_size (tried {tried})",
            )
        if isinstance(error, IngestTimeoutError):
            return IngestTimeoutError(
                f"the camera {camera.name} gives no picture",
                hint=f"unplug it and plug it in again (tried {tried})",
            )
        return error


def choose_camera(wanted: str, cameras: list[Camera]) -> Camera:
    """Return the camera that `wanted` names.

    Raises:
        IngestNotFoundError: there is none of that name; the hint lists the choices.
    """
    camera = find_camera(wanted, cameras)
    if camera is not None:
        return camera
    if not cameras:
        raise IngestNotFoundError(
            f"there is no camera {wanted}" if wanted else "there is no camera",
            hint="no camera was found at all: plug one in, or use demo: or test:",
        )
    choices = ", ".join(f"camera:{camera.name}" for camera in cameras)
    raise IngestNotFoundError(f"there is no camera {wanted}", hint=f"choose from {choices}")


def choose_formats(camera: Camera, config: IngestConfig) -> tuple[str, ...]:
    """Return FFmpeg's names of the pixel formats to try, the best for the wanted size first."""
    width, height = (int(side) for side in config.camera_size.split("x"))
    offered = {mode.pixel_format for mode in camera.settings}
    fitting = {
        mode.pixel_format
        for mode in camera.settings
        if (mode.width, mode.height) == (width, height) and mode.fps >= config.camera_fps
    }
    known = [name for name in _PREFERENCE if name in offered and name in FORMATS.values()]
    ordered = sorted(known, key=lambda name: name not in fitting)
    return tuple(ordered) or _USUAL


def open_v4l2_source(camera: Camera, pixel_format: str, config: IngestConfig) -> Source:
    """Open `camera`; the driver takes the nearest size and rate that it has.

    Raises:
        IngestError: it may not be opened, is in use, or is gone.
    """
    options = {"video_size": config.camera_size, "framerate": str(config.camera_fps)}
    if pixel_format:
        options["input_format"] = pixel_format
    try:
        container = av.open(camera.device, format="v4l2", options=options)
    except (av.error.FFmpegError, OSError) as error:
        raise diagnose_camera_error(error, camera) from None
    return describe_camera_source(container, camera, config)


def describe_camera_source(
    container: InputContainer, camera: Camera, config: IngestConfig
) -> Source:
    """Return the opened `container` as a source: one video stream, no sound."""
    url = f"{_SCHEME}{camera.name}"
    streams = container.streams.video
    decoder = streams[0].codec_context if streams else None
    if decoder is None:
        container.close()
        raise create_no_video_error(url)
    set_up_decoder(decoder, config, is_live=True)
    return Source(
        url=url,
        decoder=decoder,
        time_base=streams[0].time_base,
        audio=None,
        fps=read_fps(streams[0].average_rate, streams[0].guessed_rate),
        aspect=to_fraction(decoder.sample_aspect_ratio),
        decoder_name=f"v4l2 {decoder.name}",
        packets=((True, cast("AnyPacket", packet)) for packet in container.demux(streams[0])),
        close=container.close,
    )


def diagnose_camera_error(error: Exception, camera: Camera) -> IngestError:
    """Return what to tell about `error`, met when `camera` was opened."""
    name, number = camera.name, getattr(error, "errno", 0)
    if isinstance(error, PermissionError):
        return IngestAuthError(
            f"the camera {name} may not be used by this user",
            hint="add the user to the group video: sudo usermod -aG video $USER",
        )
    if number == errno.EBUSY:
        return IngestConnectError(
            f"the camera {name} is in use", hint="end the other program that uses it"
        )
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return IngestNotFoundError(
            f"the camera {name} is gone", hint="plug it in again, then run  livefuse cameras"
        )
    reason = getattr(error, "strerror", None) or type(error).__name__
    return IngestUnsupportedError(
        f"the camera {name} cannot be opened ({reason})", hint="try another ingest.camera_size"
    )
