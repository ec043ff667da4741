"""The measuring tools of the end-to-end tests must be right themselves."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from tests.measure import Picture, Recording, find_beeps, measure_av_offsets_ms, record
from tests.media import make_clip
from tests.wire.servers import find_program, require


@pytest.mark.parametrize(("fps", "face"), [(30.0, True), (25.0, False), (29.97, False)])
def test_picture_and_sound_of_a_clip_fit_within_5_ms(tmp_path, fps, face):
    path = make_clip(tmp_path / "clip.mp4", 3.2, (320, 180), fps, face=face, bitrate_kbps=500)
    recording = record(path)
    offsets_ms = measure_av_offsets_ms(recording)
    assert len(offsets_ms) == 3
    assert max(abs(offset) for offset in offsets_ms) < 5.0
    assert [picture.counter for picture in recording.video] == list(range(round(3.2 * fps)))
    assert recording.is_strictly_increasing()


@pytest.mark.parametrize("shift_ms", [-80, 55])
def test_a_known_shift_of_the_sound_is_found(tmp_path, bars_clip, shift_ms):
    require("ffmpeg")
    shifted = tmp_path / "shifted.mkv"
    command = [find_program("ffmpeg") or "ffmpeg", "-v", "error", "-i", str(bars_clip)]
    command += ["-itsoffset", str(shift_ms / 1000), "-i", str(bars_clip)]
    command += ["-map", "0:v", "-map", "1:a", "-c", "copy", str(shifted)]
    subprocess.run(command, check=True, timeout=20)
    offsets_ms = measure_av_offsets_ms(record(shifted))
    assert offsets_ms
    assert max(abs(offset - shift_ms) for offset in offsets_ms) < 5.0


def test_a_clip_is_what_strict_players_want(short_clip):
    recording = record(short_clip, keep_every=30)
    assert (recording.video_codec, recording.audio_codec) == ("h264", "aac")
    assert recording.video_dts_s == sorted(set(recording.video_dts_s))
    assert [picture.pts_s for picture in recording.video] == pytest.approx(recording.video_dts_s)
    assert len(recording.kept) == 3
    assert recording.kept[0].bgr is not None
    assert recording.kept[0].bgr.shape == (360, 640, 3)


def picture(counter):
    return Picture(0.0, counter, is_flash=False, width=2, height=2, arrival_s=0.0)


@pytest.mark.parametrize(
    ("counters", "expected"),
    [([1, 2, 5], True), ([1, 1], False), ([2, 1], False), ([1, None, 3], False), ([], False)],
)
def test_strictly_increasing_means_every_one(counters, expected):
    recording = Recording(video=[picture(counter) for counter in counters])
    assert recording.is_strictly_increasing() is expected


def test_a_silent_recording_has_no_beeps():
    assert find_beeps(Recording()) == []
    quiet = Recording(audio=[(0.0, np.zeros(48_000, np.float32))], sample_rate_hz=48_000)
    assert find_beeps(quiet) == []
