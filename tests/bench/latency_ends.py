"""The two ends of the latency bench, each a process: `publish|read URL FILE SECONDS`."""

from __future__ import annotations

import json
import sys
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from livefuse.frame import create_frame
from livefuse.ingest.scene.drawing import draw_counter, read_counter
from tests.measure import get_luma


def publish(url: str, path: Path, seconds: float) -> None:
    """Push 720p30 with AAC silence, note the moment at which each picture is handed over."""
    container = av.open(url, "w", format="flv", options={"flvflags": "no_duration_filesize"})
    video = container.add_stream("libx264", rate=30, options={
        "preset": "ultrafast", "tune": "zerolatency", "g": "30", "bf": "0"})  # fmt: skip
    video.width, video.height, video.pix_fmt = 1280, 720, "yuv420p"
    video.bit_rate, video.time_base = 3_000_000, Fraction(1, 1000)
    audio = container.add_stream("aac", rate=48_000, layout="stereo")
    noise = np.random.default_rng(1).integers(60, 180, (720, 1280), np.uint8)
    sound = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), "fltp", "stereo")
    sound.sample_rate = 48_000
    frame, sounds, started = create_frame(1280, 720), 0, time.monotonic_ns()
    with path.open("w", buffering=1, encoding="utf-8") as notes:
        for number in range(int(seconds * 30)):
            due = started + number * 1_000_000_000 // 30
            time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
            frame.y[:] = np.roll(noise, number * 4, axis=1)
            draw_counter(frame, number, "large")
            picture = av.VideoFrame.from_numpy_buffer(frame.buffer.copy(), "yuv420p")
            picture.pts, picture.time_base = number * 1000 // 30, Fraction(1, 1000)
            # Sound first and a little ahead, so that the muxer never holds the picture for it.
            while sounds * 1024 / 48_000 < number / 30 + 0.05:
                sound.pts, sound.time_base = sounds * 1024, Fraction(1, 48_000)
                container.mux(audio.encode(sound))
                sounds += 1
            packets = video.encode(picture)
            notes.write(json.dumps([number, time.monotonic_ns()]) + "\n")
            container.mux(packets)


def read(url: str, path: Path, seconds: float) -> None:
    """Read and decode at once, note the moment at which each picture is there."""
    options = {
        "fflags": "nobuffer", "flags": "low_delay", "probesize": "100000", "analyzeduration": "0",
    }  # fmt: skip
    container = av.open(url, options=options, timeout=(10, 5))
    stream = container.streams.video[0]
    stream.codec_context.thread_count = 1
    ends = time.monotonic() + seconds
    with path.open("w", encoding="utf-8") as notes:
        for packet in container.demux(stream):
            for picture in packet.decode():
                at = time.monotonic_ns()
                number = read_counter(get_luma(picture))
                if number is not None:
                    notes.write(json.dumps([number, at]) + "\n")
            if time.monotonic() > ends:
                return


if __name__ == "__main__":
    av.logging.set_level(None)
    {"publish": publish, "read": read}[sys.argv[1]](
        sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
    )
