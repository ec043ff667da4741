"""What was answered to requests that may come again: those with an Idempotency-Key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.control.daemon.records import Answer
from livefuse.errors import JobError

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.control.daemon.database import Database

ANSWERS_KEPT_S: Final = 24 * 3600.0
MAX_ANSWERS: Final = 10_000


class AnswerStore:
    """The newest answers, a day long. Methods block for some milliseconds: from any thread."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def claim(self, caller: str, name: str, request: bytes) -> Answer | None:
        """Return what was answered to `caller` under the Idempotency-Key `name`; None: it is new.

        An answer of status 0: it was begun, and its end is not known.

        Raises:
            JobError: the key was used for another request (`request` is a digest of it).
        """
        now = self._clock.epoch_s()
        with self._db.write() as db:
            db.execute("DELETE FROM answer WHERE epoch_s < ?", (now - ANSWERS_KEPT_S,))
            row = db.execute(
                "SELECT request, status, body, location FROM answer WHERE caller = ? AND name = ?",
                (caller, name),
            ).fetchone()
            if row is None:
                db.execute(
                    "INSERT INTO answer VALUES (?, ?, ?, ?, 0, x'', '')",
                    (caller, name, request, now),
                )
                db.execute(
                    "DELETE FROM answer WHERE rowid IN"
                    " (SELECT rowid FROM answer ORDER BY epoch_s DESC LIMIT -1 OFFSET ?)",
                    (MAX_ANSWERS,),
                )
                return None
        if row["request"] != request:
            raise JobError(
                "this Idempotency-Key was used for another request", hint="make a new one for each"
            )
        return Answer(status=row["status"], body=row["body"], location=row["location"])

    def keep(self, caller: str, name: str, answer: Answer) -> None:
        """Keep what was answered; one of status 0 is forgotten: the request may come anew."""
        with self._db.write() as db:
            if not answer.status:
                db.execute("DELETE FROM answer WHERE caller = ? AND name = ?", (caller, name))
                return
            db.execute(
                "UPDATE answer SET status = ?, body = ?, location = ?"
                " WHERE caller = ? AND name = ?",
                (answer.status, answer.body, answer.location, caller, name),
            )
