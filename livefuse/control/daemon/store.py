"""Where the daemon keeps its jobs; every method is one transaction (database.py).

Specs hold addresses with passwords and stream keys: they lie sealed, and so do last figures.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from livefuse.control.api.views import JobChange, JobPhase, Spec
from livefuse.control.daemon.life import ACTIVE, check_move
from livefuse.control.daemon.records import Ending, JobRecord
from livefuse.errors import JobError, JobNotFoundError, TokenError

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.control.daemon.database import Database

MAX_HISTORY: Final = 64
"""So many changes of phase are kept of each job; the audit keeps all."""


class Sealer(Protocol):
    """Seals what is secret; `kind` is bound in."""

    def seal(self, data: bytes, kind: str) -> bytes:
        """Return `data` sealed."""
        ...

    def open(self, sealed: bytes, kind: str) -> bytes:
        """Return what was sealed; TokenError when it does not open."""
        ...


class JobStore:
    """The daemon's memory. Methods block for some milliseconds: from any thread, not the loop's."""

    def __init__(self, database: Database, clock: Clock, sealer: Sealer) -> None:
        self._db = database
        self.clock = clock
        self._sealer = sealer

    def begin_epoch(self) -> int:
        """Count one daemon more and return its number: workers of an earlier one are strangers."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO fact VALUES ('epoch', 1)"
                " ON CONFLICT (name) DO UPDATE SET value = value + 1"
            )
            (epoch,) = db.execute("SELECT value FROM fact WHERE name = 'epoch'").fetchone()
            return int(epoch)

    # Jobs.

    def create_job(
        self, job_id: str, owner: str = "", owner_name: str = "", spec: Spec | None = None
    ) -> JobRecord:
        """Keep a draft; with `spec` a job that is submitted.

        Raises:
            JobError: there is one of that name.
        """
        now = self.clock.epoch_s()
        phase: JobPhase = "draft" if spec is None else "submitted"
        sealed = None if spec is None else self._seal(job_id, "spec", spec)
        with self._db.write() as db:
            try:
                db.execute(
                    "INSERT INTO job VALUES (?, ?, ?, ?, '', ?, ?, 0, 0, 0, ?, NULL)",
                    (job_id, owner, owner_name, phase, now, now, sealed),
                )
            except sqlite3.IntegrityError:
                raise JobError(
                    f"there is a job {job_id!r} already", hint="choose another id"
                ) from None
        return self.get_job(job_id)

    def get_job(self, job_id: str) -> JobRecord:
        """Return the job as it is kept.

        Raises:
            JobNotFoundError: there is none.
        """
        rows = self._db.read("SELECT * FROM job WHERE job_id = ?", job_id)
        if not rows:
            raise JobNotFoundError(f"there is no job {job_id[:64]!r}", hint="GET /v1/jobs")
        return self._decode(rows[0])

    def list_jobs(self) -> list[JobRecord]:
        """Return all jobs, the oldest first."""
        return [self._decode(row) for row in self._db.read("SELECT * FROM job ORDER BY created")]

    def set_spec(self, job_id: str, spec: Spec) -> JobRecord:
        """Keep what a job is to do that does not run; it is submitted then.

        Raises:
            JobNotFoundError, JobError: there is no such job, or it runs.
        """
        with self._db.write() as db:
            self._move(db, job_id, "submitted", is_wanted=False)
            _set(db, job_id, spec=self._seal(job_id, "spec", spec), restarts=0)
        return self.get_job(job_id)

    def change_spec(self, job_id: str, spec: Spec) -> JobRecord:
        """Keep what a job does from now on, whatever its phase.

        Raises:
            JobNotFoundError: there is no such job.
        """
        with self._db.write() as db:
            self.get_job(job_id)
            _set(db, job_id, spec=self._seal(job_id, "spec", spec))
        return self.get_job(job_id)

    def move(
        self,
        job_id: str,
        phase: JobPhase,
        reason: str = "",
        *,
        is_wanted: bool | None = None,
        ending: Ending | None = None,
    ) -> JobRecord:
        """Bring a job into another phase, for a reason; with `is_wanted` say what is wanted of it.

        `ending` is kept until it is started again.

        Raises:
            JobNotFoundError, JobError: there is no such job, or that does not follow.
        """
        with self._db.write() as db:
            self._move(db, job_id, phase, reason, is_wanted=is_wanted)
            if ending is not None:
                _set(db, job_id, ending=self._seal(job_id, "ending", ending))
        return self.get_job(job_id)

    def want(self, job_id: str, *, is_wanted: bool) -> JobRecord:
        """Say whether the job is to run, its phase left as it is."""
        with self._db.write() as db:
            self.get_job(job_id)
            _set(db, job_id, is_wanted=int(is_wanted))
        return self.get_job(job_id)

    def count_restart(self, job_id: str) -> int:
        """Count a worker that the job has lost; return how many since it was started."""
        with self._db.write() as db:
            db.execute("UPDATE job SET restarts = restarts + 1 WHERE job_id = ?", (job_id,))
        return self.get_job(job_id).restarts

    def delete_job(self, job_id: str) -> None:
        """Forget a job that does not run.

        Raises:
            JobNotFoundError, JobError: there is no such job, or it runs.
        """
        with self._db.write() as db:
            job = self.get_job(job_id)
            if job.phase in ACTIVE:
                check_move(job_id, job.phase, "submitted")
            db.execute("DELETE FROM job WHERE job_id = ?", (job_id,))

    def list_changes(self, job_id: str) -> list[JobChange]:
        """Return the last changes of a job's phase, the oldest first."""
        rows = self._db.read(
            "SELECT epoch_s, before, after, reason FROM change WHERE job_id = ? ORDER BY number",
            job_id,
        )
        return [msgspec.convert(dict(row), JobChange) for row in rows]

    # Beneath.

    def _move(
        self,
        db: sqlite3.Connection,
        job_id: str,
        phase: JobPhase,
        reason: str = "",
        *,
        is_wanted: bool | None = None,
    ) -> None:
        job = self.get_job(job_id)
        check_move(job_id, job.phase, phase)
        now = self.clock.epoch_s()
        wanted = job.is_wanted if is_wanted is None else is_wanted
        _set(db, job_id, phase=phase, reason=reason, since=now, is_wanted=int(wanted))
        if phase in ACTIVE and job.phase not in ACTIVE:
            _set(db, job_id, ending=None)
        db.execute(
            "INSERT INTO change (job_id, epoch_s, before, after, reason) VALUES (?, ?, ?, ?, ?)",
            (job_id, now, job.phase, phase, reason),
        )
        db.execute(
            "DELETE FROM change WHERE job_id = ?1 AND number IN (SELECT number FROM change"
            " WHERE job_id = ?1 ORDER BY number DESC LIMIT -1 OFFSET ?2)",
            (job_id, MAX_HISTORY),
        )

    def _seal(self, job_id: str, what: str, value: Spec | Ending) -> bytes:
        return self._sealer.seal(msgspec.json.encode(value), f"{what}:{job_id}")

    def _decode(self, row: sqlite3.Row) -> JobRecord:
        spec, is_damaged = None, False
        if row["spec"] is not None:
            try:
                data = self._sealer.open(row["spec"], f"spec:{row['job_id']}")
                spec = msgspec.json.decode(data, type=Spec)
            except (TokenError, msgspec.MsgspecError):
                is_damaged = True
        return JobRecord(
            job_id=row["job_id"],
            owner=row["owner"],
            owner_name=row["owner_name"],
            phase=row["phase"],
            reason=row["reason"],
            since_epoch_s=row["since"],
            created_epoch_s=row["created"],
            is_wanted=bool(row["is_wanted"]),
            restarts=row["restarts"],
            revision=row["revision"],
            spec=spec,
            ending=self._open_ending(row),
            is_damaged=is_damaged,
        )

    def _open_ending(self, row: sqlite3.Row) -> Ending:
        """Return what is kept of a job's end; nothing when its key is gone."""
        if row["ending"] is None:
            return Ending()
        try:
            data = self._sealer.open(row["ending"], f"ending:{row['job_id']}")
            return msgspec.json.decode(data, type=Ending)
        except (TokenError, msgspec.MsgspecError):
            return Ending()


def _set(db: sqlite3.Connection, job_id: str, **values: object) -> None:
    columns = ", ".join(f"{name} = ?" for name in values)
    db.execute(
        f"UPDATE job SET {columns}, revision = revision + 1 WHERE job_id = ?",  # noqa: S608 - our own names
        (*values.values(), job_id),
    )
