"""What a reader of a stream or file finds: the burnt-in counter, times, and how sound fits picture.

`record` decodes like a low-latency player. Times are seconds on the stream's own line.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import av
import numpy as np

from livefuse.ingest.scene.drawing import is_flash_lit, read_counter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

BEEP_HZ = 1000.0
LOW_LATENCY = {
    "fflags": "nobuffer",
    "flags": "low_delay",
    "probesize": "200000",
    "analyzeduration": "500000",
    "rtsp_transport": "tcp",
}


@dataclass(slots=True)
class Picture:
    """One decoded picture; `bgr` (height, width, 3) is there for each `keep_every`-th only."""

    pts_s: float
    counter: int | None
    is_flash: bool
    width: int
    height: int
    arrival_s: float
    bgr: NDArray[np.uint8] | None = None


@dataclass(slots=True)
class Recording:
    """What was read. `samples` is mono; each of `audio` is (PTS in s, its samples)."""

    video: list[Picture] = field(default_factory=list)
    audio: list[tuple[float, NDArray[np.float32]]] = field(default_factory=list)
    video_dts_s: list[float] = field(default_factory=list)
    audio_dts_s: list[float] = field(default_factory=list)
    sample_rate_hz: int = 0
    video_codec: str = ""
    audio_codec: str = ""
    end: str = "asked for no more"

    @property
    def counters(self) -> list[tuple[int | None, float]]:
        """The counter and PTS of every picture."""
        return [(picture.counter, picture.pts_s) for picture in self.video]

    @property
    def kept(self) -> list[Picture]:
        """The pictures whose pixels were kept."""
        return [picture for picture in self.video if picture.bgr is not None]

    def is_strictly_increasing(self) -> bool:
        """Tell whether every picture has a counter and each is higher than the one before."""
        counters = [picture.counter for picture in self.video]
        if not counters or None in counters:
            return False
        return all(a < b for a, b in itertools.pairwise(counters))  # type: ignore[operator] # no None is left


def record(
    source: str | Path,
    *,
    frames: int | None = None,
    seconds: float | None = None,
    timeout_s: float = 20.0,
    keep_every: int = 0,
) -> Recording:
    """Read `source` until `frames` pictures, `seconds` of media, its end, or `timeout_s` passed.

    A stream that falls silent after it has begun ends the recording; one that never begins raises.
    """
    is_stream = "://" in str(source)
    options = LOW_LATENCY if is_stream else {}
    recording = Recording()
    deadline = time.monotonic() + timeout_s
    timeouts = (timeout_s, min(timeout_s, 5.0))
    with av.open(str(source), options=options, timeout=timeouts) as container:
        _note_streams(container, recording)
        try:
            for packet in container.demux():
                _take_packet(packet, recording, keep_every)
                if _is_enough(recording, frames, seconds):
                    return recording
                if time.monotonic() > deadline:
                    recording.end = "too slow"
                    return recording
            recording.end = "end of stream"
        except (av.error.FFmpegError, OSError) as error:
            if not recording.video:
                raise
            recording.end = str(error)
    return recording


def _note_streams(container: Any, recording: Recording) -> None:
    for stream in container.streams:
        if stream.type == "video":
            recording.video_codec = stream.codec_context.name
        elif stream.type == "audio":
            recording.audio_codec = stream.codec_context.name
            recording.sample_rate_hz = stream.codec_context.sample_rate


def _take_packet(packet: Any, recording: Recording, keep_every: int) -> None:
    kind = packet.stream.type
    if kind not in ("video", "audio"):
        return
    if packet.dts is not None:
        dts_s = float(packet.dts * packet.time_base)
        (recording.video_dts_s if kind == "video" else recording.audio_dts_s).append(dts_s)
    for frame in packet.decode():
        if kind == "video":
            _take_picture(frame, recording, keep_every)
        else:
            recording.audio.append((float(frame.pts * frame.time_base), _to_mono(frame)))


def _take_picture(frame: Any, recording: Recording, keep_every: int) -> None:
    is_kept = keep_every > 0 and len(recording.video) % keep_every == 0
    y_plane = get_luma(frame)
    recording.video.append(
        Picture(
            pts_s=float(frame.pts * frame.time_base),
            counter=read_counter(y_plane),
            is_flash=is_flash_lit(y_plane),
            width=frame.width,
            height=frame.height,
            arrival_s=time.monotonic(),
            bgr=frame.to_ndarray(format="bgr24") if is_kept else None,
        )
    )


def get_luma(frame: Any) -> NDArray[np.uint8]:
    """Return the luma plane (height, width) of a PyAV frame; a view for 8-bit YUV."""
    if not frame.format.name.startswith(("yuv4", "yuvj4", "nv12", "gray")) or "10" in (
        frame.format.name
    ):
        frame = frame.reformat(format="yuv420p")
    plane = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return rows[: frame.height, : frame.width]


def _to_mono(frame: Any) -> NDArray[np.float32]:
    samples = frame.to_ndarray()
    if samples.dtype == np.int16:
        samples = samples.astype(np.float32) / 32768.0
    if samples.shape[0] == 1 and frame.layout.nb_channels > 1:
        samples = samples.reshape(-1, frame.layout.nb_channels).T
    return np.asarray(samples.mean(axis=0), np.float32)


def _is_enough(recording: Recording, frames: int | None, seconds: float | None) -> bool:
    if frames is not None and len(recording.video) >= frames:
        return True
    if seconds is None or not recording.video:
        return False
    return recording.video[-1].pts_s - recording.video[0].pts_s >= seconds


def find_flashes(recording: Recording) -> list[float]:
    """Return the PTS (s) of each first lit picture after an unlit one."""
    pairs = zip(recording.video, recording.video[1:], strict=False)
    return [after.pts_s for before, after in pairs if after.is_flash and not before.is_flash]


def find_beeps(recording: Recording, threshold: float = 0.5) -> list[float]:
    """Return the PTS (s) of each onset of the 1 kHz beep: half of its level, window 4 ms."""
    if not recording.audio:
        return []
    rate = recording.sample_rate_hz
    start_s, samples = _join_audio(recording)
    turn = np.exp(-2j * np.pi * BEEP_HZ / rate * np.arange(len(samples)))
    window = round(rate * 0.004)
    level = np.abs(np.convolve(samples * turn, np.ones(window) / window, "same"))
    is_loud = level > level.max() * threshold
    onsets = np.flatnonzero(is_loud[1:] & ~is_loud[:-1]) + 1
    return list(_drop_echoes(start_s + onsets / rate))


def _join_audio(recording: Recording) -> tuple[float, NDArray[np.float32]]:
    rate = recording.sample_rate_hz
    start_s = recording.audio[0][0]
    end_s = max(pts_s + len(samples) / rate for pts_s, samples in recording.audio)
    line = np.zeros(round((end_s - start_s) * rate) + 1, np.float32)
    for pts_s, samples in recording.audio:
        place = max(round((pts_s - start_s) * rate), 0)
        piece = samples[: len(line) - place]
        line[place : place + len(piece)] = piece
    return start_s, line


def _drop_echoes(times_s: NDArray[np.float64], apart_s: float = 0.3) -> Iterator[float]:
    last = -1e9
    for time_s in times_s:
        if time_s - last >= apart_s:
            last = float(time_s)
            yield last


def measure_av_offsets_ms(recording: Recording) -> list[float]:
    """Return beep minus flash in ms for each flash with a beep within 0.4 s; + is late sound."""
    beeps = find_beeps(recording)
    offsets = []
    for flash_s in find_flashes(recording):
        nearest = min(beeps, key=lambda beep_s: abs(beep_s - flash_s), default=None)
        if nearest is not None and abs(nearest - flash_s) < 0.4:
            offsets.append((nearest - flash_s) * 1000.0)
    return offsets
