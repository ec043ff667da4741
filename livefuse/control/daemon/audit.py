"""What the daemon alone knows of its jobs, for the audit log; the rest is written by their workers.

job.created, job.submitted, job.deleted, and what becomes of a job whose worker is lost. Who asked
for it is known below (actor.py). On the loop; the disc is waited for in threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.control.background import call_in_thread
from livefuse.control.job_audit import describe_spec
from livefuse.redact import redact_text
from livefuse.safety.actor import ITSELF

if TYPE_CHECKING:
    from livefuse.control.api.views import Spec
    from livefuse.safety.audit import AuditLog
    from livefuse.safety.audit_records import Fact


class DaemonAudit:
    """What is to be done is logged first; what has happened is owed to the log."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def read_figures(self) -> tuple[dict[str, int], bool]:
        """Return the records written here by event, and whether the last could not be."""
        return self._log.read_figures()

    async def note_created(self, job_id: str, owner: str, spec: Spec | None) -> None:
        """A job is about to be made.

        Raises:
            AuditError: that cannot be logged.
        """

        def write() -> None:
            self._log.append("job.created", job=job_id, facts={"owner": owner})
            if spec is not None:
                self._log.append("job.submitted", job=job_id, facts=describe_spec(spec))

        await call_in_thread("audit", write)

    async def note_submitted(self, job_id: str, spec: Spec) -> None:
        """A job is about to be told what to do.

        Raises:
            AuditError: that cannot be logged.
        """
        await call_in_thread(
            "audit",
            lambda: self._log.append("job.submitted", job=job_id, facts=describe_spec(spec)),
        )

    async def note_reloaded(self, sections: list[str]) -> None:
        """Sections of the configuration are about to be applied anew.

        Raises:
            AuditError: that cannot be logged.
        """
        facts: dict[str, Fact] = {"sections": sections}
        await call_in_thread(
            "audit", lambda: self._log.append("daemon.reloaded", who=ITSELF, facts=facts)
        )

    async def note_deleted(self, job_id: str) -> None:
        """A job is no more."""
        await call_in_thread("audit", lambda: self._log.owe("job.deleted", job=job_id))

    async def note_lost(self, job_id: str, cause: str) -> None:
        """A job has lost its worker."""
        await self._owe("job.lost", job_id, cause)

    async def note_failed(self, job_id: str, cause: str) -> None:
        """A job has failed while no worker ran it."""
        await self._owe("job.failed", job_id, cause)

    async def _owe(self, event: str, job_id: str, cause: str) -> None:
        facts = {"reason": redact_text(cause)}
        await call_in_thread(
            "audit", lambda: self._log.owe(event, who=ITSELF, job=job_id, facts=facts)
        )
