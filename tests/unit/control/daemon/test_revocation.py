"""What ends with a key: its sessions at once, its jobs where that was said, once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from livefuse.config import Config
from livefuse.control.daemon.child_guests import GUESTS_PATH, list_guests
from livefuse.control.daemon.database import Database
from livefuse.control.daemon.owned import DATABASE, list_owned
from livefuse.control.daemon.revocation import Revocations, StoppedKeys
from livefuse.control.daemon.worker import WorkerLostError
from livefuse.errors import JobError

SECTIONS = ("job_id", "owner", "owner_name", "phase", "reason", "since", "created")
NUMBERS = ("is_wanted", "restarts", "revision")


class PaperWorker:
    def __init__(self, *guests):
        self.number = 1
        self.guests = list(guests)
        self.asked = []
        self.is_lost = False

    async def ask(self, method, path, value=None, **_):
        if self.is_lost:
            raise WorkerLostError("gone")
        self.asked.append((method, path, value))


class PaperSupervisor:
    def __init__(self):
        self.stopped = []

    async def stop(self, job_id):
        self.stopped.append(job_id)


class PaperKeys:
    def __init__(self):
        self.open = {"in"}
        self.stopping = []

    def opens(self, key_id):
        return key_id in self.open

    def list_stopping(self):
        return self.stopping


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / DATABASE)
    yield database
    database.close()


def create(database, *workers, jobs=()):
    """Return what looks, the keys, and what is told to stop."""
    records = [SimpleNamespace(job_id=n, owner=o, phase=p) for n, o, p in jobs]
    daemon = SimpleNamespace(
        pool=SimpleNamespace(workers=list(workers)),
        book=SimpleNamespace(list_records=lambda: records),
        supervisor=PaperSupervisor(),
    )
    keys = PaperKeys()
    looks = Revocations(cast("Any", daemon), cast("Any", keys), StoppedKeys(database))
    return looks, keys, daemon.supervisor


def test_sessions_whose_keys_open_no_more_are_sent_away(database):
    one, two = PaperWorker("in", "out", "local"), PaperWorker("in")
    looks, keys, _ = create(database, one, two)
    asyncio.run(looks.look())
    assert one.asked == [("DELETE", GUESTS_PATH, ["out"])]
    assert two.asked == []
    keys.open.clear()
    asyncio.run(looks.look())
    assert two.asked == [("DELETE", GUESTS_PATH, ["in"])]


def test_a_worker_that_does_not_hear_is_told_again_and_holds_up_nobody(database):
    lost, other = PaperWorker("out"), PaperWorker("out")
    lost.is_lost = True
    looks, _, _ = create(database, lost, other)
    asyncio.run(looks.look())
    assert len(other.asked) == 1
    lost.is_lost = False
    asyncio.run(looks.look())
    assert lost.asked == [("DELETE", GUESTS_PATH, ["out"])]


def test_jobs_stop_once(database):
    """An operator may start them again; not even another daemon stops them then."""
    jobs = [
        ("a", "k", "running"),
        ("b", "k", "queued"),
        ("c", "k", "stopped"),
        ("d", "x", "running"),
    ]
    looks, keys, supervisor = create(database, jobs=jobs)
    asyncio.run(looks.look())
    assert supervisor.stopped == []
    keys.stopping = ["k"]
    for _ in range(2):
        asyncio.run(looks.look())
    assert supervisor.stopped == ["a", "b"]
    looks, keys, supervisor = create(database, jobs=jobs)
    keys.stopping = ["k"]
    asyncio.run(looks.look())
    assert supervisor.stopped == []


def test_what_could_not_be_stopped_is_tried_again(database):
    looks, keys, supervisor = create(database, jobs=[("a", "k", "running")])
    keys.stopping = ["k"]
    stop, supervisor.stop = supervisor.stop, cast("Any", None)  # a fault of ours, even
    asyncio.run(looks.look())
    supervisor.stop = stop
    asyncio.run(looks.look())
    assert supervisor.stopped == ["a"]


def test_a_command_finds_the_jobs_of_a_key(tmp_path, database):
    """Beside the daemon, which has the file open."""
    config = msgspec.structs.replace(
        Config(), daemon=msgspec.structs.replace(Config().daemon, folder=str(tmp_path))
    )
    with database.write() as db:
        for number, (job, owner, phase) in enumerate(
            [
                ("a", "k", "running"),
                ("b", "k", "queued"),
                ("c", "k", "draft"),
                ("d", "x", "running"),
            ]
        ):
            db.execute(
                f"INSERT INTO job ({', '.join(SECTIONS + NUMBERS)}) VALUES (?,?,'',?,'',0,?,0,0,0)",
                (job, owner, phase, number),
            )
    assert list_owned(config, "k") == ["a", "b"]
    assert list_owned(config, "nobody") == []


def test_where_no_jobs_are_kept_there_are_none(tmp_path):
    folder = tmp_path / "none"
    config = msgspec.structs.replace(
        Config(), daemon=msgspec.structs.replace(Config().daemon, folder=str(folder))
    )
    assert list_owned(config, "k") == []
    assert not folder.exists()
    folder.mkdir()
    (folder / DATABASE).write_bytes(b"no database" * 100)
    assert list_owned(config, "k") is None


def test_a_worker_lists_the_guests_of_all_its_jobs():
    def get_peers(way, guests):
        if way == "whip":
            raise JobError("its source is no browser")
        return SimpleNamespace(list_guests=lambda: guests)

    def make(guests, *, is_over=False):
        job = SimpleNamespace(wait=lambda _: is_over, get_peers=lambda way: get_peers(way, guests))
        return SimpleNamespace(job=job)

    managed = [make({"b", "a"}), make({"c"}, is_over=True), SimpleNamespace(job=None), make({"a"})]
    manager = cast("Any", SimpleNamespace(list_managed=lambda: managed))
    assert list_guests(manager) == ["a", "b"]
