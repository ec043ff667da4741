"""AAC of a job becomes Opus for viewers, in packets of 20 ms that follow the job's line."""

import itertools
from dataclasses import replace

import av
import numpy as np
import pytest

from livefuse.frame import TIME_BASE_HZ
from livefuse.publish.opus import OpusTranscoder
from tests.streams import make_sound

STEP = TIME_BASE_HZ // 50


@pytest.mark.parametrize("rate_hz", [44_100, 48_000])
def test_packets_of_20_ms_stand_where_the_sound_stood(rate_hz):
    packets, info = make_sound(2.0, rate_hz)
    opus = OpusTranscoder(info, 96)
    out = [made for packet in packets for made in opus.process(packet)]
    assert all(b.pts - a.pts == STEP for a, b in itertools.pairwise(out))
    assert abs(out[0].pts - packets[0].pts) < TIME_BASE_HZ // 100
    assert abs(out[-1].pts - packets[-1].pts) < TIME_BASE_HZ // 20


def test_it_is_the_same_tone():
    packets, info = make_sound(1.0)
    opus = OpusTranscoder(info, 96)
    decoder = av.CodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.layout = 48_000, "stereo"
    heard = [
        frame.to_ndarray().reshape(-1, 2)[:, 0]
        for packet in packets
        for made in opus.process(packet)
        for frame in decoder.decode(av.Packet(made.data))
    ]
    spectrum = np.abs(np.fft.rfft(np.concatenate(heard)[-24_000:].astype(float)))
    assert abs(int(spectrum.argmax()) * 2 - 440) <= 4


def test_a_jump_of_the_line_is_followed():
    """Sound that was away comes back later on the line."""
    packets, info = make_sound(1.0)
    opus = OpusTranscoder(info, 96)
    moved = [
        replace(p, pts=p.pts + 90_000, dts=p.dts + 90_000) if p.pts > 45_000 else p for p in packets
    ]
    out = [made for packet in moved for made in opus.process(packet)]
    steps = {b.pts - a.pts for a, b in itertools.pairwise(out)}
    assert len(steps - {STEP}) == 1
    assert abs(max(steps) - 90_000 - STEP) < 2 * STEP
