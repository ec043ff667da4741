"""FLV and MPEG-TS by our own writers, read back by FFmpeg."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.packet import Packet
from livefuse.publish.flv_writer import FlvWriter
from livefuse.publish.ts_writer import TsWriter
from tests.streams import FPS, HEIGHT, STEP, WIDTH, make_media, read_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.packet import StreamsInfo
    from livefuse.publish.mux import PacketWriter

WRITERS: dict[str, Callable[[StreamsInfo], PacketWriter]] = {"flv": FlvWriter, "mpegts": TsWriter}


def _write(form, media, packets=None):
    writer = WRITERS[form](media.streams)
    chunks = [writer.build_header(), *map(writer.write, packets or media.packets)]
    return b"".join(chunks)


@pytest.mark.parametrize("form", WRITERS)
def test_every_picture_and_sound_comes_back(form):
    media = make_media()
    found = read_back(_write(form, media), form)
    assert found.codecs == ["h264", "aac"]
    assert found.sizes == {(WIDTH, HEIGHT)}
    assert len(found.pictures) == len(media.video)
    whole = (len(media.video) - 1) / FPS
    assert found.pictures[-1] - found.pictures[0] == pytest.approx(whole, abs=0.002)
    assert len(found.of("audio")) >= len(media.audio) - 1


@pytest.mark.parametrize("form", WRITERS)
def test_sound_and_picture_keep_their_distance(form):
    media = make_media()
    found = read_back(_write(form, media), form)
    wanted = (media.audio[0].pts - media.video[0].pts) / 90_000
    distance = found.of("audio")[0].pts_s - found.of("video")[0].pts_s
    assert distance == pytest.approx(wanted, abs=0.002)


@pytest.mark.parametrize("form", WRITERS)
def test_a_stream_without_sound_is_whole(form):
    media = make_media(with_audio=False)
    found = read_back(_write(form, media), form)
    assert found.kinds == ["video"]
    assert len(found.packets) == len(media.video)
    assert found.packets[0].is_keyframe


@pytest.mark.parametrize("form", WRITERS)
@given(stamps=st.lists(st.integers(-1000, 200_000), min_size=2, max_size=20))
def test_decoding_times_strictly_increase_whatever_comes(form, stamps):
    """C38: repeated, backwards, before the start."""
    media = make_media()
    packets = [
        Packet("video", media.video[i % len(media.video)].data, dts, dts, STEP, i == 0)
        for i, dts in enumerate(stamps)
    ]
    found = read_back(_write(form, media, packets), form, decode=False)
    video = [read.dts for read in found.of("video")]
    assert len(video) == sum(dts >= 0 for dts in stamps)
    assert all(a < b for a, b in itertools.pairwise(video))


def test_each_packet_is_out_at_once_though_no_sound_comes():
    """The reason for having these writers: FFmpeg would wait for the other stream."""
    media = make_media()
    for make_writer in WRITERS.values():
        writer = make_writer(media.streams)
        writer.build_header()
        assert all(len(writer.write(p)) > len(p.data) * 0.8 for p in media.video)


def test_a_transport_stream_is_whole_packets_with_running_counters_and_tables_first():
    media = make_media()
    data = _write("mpegts", media)
    packets = [data[at : at + 188] for at in range(0, len(data), 188)]
    assert len(packets[-1]) == 188
    assert all(packet[0] == 0x47 for packet in packets)
    pids = [(packet[1] & 0x1F) << 8 | packet[2] for packet in packets]
    assert pids[:2] == [0, 0x1000]
    for pid in set(pids):
        counters = [p[3] & 15 for p, q in zip(packets, pids, strict=True) if q == pid]
        assert all((a + 1) % 16 == b for a, b in itertools.pairwise(counters))


def test_tables_come_before_every_keyframe():
    media = make_media()
    writer = TsWriter(media.streams)
    for packet in media.video:
        if packet.is_keyframe:
            assert writer.write(packet)[1:3] == b"\x40\x00"  # PID 0: the PAT


@given(st.integers(1, 2000))
def test_a_pes_of_any_length_fills_its_packets(size):
    media = make_media()
    writer = TsWriter(media.streams)
    unit = b"\x00\x00\x01\x41" + b"\xab" * size
    data = writer.write(Packet("video", unit, 0, 0, STEP, is_keyframe=False))
    assert len(data) % 188 == 0
    found = read_back(_write("mpegts", media, [media.video[0]]) + data, "mpegts", decode=False)
    # The delimiter is written before it, and FFmpeg's parser counts it in.
    assert found.of("video")[-1].size == len(unit) + 6


def test_flv_keeps_times_beyond_the_24_bits_of_its_first_field():
    media = make_media(with_audio=False)
    late = 90 * ((1 << 24) + 5)
    data = _write("flv", media, [Packet("video", media.video[0].data, late, late)])
    assert read_back(data, "flv").packets[0].dts == (1 << 24) + 5
