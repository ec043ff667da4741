"""Cases that no part can show alone: files of a difficult kind through a whole job, in one process.

Every frame counts here, so what comes out is compared with what went in.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import av
import numpy as np
import pytest

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.frame import create_frame
from livefuse.ingest.scene.talking_head import TalkingHead
from livefuse.job.spec import JobSpec
from livefuse.pipeline.steps import Pipeline
from livefuse.workers.local import Worker
from tests.clips import write_clip

MS = Fraction(1, 1000)


def run_job(source, target, operations=("detect", "blur")):
    """Run from file to file; return the figures once all is closed."""
    worker = Worker(load_config(settings=("http.enabled=false",)), SystemClock())
    spec = JobSpec(str(source), (str(target),), operations, mode="every_frame")
    job = worker.add_job("job", spec)
    job.start()
    assert job.wait(40)
    assert job.error is None
    return job.statistics()


def read_pictures(path):
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def read_dts(path):
    with av.open(str(path)) as container:
        return [packet.dts for packet in container.demux(video=0) if packet.dts is not None]


def write_heads(path, sizes, frames=9):
    """Write one transport stream with a talking head at each of `sizes`, one after the other."""
    with av.open(str(path), "w", format="mpegts") as container:
        video = container.add_stream("libx264", rate=30)
        (video.width, video.height), video.pix_fmt = sizes[0], "yuv420p"
        for part, (width, height) in enumerate(sizes):
            head, frame = TalkingHead(width, height), create_frame(width, height)
            encoder = av.CodecContext.create("libx264", "w")
            encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
            encoder.time_base, encoder.options = MS, {"preset": "ultrafast", "tune": "zerolatency"}
            for number in range(part * frames, (part + 1) * frames):
                head.draw(frame, number / 30)
                picture = av.VideoFrame.from_ndarray(frame.buffer, format="yuv420p")
                picture.pts, picture.time_base = number * 100 // 3, MS
                for packet in encoder.encode(picture):
                    packet.stream = video
                    container.mux(packet)
    return path


def test_a_size_that_jumps_changes_nothing_for_whoever_watches(tmp_path, monkeypatch):
    """C45: one canvas, one encode, and the face is found at every size."""
    faces = []
    finish = Pipeline.finish

    def note_faces(self, state):
        outcome = finish(self, state)
        faces.append(len(outcome.faces))
        return outcome

    monkeypatch.setattr(Pipeline, "finish", note_faces)
    sizes = [(640, 360), (1280, 720), (360, 640), (640, 360)]
    source = write_heads(tmp_path / "in.ts", sizes)
    stats = run_job(source, tmp_path / "out.mkv")
    pictures = read_pictures(tmp_path / "out.mkv")
    assert stats.counts["input_changed"] == 3
    assert len(pictures) == stats.frames_in == stats.frames_out == 36
    assert {(p.width, p.height) for p in pictures} == {(640, 360)}
    assert faces == [1] * 36


def write_bars(path, pixel_format, matrix, *, is_full):
    """Write eight flat bars with their tags; return the planes."""
    height, width = 96, 160
    planes = np.empty((height * 3 // 2, width), np.uint8)
    low, high = (0, 255) if is_full else (16, 235)
    planes[:height] = np.repeat(np.linspace(low, high, 8).round().astype(np.uint8), width // 8)
    chroma = np.repeat(np.array([60, 200, 100, 150, 90, 170, 128, 220], np.uint8), width // 16)
    planes[height : height * 5 // 4] = np.tile(chroma, 2)
    planes[height * 5 // 4 :] = np.tile(chroma[::-1], 2)
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=30, options={"crf": "1", "preset": "fast"})
        video.width, video.height, video.pix_fmt = width, height, pixel_format
        context = video.codec_context
        context.colorspace, context.color_range = matrix, 2 if is_full else 1
        for index in range(20):
            picture = av.VideoFrame.from_ndarray(planes, format=pixel_format)
            picture.pts, picture.time_base = index, Fraction(1, 30)
            picture.colorspace, picture.color_range = matrix, 2 if is_full else 1
            container.mux(video.encode(picture))
        container.mux(video.encode(None))
    return planes


@pytest.mark.parametrize("operations", [(), ("detect", "blur")])
@pytest.mark.parametrize(("pixel_format", "is_full"), [("yuv420p", False), ("yuvj420p", True)])
@pytest.mark.parametrize("matrix", [1, 6])
def test_bars_come_out_as_they_went_in(tmp_path, pixel_format, is_full, matrix, operations):
    """C48: two levels at the most, and tagged as they were."""
    sent = write_bars(tmp_path / "in.mkv", pixel_format, matrix, is_full=is_full)
    run_job(tmp_path / "in.mkv", tmp_path / "out.mkv", operations)
    pictures = read_pictures(tmp_path / "out.mkv")
    assert len(pictures) == 20
    last = pictures[-1]
    apart = np.abs(last.to_ndarray(format=last.format.name).astype(int) - sent)
    # Not the bars' edges, which coding softens.
    assert apart[:96, np.abs(np.arange(160) % 20 - 9.5) < 6].max() <= 2
    chroma = apart[96:].reshape(-1, 80)
    assert chroma[:, np.abs(np.arange(80) % 10 - 4.5) < 3].max() <= 2
    assert int(last.color_range) == (2 if is_full else 1)
    assert int(last.colorspace) == matrix


TEN_BITS = {"codec": "libx265", "pixel_format": "yuv420p10le"}
QUIET = {"options": {"x265-params": "log-level=none:pools=none"}}


@pytest.mark.parametrize(
    ("options", "size", "note"),
    [
        ({"size": (853, 480), "pixel_format": "yuv444p"}, (852, 480), "cropped from 853x480"),
        ({"size": (1919, 975), "pixel_format": "yuv444p"}, (1918, 974), "cropped from 1919x975"),
        (TEN_BITS | QUIET, (160, 120), "reduced to 8 bits"),
    ],
)
def test_what_does_not_fit_is_made_to_fit_and_said(tmp_path, options, size, note):
    """C47, C49: odd sides and ten bits start, and the status says what was done to them."""
    source = write_clip(tmp_path / "in.mkv", frames=4, **options)
    stats = run_job(source, tmp_path / "out.mp4")
    pictures = read_pictures(tmp_path / "out.mp4")
    assert len(pictures) == 4
    assert {(p.width, p.height, p.format.name) for p in pictures} == {(*size, "yuv420p")}
    assert any(note in line for line in stats.notes)


def rewrite_flv_times(path, times_ms):
    """Give the pictures of an FLV file the times `times_ms`, whatever these are."""
    data = bytearray(path.read_bytes())
    at, times = 13, iter(times_ms)
    while at < len(data):
        size = int.from_bytes(data[at + 1 : at + 4], "big")
        is_picture = data[at] == 9 and data[at + 12] == 1
        if is_picture and (time_ms := next(times, None)) is not None:
            data[at + 4 : at + 7] = (time_ms & 0xFFFFFF).to_bytes(3, "big")
        at += size + 15
    assert next(times, None) is None
    path.write_bytes(data)


@pytest.mark.parametrize("suffix", [".mp4", ".flv", ".ts"])
def test_stamps_that_repeat_and_step_back_are_mended_to_the_end(tmp_path, suffix):
    """C38: repeated, once out of order, and a second backwards for good."""
    times_ms = [2000 + index * 100 // 3 for index in range(60)]
    times_ms[10:13] = [times_ms[9]] * 3
    times_ms[20], times_ms[21] = times_ms[21], times_ms[20]
    times_ms[40:] = [time_ms - 1000 for time_ms in times_ms[40:]]
    source = write_clip(tmp_path / "in.flv", frames=60, options={"bf": "0"})
    rewrite_flv_times(source, times_ms)
    stats = run_job(source, tmp_path / f"out{suffix}", ())
    assert stats.counts["corrected_pts_order"] >= 4
    assert stats.counts["corrected_pts_jump"] == 1
    stamps = read_dts(tmp_path / f"out{suffix}")
    assert len(stamps) == 60
    assert all(a < b for a, b in itertools.pairwise(stamps))


@pytest.mark.parametrize("suffix", [".mp4", ".flv", ".ts"])
def test_a_rate_that_varies_keeps_every_picture_at_its_time(tmp_path, suffix):
    """C39: 14 to 61 frames a second, in containers of different clocks."""
    rates = [14, 61, 30, 61, 61, 15, 45, 61, 60, 14] * 4
    stamps = [round(at) for at in itertools.accumulate([0.0, *(1000 / rate for rate in rates)])]
    source = write_clip(tmp_path / "in.mkv", stamps_ms=stamps)
    stats = run_job(source, tmp_path / f"out{suffix}", ())
    assert not any(name.startswith("corrected") for name in stats.counts)
    found = read_pictures(tmp_path / f"out{suffix}")
    times_ms = [float(p.pts * p.time_base * 1000) for p in found]
    assert np.allclose(np.diff(times_ms), np.diff(stamps), atol=1.1)
