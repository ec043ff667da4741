"""What the daemon keeps is there again, whole, whatever ended it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import SystemClock
from livefuse.control.api.views import Spec
from livefuse.control.daemon.answers import AnswerStore
from livefuse.control.daemon.database import MIGRATIONS, Database
from livefuse.control.daemon.life import ACTIVE, can_move, check_move
from livefuse.control.daemon.records import Answer, Ending, apply_token
from livefuse.control.daemon.store import MAX_HISTORY, JobStore
from livefuse.errors import ConfigError, JobError, JobNotFoundError, StorageError
from livefuse.safety.keys import KeyRing
from livefuse.safety.seal import RingSealer
from livefuse.token import Parameters, Token
from tests.unit.control.figures import make_statistics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from livefuse.control.api.views import JobPhase

SPEC = Spec(source="rtsp://user:hunter2@h/cam", targets=("rtmp://h/live/streamkey77",))
PHASES: tuple[JobPhase, ...] = (
    "draft", "submitted", "queued", "loading", "running", "degraded", "stopping", "stopped",
    "failed",
)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "jobs.db")
    yield database
    database.close()


def open_store(database: Database) -> JobStore:
    ring = KeyRing(database.path.parent, SystemClock())
    return JobStore(database, SystemClock(), RingSealer(ring))


@pytest.fixture
def reopened(database: Database) -> Iterator[JobStore]:
    """The store as another process finds it."""
    other = Database(database.path)
    yield open_store(other)
    other.close()


def test_a_jobs_life_is_kept_with_reasons_and_times(database: Database, reopened: JobStore) -> None:
    store = open_store(database)
    store.create_job("a", owner="k1", owner_name="anna")
    store.set_spec("a", SPEC)
    store.move("a", "loading", is_wanted=True)
    store.move("a", "running")
    store.move("a", "degraded", "input lost")
    job = reopened.get_job("a")
    assert (job.phase, job.reason, job.is_wanted) == ("degraded", "input lost", True)
    assert (job.owner, job.owner_name, job.spec) == ("k1", "anna", SPEC)
    changes = store.list_changes("a")
    assert [change.after for change in changes] == ["submitted", "loading", "running", "degraded"]
    assert changes[-1].reason == "input lost"
    assert job.created_epoch_s <= job.since_epoch_s


def test_addresses_lie_sealed(database: Database) -> None:
    """(C76) Neither a password nor a stream key is in the file or beside it."""
    store = open_store(database)
    store.create_job("a")
    store.set_spec("a", SPEC)
    for path in database.path.parent.glob("jobs.db*"):
        data = path.read_bytes()
        assert b"hunter2" not in data, path
        assert b"streamkey77" not in data, path
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_spec_whose_key_is_gone_is_told(database: Database, reopened: JobStore) -> None:
    store = open_store(database)
    store.create_job("a")
    store.set_spec("a", SPEC)
    (database.path.parent / "keys.json").unlink()
    job = reopened.get_job("a")
    assert job.is_damaged
    assert job.spec is None


@pytest.mark.parametrize("before", PHASES)
@pytest.mark.parametrize("after", PHASES)
def test_only_what_follows_is_let_through(before: JobPhase, after: JobPhase) -> None:
    if can_move(before, after):
        check_move("a", before, after)
        return
    with pytest.raises(JobError) as caught:
        check_move("a", before, after)
    assert caught.value.hint


def test_every_phase_is_reached_and_has_a_way_out() -> None:
    assert all(any(can_move(before, after) for before in PHASES) for after in PHASES[1:])
    assert all(any(can_move(before, after) for after in PHASES) for before in PHASES)
    assert not any(can_move(before, "submitted") for before in ACTIVE)


def test_how_a_job_ended_is_kept_until_it_is_started_again(
    database: Database, reopened: JobStore
) -> None:
    store = open_store(database)
    store.create_job("a", spec=SPEC)
    store.move("a", "loading", is_wanted=True)
    ending = Ending(error_type="IngestAuthError", figures=make_statistics(frames_out=297))
    store.move("a", "failed", "the camera wants a password", is_wanted=False, ending=ending)
    job = reopened.get_job("a")
    assert job.ending == ending
    assert job.reason == "the camera wants a password"
    store.set_spec("a", SPEC)
    assert reopened.get_job("a").ending == ending
    store.move("a", "loading")
    assert reopened.get_job("a").ending == Ending()


def test_last_figures_lie_sealed_and_are_lost_with_their_key(
    database: Database, reopened: JobStore
) -> None:
    """(C76) Where its pictures came from is nobody's business who finds the file."""
    store = open_store(database)
    store.create_job("a", spec=SPEC)
    store.move("a", "loading")
    figures = make_statistics(source="rtsp://camera-of-anna/cam")
    store.move("a", "stopped", ending=Ending(figures=figures))
    for path in database.path.parent.glob("jobs.db*"):
        assert b"camera-of-anna" not in path.read_bytes(), path
    (database.path.parent / "keys.json").unlink()
    assert reopened.get_job("a").ending == Ending()


def test_a_file_of_the_version_before_goes_on_as_it_was(tmp_path: Path) -> None:
    """Written by the scripts of then: its jobs are there, and can end with what they did."""
    path = tmp_path / "jobs.db"
    sealer = RingSealer(KeyRing(tmp_path, SystemClock()))
    sealed = sealer.seal(msgspec.json.encode(SPEC), "spec:a")
    with sqlite3.connect(path) as db:
        db.executescript(f"{MIGRATIONS[0]} PRAGMA user_version = 1;")
        db.execute(
            "INSERT INTO job VALUES ('a', 'k1', 'anna', 'failed', 'no route', 2, 1, 1, 3, 9, ?)",
            (sealed,),
        )
        db.execute(
            "INSERT INTO change (job_id, epoch_s, before, after, reason)"
            " VALUES ('a', 2, 'running', 'failed', 'no route')"
        )
    db.close()
    database = Database(path)
    try:
        store = open_store(database)
        job = store.get_job("a")
        assert (job.phase, job.reason, job.restarts, job.spec) == ("failed", "no route", 3, SPEC)
        assert job.ending == Ending()
        assert [change.reason for change in store.list_changes("a")] == ["no route"]
        store.move("a", "loading")
        ending = Ending(error_type="JobError", figures=make_statistics())
        assert store.move("a", "failed", ending=ending).ending == ending
        assert database.read("PRAGMA user_version")[0][0] == len(MIGRATIONS)
    finally:
        database.close()


def test_a_refused_change_leaves_nothing(database: Database) -> None:
    store = open_store(database)
    store.create_job("a")
    before = store.get_job("a")
    with pytest.raises(JobError, match="nothing to do"):
        store.move("a", "running", is_wanted=True)
    assert store.get_job("a") == before
    assert store.list_changes("a") == []


def test_a_running_job_is_neither_submitted_nor_deleted(database: Database) -> None:
    store = open_store(database)
    store.create_job("a")
    store.set_spec("a", SPEC)
    store.move("a", "loading", is_wanted=True)
    store.move("a", "running")
    with pytest.raises(JobError, match="running"):
        store.set_spec("a", SPEC)
    with pytest.raises(JobError, match="running"):
        store.delete_job("a")
    store.move("a", "stopped", is_wanted=False)
    store.delete_job("a")
    with pytest.raises(JobNotFoundError):
        store.get_job("a")
    assert store.list_changes("a") == []


def test_a_second_job_of_one_name_is_refused(database: Database) -> None:
    store = open_store(database)
    store.create_job("a")
    with pytest.raises(JobError, match="already"):
        store.create_job("a")


def test_what_was_patched_is_in_the_spec(database: Database, reopened: JobStore) -> None:
    store = open_store(database)
    store.create_job("a")
    store.set_spec("a", SPEC)
    store.move("a", "loading", is_wanted=True)
    token = Token(
        request_id="r", operations=("detect", "blur"), parameters=Parameters(blend_ratio=0.5)
    )
    store.change_spec("a", apply_token(SPEC, token))
    spec = reopened.get_job("a").spec
    assert spec is not None
    assert (spec.operations, spec.parameters.blend_ratio) == (("detect", "blur"), 0.5)
    assert spec.source == SPEC.source


def test_history_is_bounded(database: Database) -> None:
    store = open_store(database)
    store.create_job("a")
    store.create_job("b")
    store.set_spec("b", SPEC)
    store.set_spec("a", SPEC)
    store.move("a", "loading")
    for number in range(MAX_HISTORY):
        store.move("a", "degraded" if number % 2 == 0 else "running", f"n{number}")
    changes = store.list_changes("a")
    assert len(changes) == MAX_HISTORY
    assert changes[-1].reason == f"n{MAX_HISTORY - 1}"
    assert len(store.list_changes("b")) == 1


def test_each_daemon_has_a_number(database: Database, reopened: JobStore) -> None:
    store = open_store(database)
    assert [store.begin_epoch(), store.begin_epoch()] == [1, 2]
    assert reopened.begin_epoch() == 3


def test_answers_come_again_and_a_key_is_for_one_request(database: Database) -> None:
    answers = AnswerStore(database, SystemClock())
    assert answers.claim("k1", "n", b"one") is None
    claimed = answers.claim("k1", "n", b"one")
    assert claimed is not None
    assert claimed.status == 0
    answers.keep("k1", "n", Answer(status=201, body=b"{}", location="/v1/jobs/a"))
    assert answers.claim("k1", "n", b"one") == Answer(status=201, body=b"{}", location="/v1/jobs/a")
    with pytest.raises(JobError, match="another request"):
        answers.claim("k1", "n", b"two")
    assert answers.claim("k2", "n", b"two") is None
    answers.keep("k2", "n", Answer())
    assert answers.claim("k2", "n", b"three") is None


def test_a_file_of_a_newer_livefuse_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    Database(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(ConfigError, match="newer livefuse"):
        Database(path)


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(ConfigError, match="damaged"):
        Database(path)
    with pytest.raises(StorageError, match="cannot keep jobs"):
        Database(tmp_path / "nowhere" / "jobs.db")


_KILLED = """
import os, sys
from pathlib import Path
from livefuse.clock import SystemClock
from livefuse.control.daemon.database import Database
from livefuse.control.daemon.store import JobStore
from livefuse.safety.keys import KeyRing
from livefuse.safety.seal import RingSealer
from livefuse.control.api.views import Spec
folder = Path(sys.argv[1])
ring = KeyRing(folder, SystemClock())
store = JobStore(Database(folder / "jobs.db"), SystemClock(), RingSealer(ring))
for number in range(1000):
    store.create_job(f"j{number}")
    store.set_spec(f"j{number}", Spec(source="demo:"))
    print(number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_told(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = [int(child.stdout.readline()) for _ in range(20)]
    child.kill()
    told += [int(line) for line in child.stdout.read().split()]
    child.wait(10)
    child.stdout.close()
    database = Database(tmp_path / "jobs.db")
    jobs = {job.job_id: job for job in open_store(database).list_jobs()}
    database.close()
    assert all(jobs[f"j{number}"].phase == "submitted" for number in told)
    assert len(jobs) <= len(told) + 1


@given(st.lists(st.sampled_from(PHASES), max_size=12))
def test_no_order_of_changes_breaks_the_record(phases: list[JobPhase]) -> None:
    now: JobPhase = "draft"
    for phase in phases:
        if can_move(now, phase):
            now = phase
        else:
            with pytest.raises(JobError):
                check_move("a", now, phase)
    assert now in PHASES
