"""A person's consent that their face may be shown: who, what for, until when. Pure."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from livefuse.errors import ConsentError
from livefuse.safety.evidence import Evidence

_HOW: Final = (
    'write it as "WHO, WHAT FOR, UNTIL", like "Anna Berger, my live streams, 90d"; '
    "until is YYYY-MM-DD or a length like 90d, 12w, 1y"
)
_COMMA: Final = re.compile("[,，]")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LENGTH: Final = re.compile(r"(\d{1,5})([dwy])")
_DAYS: Final = {"d": 1, "w": 7, "y": 365}
_MOST_DAYS: Final = 3653  # ten years: longer is a slip of the pen
_MAX_WHO, _MAX_SCOPE, _MAX_JOBS = 100, 200, 16
_PATTERN: Final = re.compile(r"[A-Za-z0-9_*?-]{1,64}")


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to a consent besides its text.

    `jobs`: patterns of the ids of jobs that may show the face (`*` and `?`; none: all).
    `enrolled_by`: who brought it. `forget_picture`: keep what recognises the face, not the picture.
    """

    jobs: tuple[str, ...] = ()
    evidence: Evidence | None = None
    enrolled_by: str = ""
    forget_picture: bool = False


class Consent(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What was agreed. `until` is its last second, ISO 8601 in UTC; `text` as it was written.

    `scope` is the purpose; `jobs`, `evidence` and `enrolled_by` as in `Terms`. What is not said is
    not encoded: the hash of a consent of before there were these is what it was.
    """

    who: str
    scope: str
    until: str
    text: str
    jobs: tuple[str, ...] = ()
    evidence: Evidence | None = None
    enrolled_by: str = ""

    @property
    def until_epoch_s(self) -> float:
        """When it ends, in epoch seconds."""
        return datetime.fromisoformat(self.until).timestamp()

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it: evidence that a record still says what was agreed."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def covers_job(self, job_id: str) -> bool:
        """Say whether the job of that id is among those that may show the face."""
        return not self.jobs or any(fnmatchcase(job_id, pattern) for pattern in self.jobs)


def parse_consent(text: str, now_epoch_s: float, terms: Terms = Terms()) -> Consent:  # noqa: B008 - immutable
    """Return the consent that `text`, "who, scope, until", and `terms` tell of.

    `until` is a date, YYYY-MM-DD, that is included (UTC), or a length of time from now: 90d, 12w,
    1y. The scope in the middle may hold commas.

    Raises:
        ConsentError: a part is missing or cannot be understood, or it would be over already.
    """
    text = " ".join(text.split())
    parts = [part.strip() for part in _COMMA.split(text)]
    parts[-1] = parts[-1].removeprefix("until ").strip()  # as people write it
    _check_parts(text, parts)
    who, scope, until = parts[0], ", ".join(parts[1:-1]), parts[-1]
    for what, value, most in (("who", who, _MAX_WHO), ("what for", scope, _MAX_SCOPE)):
        if len(value) > most or not value.isprintable():
            raise ConsentError(
                f"the consent's {what!r} is more than {most} printable characters", hint=_HOW
            )
    end = _parse_until(until, now_epoch_s)
    return Consent(
        who=who,
        scope=scope,
        until=end.isoformat("T", "seconds"),
        text=text,
        jobs=_check_jobs(terms.jobs),
        evidence=terms.evidence,
        enrolled_by=terms.enrolled_by[:_MAX_WHO],
    )


def _check_jobs(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns of ids of jobs, each once."""
    patterns = tuple(dict.fromkeys(pattern.strip() for pattern in patterns))
    if len(patterns) > _MAX_JOBS:
        raise ConsentError(f"more than {_MAX_JOBS} patterns of jobs", hint="use * and ?")
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise ConsentError(
                f"{pattern[:64]!r} names no jobs",
                hint="write the id of a job: letters, digits, _ and -, and * and ? for any of them",
            )
    return patterns


def _check_parts(text: str, parts: list[str]) -> None:
    """Say which of the three is missing."""
    if not text:
        raise ConsentError("there is no consent", hint=_HOW)
    missing = []
    if not parts[0] or _is_until(parts[0]):
        missing.append("who")
    if not _is_until(parts[-1]):
        missing.append("until when")
    middle = parts[1:] if "until when" in missing else parts[1:-1]
    if not any(middle):
        missing.append("what for")
    if "who" in missing and len(parts) == 1:
        missing = ["who", "what for"]
    if missing:
        order = [name for name in ("who", "what for", "until when") if name in missing]
        last = parts[-1]
        said = f" ({last!r} is no date and no length of time)" if "until when" in order else ""
        raise ConsentError(f"the consent does not say {' and '.join(order)}{said}", hint=_HOW)


def _is_until(text: str) -> bool:
    return bool(_DATE.fullmatch(text) or _LENGTH.fullmatch(text))


def _parse_until(text: str, now_epoch_s: float) -> datetime:
    now = datetime.fromtimestamp(now_epoch_s, UTC).replace(microsecond=0)
    if length := _LENGTH.fullmatch(text):
        days = int(length[1]) * _DAYS[length[2]]
        end = now + timedelta(days=min(days, _MOST_DAYS + 1))
    else:
        try:
            day = datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            raise ConsentError(f"there is no day {text}", hint="write YYYY-MM-DD") from None
        end = day.replace(hour=23, minute=59, second=59)
    if end <= now:
        raise ConsentError(f"the consent is over already ({text})", hint="ask for a new one")
    if end - now > timedelta(days=_MOST_DAYS):
        raise ConsentError(f"{text} is more than ten years away", hint="choose an earlier end")
    return end
