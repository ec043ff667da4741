"""Sound beside the pictures: it follows their line, and is told how far ahead it is."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from livefuse.clock import NS_PER_MS, ManualClock
from livefuse.config import Config
from livefuse.job.sound_out import SoundOut
from livefuse.publish.audio import AudioTrack
from livefuse.publish.fanout import FanOut
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.ring import Ring
from livefuse.telemetry import Telemetry
from tests.streams import make_sound

if TYPE_CHECKING:
    from livefuse.packet import Packet

UNIT = 1920


@dataclass
class Pictures:
    last_pts: int = -1
    shift: int = 0


class Outputs(FanOut):
    """Keeps what it is sent."""

    def __init__(self):
        super().__init__(lambda _: None, {}, KeyframeRequests(ManualClock(), lambda: None))  # type: ignore[arg-type,return-value] # nothing is made
        self.packets = []

    def send(self, packet):
        self.packets.append(packet)

    @property
    def stamps(self):
        return [packet.pts for packet in self.packets]


class Run:
    """A `SoundOut` in a thread, relaying AAC."""

    def __init__(self):
        self.clock = ManualClock()
        self.telemetry = Telemetry(self.clock)
        self.outputs = Outputs()
        self.packets, info = make_sound(2.0)
        config = Config()
        self.out = SoundOut(AudioTrack(info, config.audio), self.outputs, self.telemetry, config)
        self.ring: Ring[Packet] = Ring(256)
        self.thread = threading.Thread(target=self.out.run, args=(self.ring,), daemon=True)
        self.pictures = Pictures()

    def give(self, packets):
        for packet in packets:
            self.ring.put(packet)

    def show(self, until, *, step=3000):
        """Let pictures come as far as `until`; return the most that came out at once."""
        most = 0
        while self.pictures.last_pts < until:
            self.pictures.last_pts = min(self.pictures.last_pts + step, until)
            before = len(self.outputs.packets)
            self.out.follow(self.pictures)
            most = max(most, len(self.outputs.packets) - before)
        return most

    def count(self, name):
        return self.telemetry.counts().get(name, 0)

    def finish(self):
        if not self.thread.ident:
            self.thread.start()
        self.ring.close()
        self.thread.join(5)
        assert not self.thread.is_alive()


def test_aac_with_lost_packets_lasts_as_long_as_it_should():
    """(C53) Relayed, not decoded: silence of the same codec takes the place of what is missing."""
    run = Run()
    run.give(packet for n, packet in enumerate(run.packets) if not 20 <= n < 40)
    run.finish()
    assert len(run.outputs.packets) == len(run.packets)
    assert run.telemetry.counts()["filled_audio_packets"] == 20
    for ours, theirs in zip(run.outputs.packets, run.packets, strict=True):
        assert ours.pts == pytest.approx(theirs.pts, abs=20 * 90)
    assert run.outputs.packets[10].data == run.packets[10].data
    assert len({packet.data for packet in run.outputs.packets[20:40]}) == 1


def test_it_goes_where_the_pictures_go():
    """A source that goes on where it had stopped: both are moved by the same time."""
    run = Run()
    run.thread.start()
    run.give(run.packets[:10])
    wait_for(lambda: len(run.outputs.packets) == 10)
    end = run.outputs.stamps[-1] + UNIT
    run.show(end + 6 * 90_000, step=18_000)  # held meanwhile
    assert run.count("silent_packets") > 200
    run.pictures.shift = 6 * 90_000
    run.out.follow(run.pictures)
    run.give(run.packets[10:20])
    run.finish()
    moved = [packet.pts + run.pictures.shift for packet in run.packets[10:20]]
    assert run.outputs.stamps[-10:] == moved
    assert not run.count("audio_behind_silence")


def test_silence_fills_for_sound_alone_that_is_away():
    run = Run()
    run.thread.start()
    run.give(run.packets[:10])
    wait_for(lambda: len(run.outputs.packets) == 10)
    run.show(90_000)
    assert len(run.outputs.packets) == 10, "a short absence is none"
    assert run.show(4 * 90_000) <= 6
    assert run.outputs.stamps[-1] > 4 * 90_000 - 22_500 - 2 * UNIT
    run.finish()


@pytest.mark.parametrize("step", [3000, 18_000])
def test_silence_comes_in_small_pieces_while_sound_is_made_anew(step):
    """(C53) Nobody takes sound: it comes from the pictures' thread, less than a queue holds."""
    run = Run()
    run.pictures.last_pts = 0
    most = run.show(10 * 90_000, step=step)
    assert most <= 40
    assert run.outputs.stamps[-1] > 10 * 90_000 - 22_500 - 2 * UNIT
    assert all(b - a == UNIT for a, b in itertools.pairwise(run.outputs.stamps))


def test_what_is_missing_after_a_gap_of_the_pictures_is_made_up_for_bit_by_bit():
    """The encoder was away for five seconds: no 230 packets at once."""
    run = Run()
    run.show(3000)
    assert run.show(5 * 90_000, step=5 * 90_000) <= 24
    assert run.show(8 * 90_000) <= 7
    assert run.outputs.stamps[-1] > 8 * 90_000 - 22_500 - 2 * UNIT


def test_a_sound_that_hangs_holds_no_silence_up(monkeypatch):
    run = Run()
    released = threading.Event()
    monkeypatch.setattr(AudioTrack, "process", lambda *_: released.wait(20) and [])
    run.thread.start()
    run.give(run.packets[:1])
    run.show(3 * 90_000)
    assert run.outputs.stamps[-1] > 2 * 90_000
    released.set()
    run.finish()


def test_what_cannot_be_decoded_is_counted_while_it_comes(monkeypatch):
    run = Run()

    def fail(track, _packet):
        track.errors += 1
        return []

    monkeypatch.setattr(AudioTrack, "process", fail)
    run.thread.start()
    run.give(run.packets[:3])
    wait_for(lambda: run.count("audio_errors") == 3)
    run.finish()
    assert run.count("audio_errors") == 3


def test_its_delay_is_told():
    """(C51) How long sound takes, and how far ahead of its picture it is therefore."""
    run = Run()
    run.clock.advance(7 * NS_PER_MS)
    run.give(replace(packet, arrival_ns=3 * NS_PER_MS) for packet in run.packets)
    run.finish()
    told = run.out.describe(30.0)
    assert told["is_relayed"] is True
    assert told["delay_ms"] == pytest.approx(4.0, abs=0.1)
    assert told["ahead_ms"] == pytest.approx(26.0, abs=0.1)


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come")
