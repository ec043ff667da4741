"""Sound over the whole way: in step at any rate, and as long as its time whatever was lost."""

from __future__ import annotations

import itertools
import subprocess
from typing import TYPE_CHECKING

import av
import pytest

from tests.measure import find_flashes, measure_av_offsets_ms, record
from tests.media import make_clip
from tests.wire.jobs import running, wait_state
from tests.wire.servers import NginxRtmp, find_program, require, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.wire, pytest.mark.timeout(90)]


@pytest.fixture(scope="module")
def server():
    with NginxRtmp() as nginx:
        yield nginx


@pytest.mark.parametrize("fps", [25, 30])
def test_a_clap_is_seen_and_heard_together_at_any_rate(server, fps):
    """(C51, C52) At the far end of RTMP; the sound's lead is published."""
    url = server.url(f"clap{fps}")
    with running(url, source=f"test:?size=320x180&fps={fps}") as job:
        wait_state(job, 0, "live")
        recording = record(url, seconds=5.2, timeout_s=25)
        sound = job.statistics().sound
    offsets = measure_av_offsets_ms(recording)
    assert len(offsets) >= 4
    assert max(map(abs, offsets)) <= 40, offsets
    assert sound["codec"] == "aac"
    assert sound["is_relayed"] is True
    assert 0 <= sound["delay_ms"] < 500
    steps = [b.pts_s - a.pts_s for a, b in itertools.pairwise(recording.video)]
    assert sorted(steps)[len(steps) // 2] == pytest.approx(1 / fps, abs=0.002)


def test_an_offset_and_a_constant_delay_that_were_asked_for_are_there(server):
    """(C51) `audio.offset_ms`: for a microphone that is late itself; `publish.delay_ms`: both."""
    url = server.url("moved")
    with running(url, settings=("audio.offset_ms=120", "publish.delay_ms=700")) as job:
        wait_state(job, 0, "live")
        recording = record(url, seconds=3.5, timeout_s=25)
        stats = job.statistics()
        assert (stats.sound["offset_ms"], stats.delay_ms) == (120, 700)
    offsets = measure_av_offsets_ms(recording)
    assert len(offsets) >= 2
    assert all(80 <= offset <= 160 for offset in offsets), offsets


CODECS = {"aac": "flv", "libopus": "mkv", "pcm_s16le": "mkv"}
LOST_S = ((1.55, 2.1), (3.2, 3.25), (4.3, 5.6))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return make_clip(tmp_path_factory.mktemp("sound") / "clip.mp4", 8.0, (320, 180), face=False)


def lose_sound(clip: Path, folder: Path, codec: str) -> Path:
    """Return the clip with its sound in `codec`, a few packets lost here and there."""
    suffix = CODECS[codec]
    whole, lossy = folder / f"whole.{suffix}", folder / f"lossy.{suffix}"
    subprocess.run(
        [find_program("ffmpeg") or "ffmpeg", "-v", "error", "-i", str(clip), "-c:v", "copy",
         "-c:a", codec, str(whole)],
        check=True, timeout=60,
    )  # fmt: skip
    with av.open(str(whole)) as source, av.open(str(lossy), "w") as target:
        streams = {s.index: target.add_stream_from_template(s) for s in source.streams}
        for packet in source.demux():
            if packet.dts is None or packet.pts is None:
                continue
            at_s = float(packet.pts * packet.time_base)
            if packet.stream.type == "audio" and any(a <= at_s < b for a, b in LOST_S):
                continue
            packet.stream = streams[packet.stream.index]
            target.mux(packet)
    return lossy


@pytest.mark.parametrize("codec", CODECS)
def test_sound_with_lost_packets_lasts_as_long_as_its_time(clip, tmp_path, codec):
    """(C53) Relayed or encoded again: no hole, the length right within 20 ms, still in step."""
    require("ffmpeg")
    lossy, out = lose_sound(clip, tmp_path, codec), tmp_path / "out.mkv"
    with running(str(out), source=str(lossy)) as job:
        assert job.statistics().sound["is_relayed"] is (codec == "aac")
        assert job.wait(40)
        assert job.error is None
    wanted, found = record(tmp_path / f"whole.{CODECS[codec]}"), record(out)
    rate = found.sample_rate_hz
    ends = [start_s + len(samples) / rate for start_s, samples in found.audio]
    holes = [b[0] - end_s for end_s, b in zip(ends, found.audio[1:], strict=False)]
    # A coder works in units of 21 ms: the last one is filled up.
    unit_s = 1024 / rate
    assert max(holes) <= 0.5 * unit_s + 0.002
    whole_s = wanted.audio[-1][0] + len(wanted.audio[-1][1]) / wanted.sample_rate_hz
    length_s = ends[-1] - found.audio[0][0]
    assert -0.020 <= length_s - (whole_s - wanted.audio[0][0]) <= 0.020 + 2 * unit_s
    flashes = find_flashes(found)
    offsets = measure_av_offsets_ms(found)
    assert len(flashes) - 2 <= len(offsets) <= len(flashes), "one beep at most was lost"
    assert max(map(abs, offsets)) <= 40, offsets
    wait_until(lambda: job.state == "stopped", 5)
