"""The stream for browsers without a browser: what it costs, how it counts time, who gives sound."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from livefuse.clock import ManualClock
from livefuse.config import WebRtcConfig
from livefuse.errors import ConfigError, JobError, JobNotFoundError
from livefuse.frame import TIME_BASE_HZ
from livefuse.packet import Packet
from livefuse.publish.whep import WhepOutput
from livefuse.rtc.guest import ANYBODY
from tests.streams import make_media

NTP_S = 2_208_988_800


class Viewer:
    """Stands where a viewer stands; keeps what it is to get."""

    session = None
    dropped = 0

    def __init__(self):
        self.tracks = {"video": self, "audio": self}
        self.units = []

    def put(self, unit, *, is_keyframe):
        self.units.append((unit, is_keyframe))


@pytest.fixture
def whep():
    return WhepOutput(WebRtcConfig(), ManualClock(epoch_s=1000.0), lambda: None)


@pytest.fixture
def watched(whep, monkeypatch):
    """An output with one viewer, which gets everything at once."""
    viewer = Viewer()
    whep._viewers = (viewer,)

    def pass_on(viewers, kind, unit, *, is_keyframe):
        for one in viewers:
            one.tracks[kind].put((kind, unit), is_keyframe=is_keyframe)

    monkeypatch.setattr(whep, "_pass_on", pass_on)
    whep.open(make_media().streams)
    return whep, viewer


def test_aiortc_is_not_loaded_for_a_job_that_nobody_watches():
    code = "import sys, livefuse.job.job, livefuse.ingest.whip; sys.exit('aiortc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_is_done_while_nobody_watches(whep):
    media = make_media()
    whep.open(media.streams)
    for packet in media.packets:
        whep.send(packet)
        whep.relay(packet)
    assert whep.status().packets == whep.status().viewers == 0
    assert whep._opus is None


def test_a_packet_is_cut_once_for_all(watched):
    whep, viewer = watched
    packet = make_media().video[0]
    whep.send(packet)
    (((kind, unit), is_keyframe),) = viewer.units
    assert (kind, is_keyframe, unit.pts) == ("video", True, packet.pts)
    assert sum(map(len, unit.payloads)) > len(packet.data) * 0.9


def test_sound_of_the_job_becomes_opus(watched):
    whep, viewer = watched
    whep.send(make_media().video[0])
    for packet in make_media().audio[:20]:
        whep.send(packet)
    stamps = [unit.timestamp for (kind, unit), _ in viewer.units if kind == "audio"]
    assert len(stamps) > 10
    assert {b - a for a, b in itertools.pairwise(stamps)} == {960}


def test_a_sources_own_opus_goes_first_and_silence_fills_its_pause(watched):
    whep, viewer = watched
    media = make_media()
    whep.send(media.video[0])
    for packet in media.audio[:10]:
        whep.relay(Packet("audio", b"own", packet.pts, packet.pts, 1800))
        whep.send(packet)
    sounds = [unit for (kind, unit), _ in viewer.units if kind == "audio"]
    assert [list(unit.payloads) for unit in sounds] == [[b"own"]] * 10
    for packet in media.audio[10:40]:
        whep.send(packet)
    whep.relay(Packet("audio", b"late", 0, 0, 1800))
    made = [unit for (kind, unit), _ in viewer.units if kind == "audio"][10:]
    assert made
    assert all(list(unit.payloads) != [b"late"] for unit in made)
    assert all(a.pts < b.pts for a, b in itertools.pairwise(made))


def test_reports_count_by_the_clock_from_the_first_packet_on(watched):
    whep, _ = watched
    whep.send(make_media().video[0])
    first = make_media().video[0].pts
    assert whep._to_ntp(first) >> 32 == NTP_S + 1000
    assert whep._to_ntp(first + 5 * TIME_BASE_HZ) - whep._to_ntp(first) == 5 << 32


def test_the_profile_is_read_from_the_stream(watched):
    whep, _ = watched
    assert whep._find_profile().startswith("64")
    assert WhepOutput(WebRtcConfig(), ManualClock(), lambda: None)._find_profile() == ""


def test_offers_are_checked_before_anything_is_loaded(whep):
    with pytest.raises(ConfigError):
        whep.answer("hello")
    with pytest.raises(JobNotFoundError):
        whep.get_session("nobody")
    whep.close(0.1)
    assert whep.status().state == "closed"


def test_a_closed_stream_lets_nobody_in(whep):
    whep.close(0.1)
    with pytest.raises(JobError, match="over"):
        whep._reserve(ANYBODY)
