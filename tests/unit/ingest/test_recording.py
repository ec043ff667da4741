"""What was recorded is read again, byte by byte and stamp by stamp, and any player opens it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import av
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, NS_PER_S, SystemClock
from livefuse.errors import IngestError, PublishConnectError
from livefuse.ingest import recording
from livefuse.ingest.playback import InputEvent, open_recording
from livefuse.ingest.reader import Item
from livefuse.ingest.recording import Recorder
from livefuse.ingest.recording_file import Event, RecordingFile, Taken
from livefuse.ingest.sidecar import (
    Gap,
    Happened,
    Opened,
    Stored,
    VideoParameters,
    get_sidecar_path,
    pack_annexb,
    restore_data,
)
from livefuse.ingest.source import Source
from livefuse.ingest.tap import describe_packet
from livefuse.packet import AudioInfo
from tests.recordings import (
    CONFIG,
    START_NS,
    change_sidecar,
    make_stream,
    read_events,
    read_items,
    write,
)

FLV = ("flv", "libx264", "aac")  # avcC, raw AAC
TS = ("mpegts", "libx264", "aac")  # start codes, ADTS
HEVC = ("mpegts", "libx265", "aac")
OPUS = ("matroska", "libx265", "libopus")  # hvcC
MJPEG = ("matroska", "mjpeg")


def take(events):
    return [event for event in events if isinstance(event, Taken)]


def assert_same(path, events):
    """Each packet is the one that came: bytes, stamps, flags, side data, arrival."""
    items, wanted = read_items(path), take(events)
    start_ns = next(event.at for event in events if isinstance(event, Opened))
    assert len(items) == len(wanted)
    for item, want in zip(items, wanted, strict=True):
        found = describe_packet(item.packet, item.arrival_ns + start_ns, is_video=item.is_video)
        assert found == want


def count_played(path):
    """Return how many pictures a player shows, and how many packets of sound it gets."""
    with av.open(str(path)) as container:
        sounds = 0
        pictures = 0
        for packet in container.demux():
            if packet.stream.type == "video":
                pictures += len(packet.decode())
            else:
                sounds += bool(packet.size)
    return pictures, sounds


@pytest.mark.parametrize("kind", [FLV, TS, HEVC, OPUS, MJPEG], ids="-".join)
def test_a_stream_comes_back_as_it_came_and_any_player_opens_it(tmp_path, kind):
    events = read_events(make_stream(*kind))
    path = write(events, tmp_path / "a.mkv")
    assert_same(path, events)
    with av.open(str(path)) as container:
        assert len(container.streams) == len(kind) - 1
        assert (container.duration or 0) / 1e6 == pytest.approx(1.33, abs=0.05)
        container.seek(1_000_000)
        assert next(container.decode(video=0)).pts is not None
    sounds = sum(event.line.sound for event in take(events))
    assert count_played(path) == (40, sounds)


@pytest.mark.parametrize("first", [FLV, TS], ids="-".join)
@pytest.mark.parametrize("second", [FLV, TS], ids="-".join)
def test_other_parameter_sets_after_a_loss_play_on_in_the_same_track(tmp_path, first, second):
    events = read_events(make_stream(*first), make_stream(*second, size=(320, 180)))
    path = write(events, tmp_path / "a.mkv")
    assert_same(path, events)
    pictures, sounds = count_played(path)
    assert (pictures, sounds) == (80, sum(event.line.sound for event in take(events)))


def test_parameter_sets_that_change_within_a_connection_are_played_too(tmp_path):
    """An RTMP server keeps its viewers when another encoder takes the key."""
    events = read_events(make_stream(*FLV))
    opened, *later = read_events(make_stream(*FLV, size=(320, 180)))
    assert isinstance(opened, Opened)
    first = next(
        i
        for i, event in enumerate(later)
        if isinstance(event, Taken) and event.line.key and not event.line.sound
    )
    event = later[first]
    assert isinstance(event, Taken)
    side = {"new_extradata": opened.video.extradata}
    later[first] = Taken(event.data, msgspec.structs.replace(event.line, side=side))
    path = write([*events, *later], tmp_path / "a.mkv")
    assert_same(path, [*events, *later])
    with av.open(str(path)) as container:
        sizes = {(frame.width, frame.height) for frame in container.decode(video=0)}
    assert sizes == {(160, 90), (320, 180)}
    assert count_played(path)[0] == 80


def test_another_codec_after_a_loss_leaves_the_first_to_players_and_is_all_there(tmp_path):
    events = read_events(make_stream(*TS), make_stream(*HEVC), make_stream(*MJPEG))
    path = write(events, tmp_path / "a.mkv")
    assert_same(path, events)
    assert count_played(path)[0] == 40
    sources = [x for x in open_recording(path, CONFIG).read() if isinstance(x, Source)]
    assert [source.decoder.name for source in sources] == ["h264", "hevc", "mjpeg"]
    assert [source.audio is None for source in sources] == [False, False, True]


def test_the_decoder_of_a_recording_decodes_it(tmp_path):
    path = write(read_events(make_stream(*FLV), make_stream(*HEVC)), tmp_path / "a.mkv")
    pictures = 0
    decoder: Any = None
    for entry in open_recording(path, CONFIG).read():
        if isinstance(entry, Source):
            pictures += len(decoder.decode(None)) if decoder is not None else 0
            decoder = entry.decoder
            assert list(entry.packets) == []
            assert not entry.is_bursty
        elif isinstance(entry, Item) and entry.is_video:
            pictures += len(decoder.decode(entry.packet))
    assert pictures + len(decoder.decode(None)) == 80


def test_a_cameras_raw_pictures_come_back_and_can_be_decoded(tmp_path):
    path = write(read_events(make_stream("nut", "rawvideo", frames=10)), tmp_path / "a.mkv")
    source, *items = open_recording(path, CONFIG).read()
    assert isinstance(source, Source)
    lumas = []
    for item in items:
        assert isinstance(item, Item)
        lumas += [
            frame.to_ndarray(format="gray").mean() for frame in source.decoder.decode(item.packet)
        ]
    assert len(lumas) == 10
    assert lumas == sorted(lumas)
    assert count_played(path)[0] == 10


def test_two_recorders_do_not_write_one_file(tmp_path):
    path = tmp_path / "a.mkv"
    first = Recorder(path, "x", SystemClock(), overwrite=True)
    with pytest.raises(PublishConnectError, match="another livefuse is writing"):
        Recorder(path, "x", SystemClock(), overwrite=True)
    events = read_events(make_stream(*FLV))
    for event in events:
        first.put(event)
    assert first.close()
    assert_same(path, events)


STAMPS = st.none() | st.integers(-(1 << 62), 1 << 62)
BASES = st.none() | st.sampled_from([(1, 90_000), (1, 1000), (1, 48_000), (1001, 30_000)])
# Start codes, ADTS headers and noise in any order: nothing of it has to make sense.
PIECES = st.sampled_from(
    [b"\0\0\1", b"\0\0\0\1", b"\0", b"\x67abc", b"\x65", b"\xff\xf1\x4c\x80\x01\x1f\xfc", b"\1\0"]
)
DATA = st.lists(PIECES | st.binary(min_size=1, max_size=40), min_size=1, max_size=6).map(b"".join)
SIDE = st.dictionaries(
    st.sampled_from(["new_extradata", "display_matrix", "skip_samples"]),
    st.binary(min_size=1, max_size=40),
    max_size=1,
)
PACKETS = st.builds(
    lambda data, **fields: Taken(data, Stored(**fields)),
    data=DATA,
    at=st.integers(START_NS, START_NS + 100 * NS_PER_S),
    sound=st.booleans(),
    pts=STAMPS,
    dts=STAMPS,
    duration=st.integers(0, 1 << 40),
    base=BASES,
    key=st.booleans(),
    corrupt=st.booleans(),
    side=SIDE,
)
EXTRADATA = st.sampled_from(
    [b"", b"\0\0\1\x67abc\0\0\1\x68d", b"\1M@\x1e\xff\xe1\0\4gabc\1\0\2hd", b"\1" * 30, b"\1"]
)
VIDEOS = st.builds(
    lambda codec, **fields: VideoParameters(codec=codec, decoder=codec, **fields),
    codec=st.sampled_from(["h264", "hevc", "mjpeg", "vp8", "rawvideo", "theora"]),
    width=st.sampled_from([0, 160]),
    height=st.sampled_from([0, 90]),
    pix_fmt=st.sampled_from(["yuv420p", "bgr24"]),
    extradata=EXTRADATA,
)
AUDIOS = st.none() | st.builds(
    AudioInfo,
    codec=st.sampled_from(["aac", "opus", "pcm_mulaw", "pcm_s16be", "cook"]),
    sample_rate_hz=st.sampled_from([8000, 48_000]),
    channels=st.integers(1, 2),
    extradata=st.sampled_from([b"", b"\x11\x88"]),
)
CONNECTIONS = st.lists(
    st.tuples(VIDEOS, AUDIOS, st.lists(PACKETS, max_size=12)), min_size=1, max_size=3
)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(connections=CONNECTIONS)
def test_whatever_comes_is_read_again_byte_by_byte(tmp_path, connections):
    """(C38, C39, C41) Wraps, missing stamps, noise, changes: the recording is exact."""
    events = []
    for video, audio, packets in connections:
        events += [Opened(at=START_NS, video=video, audio=audio), *packets]
    path = write(events, tmp_path / "a.mkv", overwrite=True)
    if not take(events):
        with pytest.raises(IngestError, match="holds no packets"):
            open_recording(path, CONFIG)
        return
    found = [
        describe_packet(item.packet, item.arrival_ns + START_NS, is_video=item.is_video)
        for item in open_packets(path)
    ]
    assert found == take(events)


def open_packets(path):
    """Yield packets whatever the decoder: codecs without one in this FFmpeg are in there too."""
    opened = open_recording(path, CONFIG)
    from livefuse.ingest import playback

    with path.open("rb") as file:
        for line in playback._iter_lines(path):
            if isinstance(line, Stored):
                yield opened._create_item(file, line, 0)


@given(data=DATA)
def test_start_codes_become_lengths_and_start_codes_again(data):
    packed = pack_annexb(data)
    if packed is None:
        assert not data.startswith((b"\0\0\1", b"\0\0\0\1"))
        return
    stored, starts = packed
    assert restore_data(Stored(at=0, starts=starts), stored) == data


# States, gaps, times.


def test_states_and_gaps_stand_between_the_packets_and_time_begins_with_the_connection(tmp_path):
    opened, *packets = read_events(make_stream(*FLV))
    events = [
        Happened(at=START_NS - 3600 * NS_PER_S, state="connecting"),  # a listener waits for long
        opened,
        packets[0],
        Happened(at=START_NS + 2 * NS_PER_S, state="stalled"),
        Gap(at=START_NS + 3 * NS_PER_S, packets=4),
        Gap(at=START_NS + 3 * NS_PER_S, packets=1),
        *packets[1:3],
        Happened(at=START_NS + 4 * NS_PER_S, state="lost"),
    ]
    found = open_recording(write(events, tmp_path / "a.mkv"), CONFIG)
    entries: list[Any] = list(found.read())
    source, first, stalled, second, third, lost = entries
    assert isinstance(source, Source)
    assert source.opened_ns == 0
    assert stalled == InputEvent("stalled", 2 * NS_PER_S)
    assert lost == InputEvent("lost", 4 * NS_PER_S)
    assert [first.dropped_before, second.dropped_before, third.dropped_before] == [0, 5, 0]
    assert found.duration_ns == 4 * NS_PER_S
    about = found.describe()
    assert (about["packets"], about["connections"], about["closed_well"]) == (3, 1, True)


# What is wrong with files.


@pytest.fixture
def path(tmp_path):
    return write(read_events(make_stream(*FLV)), tmp_path / "a.mkv")


def test_a_missing_file_or_side_car_is_told(path):
    get_sidecar_path(path).rename(path.with_name("elsewhere"))
    with pytest.raises(IngestError, match=r"a\.mkv has no side-car a\.mkv\.jsonl"):
        open_recording(path, CONFIG)
    path.unlink()
    with pytest.raises(IngestError, match="cannot read the recording"):
        open_recording(path, CONFIG)


def test_a_pipe_is_no_recording_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.mkv")
    with pytest.raises(IngestError, match="it is a pipe"):
        open_recording(tmp_path / "a.mkv", CONFIG)


WRONG = st.sampled_from([
    -1, 0, 1, 1 << 31, 1 << 62, -(1 << 63), 1 << 70, 1.5, 1e300, "", "zz", None, True, [], {},
    [0, 0], [1, 0], [1, -5], [1 << 40, 1], {"zz": "AA=="}, {"new_extradata": "AA=="},
])  # fmt: skip
OF_VIDEO = (
    "codec", "decoder", "width", "height", "pix_fmt", "extradata", "base", "aspect", "fps",
    "reorder_depth",
)  # fmt: skip
OF_PACKET = (
    "at", "pts", "dts", "duration", "base", "pos", "size", "crc", "head", "starts", "raw", "side",
    "sound", "key", "is",
)  # fmt: skip
PLACES = st.sampled_from([
    (0, "version"), (0, "id"), (1, "video"), (1, "audio"),
    *[(1, "video", name) for name in OF_VIDEO], *[(2, name) for name in OF_PACKET],
])  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=PLACES, value=WRONG)
def test_a_side_car_that_somebody_wrote_gives_a_sentence_and_never_a_fault(path, place, value):
    whole = get_sidecar_path(path).read_bytes()
    lines = whole.splitlines(keepends=True)
    line = inner = msgspec.json.decode(lines[place[0]])
    for name in place[1:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    lines[place[0]] = msgspec.json.encode(line) + b"\n"
    get_sidecar_path(path).write_bytes(b"".join(lines))
    try:
        list(open_recording(path, CONFIG).read())
    except IngestError as error:
        assert error.hint
    finally:
        get_sidecar_path(path).write_bytes(whole)


def test_a_line_that_was_being_written_is_left_out_and_one_in_between_is_damage(path):
    count = open_recording(path, CONFIG).describe()["packets"]
    change_sidecar(path, lambda data: data[: data.rstrip().rfind(b"\n") + 10])
    cut = open_recording(path, CONFIG)
    assert cut.describe()["packets"] in (count, count - 1)
    assert not cut.describe()["closed_well"]
    change_sidecar(path, lambda data: data.replace(b'"packet"', b'"pac', 1))
    with pytest.raises(IngestError, match="is damaged at line 3"):
        open_recording(path, CONFIG)


def test_another_version_is_not_guessed_at(path):
    change_sidecar(path, lambda data: data.replace(b'"version":1', b'"version":7'))
    with pytest.raises(IngestError, match="is of version 7"):
        open_recording(path, CONFIG)


def test_files_of_two_recordings_do_not_belong_together(path, tmp_path):
    other = write(read_events(make_stream(*FLV)), tmp_path / "b.mkv")
    get_sidecar_path(other).rename(get_sidecar_path(path))
    with pytest.raises(IngestError, match="does not belong to"):
        open_recording(path, CONFIG)


def test_a_file_that_was_cut_or_damaged_is_told(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IngestError, match="shorter than its side-car says"):
        open_recording(path, CONFIG)
    middle = len(whole) // 2
    path.write_bytes(
        whole[:middle]
        + bytes(b ^ 255 for b in whole[middle : middle + 300])
        + whole[middle + 300 :]
    )
    with pytest.raises(IngestError, match=r"is damaged \d\.\d+ s from its start"):
        list(open_recording(path, CONFIG).read())


# The recorder.


def test_a_recorder_writes_all_it_was_given_and_hides_the_key(tmp_path):
    events = read_events(make_stream(*TS))
    path = tmp_path / "a.mkv"
    recorder = Recorder(path, "rtmp://user:secret@host/live/key", SystemClock())
    for event in events:
        recorder.put(event)
    assert recorder.close()
    assert (recorder.packets, recorder.dropped, recorder.error) == (len(take(events)), 0, None)
    assert_same(path, events)
    text = get_sidecar_path(path).read_text("utf-8")
    assert "secret" not in text
    assert '"source":"rtmp://***@host/live/***"' in text


def test_nothing_that_came_leaves_nothing_behind(tmp_path):
    recorder = Recorder(tmp_path / "a.mkv", "x", SystemClock())
    recorder.put(Happened(at=1, state="connecting"))
    assert recorder.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.mkv", "a.mkv.jsonl"])
def test_a_file_that_is_there_is_not_written_over_unless_asked(tmp_path, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(PublishConnectError, match="is there already"):
        Recorder(tmp_path / "a.mkv", "x", SystemClock())
    assert [p.read_text() for p in tmp_path.iterdir()] == ["precious"]
    events = read_events(make_stream(*FLV))
    recorder = Recorder(tmp_path / "a.mkv", "x", SystemClock(), overwrite=True)
    for event in events:
        recorder.put(event)
    assert recorder.close()
    assert_same(tmp_path / "a.mkv", events)


def test_what_is_written_over_stays_until_something_comes(tmp_path):
    """A source that cannot be reached must not cost the recording of before."""
    path = write(read_events(make_stream(*FLV)), tmp_path / "a.mkv")
    before = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    recorder = Recorder(path, "x", SystemClock(), overwrite=True)
    recorder.put(Happened(at=1, state="connecting"))
    assert recorder.close()
    assert [file.read_bytes() for file in sorted(tmp_path.iterdir())] == before


def test_only_the_owner_may_read_what_shows_faces_bare(tmp_path):
    (tmp_path / "a.mkv").write_text("of before, for all to read")
    write(read_events(make_stream(*FLV)), tmp_path / "a.mkv", overwrite=True)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(PublishConnectError, match="cannot write"):
        Recorder(tmp_path / "none" / "a.mkv", "x", SystemClock())


def test_a_full_disc_ends_the_recording_with_one_sentence(tmp_path, monkeypatch):
    """What was written is a recording; whoever feeds it goes on."""
    events = read_events(make_stream(*TS))
    real = RecordingFile.write
    written: list[Event] = []

    def write_until_full(self, event):
        if len(written) == 30:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(event)
        real(self, event)

    monkeypatch.setattr(RecordingFile, "write", write_until_full)
    path = tmp_path / "a.mkv"
    recorder = Recorder(path, "x", SystemClock())
    for event in events:
        recorder.put(event)
    assert recorder.close()
    assert "is full: the recording ends here" in str(recorder.error)
    recorder.put(events[-1])
    assert_same(path, written)


def test_a_disc_that_is_too_slow_costs_packets_which_the_recording_tells(tmp_path, monkeypatch):
    opened, *packets = read_events(make_stream(*TS))
    real, go_on, has_begun = RecordingFile.write, threading.Event(), threading.Event()

    def write_slowly(self, event):
        has_begun.set()
        assert go_on.wait(20)
        real(self, event)

    monkeypatch.setattr(RecordingFile, "write", write_slowly)
    monkeypatch.setattr(recording, "_MAX_QUEUE_EVENTS", 20)
    recorder = Recorder(tmp_path / "a.mkv", "x", SystemClock())
    recorder.put(opened)
    assert has_begun.wait(20)
    for event in packets[:-1]:
        recorder.put(event)
        recorder.put(Happened(at=event.line.at, state="stalled"))
    assert len(recorder._queue) <= 41  # states are few, and bounded all the same
    go_on.set()
    deadline = time.monotonic() + 20
    while recorder._queue and time.monotonic() < deadline:
        time.sleep(0.01)
    recorder.put(packets[-1])
    assert recorder.close()
    assert recorder._queue_bytes == 0  # what is told of a gap counts both ways
    items = read_items(tmp_path / "a.mkv")
    assert len(items) < len(packets)
    assert items[-1].dropped_before == recorder.dropped


VICTIM = """
import sys, time
from livefuse.clock import SystemClock
from livefuse.ingest.recording import Recorder
from tests.recordings import make_stream, read_events
from pathlib import Path
recorder = Recorder(Path(sys.argv[1]), "x", SystemClock())
for event in read_events(make_stream("mpegts", "libx264", "aac", frames=200)):
    recorder.put(event)
    time.sleep(0.01)
    if recorder.packets == 60:
        print("sixty", flush=True)
"""


def test_a_recorder_that_is_killed_loses_what_it_was_just_writing(tmp_path):
    path = tmp_path / "a.mkv"
    process: Any = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "sixty\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()
    assert len(read_items(path)) >= 60
    assert not open_recording(path, CONFIG).describe()["closed_well"]
    assert count_played(path)[0] >= 10


def test_the_files_times_are_those_of_arrival_where_stamps_wrap(tmp_path):
    """(C41) A player sees one line where the stamps of 33 bits begin again."""
    opened, *packets = read_events(make_stream("flv", "libx264"))
    whole, events = 1 << 33, [opened]
    for index, packet in enumerate(packets):
        pts = (whole - 20 * 3000 + index * 3000) % whole
        line = packet.line
        at = START_NS + index * 33 * NS_PER_MS
        fields = {"pts": pts, "dts": pts, "base": (1, 90_000), "at": at, "key": line.key}
        events.append(Taken(packet.data, Stored(**fields)))
    path = write(events, tmp_path / "a.mkv")
    assert_same(path, events)
    with av.open(str(path)) as container:
        times = [
            (packet.pts or 0) * packet.time_base for packet in container.demux() if packet.size
        ]
    assert len(times) == 40
    assert times == sorted(times)
    assert 1.2 < times[-1] < 1.4
