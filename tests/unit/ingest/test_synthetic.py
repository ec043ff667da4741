"""`test:` and `demo:`: what they draw, how they keep time, how their sound fits."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest

from livefuse.clock import NS_PER_S, ManualClock, SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import ConfigError
from livefuse.ingest.scene.voice import SAMPLE_RATE_HZ, find_sync_moments
from livefuse.ingest.synthetic import SyntheticIngest, is_flash_due, parse_synthetic_url
from tests.sinks import CollectingSink

CONFIG = IngestConfig()
KINDS = ["test", "demo"]


def run(url, clock=None, sink=None, config=CONFIG, **options):
    options = {"paced": False, "every_frame": True} | options
    ingest = SyntheticIngest(url, config, clock or ManualClock(), **options)
    sink = sink or CollectingSink()
    ingest.run(sink)
    return sink


def decode_audio(sink):
    decoder = av.CodecContext.create("aac", "r")
    decoder.extradata = sink.media.audio.extradata
    return np.concatenate(
        [
            frame.to_ndarray()[0]
            for packet in sink.packets
            for frame in decoder.decode(av.Packet(packet.data))
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_each_frame_has_its_number_and_its_time(kind):
    sink = run(f"{kind}:?size=320x180&fps=25&frames=40")
    assert sink.counters == list(range(40))
    assert sink.pts == [number * 3600 for number in range(40)]
    assert sink.states == ["live", "ended"]
    media = sink.media
    assert (media.width, media.height, media.fps) == (320, 180, 25.0)
    assert (media.decoder, media.is_live) == ("synthetic", False)
    assert (media.colour.matrix, media.colour.full_range) == ("bt709", False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_moves_and_is_the_same_each_time(kind):
    url = f"{kind}:?size=320x180&frames=31"
    first, second = (run(url, sink=CollectingSink(keep_every=15)) for _ in range(2))
    for a, b in zip(first.buffers, second.buffers, strict=True):
        assert np.array_equal(a, b)
    for a, b in pairwise(first.buffers):
        below_the_counter = slice(20, 180)
        assert (a[below_the_counter] != b[below_the_counter]).mean() > 0.01


def test_sound_is_aac_that_decodes_and_is_as_long_as_the_picture():
    sink = run("demo:?size=160x90&frames=60")
    audio = sink.media.audio
    assert (audio.codec, audio.sample_rate_hz, audio.channels) == ("aac", 48_000, 1)
    samples = decode_audio(sink)
    assert abs(len(samples) / SAMPLE_RATE_HZ - 2.0) < 0.05
    assert 0.02 < np.abs(samples).max() < 1.0
    times = [packet.pts for packet in sink.packets]
    assert times[0] == 0
    assert {b - a for a, b in pairwise(times)} == {1920}
    assert all(packet.dts == packet.pts for packet in sink.packets)


def test_the_voice_is_loud_when_the_mouth_is_open():
    from livefuse.ingest.scene import speech

    samples = decode_audio(run("demo:?size=160x90&frames=150"))
    ten_ms = SAMPLE_RATE_HZ // 100
    level = np.abs(samples[: len(samples) // ten_ms * ten_ms]).reshape(-1, ten_ms).mean(axis=1)
    times_s = (np.arange(len(level)) + 0.5) / 100
    mouth = np.array([speech.compute_mouth_opening(time_s) for time_s in times_s])
    assert np.corrcoef(level, mouth)[0, 1] > 0.6
    assert level[mouth == 0].mean() < 0.1 * level[mouth > 0.5].mean()


@pytest.mark.parametrize("fps", [Fraction(30), Fraction(25), Fraction(30000, 1001), Fraction(24)])
def test_flash_and_beep_begin_with_the_same_frame(fps):
    moments = list(find_sync_moments(fps, 0.0, 4.0))
    assert len(moments) >= 4
    for moment_s in moments:
        number = moment_s * fps
        assert abs(number - round(number)) < 1e-6
        assert is_flash_due(moment_s, fps)
        assert not is_flash_due(moment_s - float(1 / fps), fps)
    assert not is_flash_due(0.0, fps)


def test_no_sound_when_it_is_not_wanted():
    for url, config in (("test:?audio=0", CONFIG), ("test:", IngestConfig(audio=False))):
        sink = run(f"{url}{'&' if '?' in url else '?'}size=160x90&frames=3", config=config)
        assert sink.media.audio is None
        assert not sink.packets


def test_paced_frames_keep_absolute_deadlines():
    clock = ManualClock(start_ns=5 * NS_PER_S)
    sink = run("test:?size=160x90&fps=30&frames=91", clock, paced=True, every_frame=False)
    assert sink.media.is_live
    assert sink.counters == list(range(91))
    starts = [(ns - 5 * NS_PER_S) / NS_PER_S for ns in sink.arrivals_ns]
    assert np.allclose(starts, np.arange(91) / 30, atol=1e-6), "no drift after three seconds"


def test_late_frames_are_left_out_not_piled_up():
    clock = ManualClock()

    class SlowSink(CollectingSink):
        def on_frame(self, frame):
            if len(self.pts) == 10:
                clock.advance(NS_PER_S // 2)
            super().on_frame(frame)

    sink = run("test:?size=160x90&frames=60", clock, SlowSink(), paced=True, every_frame=False)
    assert sink.counts["dropped_late"] == 13
    assert sink.counters == [*range(11), *range(24, 60)]
    assert sink.pts[11] == 24 * 3000
    assert np.diff([packet.pts for packet in sink.packets]).max() == 1920, "sound has no hole"


def test_a_full_pool_drops_live_and_waits_where_every_frame_counts():
    class HungrySink(CollectingSink):
        def on_frame(self, frame):
            super().on_frame(frame)
            if len(self.pts) == 5:
                self._starve = 3

    url = "test:?size=160x90&frames=20"
    live = run(url, sink=HungrySink(), paced=True, every_frame=False)
    assert live.counts["dropped_pool"] == 3
    assert len(live.counters) == 17
    kept = run(url, sink=HungrySink())
    assert kept.counters == list(range(20))
    assert not kept.counts


def test_nothing_counts_as_dropped_before_the_job_takes_frames():
    sink = CollectingSink(starve=4)
    run("test:?size=160x90&frames=20", sink=sink, paced=True, every_frame=False)
    assert not sink.counts
    assert sink.counters == list(range(4, 20))


def test_stop_ends_at_once():
    ingest = SyntheticIngest("test:?size=160x90&fps=1", CONFIG, SystemClock())
    sink = CollectingSink(stop_after=1)
    thread = threading.Thread(target=ingest.run, args=(sink,))
    thread.start()
    assert sink.enough.wait(10)
    started = time.monotonic()
    ingest.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - started < 0.5, "the next frame is due in a second"
    assert sink.states[-1] == "ended"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("test:?sise=640x360", "did you mean size"),
        ("test:?size=641x360", "size=641x360 cannot be used"),
        ("demo:?size=huge", "size=huge"),
        ("demo:?size=32x32", "size=32x32"),
        ("test:?fps=0", "fps=0"),
        ("test:?fps=1/0", "fps=1/0"),
        ("test:?fps=soon", "fps=soon"),
        ("test:?frames=-1", "frames=-1"),
        ("test:?audio=yes", "audio=yes"),
        ("test:pattern", "test:pattern"),
    ],
)
def test_a_wrong_option_is_told_with_a_way_out(url, words):
    with pytest.raises(ConfigError) as caught:
        SyntheticIngest(url, CONFIG, ManualClock())
    assert words in str(caught.value)
    assert caught.value.hint


def test_rates_of_television_are_exact():
    assert parse_synthetic_url("test:?fps=29.97").fps == Fraction(30000, 1001)
    assert parse_synthetic_url("test:?fps=59.94").fps == Fraction(60000, 1001)
    assert parse_synthetic_url("test:?fps=12.5").fps == Fraction(25, 2)
    assert parse_synthetic_url("test:?fps=30000/1001").fps == Fraction(30000, 1001)
    assert parse_synthetic_url("demo:").has_sync is False
    assert parse_synthetic_url("demo:?sync=1").has_sync is True
