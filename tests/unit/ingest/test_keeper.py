"""The last seconds: whole from a keyframe on, bounded, written when something is wrong."""

from __future__ import annotations

import stat

import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import ReplayConfig
from livefuse.errors import JobError, PublishError
from livefuse.ingest.keeper import Keeper, PacketRing
from livefuse.ingest.playback import open_recording
from livefuse.ingest.recording_file import Taken
from livefuse.ingest.sidecar import Happened, Opened, Stored, VideoParameters
from tests.recordings import CONFIG, START_NS, make_stream, read_events, read_items

MB = 1 << 20
STEP_NS = NS_PER_S // 10


def make_picture(index, *, key, size=100, side=None):
    line = Stored(at=START_NS + index * STEP_NS, pts=index, base=(1, 10), key=key, side=side or {})
    return Taken(bytes([index % 256]) * size, line)


def make_opened(at=START_NS, extradata=b"first"):
    return Opened(at=at, video=VideoParameters(codec="mjpeg", decoder="mjpeg", extradata=extradata))


def fill(ring, pictures, *, gop=10, size=100):
    ring.put(make_opened())
    for index in pictures:
        ring.put(make_picture(index, key=index % gop == 0, size=size))


def list_numbers(events):
    return [event.line.pts for event in events if isinstance(event, Taken)]


def test_what_is_kept_begins_with_its_connection_and_a_keyframe():
    ring = PacketRing(3 * NS_PER_S, 64 * MB)
    fill(ring, range(95))
    events = ring.list_events()
    assert isinstance(events[0], Opened)
    assert events[0].at == next(e.line.at for e in events if isinstance(e, Taken))
    # Three seconds are 30 pictures; the group that they begin in is whole.
    assert list_numbers(events) == list(range(60, 95))


def test_bytes_bound_it_too():
    ring = PacketRing(60 * NS_PER_S, 50_000)
    fill(ring, range(95), size=1000)
    numbers = list_numbers(ring.list_events())
    assert numbers[0] % 10 == 0
    assert numbers[-1] == 94
    assert ring.measure() <= 50_000
    assert len(numbers) >= 30


def test_a_group_that_is_too_large_is_no_use_and_the_next_keyframe_begins_anew():
    ring = PacketRing(60 * NS_PER_S, 5000)
    fill(ring, range(1, 40), gop=1000, size=1000)
    assert ring.list_events() == []
    assert ring.measure() <= 5000
    ring.put(make_picture(40, key=True))
    ring.put(make_picture(41, key=False))
    events = ring.list_events()
    assert isinstance(events[0], Opened)
    assert list_numbers(events) == [40, 41]


def test_parameter_sets_that_came_on_the_way_are_those_it_begins_with():
    ring = PacketRing(NS_PER_S, 64 * MB)
    ring.put(make_opened())
    for index in range(40):
        side = {"new_extradata": b"second"} if index == 10 else None
        ring.put(make_picture(index, key=index % 10 == 0, side=side))
    first = ring.list_events()[0]
    assert isinstance(first, Opened)
    assert first.video.extradata == b"second"


def test_the_connection_in_force_is_kept_over_a_loss():
    ring = PacketRing(5 * NS_PER_S, 64 * MB)
    fill(ring, range(20))
    ring.put(Happened(at=START_NS + 21 * STEP_NS, state="lost"))
    ring.put(make_opened(START_NS + 30 * STEP_NS, b"second"))
    for index in range(30, 100):
        ring.put(make_picture(index, key=index % 10 == 0))
    opened = [event for event in ring.list_events() if isinstance(event, Opened)]
    assert [event.video.extradata for event in opened] == [b"second"]
    assert list_numbers(ring.list_events())[0] == 40


# Written down.


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


def make_keeper(folder, clock, **fields):
    config = ReplayConfig(keep_s=20, folder=str(folder), **fields)
    keeper = Keeper.create(config, "cam/1", "rtsp://user:secret@host/path", clock)
    assert keeper is not None
    return keeper


def feed(keeper):
    events = read_events(make_stream("mpegts", "libx264", "aac"))
    for event in events:
        keeper.tap.put(event)
    return sum(isinstance(event, Taken) for event in events)


def list_kept(folder):
    return sorted(path.name for path in folder.glob("*.mkv"))


def test_nothing_is_kept_unless_asked_for():
    assert Keeper.create(ReplayConfig(), "main", "x", ManualClock()) is None


def test_it_is_written_where_asked_or_into_a_folder_for_its_owner_only(folder, tmp_path):
    keeper = make_keeper(folder, ManualClock())
    with pytest.raises(JobError, match="nothing is kept yet"):
        keeper.write()
    count = feed(keeper)
    assert keeper.write(tmp_path / "here.mkv") == tmp_path / "here.mkv"
    path = keeper.write()
    assert len(read_items(path)) == len(read_items(tmp_path / "here.mkv")) == count
    assert path.parent == folder
    assert path.name.startswith("cam_1-20231114T221320")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert open_recording(path, CONFIG).source_url == "rtsp://***@host/path"
    with pytest.raises(PublishError, match="is there already"):
        keeper.write(tmp_path / "here.mkv")


def test_what_goes_wrong_is_written_once_a_minute_and_the_oldest_goes(folder):
    clock = ManualClock(START_NS)
    keeper = make_keeper(folder, clock, keep_files=2)
    keeper.note("degraded_input")  # nothing came yet: nothing to write
    feed(keeper)
    reasons = []
    for second in range(0, 241, 20):
        keeper.note(f"r{second}")
        keeper.end()
        reasons = [name.rsplit("-", 1)[1] for name in list_kept(folder)]
        clock.advance(20 * NS_PER_S)
    assert reasons == ["r180.mkv", "r240.mkv"]
    assert len(list(folder.iterdir())) == 4  # each with its side-car


def test_the_end_by_a_fault_is_written_before_the_job_is_over(folder):
    keeper = make_keeper(folder, ManualClock())
    feed(keeper)
    keeper.end("failed")
    (name,) = list_kept(folder)
    assert name.endswith("-failed.mkv")


def test_a_folder_that_cannot_be_made_costs_a_line_and_not_the_job(folder):
    folder.write_text("a file")
    keeper = make_keeper(folder, ManualClock())
    feed(keeper)
    keeper.end("failed")
    with pytest.raises(PublishError, match="cannot use the folder"):
        keeper.write()
