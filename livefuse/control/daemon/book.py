"""The daemon's jobs, in memory as they are in the store: read at once, written in their order."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from livefuse.errors import JobError, JobNotFoundError, StorageError
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.control.api.views import JobChange, JobPhase, Spec
    from livefuse.control.daemon.records import Ending, JobRecord
    from livefuse.control.daemon.store import JobStore

T = TypeVar("T")


class JobBook:
    """Read on the loop. What is written is on the disc when it can be read here.

    Writes raise what `JobStore` does; one that nobody waits for any more is done all the same.
    """

    def __init__(self, store: JobStore) -> None:
        self._store = store
        # One thread: what comes first is written first.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="livefuse-store")
        self._records: dict[str, JobRecord] = {}

    async def open(self) -> None:
        """Read what is there."""

        def read() -> None:
            self._records = {record.job_id: record for record in self._store.list_jobs()}

        await self.run(read)

    def close(self) -> None:
        """Write what waits to be written."""
        self._executor.shutdown()

    def now_epoch_s(self) -> float:
        """Return the time that records count in."""
        return self._store.clock.epoch_s()

    def list_records(self) -> list[JobRecord]:
        """Return all jobs, the oldest first."""
        return list(self._records.values())

    def find(self, job_id: str) -> JobRecord | None:
        """Return the job, None when there is none."""
        return self._records.get(job_id)

    def get(self, job_id: str) -> JobRecord:
        """Return the job.

        Raises:
            JobNotFoundError: there is none.
        """
        record = self._records.get(job_id)
        if record is None:
            raise JobNotFoundError(f"there is no job {job_id[:64]!r}", hint="GET /v1/jobs")
        return record

    async def create(
        self, job_id: str, owner: str, owner_name: str, spec: Spec | None
    ) -> JobRecord:
        """Keep a new job, with a spec one that is submitted."""
        return await self._write(
            lambda: self._store.create_job(job_id, owner, owner_name, spec=spec)
        )

    async def set_spec(self, job_id: str, spec: Spec) -> JobRecord:
        """Keep what a job is to do that does not run."""
        return await self._write(lambda: self._store.set_spec(job_id, spec))

    async def change_spec(self, job_id: str, spec: Spec) -> JobRecord:
        """Keep what a job does from now on."""
        return await self._write(lambda: self._store.change_spec(job_id, spec))

    async def move(
        self, job_id: str, phase: JobPhase, reason: str = "", *, is_wanted: bool | None = None
    ) -> JobRecord:
        """Bring a job into another phase."""
        return await self._write(
            lambda: self._store.move(job_id, phase, reason, is_wanted=is_wanted)
        )

    async def follow(
        self,
        job_id: str,
        phase: JobPhase,
        reason: str = "",
        *,
        is_wanted: bool | None = None,
        ending: Ending | None = None,
    ) -> None:
        """Note what has become of a job, as `move`; nothing that has happened can be refused.

        What cannot be written is told here all the same, and logged.
        """
        record = self.find(job_id)
        if record is None:
            return
        try:
            await self._write(
                lambda: self._store.move(job_id, phase, reason, is_wanted=is_wanted, ending=ending)
            )
        except JobError:
            pass  # somebody has asked for something else meanwhile: that comes next
        except StorageError as error:
            get_logger("jobs").error("not kept", job=job_id, phase=phase, cause=error.message)
            self._records[job_id] = msgspec.structs.replace(
                record,
                phase=phase,
                reason=reason,
                since_epoch_s=self.now_epoch_s(),
                is_wanted=record.is_wanted if is_wanted is None else is_wanted,
                revision=record.revision + 1,
                ending=ending or record.ending,
            )

    async def count_restart(self, job_id: str) -> JobRecord:
        """Count a worker that the job has lost."""

        def count() -> JobRecord:
            self._store.count_restart(job_id)
            return self._store.get_job(job_id)

        return await self._write(count)

    async def list_changes(self, job_id: str) -> list[JobChange]:
        """Return the last changes of a job's phase, the oldest first."""
        return await self.run(lambda: self._store.list_changes(job_id))

    async def delete(self, job_id: str) -> None:
        """Forget a job that does not run."""

        def forget() -> None:
            self._store.delete_job(job_id)
            self._records.pop(job_id, None)

        await self.run(forget)

    async def run(self, function: Callable[[], T]) -> T:
        """Return what `function` does in the thread that writes."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    async def _write(self, change: Callable[[], JobRecord]) -> JobRecord:
        def write() -> JobRecord:
            record = change()
            self._records[record.job_id] = record
            return record

        return await self.run(write)
