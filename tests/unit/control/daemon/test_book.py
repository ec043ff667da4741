"""The jobs in memory say what has happened, also when that cannot be kept."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.control.daemon.book import JobBook
from livefuse.control.daemon.database import Database
from livefuse.control.daemon.store import JobStore
from livefuse.errors import StorageError
from livefuse.safety.keys import KeyRing
from livefuse.safety.seal import RingSealer


def test_what_cannot_be_kept_is_told_whole(tmp_path, monkeypatch):
    """Its time, and that nobody wants it any more: else it would be taken for one that runs."""
    clock = ManualClock()

    def fail(*_args, **_named):
        raise StorageError("the disc is full")

    async def run():
        with contextlib.closing(Database(tmp_path / "jobs.db")) as database:
            store = JobStore(database, clock, RingSealer(KeyRing(tmp_path, clock)))
            book = JobBook(store)
            await book.open()
            before = await book.create("a", "op", "op", None)
            monkeypatch.setattr(store, "move", fail)
            clock.advance(60 * NS_PER_S)
            with structlog.testing.capture_logs() as said:
                await book.follow("a", "loading", "begun", is_wanted=True)
                await book.follow("a", "stopped", "it has ended", is_wanted=False)
            book.close()
        return before, book.get("a"), said

    before, after, said = asyncio.run(run())
    assert (after.phase, after.reason, after.is_wanted) == ("stopped", "it has ended", False)
    assert after.since_epoch_s == before.since_epoch_s + 60
    assert after.revision == before.revision + 2
    assert [entry["phase"] for entry in said] == ["loading", "stopped"]
