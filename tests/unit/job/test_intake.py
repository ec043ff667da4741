"""An ingest in the place of another: one line, one size, one kind of sound."""

from __future__ import annotations

from typing import Any

import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.errors import IngestEndedError, JobError
from livefuse.frame import Colour, FramePool
from livefuse.ingest.base import MediaInfo
from livefuse.job.intake import Entrance, Intake
from livefuse.job.watchdog import Pulse
from livefuse.packet import AudioInfo, Packet
from livefuse.ring import RingClosed
from livefuse.telemetry import Telemetry

SOUND = AudioInfo("aac", 48_000, 2)


class Stages:
    """What an intake needs of them."""

    def __init__(self, telemetry):
        self.telemetry = telemetry
        self.pool = FramePool(64, 48, 4)
        self.frames, self.sound = [], []

    def acquire_frame(self):
        return self.pool.acquire()

    def release_frame(self, frame, reason, *, is_held=False):
        self.telemetry.count(f"dropped_{reason}")
        (self.pool.replace if is_held else self.pool.release)(frame)

    def put_frame(self, frame):
        self.frames.append(frame.pts)
        self.pool.release(frame)

    def put_audio(self, packet):
        self.sound.append((packet.pts, packet.dts))


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock(start_ns=NS_PER_S)
        self.entrance = Entrance("job", "live", Telemetry(self.clock), ("rtsp://u:hunter2@h/",))
        self.stages: Any = Stages(self.entrance.telemetry)

    def open(self, width=64, audio=SOUND):
        pulse = Pulse("decode", self.clock)
        intake = Intake(self.entrance, pulse)
        intake.on_media(MediaInfo(width, 48, 30.0, Colour(), audio, is_live=True))
        self.entrance.stages = self.stages
        self.entrance.is_ready.set()
        return intake

    def put(self, intake, pts):
        frame = intake.acquire_frame()
        frame.pts = pts
        intake.on_frame(frame)

    def say(self, intake, pts):
        intake.on_audio(Packet("audio", b"", pts, pts, 1920))


def test_the_line_of_the_next_ingest_goes_on_where_time_is():
    bench = Bench()
    first = bench.open()
    bench.put(first, 0)
    bench.put(first, 3000)
    first.retire()
    bench.clock.advance(2 * NS_PER_S)
    second = bench.open()
    bench.put(second, 0)
    bench.say(second, 500)
    bench.put(second, 3000)
    assert bench.stages.frames == [0, 3000, 183_000, 186_000]
    assert bench.stages.sound == [(183_500, 183_500)], "sound and pictures move together"
    assert bench.entrance.frames == 4
    assert bench.entrance.get_age_ms() == 0


def test_what_a_retired_ingest_still_gives_is_refused():
    bench = Bench()
    intake = bench.open()
    frame = intake.acquire_frame()
    intake.retire()
    media = MediaInfo(128, 48, 30.0, Colour(), SOUND, is_live=True)
    for act in (
        lambda: intake.on_media(media),
        lambda: intake.on_frame(frame),
        intake.acquire_frame,
        lambda: bench.say(intake, 0),
    ):
        with pytest.raises(RingClosed):
            act()
    intake.on_state("lost", IngestEndedError("gone"))
    assert bench.entrance.state == "connecting"
    assert bench.stages.pool.lent == 0
    assert not bench.stages.frames
    assert not bench.stages.sound


def test_a_frame_in_the_hands_of_an_ingest_that_hangs_is_replaced():
    """It may write into it for ever; the pool stays as large as it was."""
    bench = Bench()
    for _ in range(6):
        intake = bench.open()
        held = intake.acquire_frame()
        intake.retire()
        intake.retire()
        assert bench.stages.pool.lent == 0
        assert held is not bench.stages.pool.acquire(), "another's pixels"
        bench.stages.pool = FramePool(64, 48, 4)
    assert bench.entrance.telemetry.dropped() == {"abandoned": 6}


def test_what_could_not_be_filled_is_lent_again():
    bench = Bench()
    intake = bench.open()
    assert intake.acquire_frame() is intake.acquire_frame()
    bench.put(intake, 0)
    bench.put(intake, 3000)
    assert bench.stages.frames == [0, 3000]
    assert bench.stages.pool.lent == 0


def test_another_size_is_refused_and_another_sound_left_out():
    bench = Bench()
    bench.open()
    with pytest.raises(JobError, match="came back as 128x48"):
        bench.open(width=128)
    other = bench.open(audio=AudioInfo("opus", 48_000, 2))
    bench.say(other, 0)
    bench.put(other, 0)
    assert not bench.stages.sound
    assert len(bench.stages.frames) == 1
    assert bench.entrance.telemetry.counts()["audio_changed"] == 1


def test_before_the_stages_are_there_nothing_is_taken():
    clock = ManualClock()
    entrance = Entrance("job", "live", Telemetry(clock), ())
    intake = Intake(entrance, Pulse("decode", clock))
    assert intake.acquire_frame() is None
    assert entrance.telemetry.counts() == {"skipped_while_starting": 1}
    assert entrance.get_age_ms() is None
    assert entrance.find_place() == 0


def test_work_is_told_to_the_pulse():
    bench = Bench()
    pulse = Pulse("decode", bench.clock)
    intake = Intake(bench.entrance, pulse)
    intake.begin_work()
    assert pulse.work is not None
    intake.end_work()
    assert pulse.work is None
