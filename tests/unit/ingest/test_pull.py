"""The life of a live source without a network: opening, stalls, losses, trying again."""

from __future__ import annotations

import itertools
import threading
from fractions import Fraction

import av
import pytest

from livefuse.clock import NS_PER_MS, NS_PER_S, ManualClock, SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import (
    IngestAuthError,
    IngestEndedError,
    IngestError,
    IngestTimeoutError,
    IngestUnsupportedError,
)
from livefuse.ingest import pull
from livefuse.ingest.decode import MAX_DECODE_ERRORS, DecodeStage
from livefuse.ingest.pacer import Pacer
from livefuse.ingest.pull import PullIngest
from livefuse.ingest.reader import MAX_PACKETS, Reader, ReaderEnded
from livefuse.ingest.source import Source, build_options, open_source
from tests.clips import write_clip
from tests.sinks import CollectingSink
from tests.wire.servers import wait_until

URL = "rtmp://127.0.0.1:1/live/key"
FAST = IngestConfig(
    reconnect_min_ms=1, reconnect_max_ms=5, open_timeout_ms=400, read_timeout_ms=400
)


class Script:
    """Stands for FFmpeg: each opening takes the next act, a clip, an error, or a silence."""

    def __init__(self, *acts):
        self.acts = list(acts)
        self.opened = 0
        self.silence = threading.Event()

    def __call__(self, target, config, *, is_live, url, hardware=None):
        self.opened += 1
        act = self.acts.pop(0) if self.acts else "silent"
        if isinstance(act, Exception):
            raise act
        if act == "silent":
            self.silence.wait(10)
            raise av.error.ExitError(1, "silent")
        source = open_source(str(act), config, is_live=True, url=url)
        source.is_finite = False
        return source


@pytest.fixture
def play(monkeypatch):
    """Run a script of openings against a sink until it has had enough."""
    scripts = []

    def run(*acts, config=FAST, **options):
        script = Script(*acts)
        scripts.append(script)
        monkeypatch.setattr(pull, "open_source", script)
        ingest = PullIngest(URL, config, SystemClock())
        sink = CollectingSink(ingest=ingest, capacity=4, **options)
        try:
            ingest.run(sink)
        except IngestError as error:
            return sink, script, error
        return sink, script, None

    yield run
    for script in scripts:
        script.silence.set()


def test_first_failure_is_raised_at_once(play):
    sink, script, error = play(av.error.HTTPUnauthorizedError(1, "no"))
    assert isinstance(error, IngestAuthError)
    assert script.opened == 1
    assert sink.states == ["connecting"]


def test_lost_source_is_dialled_again_and_time_goes_on(play, tmp_path):
    clip = write_clip(tmp_path / "clip.ts", frames=10)
    down = av.error.ConnectionRefusedError(111, "refused")
    sink, _, error = play(clip, down, down, clip, stop_after=15)
    assert error is None
    assert sink.counts["reconnect"] == 3
    assert sink.states == [
        "connecting", "live", "lost", "connecting", "lost", "connecting", "lost",
        "connecting", "live", "ended",
    ]  # fmt: skip
    assert isinstance(sink.errors[2], IngestEndedError)
    assert all(b > a for a, b in itertools.pairwise(sink.pts))


@pytest.mark.parametrize(("rate_hz", "is_kept"), [(48_000, True), (44_100, False)])
def test_sound_of_another_rate_after_a_loss_is_not_passed_off_as_the_first(
    play, tmp_path, rate_hz, is_kept
):
    """Outputs were told the first rate: played at that one, the other would be out of tune."""
    first = write_clip(tmp_path / "first.ts", frames=30, audio="aac")
    second = write_clip(tmp_path / "second.ts", frames=30, audio="aac", rate_hz=rate_hz)
    once, _, _ = play(first, stop_after=29)
    sink, _, _ = play(first, second, stop_after=59)
    assert (len(sink.packets) > len(once.packets) + 20) == is_kept
    assert sink.counts["audio_changed"] == int(not is_kept)


def test_silent_source_fails_within_the_time_limit(play):
    """C31, without the server."""
    clock = SystemClock()
    started = clock.now_ns()
    _, _, error = play("silent")
    assert isinstance(error, IngestTimeoutError)
    assert clock.now_ns() - started < 1400 * NS_PER_MS


def test_stop_does_not_wait_for_ffmpeg(monkeypatch):
    script = Script("silent")
    monkeypatch.setattr(pull, "open_source", script)
    ingest = PullIngest(URL, IngestConfig(open_timeout_ms=9000), SystemClock())
    sink = CollectingSink()
    thread = threading.Thread(target=ingest.run, args=(sink,), daemon=True)
    thread.start()
    wait_until(lambda: script.opened, 5)
    ingest.stop()
    thread.join(2)
    assert not thread.is_alive()
    assert sink.states == ["connecting", "ended"]
    script.silence.set()


class NeverDecodes:
    """A decoder that takes nothing."""

    name = "h264"
    codec = av.Codec("h264", "r")
    extradata = None

    def decode(self, packet):
        raise av.error.InvalidDataError(1, "no")


def test_packets_that_never_decode_end_in_a_codec_error():
    clock = ManualClock()
    stage = DecodeStage(CollectingSink(), FAST, clock, threading.Event(), is_live=True)
    stage.begin_segment(make_source(NeverDecodes()))
    with pytest.raises(IngestUnsupportedError, match="h264"):
        for _ in range(MAX_DECODE_ERRORS + 1):
            stage.take(av.Packet(b"x"), clock.now_ns(), is_video=True)


@pytest.mark.parametrize(
    ("lost_s", "low_ms", "high_ms"), [(0, 800, 1200), (60, 2400, 3600), (900, 20_000, 30_000)]
)
def test_waits_grow_with_the_time_since_the_loss(lost_s, low_ms, high_ms):
    """C33, and C32: after a minute away it is dialled within 4 s of its return."""
    clock = ManualClock(start_ns=lost_s * NS_PER_S)
    delays_ms = []
    for choose in (min, max):
        ingest = PullIngest(URL, IngestConfig(), clock, choose=choose)
        delays_ms.append(ingest._get_delay_ns(IngestEndedError("x"), 0) / NS_PER_MS)
    assert delays_ms == pytest.approx([low_ms, high_ms]), "give or take a fifth"


def test_wrong_password_is_not_hammered():
    """C37."""
    ingest = PullIngest(URL, IngestConfig(), ManualClock())
    assert ingest._get_delay_ns(IngestAuthError("x"), 0) == 30 * NS_PER_S


def test_options_are_low_latency_tcp_and_verified_tls():
    options = build_options("rtsps", IngestConfig(), is_live=True)
    assert options["rtsp_transport"] == "tcp"
    assert options["tls_verify"] == "1"
    assert int(options["analyzeduration"]) <= 500_000
    assert (
        build_options("rtsp", IngestConfig(rtsp_transport="udp"), is_live=True)["rtsp_transport"]
        == "udp"
    )
    off = build_options("https", IngestConfig(tls_verify=False), is_live=True)
    assert off["tls_verify"] == "0"
    assert build_options("file", IngestConfig(), is_live=False) == {}


def make_source(decoder=None, amount=0, *, is_bursty=False, closed=None):
    """A source that gives `amount` packets as fast as they are taken."""
    return Source(
        url=URL,
        decoder=decoder,
        time_base=Fraction(1, 1000),
        audio=None,
        fps=30.0,
        aspect=None,
        decoder_name="h264",
        packets=((True, av.Packet(b"x")) for _ in range(amount)),
        close=closed.set if closed is not None else lambda: None,
        is_bursty=is_bursty,
    )


def get_dropped(reader):
    item = reader.get(2)
    assert item is not None
    return item.dropped_before


def test_full_queue_of_a_live_source_drops_what_waits_and_says_so():
    closed = threading.Event()
    source = make_source(amount=MAX_PACKETS + 5, closed=closed)
    reader = Reader(lambda: source, SystemClock())
    assert closed.wait(5)
    assert [get_dropped(reader) for _ in range(5)] == [MAX_PACKETS, 0, 0, 0, 0]
    with pytest.raises(ReaderEnded):
        reader.get(1)
    reader.close()


def test_full_queue_of_a_paced_source_waits():
    source = make_source(amount=MAX_PACKETS + 5, is_bursty=True)
    reader = Reader(lambda: source, SystemClock())
    assert not any(get_dropped(reader) for _ in range(MAX_PACKETS + 5))
    reader.close()


def test_closed_reader_lets_its_source_go():
    closed = threading.Event()
    source = make_source(amount=10 * MAX_PACKETS, is_bursty=True, closed=closed)
    reader = Reader(lambda: source, SystemClock())
    assert reader.wait_opened(2) is source
    reader.close()
    assert closed.wait(2)
    assert reader.get(0) is None


def test_sound_that_lies_behind_its_pictures_in_a_file_takes_no_time_of_its_own():
    """Pieces of half a second, as our own MP4 has them: two seconds stay two seconds."""
    clock = ManualClock()
    pacer = Pacer(clock, threading.Event())
    for piece in range(4):
        for kind in ("pictures", "sound"):
            for index in range(5):
                due_ms = piece * 500 + index * 100
                came_ms = pacer.wait_for(due_ms, Fraction(1, 1000)) // NS_PER_MS
                assert came_ms == due_ms if kind == "pictures" else due_ms <= came_ms < due_ms + 500


@pytest.mark.parametrize(("jump_ms", "is_endless"), [(5000, True), (260, False), (200, True)])
def test_a_jump_in_a_live_playlist_is_not_waited_for(jump_ms, is_endless):
    """C41: parts that were made apart; in a file a still of some seconds is one."""
    clock = ManualClock()
    pacer = Pacer(clock, threading.Event(), is_endless=is_endless)
    stamps = [200_000 + n * 33 + (jump_ms if n >= 30 else 0) for n in range(60)]
    came_ms = [pacer.wait_for(stamp, Fraction(1, 1000)) // NS_PER_MS for stamp in stamps]
    waited_ms = 0 if is_endless and jump_ms > 250 else 33 + jump_ms
    assert came_ms[30] - came_ms[29] == waited_ms
    assert came_ms[59] - came_ms[30] == 29 * 33


def test_pacer_follows_the_stamps_and_starts_anew_after_a_break():
    clock, stopping = ManualClock(), threading.Event()
    pacer = Pacer(clock, stopping)
    tick = Fraction(1, 1000)
    assert pacer.wait_for(1000, tick) == 0
    assert pacer.wait_for(1500, tick) == 500 * NS_PER_MS
    assert pacer.wait_for(1400, tick) == 500 * NS_PER_MS
    assert pacer.wait_for(90_000, tick) == 500 * NS_PER_MS
    assert pacer.wait_for(90_100, tick) == 600 * NS_PER_MS
    assert pacer.wait_for(None, tick) == 600 * NS_PER_MS
    stopping.set()
    assert pacer.wait_for(95_000, tick) == 600 * NS_PER_MS
