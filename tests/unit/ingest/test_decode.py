"""Damage, new parameter sets and failing decoders: what reaches the job (C44)."""

from __future__ import annotations

import threading
from fractions import Fraction

import av
import numpy as np
import pytest
from av.codec.context import CodecContext

from livefuse.clock import NS_PER_MS, ManualClock, SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import IngestEndedError
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.source import NewExtradata, Source, open_source, set_up_decoder
from livefuse.ingest.trust import ERROR_BUDGET, MAX_RENEWALS
from tests.clips import write_clip
from tests.damage import SIZE, cut, encode_noise
from tests.sinks import CollectingSink

CONFIG = IngestConfig()
MS = Fraction(1, 1000)
FLV_HEADER_BYTES = 13


class Pixels(CollectingSink):
    """Keeps the luma of every picture by its number."""

    def __init__(self):
        super().__init__(capacity=2)
        self.shown = {}

    def on_frame(self, frame):
        frame.fill_planes()
        self.shown[round(frame.pts / 3000)] = frame.y.copy()
        super().on_frame(frame)


class Run:
    """A stage fed with packets at 30 a second."""

    def __init__(self, codec, extradata=b"", decoder=None):
        self.clock, self.sink = ManualClock(), Pixels()
        self.stage = DecodeStage(self.sink, CONFIG, self.clock, threading.Event(), is_live=True)
        self.number = 0
        self.source = self.begin(codec, extradata, decoder)

    def begin(self, codec, extradata=b"", decoder=None):
        if decoder is None:
            decoder = CodecContext.create(codec, "r")
            if extradata:
                decoder.extradata = extradata
            set_up_decoder(decoder, CONFIG, is_live=True)
        source = Source(
            url="rtsp://127.0.0.1/x", decoder=decoder, time_base=MS, audio=None, fps=30.0,
            aspect=None, decoder_name=codec, packets=iter(()), close=lambda: None,
        )  # fmt: skip
        self.stage.begin_segment(source)
        return source

    def feed(self, packets, *, lost=(), corrupt=(), opaque=None):
        for data in packets:
            packet = av.Packet(data)
            packet.pts = packet.dts = round(self.number * 1000 / 30)
            packet.time_base = MS
            packet.is_corrupt = self.number in corrupt
            packet.opaque, opaque = opaque, None
            if self.number not in lost:
                self.stage.take(packet, self.clock.now_ns(), is_video=True)
            self.number += 1
            self.clock.advance(33 * NS_PER_MS)
        return self.sink


def show_whole(codec, packets):
    return Run(codec).feed(packets).shown


def get_wrong(whole, sink):
    """Return the numbers of the pictures that are not what they would be without any loss."""
    return [n for n, luma in sink.shown.items() if not np.array_equal(luma, whole[n])]


def test_no_smeared_picture_of_h264_is_seen():
    """FFmpeg sees nearly every hole; in a picture of 3 kB it may miss one in 80."""
    film = encode_noise(parameters="cabac=1", size=(320, 180))
    whole = show_whole("h264", film.packets)
    missed = 0
    for hit in (20, 21, 24, 27, 30, 33, 36, 39):
        for start, end in ((0.4, 0.6), (0.7, 1.0), (0.1, 0.5)):
            damaged = [cut(p, start, end) if n == hit else p for n, p in enumerate(film.packets)]
            sink = Run("h264").feed(damaged[:44])
            missed += bool(get_wrong(whole, sink))
            # What was held back comes again with the next keyframe.
            assert set(sink.shown) >= {*range(hit), *range(40, 44)}
    assert missed <= 1


@pytest.mark.parametrize("lost", [20, 25, 30])
@pytest.mark.parametrize(("name", "codec"), [("h264", "libx264"), ("hevc", "libx265")])
def test_a_picture_that_never_came_leaves_no_smear(name, codec, lost):
    film = encode_noise(codec, gop=22 if lost == 20 else 20)
    whole = show_whole(name, film.packets)
    sink = Run(name).feed(film.packets, lost={lost})
    assert len(whole) == 60
    assert not get_wrong(whole, sink)
    assert len(sink.shown) > 35


def test_a_damaged_keyframe_is_not_taken_for_a_whole_one():
    film = encode_noise()
    sink = Run("h264").feed(film.packets, corrupt={20})
    assert 20 not in sink.shown
    assert 21 not in sink.shown
    assert 40 in sink.shown


@pytest.mark.parametrize(("name", "codec"), [("h264", "libx264"), ("hevc", "libx265")])
@pytest.mark.parametrize("change", [{"size": (96, 160)}, {"full_range": True}])
def test_parameter_sets_that_change_in_the_stream_get_a_new_decoder(name, codec, change):
    run = Run(name)
    first = encode_noise(codec, frames=20)
    run.feed(first.packets)
    before = run.source.decoder
    sink = run.feed(encode_noise(codec, frames=20, **change).packets)
    assert run.source.decoder is not before
    assert sink.counts["decoder_renewed"] == 1
    assert sink.counts["input_changed"] == 1
    assert not sink.counts["decode_error"]
    assert set(sink.shown) == set(range(40))
    assert {luma.shape for luma in sink.shown.values()} == {SIZE[::-1]}


def test_extradata_that_changes_gets_a_new_decoder():
    first = encode_noise(frames=20, is_global=True)
    second = encode_noise(frames=20, is_global=True, size=(96, 160))
    run = Run("h264", first.extradata)
    run.feed(first.packets)
    sink = run.feed(second.packets, opaque=NewExtradata(second.extradata))
    assert set(sink.shown) == set(range(40))
    assert sink.counts["decoder_renewed"] == 1
    run.feed(second.packets, opaque=NewExtradata(second.extradata))
    assert sink.counts["decoder_renewed"] == 1, "the same again is nothing new"


def test_flv_whose_sequence_header_changes_goes_on(tmp_path):
    """FFmpeg says so beside a packet; RTMP servers do it when an encoder changes its size."""
    first = write_clip(tmp_path / "first.flv", size=(160, 96))
    second = write_clip(tmp_path / "second.flv", size=(96, 160))
    both = tmp_path / "both.flv"
    both.write_bytes(first.read_bytes() + second.read_bytes()[FLV_HEADER_BYTES:])
    source = open_source(str(both), CONFIG, is_live=True, url="rtmp://127.0.0.1/live/x")
    sink, clock = CollectingSink(), SystemClock()
    stage = DecodeStage(sink, CONFIG, clock, threading.Event(), is_live=True)
    stage.begin_segment(source)
    for is_video, packet in source.packets:
        stage.take(packet, clock.now_ns(), is_video=is_video)
    stage.flush()
    source.close()
    assert len(sink.pts) == 60
    assert sink.counts["decoder_renewed"] == 1


class Stubborn:
    """A decoder that works until it is broken."""

    name = "h264"
    codec = av.Codec("h264", "r")
    extradata = None

    def __init__(self):
        self._real = CodecContext.create("h264", "r")
        self.thread_count, self.thread_type = 1, self._real.thread_type
        self.flags = self._real.flags
        self.is_broken = False
        self.errors = 0

    def decode(self, packet):
        if self.is_broken:
            self.errors += 1
            raise av.error.InvalidDataError(1, "broken")
        return self._real.decode(packet)


def test_a_decoder_that_fails_beyond_its_budget_is_replaced():
    decoder = Stubborn()
    run = Run("h264", decoder=decoder)
    film = encode_noise(frames=120, gop=60)
    run.feed(film.packets[:20])
    decoder.is_broken = True
    sink = run.feed(film.packets[20:])
    assert decoder.errors == ERROR_BUDGET + 1
    assert sink.counts["decoder_renewed"] >= 1
    assert set(sink.shown) == {*range(20), *range(60, 120)}


def test_pictures_that_no_decoder_manages_end_the_connection():
    run = Run("h264")
    film = encode_noise()
    run.feed(film.packets)
    with pytest.raises(IngestEndedError, match="cannot be decoded any more"):
        run.feed([b"\0\0\0\1\x65" + bytes([n % 251] * 60) for n in range(400)])
    assert run.sink.counts["decoder_renewed"] == MAX_RENEWALS
    # The next connection starts afresh.
    run.number = 900
    run.begin("h264")
    assert len(run.feed(film.packets).shown) == 120


def test_a_decoder_that_says_nothing_at_all_is_replaced():
    class Silent(Stubborn):
        def decode(self, packet):
            return [] if self.is_broken else self._real.decode(packet)

    decoder = Silent()
    run = Run("h264", decoder=decoder)
    film = encode_noise(frames=180)
    run.feed(film.packets[:20])
    decoder.is_broken = True
    sink = run.feed(film.packets[20:])
    assert sink.counts["decoder_renewed"] >= 1
    assert max(sink.shown) == 179
