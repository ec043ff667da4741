"""Sound beside the pictures: it follows their line, and is told how far ahead it is."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from livefuse.clock import NS_PER_MS, ManualClock
from livefuse.config import Config
from livefuse.publish.audio import AudioTrack
from livefuse.publish.fanout import FanOut
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.ring import Ring
from livefuse.sound_out import SoundOut
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

    def __init__(self, pictures):
        self.clock = ManualClock()
        self.telemetry = Telemetry(self.clock)
        self.outputs = Outputs()
        self.packets, info = make_sound(2.0)
        config = Config()
        self.out = SoundOut(AudioTrack(info, config.audio), self.outputs, self.telemetry, config)
        self.ring: Ring[Packet] = Ring(256)
        self.thread = threading.Thread(
            target=self.out.run, args=(self.ring,), kwargs={"pictures": pictures}, daemon=True
        )

    def give(self, packets):
        for packet in packets:
            self.ring.put(packet)

    def finish(self):
        if not self.thread.ident:
            self.thread.start()
        self.ring.close()
        self.thread.join(5)
        assert not self.thread.is_alive()


def test_aac_with_lost_packets_lasts_as_long_as_it_should():
    """(C53) Relayed, not decoded: silence of the same codec takes the place of what is missing."""
    run = Run(None)
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
    pictures = Pictures()
    run = Run(pictures)
    run.thread.start()
    run.give(run.packets[:10])
    wait_for(lambda: len(run.outputs.packets) == 10)
    end = run.outputs.stamps[-1] + UNIT
    pictures.last_pts = end + 6 * 90_000  # held meanwhile
    wait_for(lambda: run.telemetry.counts().get("silent_packets", 0) > 200)
    pictures.shift = 6 * 90_000
    threading.Event().wait(0.15)
    run.give(run.packets[10:20])
    run.finish()
    moved = [packet.pts + pictures.shift for packet in run.packets[10:20]]
    assert run.outputs.stamps[-10:] == moved
    assert "audio_behind_silence" not in run.telemetry.counts()


def test_silence_fills_for_sound_alone_that_is_away():
    pictures = Pictures()
    run = Run(pictures)
    run.thread.start()
    run.give(run.packets[:10])
    wait_for(lambda: len(run.outputs.packets) == 10)
    pictures.last_pts = 90_000
    threading.Event().wait(0.15)
    assert len(run.outputs.packets) == 10, "a short absence is none"
    pictures.last_pts = 4 * 90_000
    wait_for(lambda: run.outputs.stamps[-1] > 4 * 90_000 - 2 * UNIT)
    run.finish()


def test_its_delay_is_told():
    """(C51) How long sound takes, and how far ahead of its picture it is therefore."""
    run = Run(None)
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
