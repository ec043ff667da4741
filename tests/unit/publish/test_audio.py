"""Sound: AAC relayed, ADTS unwrapped, everything else encoded, always in step."""

from __future__ import annotations

import itertools

import av
import numpy as np
import pytest

from livefuse.aac import build_adts_header, parse_config
from livefuse.config import AudioConfig
from livefuse.errors import PublishError
from livefuse.packet import AudioInfo, Packet
from livefuse.publish.audio import AudioTrack
from tests.streams import make_sound


def _decode(track, packets):
    decoder = av.CodecContext.create("aac", "r")
    decoder.extradata = track.info.extradata
    return np.concatenate(
        [f.to_ndarray()[0] for p in packets for f in decoder.decode(av.Packet(p.data))]
    )


def _tone(rate_hz, channels=1, seconds=1.0, start_s=0.0, hz=440.0):
    """Yield 20 ms of s16le at a time."""
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    samples = (8000 * np.sin(2 * np.pi * hz * times)).astype("<i2")
    step = rate_hz // 50
    for at in range(0, len(samples), step):
        data = np.repeat(samples[at : at + step], channels).tobytes()
        pts = round((start_s + at / rate_hz) * 90_000)
        yield Packet("audio", data, pts, pts)


def _find_config(info):
    config = parse_config(info.extradata)
    assert config is not None
    return config


def _frame(config, unit):
    return build_adts_header(config, len(unit)) + unit


def _measure_hz(samples, rate_hz):
    part = samples[len(samples) // 4 : 3 * len(samples) // 4]
    return np.abs(np.fft.rfft(part)).argmax() * rate_hz / len(part)


def test_aac_with_its_configuration_passes_as_it_is():
    packets, info = make_sound(0.5)
    track = AudioTrack(info, AudioConfig())
    assert track.is_relayed
    assert track.info == info
    assert track.process(packets[3])[0] is packets[3]
    assert track.flush() == []


def test_adts_frames_lose_their_headers_and_keep_their_times():
    packets, info = make_sound(0.5)
    config = _find_config(info)
    track = AudioTrack(AudioInfo("aac", 48_000, 1), AudioConfig())
    framed = [Packet("audio", _frame(config, p.data), p.pts, p.dts) for p in packets]
    out = [unit for packet in framed for unit in track.process(packet)]
    assert [(unit.data, unit.pts) for unit in out] == [(p.data, p.pts) for p in packets]
    assert track.is_relayed
    assert parse_config(track.info.extradata) == config


def test_adts_that_is_not_what_was_announced_is_made_to_fit():
    packets, info = make_sound(0.5)
    config = _find_config(info)
    track = AudioTrack(
        AudioInfo("aac", 44_100, 2, b"\x12\x10"), AudioConfig()
    )  # as outputs were told
    out = []
    for p in packets:
        out += track.process(Packet("audio", _frame(config, p.data), p.pts, p.dts))
    assert not track.is_relayed
    assert track.errors == 0
    assert _measure_hz(_decode(track, out), 44_100) == pytest.approx(440, abs=10)


@pytest.mark.parametrize(
    ("rate_hz", "channels", "out_hz", "out_channels"),
    [(8_000, 1, 48_000, 1), (44_100, 2, 44_100, 2), (48_000, 6, 48_000, 2), (96_000, 2, 48_000, 2)],
)
def test_other_codecs_become_aac_of_a_usual_rate(rate_hz, channels, out_hz, out_channels):
    track = AudioTrack(AudioInfo("pcm_s16le", rate_hz, channels), AudioConfig())
    assert (track.info.sample_rate_hz, track.info.channels) == (out_hz, out_channels)
    out = [p for packet in _tone(rate_hz, channels) for p in track.process(packet)]
    out += track.flush()
    assert track.errors == 0
    assert _measure_hz(_decode(track, out), out_hz) == pytest.approx(440, abs=5)
    steps = [b.pts - a.pts for a, b in itertools.pairwise(out)]
    assert all(abs(step - 1024 * 90_000 / out_hz) <= 1 for step in steps)


def test_sound_stays_at_its_place_on_the_line():
    """A click at 0.5 s is at 0.5 s again, within a few ms."""
    rate_hz = 48_000
    samples = np.zeros(rate_hz, "<i2")
    samples[rate_hz // 2 : rate_hz // 2 + 48] = 30_000
    track = AudioTrack(AudioInfo("pcm_s16le", rate_hz, 1), AudioConfig())
    out = []
    for at in range(0, rate_hz, 960):
        pts = at * 90_000 // rate_hz + 7_000
        out += track.process(Packet("audio", samples[at : at + 960].tobytes(), pts, pts))
    out += track.flush()
    # A decoder gives the samples of a packet at its time: the first one is the encoder's run-up.
    place = np.abs(_decode(track, out)).argmax() / rate_hz + out[0].pts / 90_000
    assert place == pytest.approx(0.5 + 7_000 / 90_000, abs=0.005)


def test_jitter_moves_nothing_and_a_hole_becomes_silence():
    """C53: the length is the wall time."""
    track = AudioTrack(AudioInfo("pcm_s16le", 48_000, 1), AudioConfig())
    packets = list(_tone(48_000, seconds=2.0))
    out = []
    for index, packet in enumerate(packets):
        if 30 <= index < 40:
            continue  # 200 ms are lost
        jitter = (index % 3 - 1) * 90
        out += track.process(Packet("audio", packet.data, packet.pts + jitter, packet.pts))
    out += track.flush()
    samples = _decode(track, out)
    assert len(samples) / 48_000 == pytest.approx(2.0, abs=0.06)
    begin = int((0.65 - out[0].pts / 90_000) * 48_000)
    assert np.abs(samples[begin : begin + 4800]).max() < 0.02
    steps = {b.pts - a.pts for a, b in itertools.pairwise(out)}
    assert steps == {1920}


def test_a_long_hole_stays_a_hole():
    track = AudioTrack(AudioInfo("pcm_s16le", 48_000, 1), AudioConfig())
    out = []
    for packet in [*_tone(48_000, seconds=0.5), *_tone(48_000, seconds=0.5, start_s=60.0)]:
        out += track.process(packet)
    out += track.flush()
    assert len(out) < 60
    assert max(b.pts - a.pts for a, b in itertools.pairwise(out)) > 58 * 90_000


def test_time_that_steps_back_is_cut_not_repeated():
    track = AudioTrack(AudioInfo("pcm_s16le", 48_000, 1), AudioConfig())
    packets = list(_tone(48_000, seconds=1.0))
    out = []
    for packet in [*packets, *packets[25:], *packets[25:]]:
        out += track.process(packet)
    assert all(a.pts < b.pts for a, b in itertools.pairwise(out))
    assert out[-1].pts < 90_000


def test_broken_packets_are_counted_not_raised():
    track = AudioTrack(AudioInfo("mp3", 44_100, 2), AudioConfig())
    for _ in range(5):
        track.process(Packet("audio", b"\x00broken\xff" * 20, 0, 0))
    assert track.errors > 0


def test_a_codec_that_nobody_knows_is_refused():
    with pytest.raises(PublishError, match="wonder"):
        AudioTrack(AudioInfo("wonder", 44_100, 2), AudioConfig())
