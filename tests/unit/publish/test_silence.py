"""Silence that fits between a stream's own packets."""

from fractions import Fraction

import av
import numpy as np
import pytest

from livefuse.aac import build_config
from livefuse.packet import AudioInfo
from livefuse.publish.silence import create_silence


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate_hz", [44_100, 48_000])
def test_it_decodes_to_nothing_to_be_heard_again_and_again(rate_hz, channels):
    info = AudioInfo("aac", rate_hz, channels, build_config(rate_hz, channels))
    silence = create_silence(info)
    assert silence is not None
    assert silence.duration == 1024 * 90_000 // rate_hz
    decoder = av.CodecContext.create("aac", "r")
    decoder.extradata = info.extradata
    heard = []
    for index in range(10):
        packet = av.Packet(silence.data)
        packet.pts, packet.time_base = index * 1024, Fraction(1, rate_hz)
        heard += [frame.to_ndarray() for frame in decoder.decode(packet)]
    assert len(heard) >= 9
    assert max(float(np.abs(samples).max()) for samples in heard) < 1e-3


def test_what_is_no_plain_aac_has_none():
    assert create_silence(AudioInfo("opus", 48_000, 2)) is None
    main_profile = build_config(48_000, 2, object_type=1)
    assert create_silence(AudioInfo("aac", 48_000, 2, main_profile)) is None
