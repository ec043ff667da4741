"""`replay:FILE` is the source again: its pace, its pauses, its losses; the golden recordings."""

from __future__ import annotations

import io
import itertools
import threading
from functools import partial
from typing import Any

import av
import pytest
from msgspec.structs import replace

from livefuse.clock import NS_PER_MS, NS_PER_S, ManualClock, SystemClock
from livefuse.control.record_session import RecordSink
from livefuse.errors import IngestEndedError, IngestNotFoundError
from livefuse.ingest import create_ingest
from livefuse.ingest.camera import Camera, CameraIngest, describe_camera_source
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.playback import InputEvent, open_recording
from livefuse.ingest.reader import Item
from livefuse.ingest.recording_file import Event, Taken
from livefuse.ingest.replay import ReplayIngest
from livefuse.ingest.sidecar import Gap, Happened, Opened, get_sidecar_path
from livefuse.ingest.source import Source
from livefuse.ingest.tap import PacketStage, Tap, TappedIngest, TappedStage, tap_stage
from tests.recordings import CONFIG, START_NS, make_stream, read_events, write
from tests.replay.make import DATA, MAKERS, make
from tests.sinks import CollectingSink

KB = 1024


def play(path, *, clock=None, sink=None, tap=None):
    clock, sink = clock or ManualClock(START_NS), sink or CollectingSink(capacity=4)
    create_ingest(f"replay:{path}", CONFIG, clock, paced=True, every_frame=False, tap=tap).run(sink)
    return sink


# The golden recordings: each is what its name says, and small.


def test_the_golden_recordings_are_small_and_whole():
    sizes = {}
    for path in DATA.glob("*.mkv"):
        assert open_recording(path, CONFIG).describe()["closed_well"]
        sizes[path.stem] = path.stat().st_size + get_sidecar_path(path).stat().st_size
    assert set(sizes) == set(MAKERS)
    assert max(sizes.values()) < 150 * KB
    assert sum(sizes.values()) < 1024 * KB


@pytest.mark.parametrize("name", ["rotation"])
def test_a_golden_recording_is_made_by_the_script(tmp_path, name):
    """Another FFmpeg may encode otherwise; what came when is the same."""

    def outline(path):
        return [
            (entry.arrival_ns, entry.is_video, entry.packet.pts, entry.dropped_before)
            if isinstance(entry, Item)
            else entry
            if isinstance(entry, InputEvent)
            else entry.opened_ns
            for entry in open_recording(path, CONFIG).read()
        ]

    assert outline(make(name, tmp_path)) == outline(DATA / f"{name}.mkv")


WHOLE = {"burst": 120, "stall": 90, "wrap": 90, "size": 90, "missing": 90, "overload": 360}


@pytest.mark.parametrize("name", WHOLE)
def test_every_picture_of_a_golden_recording_comes_once_and_in_order(name):
    """(C38, C39, C41) Burst, stall, wrap, change of size, no stamps: no picture is lost by it."""
    sink = play(DATA / f"{name}.mkv")
    assert len(sink.counters) == WHOLE[name]
    assert all(later > earlier for earlier, later in itertools.pairwise(sink.counters))
    assert all(later > earlier for earlier, later in itertools.pairwise(sink.pts))
    assert sink.states[-1] == "ended"


def test_the_burst_comes_at_once_and_the_stall_is_three_seconds_long():
    arrivals = play(DATA / "burst.mkv").arrivals_ns
    at_once = arrivals.count(START_NS + 3 * NS_PER_S)
    assert at_once >= 59
    sink = play(DATA / "stall.mkv")
    steps = [later - earlier for earlier, later in itertools.pairwise(sink.arrivals_ns)]
    assert max(steps) == pytest.approx(3 * NS_PER_S, abs=50 * NS_PER_MS)
    assert sink.states == ["connecting", "live", "stalled", "live", "ended"]


def test_the_restart_is_a_loss_and_another_camera():
    """(C33) New parameter sets, stamps from 0: the job's line goes on behind the pause."""
    sink = play(DATA / "restart.mkv")
    assert sink.states == ["connecting", "live", "lost", "connecting", "live", "ended"]
    assert sink.counts["reconnect"] == 1
    assert len(sink.counters) == 105
    steps = [later - earlier for earlier, later in itertools.pairwise(sink.pts)]
    assert min(steps) > 0
    assert max(steps) / 90_000 == pytest.approx(1.5, abs=0.2)
    sources = [
        x for x in open_recording(DATA / "restart.mkv", CONFIG).read() if isinstance(x, Source)
    ]
    assert sources[0].decoder.extradata != sources[1].decoder.extradata


def test_the_rotation_is_in_the_pictures():
    sink = play(DATA / "rotation.mkv")
    assert (sink.media.width, sink.media.height) == (180, 320)
    assert len(sink.pts) == 60


def test_the_noise_is_noticed_and_what_follows_is_whole():
    sink = play(DATA / "noise.mkv")
    assert sink.counts["dropped_late_packets"] == 2
    assert sink.counts["corrupt"] > 0
    assert sink.counters[-30:] == list(range(60, 90))


# The way in.


def test_a_replay_takes_as_long_as_it_took_and_stops_when_told(tmp_path):
    path = write(read_events(make_stream("flv", "libx264", "aac")), tmp_path / "a.mkv")
    clock, sink = SystemClock(), CollectingSink(capacity=4)
    started_ns = clock.now_ns()
    play(path, clock=clock, sink=sink)
    took_ns = clock.now_ns() - started_ns
    assert took_ns >= open_recording(path, CONFIG).duration_ns
    assert len(sink.pts) >= 37  # a live source is not flushed: what is reordered stays inside
    ingest = ReplayIngest(f"replay:{DATA / 'overload.mkv'}", CONFIG, clock)
    sink = CollectingSink(capacity=4, ingest=ingest, stop_after=5)
    ingest.run(sink)
    assert len(sink.pts) == 5


@pytest.mark.parametrize("name", ["size", "rotation", "restart"])
def test_what_comes_in_another_size_is_made_to_fit(name):
    """(C45) An ingest in the place of another is told the canvas: none comes back otherwise."""
    sink, config = CollectingSink(capacity=4), replace(CONFIG, canvas="128x96")
    source = f"replay:{DATA / name}.mkv"
    create_ingest(source, config, ManualClock(START_NS), paced=True, every_frame=False).run(sink)
    assert (sink.media.width, sink.media.height) == (128, 96)
    assert len(sink.pts) >= 60


def test_a_recording_that_is_not_there_is_told():
    with pytest.raises(IngestNotFoundError, match=r"cannot read the recording .*none\.mkv"):
        play("/nowhere/none.mkv")


# The tap.


class Notes(list[Event]):
    """A tap's events."""

    def taken(self):
        return [event for event in self if isinstance(event, Taken)]


def test_a_tap_sees_all_and_changes_nothing():
    plain, notes = play(DATA / "noise.mkv"), Notes()
    tapped = play(DATA / "noise.mkv", tap=Tap(notes.append))
    assert (tapped.pts, tapped.counters, tapped.counts) == (plain.pts, plain.counters, plain.counts)
    items = [x for x in open_recording(DATA / "noise.mkv", CONFIG).read() if isinstance(x, Item)]
    assert len(notes.taken()) == len(items)
    assert [event.packets for event in notes if isinstance(event, Gap)] == [2]
    states = [event.state for event in notes if isinstance(event, Happened)]
    assert states == ["connecting", "live", "ended"]


def test_a_tap_in_the_decoders_place_sees_the_same_and_decodes_nothing():
    decoded, kept = Notes(), Notes()
    play(DATA / "restart.mkv", tap=Tap(decoded.append))
    sink = play(DATA / "restart.mkv", tap=Tap(kept.append, decodes=False))
    assert sink.pts == []
    assert sink.states == ["connecting", "live", "lost", "connecting", "live", "ended"]
    assert [type(event) for event in kept] == [type(event) for event in decoded]
    assert kept.taken() == decoded.taken()
    assert sum(isinstance(event, Opened) for event in kept) == 2


def test_a_recording_of_a_replay_is_the_recording_again(tmp_path):
    notes = Notes()
    play(DATA / "restart.mkv", tap=Tap(notes.append, decodes=False))
    again = write(notes, tmp_path / "again.mkv")

    def read(path):
        return [
            (bytes(x.packet), x.packet.pts, x.packet.dts, x.is_video, x.arrival_ns)
            for x in open_recording(path, CONFIG).read()
            if isinstance(x, Item)
        ]

    assert read(again) == read(DATA / "restart.mkv")


def test_an_ingest_without_a_tap_is_not_wrapped():
    path = DATA / "burst.mkv"
    options: Any = {"paced": True, "every_frame": False}
    plain = create_ingest(f"replay:{path}", CONFIG, ManualClock(), **options)
    assert isinstance(plain, ReplayIngest)
    assert plain._make_stage is DecodeStage
    tapped = create_ingest(
        f"replay:{path}", CONFIG, ManualClock(), **options, tap=Tap(Notes().append)
    )
    assert isinstance(tapped, TappedIngest)


@pytest.mark.parametrize("kind", [TappedStage, PacketStage])
def test_both_stages_are_made_as_a_decode_stage_is(kind):
    make_stage = partial(kind, Tap(Notes().append))
    stage = make_stage(
        CollectingSink(), CONFIG, ManualClock(), threading.Event(), is_live=True, every_frame=False
    )
    assert (stage.has_media, stage.frames) == (False, 0)


def test_a_camera_is_recorded_as_it_came_and_judged_by_its_pictures(tmp_path):
    """A camera decodes even where only its packets are wanted (C56)."""
    data, notes, webcam = make_stream("matroska", "mjpeg"), Notes(), Camera("Webcam", "/dev/video0")

    def open_camera(camera, pixel_format, config):
        return describe_camera_source(av.open(io.BytesIO(data), "r"), camera, config)

    ingest = CameraIngest(
        "camera:Webcam",
        CONFIG,
        SystemClock(),
        find_cameras=lambda: [webcam],
        open_camera=open_camera,
        make_stage=tap_stage(Tap(notes.append)),
    )
    with pytest.raises(IngestEndedError):  # unplugged before it could be judged, in each format
        ingest.run(RecordSink("camera:Webcam"))
    formats = sum(isinstance(event, Opened) for event in notes)
    assert formats == 3
    assert len(notes.taken()) == 40 * formats
    sink = play(write(notes, tmp_path / "a.mkv"))
    assert len(sink.lumas) == 40 * formats
