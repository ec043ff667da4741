"""Whether an enrolled face is a denied one: judged at the start, and when the list changes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from livefuse.errors import LivefuseError, RefusedError
from livefuse.safety.actor import ITSELF

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.safety.audit import AuditLog
    from livefuse.safety.audit_records import Fact
    from livefuse.safety.deny import DenyList, Verdict
    from livefuse.safety.records import FaceRecord

    Looks = NDArray[np.float32]
    Signature = tuple[int, int, int]


_Asked: TypeAlias = "tuple[Signature, Signature | None]"


class _Answer(NamedTuple):
    """What was said of a face, and of which record and list that is true."""

    asked: _Asked
    is_allowed: bool


class DenyWatch:
    """Answers about faces by the deny list. Safe from any thread.

    A face that was let in is judged anew in a thread of its own: whoever asks once a second has
    the old answer meanwhile, and the new one at its next question.
    """

    def __init__(
        self,
        denied: DenyList,
        get_looks: Callable[[FaceRecord], Looks | None],
        audit: AuditLog | None,
    ) -> None:
        self._denied = denied
        self._get_looks = get_looks
        self._audit = audit
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}
        self._judging: set[str] = set()

    def check(self, record: FaceRecord, looks: Looks | None, *, who: str, job_id: str) -> None:
        """Refuse a face that is denied, in words and in the log.

        Raises:
            RefusedError: it is, or it cannot be compared.
            AuditError: it is, and that cannot be logged.
            ModelError, ConfigError: the list cannot be read: nobody can tell.
        """
        if self._denied.sign() is None:
            return
        if looks is None:
            raise RefusedError(
                f"the face of {record.person} cannot be compared with those that are denied",
                hint="enroll the picture again",
            )
        verdict = self._denied.judge(looks)
        if verdict is None or not verdict.is_denied:
            return
        self._log(record, verdict, who, job_id)
        raise RefusedError(
            "the picture shows a face that is denied here "
            f"({verdict.agreeing} of {verdict.looks} looks agree, likeness {verdict.score:.3f})",
            hint="use another picture; operators see the list with  livefuse faces deny --list",
        )

    def is_allowed(self, record: FaceRecord, signature: Signature, job_id: str) -> bool:
        """Say whether the face is not denied, as far as is known now; one look at a file."""
        asked = (signature, self._denied.sign())
        with self._lock:
            answer = self._answers.get(record.face_id)
            if answer is not None and answer.asked == asked:
                return answer.is_allowed
            if asked[1] is None:  # nobody is denied
                self._answers[record.face_id] = _Answer(asked, is_allowed=True)
                return True
            if answer is not None:
                self._begin(record, asked, job_id)
                return answer.is_allowed
        return self._judge(record, asked, job_id)

    def _begin(self, record: FaceRecord, asked: _Asked, job_id: str) -> None:
        if record.face_id in self._judging:
            return
        self._judging.add(record.face_id)
        threading.Thread(
            target=self._judge,
            args=(record, asked, job_id),
            name="livefuse-deny",
            daemon=True,
        ).start()

    def _judge(self, record: FaceRecord, asked: _Asked, job_id: str) -> bool:
        is_allowed = False  # when in doubt
        try:
            looks = self._get_looks(record)
            verdict = self._denied.judge(looks) if looks is not None else None
            is_allowed = looks is not None and (verdict is None or not verdict.is_denied)
            if verdict is not None and verdict.is_denied:
                self._log(record, verdict, ITSELF, job_id)
        except LivefuseError:
            pass  # the answer is no; whoever starts such a job is told why
        finally:
            with self._lock:
                self._judging.discard(record.face_id)
                self._answers[record.face_id] = _Answer(asked, is_allowed)
        return is_allowed

    def _log(self, record: FaceRecord, verdict: Verdict, who: str, job_id: str) -> None:
        if self._audit is None:
            return
        facts: dict[str, Fact] = {
            "face": record.face_id,
            "picture_sha256": record.picture_sha256,
            "denied": verdict.denied_id,
            "score": round(verdict.score, 4),
            "agreeing": verdict.agreeing,
            "looks": verdict.looks,
            "threshold": round(verdict.threshold, 4),
        }
        self._audit.append("refusal.face", who=who, job=job_id, facts=facts)
