"""The one encode: what strict servers want (C42), colour (C48), keyframes by time and on demand."""

from __future__ import annotations

import itertools

import av
import msgspec
import numpy as np
import pytest

from livefuse.config import EncodeConfig
from livefuse.errors import ConfigError
from livefuse.frame import Colour, create_frame
from livefuse.publish import encode
from livefuse.publish.encode import CANDIDATES, VideoEncoder, probe_candidate
from livefuse.publish.h264 import get_nal_type, split_nals
from tests.streams import FPS, HEIGHT, STEP, WIDTH, draw


def _encode(encoder, count, *, step=STEP, size=(WIDTH, HEIGHT), force_at=()):
    frame = create_frame(*size)
    packets, luma = [], []
    for index in range(count):
        draw(frame, index)
        luma.append(frame.y.copy())
        frame.pts, frame.arrival_ns = index * step, 1000 + index
        if index in force_at:
            encoder.force_keyframe()
        ready = encoder.encode(frame)
        frame.buffer[:] = 0  # the pool gives it to the next picture at once
        assert len(ready) == 1, "zero latency: a picture in, a picture out"
        packets += ready
    return packets, luma


def _decode(packets):
    decoder = av.CodecContext.create("h264", "r")
    pictures = [p for packet in packets for p in decoder.decode(av.Packet(packet.data))]
    return pictures + decoder.decode(None)


def _make(**settings):
    config = msgspec.convert({"encoder": "libx264", "bitrate_kbps": 600, **settings}, EncodeConfig)
    return VideoEncoder(config, WIDTH, HEIGHT, FPS, Colour())


def test_pictures_come_back_though_their_memory_was_reused_at_once():
    packets, luma = _encode(_make(), 20)
    pictures = _decode(packets)
    assert len(pictures) == 20
    for picture, sent in zip(pictures, luma, strict=True):
        assert np.abs(picture.to_ndarray()[:HEIGHT].astype(int) - sent).mean() < 6


def test_times_and_arrival_go_through_and_there_are_no_b_frames():
    packets, _ = _encode(_make(), 40)
    assert [packet.pts for packet in packets] == [index * STEP for index in range(40)]
    assert all(packet.pts == packet.dts for packet in packets)
    assert [packet.arrival_ns for packet in packets] == [1000 + index for index in range(40)]
    assert not any(p.pict_type == av.video.frame.PictureType.B for p in _decode(packets))


def test_every_keyframe_is_an_idr_that_brings_its_parameter_sets():
    packets, _ = _encode(_make(keyframe_interval_s=0.5), 40)
    for packet in packets:
        kinds = [get_nal_type(nal) for nal in split_nals(packet.data)]
        assert (5 in kinds) == packet.is_keyframe
        assert (7 in kinds and 8 in kinds) == packet.is_keyframe


def test_decoding_can_start_at_any_keyframe():
    packets, luma = _encode(_make(keyframe_interval_s=0.5), 40)
    start = [i for i, packet in enumerate(packets) if packet.is_keyframe][1]
    first = _decode(packets[start:])[0].to_ndarray()[:HEIGHT]
    assert np.abs(first.astype(int) - luma[start]).mean() < 6


@pytest.mark.parametrize("fps", [5, 24, 30, 60])
def test_keyframes_are_placed_by_time_whatever_the_rate(fps):
    packets, _ = _encode(_make(keyframe_interval_s=1.0), fps * 3, step=90_000 // fps)
    at = [packet.pts / 90_000 for packet in packets if packet.is_keyframe]
    assert len(at) == 3
    assert all(b - a == pytest.approx(1.0, abs=1 / fps) for a, b in itertools.pairwise(at))


def test_a_keyframe_comes_with_the_next_picture_when_asked_for():
    packets, _ = _encode(_make(keyframe_interval_s=10.0), 30, force_at=(7, 20))
    assert [i for i, packet in enumerate(packets) if packet.is_keyframe] == [0, 7, 20]


def test_a_cut_makes_no_keyframe():
    encoder = _make(keyframe_interval_s=10.0)
    frame = create_frame(WIDTH, HEIGHT)
    kinds = []
    for index in range(12):
        frame.y[:] = 200 if index == 6 else 30
        frame.pts = index * STEP
        kinds += [packet.is_keyframe for packet in encoder.encode(frame)]
    assert kinds == [True] + [False] * 11


@pytest.mark.parametrize(
    ("colour", "matrix", "full"),
    [
        (Colour("bt709", full_range=False), 1, 1),
        (Colour("bt601", full_range=False), 6, 1),
        (Colour("bt709", full_range=True), 1, 2),
        (Colour("bt601", full_range=True), 6, 2),
    ],
)
def test_colour_is_written_into_the_stream(colour, matrix, full):
    encoder = VideoEncoder(EncodeConfig(encoder="libx264"), WIDTH, HEIGHT, FPS, colour)
    picture = _decode(_encode(encoder, 2)[0])[0]
    assert (picture.colorspace, picture.color_primaries, picture.color_range) == (
        matrix,
        matrix,
        full,
    )
    assert (encoder.info.matrix, encoder.info.full_range) == colour


def test_the_bit_rate_is_what_was_asked_for():
    encoder = _make(bitrate_kbps=500)
    frame = create_frame(WIDTH, HEIGHT)
    random = np.random.default_rng(3)
    size = 0
    for index in range(90):
        frame.y[:] = random.integers(16, 235, frame.y.shape, dtype=np.uint8)
        frame.pts = index * STEP
        size += sum(len(packet.data) for packet in encoder.encode(frame))
    assert size * 8 * FPS / 90 / 1000 < 500 * 1.35  # the first second may empty the buffer


def test_what_is_not_here_is_refused_with_the_cure_and_auto_falls_back():
    missing = next(one.encoder for one in CANDIDATES if probe_candidate(one))
    with pytest.raises(ConfigError, match=missing) as caught:
        VideoEncoder(
            msgspec.convert({"encoder": missing}, EncodeConfig), WIDTH, HEIGHT, FPS, Colour()
        )
    assert "libx264" in caught.value.hint
    assert VideoEncoder(EncodeConfig(), WIDTH, HEIGHT, FPS, Colour()).info.codec == "h264"


def test_a_device_that_cannot_be_opened_is_no_reason_to_fail(monkeypatch):
    def refuse(*_args):
        raise PermissionError(1, "Operation not permitted")

    candidate = encode.CANDIDATES[0]._replace(device_glob="/dev/null")
    monkeypatch.setattr(encode, "_open_context", refuse)
    assert "not permitted" in encode.probe_candidate.__wrapped__(candidate)


def test_info_describes_the_stream():
    info = _make().info
    assert (info.width, info.height, info.fps_num, info.fps_den) == (WIDTH, HEIGHT, FPS, 1)
    assert [get_nal_type(nal) for nal in split_nals(info.extradata)][:2] == [7, 8]
    odd = VideoEncoder(EncodeConfig(encoder="libx264"), WIDTH, HEIGHT, 30000 / 1001, Colour())
    assert (odd.info.fps_num, odd.info.fps_den) == (30000, 1001)
    assert odd.flush() == []
