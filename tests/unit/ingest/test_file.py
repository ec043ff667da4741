"""Files: every frame, sound in step, metadata obeyed, faults in words."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from livefuse.aac import read_adts
from livefuse.clock import ManualClock, SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import IngestNotFoundError, IngestUnsupportedError
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.file import FileIngest
from tests.clips import write_clip, write_sound
from tests.sinks import CollectingSink


def read_file(path, *, clock=None, paced=False, every_frame=True, config=None, **options):
    ingest = FileIngest(
        str(path),
        config or IngestConfig(),
        clock or SystemClock(),
        paced=paced,
        every_frame=every_frame,
    )
    sink = CollectingSink(ingest=ingest, **options)
    ingest.run(sink)
    return sink


@pytest.mark.parametrize("name", ["clip.mp4", "clip.flv", "clip.ts", "clip.mkv"])
def test_every_frame_comes_in_order_with_its_sound(tmp_path, name):
    path = write_clip(tmp_path / name, frames=45, audio="aac", options={"bf": "2"})
    sink = read_file(path)
    assert len(sink.pts) == 45
    steps = np.diff(sink.pts)
    assert steps.min() >= 2900
    assert steps.max() <= 3100
    assert sink.media.audio.codec == "aac"
    assert sink.media.audio.extradata[:2] == b"\x11\x88"
    assert not sink.media.is_live
    assert sink.states == ["connecting", "live", "ended"]
    ends = sink.pts[-1], sink.packets[-1].pts
    assert abs(ends[0] - ends[1]) < TIME_BASE_HZ // 10
    # What MPEG-TS puts before each unit says the same as was told; the outputs take it off.
    headers = [read_adts(packet.data) for packet in sink.packets]
    assert all((header is not None) == (name == "clip.ts") for header in headers)
    assert {header.config for header in headers if header} <= {sink.media.audio.extradata[:2]}
    stamps = [packet.pts for packet in sink.packets]
    assert all(b > a for a, b in itertools.pairwise(stamps))


def test_starving_pool_loses_nothing_where_every_frame_counts(tmp_path):
    path = write_clip(tmp_path / "clip.mp4", frames=10)
    sink = read_file(path, clock=ManualClock(), starve=50)
    assert len(sink.pts) == 10


class StarvesOnce(CollectingSink):
    """Has no frame for two pictures after the first."""

    def on_frame(self, frame):
        super().on_frame(frame)
        self._starve = 2 if len(self.pts) == 1 else 0


def test_starving_pool_is_counted_in_live_mode(tmp_path):
    path = write_clip(tmp_path / "clip.mp4", frames=10)
    ingest = FileIngest(str(path), IngestConfig(), ManualClock(), paced=True, every_frame=False)
    sink = StarvesOnce(ingest=ingest)
    ingest.run(sink)
    assert sink.counts["dropped_pool"] == 2
    assert len(sink.pts) == 8


def test_paced_file_takes_its_own_time(tmp_path):
    clock = ManualClock(start_ns=5_000_000_000)
    path = write_clip(tmp_path / "clip.mp4", frames=60)
    sink = read_file(path, clock=clock, paced=True)
    times_ms = [round((t - sink.arrivals_ns[0]) / 1e6) for t in sink.arrivals_ns]
    assert abs(times_ms[-1] - 59 * 1000 / 30) < 40
    assert len(sink.pts) == 60


def test_variable_frame_rate_keeps_its_times(tmp_path):
    """C39."""
    steps = [1000 / (14 + i % 48) for i in range(80)]
    stamps = [round(t) for t in itertools.accumulate(steps, initial=0)]
    sink = read_file(write_clip(tmp_path / "clip.mkv", stamps_ms=stamps))
    assert [pts // 90 for pts in sink.pts] == stamps
    assert not sink.counts


def test_stop_from_elsewhere_ends_a_paced_file_at_once(tmp_path):
    path = write_clip(tmp_path / "clip.mp4", frames=30)
    sink = read_file(path, paced=True, stop_after=3)
    assert len(sink.pts) == 3


def test_sound_can_be_left_out(tmp_path):
    path = write_clip(tmp_path / "clip.mp4", frames=10, audio="aac")
    sink = read_file(path, config=IngestConfig(audio=False))
    assert sink.media.audio is None
    assert not sink.packets


def test_rate_and_decoder_are_told(tmp_path):
    sink = read_file(write_clip(tmp_path / "clip.mp4"))
    assert sink.media.fps == pytest.approx(30, abs=0.5)
    assert sink.media.decoder == "h264"
    assert (sink.media.width, sink.media.height) == (160, 120)


@pytest.mark.parametrize(
    ("degrees", "matrix"), [(90, (0, 1, -1, 0)), (180, (-1, 0, 0, -1)), (270, (0, -1, 1, 0))]
)
def test_rotation_in_the_metadata_is_done(tmp_path, degrees, matrix):
    path = write_clip(tmp_path / "clip.mp4", frames=3)
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    a, b, c, d = (value << 16 for value in matrix)
    data[at : at + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    sink = read_file(path)
    wanted = (160, 120) if degrees == 180 else (120, 160)
    assert (sink.media.width, sink.media.height) == wanted
    assert any("turned by" in note for note in sink.media.notes)


def test_odd_sized_file_starts(tmp_path):
    """C47."""
    path = write_clip(tmp_path / "clip.mkv", size=(853, 480), frames=3, pixel_format="yuv444p")
    sink = read_file(path)
    assert (sink.media.width, sink.media.height) == (852, 480)
    assert len(sink.pts) == 3


def test_ten_bit_hevc_is_read(tmp_path):
    """C49."""
    path = write_clip(
        tmp_path / "clip.mkv", codec="libx265", pixel_format="yuv420p10le", frames=5,
        options={"x265-params": "log-level=none:pools=none"},
    )  # fmt: skip
    sink = read_file(path)
    assert len(sink.pts) == 5
    assert any("8 bits" in note for note in sink.media.notes)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(IngestNotFoundError, match="there is no file"):
        read_file(tmp_path / "nothing.mp4")


def test_folder_is_no_file(tmp_path):
    with pytest.raises(IngestNotFoundError, match="is a folder"):
        read_file(tmp_path)


def test_text_is_no_media(tmp_path):
    path = tmp_path / "notes.mp4"
    path.write_text("hello, this is no film\n" * 100)
    with pytest.raises(IngestUnsupportedError, match="not a media file"):
        read_file(path)


def test_sound_alone_has_no_video_stream(tmp_path):
    with pytest.raises(IngestUnsupportedError, match="no video stream"):
        read_file(write_sound(tmp_path / "song.m4a"))


def test_truncated_file_gives_what_it_holds(tmp_path):
    path = write_clip(tmp_path / "clip.ts", frames=60)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    sink = read_file(path)
    assert 5 < len(sink.pts) < 60


def test_damaged_pictures_are_counted_and_held_back(tmp_path):
    """C44, in part."""
    path = write_clip(tmp_path / "clip.ts", frames=90, options={"g": "15", "keyint_min": "15"})
    data = bytearray(path.read_bytes())
    packets = len(data) // 188
    for index in range(packets // 3, packets // 3 + 4):
        data[index * 188 + 20 : index * 188 + 188] = bytes(range(168))
    del data[(packets // 2) * 188 : (packets // 2 + 2) * 188]
    path.write_bytes(data)
    sink = read_file(path)
    assert sink.counts["corrupt"] + sink.counts["decode_error"] > 0
    assert 20 < len(sink.pts) < 90
    assert all(b > a for a, b in itertools.pairwise(sink.pts))


def test_file_without_decodable_pictures_says_so(tmp_path):
    path = write_clip(tmp_path / "clip.mkv", frames=5, codec="ffv1")
    data = path.read_bytes()
    assert data.count(b"V_FFV1") == 1
    path.write_bytes(data.replace(b"V_FFV1", b"V_XXXX"))
    with pytest.raises(IngestUnsupportedError):
        read_file(path)
