"""WebRTC both ways through real jobs, on loopback: browsers are played by plain aiortc peers."""

from __future__ import annotations

import contextlib
import gc
import itertools
import socket
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.errors import JobCapacityError, JobError, JobNotFoundError, get_http_status
from livefuse.job.spec import JobSpec
from livefuse.publish.encode import VideoEncoder
from livefuse.rtc import peer as rtc_peer
from livefuse.workers.local import Worker
from tests.webrtc import FPS, LOOPBACK, Publisher, Watcher, wait_for

pytestmark = pytest.mark.wire
OFFERS = Path(__file__).parents[1] / "unit" / "rtc" / "offers"


@contextlib.contextmanager
def running(source, *settings):
    """Run a job without operations; give it, and how to send to it and to watch it."""
    small = (f'webrtc.addresses=["{LOOPBACK}"]', "webrtc.canvas=source")
    config = load_config(settings=(*small, *settings))
    job = Worker(config, SystemClock()).add_job("job", JobSpec(source, (), (), mode="live"))
    job.start()
    try:
        yield job
    finally:
        assert job.stop(5)
        assert job.error is None


def get_whip(job):
    return job.get_peers("whip")


def get_whep(job):
    return job.get_peers("whep")


def get_input_state(job):
    return job._entrance.state


def count_threads(*names):
    return sum(thread.name.startswith(names) for thread in threading.enumerate())


def watch_on(watcher, pictures):
    seen = len(watcher.counters)
    wait_for(lambda: len(watcher.counters) >= seen + pictures, 25, f"{pictures} more pictures")


def count_peers():
    gc.collect()
    return sum(isinstance(one, rtc_peer.Peer) for one in gc.get_objects())


def is_rising(values):
    return all(a < b for a, b in itertools.pairwise(values))


def test_a_browser_sends_and_another_watches(monkeypatch):
    """C74: and two more watch, for the price of one encode."""
    encodes = []
    encode = VideoEncoder.encode

    def note(self, frame):
        if self._size == (640, 360) and threading.current_thread().name == "livefuse-encode":
            encodes.append(frame.pts)
        return encode(self, frame)

    monkeypatch.setattr(VideoEncoder, "encode", note)
    before = count_threads("video-decoder", "audio-decoder")
    with running("whip:") as job, Publisher(get_whip(job).answer) as publisher:
        wait_for(lambda: job.state == "running", 15, "the job")
        whep = get_whep(job)
        assert not whep.status().viewers
        with (
            Watcher(whep.answer) as first,
            Watcher(whep.answer) as second,
            Watcher(whep.answer) as third,
        ):
            wait_for(lambda: len(first.counters) > 60 and len(second.counters) > 30, 20, "pictures")
            assert whep.status().viewers == 3
            assert is_rising(first.counters)
            assert set(first.sizes) == {(640, 360)}
            assert len(encodes) == len(set(encodes)) <= publisher.sent
            statistics = job.statistics()
            assert [output["viewers"] for output in statistics.outputs] == [3]
        wait_for(lambda: not whep.status().viewers, 5, "viewers that leave are seen to")
        first.session = second.session = third.session = None
    publisher.session = None
    wait_for(lambda: count_threads("video-decoder", "audio-decoder") <= before, 5, "no thread left")
    wait_for(lambda: not count_peers(), 10, "no peer left in memory")


def test_sound_comes_in_step():
    """A flash and a beep of one moment, sent by a browser, are one moment to a viewer."""
    with running("whip:") as job, Publisher(get_whip(job).answer):
        wait_for(lambda: job.state == "running", 15, "the job")
        with Watcher(get_whep(job).answer) as watcher:
            wait_for(lambda: len(find_flashes(watcher)) > 3, 20, "flashes")
            wait_for(lambda: len(find_beeps(watcher)) > 3, 5, "beeps")
            wait_for(lambda: len(watcher.reports) > 1, 5, "reports")
        flashes = [watcher.to_sender_s("video", pts_s) for pts_s in find_flashes(watcher)]
        beeps = [watcher.to_sender_s("audio", pts_s) for pts_s in find_beeps(watcher)]
        offsets = [min((beep - flash for beep in beeps), key=abs) for flash in flashes[1:]]
        assert abs(float(np.median(offsets))) < 0.045


def find_flashes(watcher):
    """Return where each flash begins, in s of the pictures' own line."""
    lit = [is_lit for _, is_lit in watcher.flashes]
    starts = [i for i in range(1, len(lit)) if lit[i] and not lit[i - 1]]
    return [watcher.pts[i] for i in starts]


def find_beeps(watcher):
    """Return where each beep begins, in s of the sound's own line."""
    found: list[float] = []
    for pts_s, samples in watcher.samples.copy():
        loud = np.flatnonzero(np.abs(samples.reshape(-1)[::2]) > 2000)
        if len(loud) and (not found or pts_s - found[-1] > 0.5):
            found.append(pts_s + loud[0] / 48_000)
    return found


def test_a_viewer_that_comes_late_sees_now_at_once():
    """C02: the first picture is fresh; while nobody watches nothing is kept."""
    with running("test:?size=320x180&fps=30&audio=0") as job:
        wait_for(lambda: job.statistics().frames_out > 30, 15, "the job")
        whep = get_whep(job)
        assert whep.status().packets == 0
        time.sleep(3)
        asked = time.monotonic()
        with Watcher(whep.answer, has_sound=False) as watcher:
            wait_for(lambda: len(watcher.counters) > 2 * FPS, 10, "pictures")
            newest = job.statistics().frames_out
        assert watcher.arrivals[0] - asked < 3.0
        assert newest - watcher.counters[-1] < FPS
        # Since its counter was drawn: what a picture needs at best is the way itself.
        seen = zip(watcher.arrivals, watcher.counters, strict=True)
        ages = [at - number / FPS for at, number in seen if number is not None]
        assert ages[0] - min(ages) < 0.3
        assert is_rising(watcher.counters)


def test_a_viewer_that_asks_for_a_picture_gets_a_keyframe():
    with (
        running("test:?size=320x180&fps=30&audio=0", "encode.keyframe_interval_s=10") as job,
        Watcher(get_whep(job).answer, has_sound=False) as watcher,
    ):
        wait_for(lambda: len(watcher.counters) > 20, 15, "pictures")
        encoder = job._entrance.stages.encoder
        with mock.patch.object(encoder, "force_keyframe", wraps=encoder.force_keyframe) as forced:
            watcher.ask_keyframe()
            wait_for(lambda: forced.called, 5, "a wish at the encoder")
            assert forced.call_count == 1


def test_a_viewer_that_vanishes_is_collected(monkeypatch):
    """Within 35 s: here within what it takes when silence of 1 s is enough."""
    assert rtc_peer.SILENCE_S + 2 * rtc_peer._LOOK_EVERY_S < 35
    assert rtc_peer.CONNECT_S + 2 * rtc_peer._LOOK_EVERY_S < 35
    with running("test:?size=320x180&fps=30&audio=0") as job:
        watcher = Watcher(get_whep(job).answer, has_sound=False)
        watcher.connect()
        wait_for(lambda: len(watcher.counters) > 5, 15, "pictures")
        monkeypatch.setattr(rtc_peer, "SILENCE_S", 1.0)
        watcher.vanish()
        wait_for(lambda: not get_whep(job).status().viewers, 10, "it is collected")
        assert "fell silent" in get_whep(job).status().error
        with pytest.raises(JobNotFoundError):
            get_whep(job).get_session(watcher.session.id)
        watcher.close()


def test_whoever_never_comes_is_collected_and_told_why(monkeypatch):
    """C73: no path between the two is said in a sentence, with what to do."""
    monkeypatch.setattr(rtc_peer, "CONNECT_S", 1.0)
    with running("test:?size=320x180&fps=30&audio=0") as job:
        whep = get_whep(job)
        offer = (OFFERS / "chromium_viewer_hidden_behind_mdns.sdp").read_bytes().decode()
        session = whep.answer(offer)
        assert whep.get_session(session.id) is session
        wait_for(lambda: session.state == "closed", 10, "it is given up")
        assert "no network path" in whep.status().error
        assert "TURN" in whep.status().error
        with pytest.raises(JobNotFoundError):
            session.patch("a=ice-ufrag:x\r\na=ice-pwd:y\r\n", session.etag)


def test_a_publisher_that_never_comes_gives_its_place_back(monkeypatch, capsys):
    """C73."""
    monkeypatch.setattr(rtc_peer, "CONNECT_S", 1.0)
    offer = (OFFERS / "obs_h264_opus_without_candidates.sdp").read_bytes().decode()
    with running("whip:") as job:
        session = get_whip(job).answer(offer)
        with pytest.raises(JobError, match="already"):
            get_whip(job).answer(offer)
        wait_for(lambda: session.state == "closed", 10, "it is given up")
        with pytest.raises(JobNotFoundError):
            get_whip(job).get_session(session.id)
        get_whip(job).answer(offer).close()
    assert "no network path was found" in capsys.readouterr().out


def test_three_in_a_hundred_are_lost_and_nobody_sees_it():
    """Lost packets are asked for again: pictures go on, none is frozen for half a second."""
    with running("whip:") as job, Publisher(get_whip(job).answer, has_sound=False) as publisher:
        wait_for(lambda: job.state == "running", 15, "the job")
        publisher.lose(0.03)
        with mock.patch.object(
            job._entrance, "note_frame", wraps=job._entrance.note_frame
        ) as taken:
            start = publisher.sent
            wait_for(lambda: publisher.sent > start + 150, 20, "five seconds")
        pts = [call.args[0] for call in taken.call_args_list]
        assert len(pts) > 120
        assert max(b - a for a, b in itertools.pairwise(pts)) < 45_000
        session = job.get_peers("whip")._session
        assert session.state == "connected"


def test_ice_is_restarted_without_a_gap():
    """A browser whose network changes: new credentials, another path, the same pictures; twice."""
    with running("whip:") as job, Publisher(get_whip(job).answer, has_sound=False) as publisher:
        wait_for(lambda: job.state == "running", 15, "the job")
        with Watcher(get_whep(job).answer, has_sound=False) as watcher:
            wait_for(lambda: len(watcher.counters) > 10, 15, "pictures")
            for client in (watcher, publisher, watcher):
                before = client.session.etag
                client.restart_ice()
                assert client.session.etag != before
                watch_on(watcher, 15)
            assert is_rising(watcher.counters)
        wait_for(lambda: not get_whep(job).status().viewers, 5, "the viewer has left")


def test_more_viewers_than_allowed_are_told():
    """C74."""
    with (
        running("test:?size=320x180&fps=30&audio=0", "webrtc.max_viewers=1") as job,
        Watcher(get_whep(job).answer, has_sound=False) as watcher,
    ):
        with pytest.raises(JobCapacityError, match="1 viewers") as caught:
            get_whep(job).answer(watcher.offer_sdp)
        assert get_http_status(caught.value) == 503


def test_one_publishes_at_a_time_and_the_next_after_it():
    """The output goes on while nobody sends; its line goes on when somebody does."""
    with running("whip:", "hold.after_ms=300") as job:
        whip = get_whip(job)
        with Publisher(whip.answer) as first:
            wait_for(lambda: job.statistics().frames_out > 3, 15, "the job")
            with pytest.raises(JobError, match="already") as caught:
                whip.answer(first.offer_sdp)
            assert get_http_status(caught.value) == 409
        with Watcher(get_whep(job).answer) as watcher:
            wait_for(lambda: get_input_state(job) == "lost", 10, "the loss")
            wait_for(lambda: len(watcher.counters) > 3, 10, "held pictures")
            held = len(watcher.counters)
            with Publisher(whip.answer, size=(320, 180)) as second:
                wait_for(lambda: second.sent > 40, 15, "the second publisher")
                wait_for(lambda: get_input_state(job) == "live", 5, "the return")
                wait_for(lambda: len(watcher.counters) > held + 20, 10, "pictures again")
            assert is_rising(watcher.pts)
            assert set(watcher.sizes) == {(640, 360)}
        assert job.statistics().counts["reconnect"] >= 1


def test_a_publisher_that_pauses_stays_connected():
    """A camera that is switched off for a while in the page: its connection is not taken away."""
    with (
        running("whip:", "ingest.read_timeout_ms=500") as job,
        Publisher(get_whip(job).answer, has_sound=False) as publisher,
    ):
        wait_for(lambda: job.state == "running", 15, "the job")
        publisher.is_paused = True
        wait_for(lambda: get_input_state(job) == "lost", 10, "the pause is told")
        time.sleep(0.7)
        assert publisher.session.state == "connected"
        before = job.statistics().frames_in
        publisher.is_paused = False
        wait_for(lambda: get_input_state(job) == "live", 10, "the return")
        wait_for(lambda: job.statistics().frames_in > before + 10, 10, "pictures")
        assert publisher.keyframe_wishes


def test_a_publisher_whose_page_is_reloaded_gives_way_to_itself(monkeypatch):
    with running("whip:") as job:
        whip = get_whip(job)
        first = Publisher(whip.answer)
        first.__enter__()
        wait_for(lambda: job.state == "running", 15, "the job")
        first.stop_feeding()
        first.vanish()
        second = Publisher(whip.answer)
        started = time.monotonic()
        while second.session is None:
            with contextlib.suppress(JobError):
                second.connect()
            assert time.monotonic() - started < 8
            time.sleep(0.1)
        second._thread.start()
        wait_for(lambda: second.sent > 10 and get_input_state(job) == "live", 15, "pictures")
        assert first.session.state == "closed"
        second.__exit__()
        first.close()


def test_a_browser_without_h264_sends_vp8():
    """Some builds of Chromium have no H.264 to send; losses are mended as well."""
    with running("whip:") as job, Publisher(get_whip(job).answer, codec="VP8") as publisher:
        wait_for(lambda: job.state == "running", 15, "the job")
        with Watcher(get_whep(job).answer) as watcher:
            watch_on(watcher, 30)
            publisher.lose(0.03)
            watch_on(watcher, 40)
            assert is_rising(watcher.counters)
            assert job.statistics().media["decoder"] == "vp8"


def test_a_picture_that_changes_its_size_is_fitted():
    """C45: a browser scales its camera as its network allows."""
    with running("whip:") as job, Publisher(get_whip(job).answer, has_sound=False) as publisher:
        wait_for(lambda: job.state == "running", 15, "the job")
        with Watcher(get_whep(job).answer, has_sound=False) as watcher:
            wait_for(lambda: len(watcher.counters) > 10, 15, "pictures")
            publisher.size = (320, 180)
            seen = len(watcher.counters)
            wait_for(lambda: len(watcher.counters) > seen + 30, 10, "smaller pictures")
            assert set(watcher.sizes) == {(640, 360)}
            assert is_rising(watcher.counters)
            assert job.statistics().counts["input_changed"] >= 1


@contextlib.contextmanager
def silent_server():
    """A STUN server that never answers: the network behind it is a black hole."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
        hole.bind((LOOPBACK, 0))
        yield f"stun:{LOOPBACK}:{hole.getsockname()[1]}"


def measure_answer(job, offer):
    """Return how long an answer took."""
    started = time.monotonic()
    session = get_whip(job).answer(offer)
    took_s = time.monotonic() - started
    session.close()
    return took_s


@pytest.mark.parametrize(
    "name", ["obs_h264_opus_without_candidates", "chromium_publisher_with_candidates"]
)
def test_offers_of_others_are_answered_at_once(name):
    """C71: nothing is looked up before the answer, and a silent STUN server is not waited for."""
    offer = (OFFERS / f"{name}.sdp").read_bytes().decode()
    with silent_server() as url, running("whip:", f'webrtc.ice_servers=[{{url="{url}"}}]') as job:
        took_s = [measure_answer(job, offer) for _ in range(5)]
        assert min(took_s) < 0.5, "the best of five, as the machine may be busy"
        session = get_whip(job).answer(offer)
        lines = session.answer_sdp.splitlines()
        mids = [line for line in offer.splitlines() if line.startswith("a=mid:")]
        assert [line for line in lines if line.startswith("a=mid:")] == mids
        assert lines.count("a=recvonly") == 2
        assert "a=setup:active" in lines
        assert any("H264/90000" in line for line in lines)
        assert any("opus/48000/2" in line for line in lines)
        assert any("x-google-start-bitrate=2500" in line for line in lines)
        assert any(f" {LOOPBACK} " in line and "typ host" in line for line in lines)
        assert get_whip(job).get_session(session.id) is session
        candidate = "a=mid:0\r\na=candidate:1 1 udp 2122260223 127.0.0.1 9 typ host\r\n"
        assert session.patch(candidate, session.etag) == ""
        with pytest.raises(JobError, match="changed meanwhile") as caught:
            session.patch(candidate, '"other"')
        assert get_http_status(caught.value) == 412
        session.close()
        assert session.state == "closed"


def test_a_job_that_is_over_lets_nobody_in():
    with running("whip:") as job, Publisher(get_whip(job).answer) as publisher:
        wait_for(lambda: job.state == "running", 15, "the job")
        whip, whep = get_whip(job), get_whep(job)
        with Watcher(whep.answer) as watcher:
            offers = [(whip, publisher.offer_sdp), (whep, watcher.offer_sdp)]
            job.stop(5)
        for peers, offer in offers:
            with pytest.raises(JobError, match="over"):
                peers.answer(offer)


def test_the_sound_of_a_browser_goes_on_untouched():
    """What comes as Opus leaves as that Opus: no second coding, and nothing waits for it."""
    with running("whip:") as job, Publisher(get_whip(job).answer):
        wait_for(lambda: job.state == "running", 15, "the job")
        whep = get_whep(job)
        with (
            mock.patch.object(whep, "_transcode", wraps=whep._transcode) as transcoded,
            Watcher(whep.answer) as watcher,
        ):
            wait_for(lambda: len(watcher.samples) > 50, 15, "sound")
            assert transcoded.call_count < 10  # at the very start there may be no Opus yet


def test_whoever_has_another_certificate_is_told_from_one_without_a_path():
    """An answer to one page in the hands of another: there is a path, and no common key."""
    with running("test:?size=320x180&fps=30&audio=0") as job:
        whep = get_whep(job)

        def answer_falsified(offer):
            lines = [
                line[:-2] + ("00" if line[-2:] != "00" else "11")
                if "a=fingerprint" in line
                else line
                for line in offer.splitlines()
            ]
            return whep.answer("\r\n".join(lines) + "\r\n")

        watcher = Watcher(answer_falsified, has_sound=False)
        watcher.connect()
        wait_for(lambda: watcher.session.state == "closed", 15, "it is given up")
        assert "DTLS" in whep.status().error
        watcher.close()
