"""The camera before livefuse and the servers behind it: real processes that can be harmed."""

from __future__ import annotations

import pickle
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av

from livefuse.aac import build_config
from tests.media import make_clip
from tests.wire.servers import (
    HOST,
    SYSTEM_PYTHON,
    ChildServer,
    NginxRtmp,
    find_program,
    require,
)

FPS = 30
GOP = 30
RATE_HZ = 48_000
UNIT_SAMPLES = 1024
LOOP_S = 16
"""A whole number of pictures, of keyframes and of units of sound: 480, 16 and 750."""
LOOP_FRAMES = LOOP_S * FPS
SIZE = (640, 360)
_CAMERA = Path(__file__).with_name("camera.py")

# What the camera may come back as: ffmpeg's options for the second clip.
VARIANTS = {
    "plain": [],
    "other_sets": ["-profile:v", "baseline", "-preset", "superfast", "-refs", "3"],
    "small": ["-vf", "scale=480:270", "-preset", "superfast"],
}


@dataclass(slots=True)
class Film:
    """Encoded pictures and sound of `LOOP_S` seconds, to be played round and round."""

    fps: int
    gop: int
    rate: int
    asc: str
    units: tuple[list[bytes], list[bytes]]


def make_films(folder: Path) -> dict[str, Path]:
    """Write the clip in each variant and return the camera's files by name, and `clip`, an MP4.

    Takes some 15 s. The pictures are those of `make_clip`, the counter is that of the loop.
    """
    clip = make_clip(folder / "clip.mp4", float(LOOP_S), SIZE, float(FPS))
    paths = {"clip": clip}
    for name, options in VARIANTS.items():
        source = clip if not options else _transcode(clip, folder / f"{name}.mp4", options)
        paths[name] = folder / f"{name}.film"
        film = read_film(source)
        fields = {key: getattr(film, key) for key in Film.__slots__}
        paths[name].write_bytes(pickle.dumps(fields, protocol=4))
    return paths


def _transcode(clip: Path, target: Path, options: list[str]) -> Path:
    command = [find_program("ffmpeg") or "ffmpeg", "-v", "error", "-y", "-i", str(clip)]
    command += ["-c:v", "libx264", "-b:v", "1500k", "-g", str(GOP), "-bf", "0"]
    command += ["-sc_threshold", "0", "-pix_fmt", "yuv420p", *options, "-c:a", "copy", str(target)]
    subprocess.run(command, check=True, timeout=120)
    return target


def read_film(path: Path) -> Film:
    """Return the access units (Annex B) and the raw AAC units of an MP4."""
    units: tuple[list[bytes], list[bytes]] = ([], [])
    container: Any
    with av.open(str(path)) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        to_annex_b = av.BitStreamFilterContext("h264_mp4toannexb", video)
        for packet in container.demux([video, audio]):
            if not packet.size:
                continue
            if packet.stream is video:
                units[0].extend(bytes(found) for found in to_annex_b.filter(packet))
            elif packet.pts >= 0:
                units[1].append(bytes(packet))
        units[0].extend(bytes(found) for found in to_annex_b.filter(None))
    wanted = LOOP_S * RATE_HZ // UNIT_SAMPLES
    if len(units[0]) != LOOP_FRAMES or len(units[1]) < wanted:
        raise RuntimeError(f"{path}: {len(units[0])} pictures, {len(units[1])} units of sound")
    del units[1][wanted:]
    return Film(FPS, GOP, RATE_HZ, build_config(RATE_HZ, 1).hex(), units)


class Camera(ChildServer):
    """The RTSP camera; after `stop`, `film` may be changed to another variant."""

    def __init__(self, films: dict[str, Path], epoch_ns: int) -> None:
        require("gst-rtsp-server", "ffmpeg")
        super().__init__()
        self._films = films
        self._epoch_ns = epoch_ns
        self.film = "plain"

    @property
    def url(self) -> str:
        """Where livefuse pulls from."""
        return f"rtsp://{HOST}:{self.port}/cam"

    def command(self) -> list[str]:
        """Return the command line."""
        arguments = [HOST, str(self.port), "cam", str(self._films[self.film]), str(self._epoch_ns)]
        return [SYSTEM_PYTHON, str(_CAMERA), *arguments]

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        kill(self)


class Server(NginxRtmp):
    """nginx-rtmp that keeps each publication in a piece of its own, and may refuse all of them."""

    def __init__(self) -> None:
        super().__init__(is_recording=True)
        self.refuses = False

    def command(self) -> list[str]:
        """Return the command line; writes the configuration."""
        command = super().command()
        conf = self.folder / "nginx.conf"
        text = conf.read_text().replace("record_unique off", "record_unique on")
        if self.refuses:
            text = text.replace("allow publish 127.0.0.1;", "")
        conf.write_text(text)
        return command

    def kill(self) -> None:
        """End it at once."""
        kill(self)

    def list_pieces(self, key: str) -> list[Path]:
        """Return what was recorded of `key`, oldest first."""
        pieces = self.folder.glob(f"{key}-*.flv")
        return sorted((p for p in pieces if p.stat().st_size > 1000), key=lambda p: p.name)


def kill(server: ChildServer) -> None:
    """SIGKILL, by its own pid, and wait for it."""
    process, server.process = server.process, None
    server._paused = False
    if process is not None:
        process.kill()
        process.wait(5)


def read_now_s(epoch_ns: int) -> float:
    """Return s after the epoch."""
    return (time.monotonic_ns() - epoch_ns) / 1e9
