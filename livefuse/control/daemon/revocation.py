"""What follows when a key opens no more: its sessions of WebRTC end, and, where wanted, its jobs.

What it watches by HTTP ends by itself (api/guard.py). All is looked at anew each time, so a session
that was just being opened, or a worker that did not hear, is not forgotten.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from livefuse.control.api.caller import LOCAL
from livefuse.control.background import call_in_thread
from livefuse.control.daemon.child_guests import GUESTS_PATH
from livefuse.control.daemon.life import ACTIVE
from livefuse.errors import LivefuseError
from livefuse.redact import redact_text
from livefuse.safety.actor import ITSELF, act_as
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.database import Database
    from livefuse.control.daemon.worker import WorkerHandle
    from livefuse.control.keys import KeyStore

_LOOK_S: Final = 1.0
_TELL_S: Final = 3.0


class StoppedKeys:
    """Of which keys the jobs were stopped already. Methods block: from any thread, not the loop's.

    Once and no more: an operator may start them again.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def has(self, key_id: str) -> bool:
        """Say whether that was done."""
        return bool(self._db.read("SELECT 1 FROM fact WHERE name = ?", _name(key_id)))

    def add(self, key_id: str) -> None:
        """Keep that it was done."""
        with self._db.write() as db:
            db.execute("INSERT OR IGNORE INTO fact VALUES (?, 1)", (_name(key_id),))


class Revocations:
    """On the loop."""

    def __init__(self, daemon: Daemon, keys: KeyStore, stopped: StoppedKeys) -> None:
        self._daemon = daemon
        self._keys = keys
        self._stopped = stopped
        self._done: set[str] = set()
        """Keys whose jobs were stopped, as far as has been looked up."""
        self._log = get_logger("keys")

    async def run(self) -> None:
        """Look once a second, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """Do what is to be done now; what fails is logged, and tried again next time."""
        try:
            await asyncio.gather(*map(self._send_away, list(self._daemon.pool.workers)))
            await self._stop_jobs()
        except Exception as error:  # noqa: BLE001 - the daemon goes on; the next look may help
            is_ours = isinstance(error, LivefuseError)
            cause = redact_text(str(error) if is_ours else f"{type(error).__name__}: {error}")
            self._log.warning("not all of a revoked key has ended yet", cause=cause)

    async def _send_away(self, worker: WorkerHandle) -> None:
        """End the sessions in a worker whose keys open no more."""
        gone = [one for one in worker.guests if one != LOCAL.key_id and not self._keys.opens(one)]
        if gone:
            self._log.info("sessions end", keys=", ".join(gone), worker=worker.number)
            await worker.ask("DELETE", GUESTS_PATH, gone, timeout_s=_TELL_S)

    async def _stop_jobs(self) -> None:
        """Stop the jobs of keys that were revoked together with what they have made."""
        for key_id in self._keys.list_stopping():
            if key_id in self._done:
                continue
            if not await call_in_thread("keys", partial(self._stopped.has, key_id)):
                await self._stop_jobs_of(key_id)
                await call_in_thread("keys", partial(self._stopped.add, key_id))
            self._done.add(key_id)

    async def _stop_jobs_of(self, key_id: str) -> None:
        jobs = [
            record.job_id
            for record in self._daemon.book.list_records()
            if record.owner == key_id and record.phase in ACTIVE
        ]
        self._log.info("jobs of a revoked key stop", key=key_id, jobs=", ".join(jobs))
        with act_as(ITSELF):
            await asyncio.gather(*map(self._daemon.supervisor.stop, jobs))


def _name(key_id: str) -> str:
    return f"stopped jobs of {key_id}"
