"""What a record of a change says; and what is looked at while jobs run."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import structlog

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import AuditConfig, load_config
from livefuse.control.job_audit import JobAudit, describe_change, describe_spec
from livefuse.control.job_watch import GRACE_NS, JobWatch, RoomWatch
from livefuse.errors import (
    AuditError,
    ConsentError,
    IngestConnectError,
    JobError,
    RefusedError,
)
from livefuse.job.health import Condition
from livefuse.job.spec import JobSpec
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_read import AuditQuery, read_audit
from livefuse.token import create_token, patch_token


def test_a_change_is_told_as_it_is_now():
    before = create_token(("detect", "blur"), now_epoch_s=0.0)
    patch = {"operations": ["detect"], "parameters": {"face_size": 128}, "ttl_s": 60}
    after = patch_token(before, patch)
    assert describe_change(before, after) == {
        "operations": ["detect"],
        "parameters": ["face_size=128"],
        "ttl_s": 60,
    }
    assert describe_change(after, after) == {}
    assert describe_change(before, before.renew(9.0)) == {}


def test_another_face_is_told_with_the_one_before():
    before = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    before = msgspec.structs.replace(before, source_face="avatar:one")
    after = msgspec.structs.replace(before, source_face="avatar:two")
    assert describe_change(before, after) == {
        "source_face": "avatar:two",
        "source_face_before": "avatar:one",
    }


def test_a_spec_is_told_without_secrets():
    """(C76)"""
    spec = JobSpec("rtsp://u:p@h/cam", ("rtmp://h/app/KEY", "srt://h:1?passphrase=open"), ())
    facts = describe_spec(spec)
    assert facts["source"] == "rtsp://***@h/cam"
    assert facts["outputs"] == ["rtmp://h/app/***", "srt://h:1?***"]


class TestReplay:
    """What a replay leaves behind is generated too."""

    @pytest.fixture
    def jobs(self, log, clock):
        faces = SimpleNamespace(check_consent=self.refuse)
        worker = SimpleNamespace(
            audit=log, faces=faces, clock=clock, config=SimpleNamespace(audit=AuditConfig())
        )
        return JobAudit(cast("Any", worker))

    def refuse(self, _face_id, _job_id):
        raise ConsentError("the consent for Anna was revoked on 2026-01-01")

    def test_from_its_beginning_to_its_end(self, jobs, log):
        spec = JobSpec("replay:a.rec", ("b.mp4",), ("detect", "blur"))
        with jobs.note_replay(spec):
            assert list_records(log) == [("replay.started", "")]
        with pytest.raises(JobError), jobs.note_replay(spec):
            raise JobError("the disc is full")
        assert [event for event, _ in list_records(log)] == [
            "replay.started",
            "replay.stopped",
            "replay.started",
            "replay.failed",
        ]

    def test_an_address_that_is_refused_is_on_record_without_its_secrets(self, jobs, log):
        """(C76)"""
        config = load_config(settings=("access.restrict=on",))
        access = jobs.open_access("cam", config)
        for url in ("rtsp://u:p@127.0.0.1/key", "file:///etc/passwd", "gopher://h/"):
            with pytest.raises(RefusedError):
                access.check_source(url)
        with pytest.raises(RefusedError):
            access.place_target("/etc/a.mp4", config.record)
        found = read_audit(log.folder, AuditQuery(), 9)
        assert [(one.event, one.job) for one in found] == [("refusal.address", "cam")] * 4
        assert "u:p" not in str(found)
        assert all(one.facts["reason"] for one in found)

    def test_without_a_target_it_leaves_nothing_behind(self, jobs, log):
        with jobs.note_replay(JobSpec("replay:a.rec", (), ("detect", "blur"))):
            pass
        assert list_records(log) == []

    def test_never_without_consent(self, jobs, log):
        """(C78)"""
        operations = ("detect", "align", "swap")
        spec = JobSpec("replay:a.rec", ("b.mp4",), operations, source_face="face_0123456789ab")
        with pytest.raises(ConsentError), jobs.note_replay(spec):
            pytest.fail("nothing may begin")
        (record,) = read_audit(log.folder, AuditQuery())
        assert record.event == "job.refused"
        assert record.facts["reason"] == "the consent for Anna was revoked on 2026-01-01"


class FakeJob:
    """As much of a job as is looked at."""

    def __init__(self, job_id: str, operations: tuple[str, ...] = ("detect", "blur")) -> None:
        self.job_id = job_id
        self.error: Exception | None = None
        self.report = SimpleNamespace(told=None)
        self.telemetry = SimpleNamespace(latency=SimpleNamespace(count=7))
        self.token = SimpleNamespace(get=lambda: SimpleNamespace(operations=operations))
        self.is_over = threading.Event()

    def wait(self, timeout_s: float | None = None) -> bool:
        return self.is_over.wait(timeout_s)

    def stop(self, _timeout_s: float) -> bool:
        self.is_over.set()
        return True


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def log(tmp_path, clock):
    return AuditLog(tmp_path, clock)


@pytest.fixture
def watch(log, clock):
    watch = JobWatch(log, AuditConfig(), clock)
    watch._closing.set()  # nobody looks but the test
    return watch


def add(watch, name):
    job = FakeJob(name)
    watch.add(cast("Any", job))
    return job


def list_records(log):
    return [(record.event, record.job) for record in read_audit(log.folder, AuditQuery())]


def tell(watch, job, health, reason=""):
    job.report.told = Condition(health, reason)
    watch.look()


def test_each_change_of_state_is_one_record(watch, log):
    job = add(watch, "a")
    for health in ("LOADING", "ONLINE", "ONLINE", "DEGRADED_INPUT", "DEGRADED_INFERENCE", "ONLINE"):
        tell(watch, job, health, "the input sends nothing" * (health == "DEGRADED_INPUT"))
    job.is_over.set()
    watch.look()
    watch.look()
    assert list_records(log) == [
        ("job.running", "a"),
        ("job.degraded", "a"),
        ("job.running", "a"),
        ("job.stopped", "a"),
    ]
    _, degraded, _, stopped = read_audit(log.folder, AuditQuery())
    assert degraded.facts == {"health": "DEGRADED_INPUT", "reason": "the input sends nothing"}
    assert degraded.who == "livefuse"
    assert stopped.facts == {"frames_out": 7}


def test_pictures_that_are_withheld_are_told_of_a_degraded_job_too(watch, log):
    """R54: that the input stalls as well is no reason to be silent of a consent that is gone."""
    job = add(watch, "a")
    revoked = Condition("DEGRADED_INFERENCE", "the consent was revoked", is_withheld=True)
    stalled = Condition("DEGRADED_INPUT", "the input sends nothing")
    for condition in (stalled, revoked, revoked):
        job.report.told = condition
        watch.look()
    told = [record.facts["reason"] for record in read_audit(log.folder, AuditQuery())]
    assert told == ["the input sends nothing", "the consent was revoked"]


def test_a_failure_says_why_and_no_secret(watch, log):
    """(C76)"""
    job = add(watch, "a")
    job.error = IngestConnectError("cannot reach rtsp://u:p@h/cam")
    tell(watch, job, "ERROR", "said already, and not over yet")
    job.is_over.set()
    watch.close()
    (record,) = read_audit(log.folder, AuditQuery())
    assert record.event == "job.failed"
    assert record.facts["error"] == "IngestConnectError"
    assert record.facts["reason"] == "cannot reach rtsp://***@h/cam"


def test_what_flickers_fills_no_disc(watch, log, clock):
    job = add(watch, "a")
    for number in range(200):
        tell(watch, job, "ONLINE" if number % 2 else "DEGRADED_INPUT")
        clock.advance(NS_PER_S // 10)
    assert len(list_records(log)) == 20
    clock.advance(60 * NS_PER_S)
    tell(watch, job, "DEGRADED_INPUT")
    assert list_records(log)[-1] == ("job.degraded", "a")


def test_a_fault_ends_no_watch(log, clock, monkeypatch):
    """What happens to jobs is logged after it, and the fault is told, once."""
    looked = threading.Semaphore(0)

    def fail(watch):
        looked.release()
        raise OSError("broken rtsp://u:p@h/cam")

    watch, job = JobWatch(log, AuditConfig(), clock), FakeJob("a")
    with monkeypatch.context() as patch, structlog.testing.capture_logs() as said:
        patch.setattr(JobWatch, "look", fail)
        watch.add(cast("Any", job))
        for _ in range(3):
            assert looked.acquire(timeout=10)
    faults = [entry["cause"] for entry in said if entry["event"] == "a look at the jobs failed"]
    assert faults == ["OSError: broken rtsp://***@h/cam"]
    job.is_over.set()
    watch.close()
    assert list_records(log) == [("job.stopped", "a")]


class TestRoom:
    @pytest.fixture
    def jobs(self):
        return [FakeJob("hides"), FakeJob("shows", ("detect", "beautify"))]

    def create(self, log, clock, jobs, when_full="stop"):
        config = AuditConfig(when_full=when_full)
        return RoomWatch(log, config, clock, lambda: cast("Any", jobs))

    def fill(self, log, monkeypatch, *, is_full):
        monkeypatch.setattr(log, "probe", lambda: not is_full)
        log.is_full = is_full

    def run(self, room, clock, seconds):
        for _ in range(seconds * 4):
            room.look()
            clock.advance(NS_PER_S // 4)

    def test_jobs_that_hide_faces_stop_after_the_grace(self, log, clock, jobs, monkeypatch):
        room = self.create(log, clock, jobs)
        self.run(room, clock, 20)
        self.fill(log, monkeypatch, is_full=True)
        self.run(room, clock, GRACE_NS // NS_PER_S)
        assert not jobs[0].is_over.is_set()
        self.run(room, clock, 2)
        assert jobs[0].is_over.wait(5)
        assert isinstance(jobs[0].error, AuditError)
        assert not jobs[1].is_over.is_set()

    def test_room_that_comes_back_in_time_stops_nothing(self, log, clock, jobs, monkeypatch):
        room = self.create(log, clock, jobs)
        for _ in range(3):
            self.fill(log, monkeypatch, is_full=True)
            self.run(room, clock, GRACE_NS // NS_PER_S - 1)
            self.fill(log, monkeypatch, is_full=False)
            self.run(room, clock, 6)
        assert not any(job.is_over.is_set() for job in jobs)

    def test_who_said_go_on_is_obeyed(self, log, clock, jobs, monkeypatch):
        room = self.create(log, clock, jobs, "go_on")
        self.fill(log, monkeypatch, is_full=True)
        self.run(room, clock, 60)
        assert not any(job.is_over.is_set() for job in jobs)
