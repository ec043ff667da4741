"""A person's consent that their face may be shown: who, what for, until when. Pure."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from livefuse.errors import ConsentError

_HOW: Final = (
    'write it as "WHO, WHAT FOR, UNTIL", like "Anna Berger, my live streams, 90d"; '
    "until is YYYY-MM-DD or a length like 90d, 12w, 1y"
)
_COMMA: Final = re.compile("[,，]")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LENGTH: Final = re.compile(r"(\d{1,5})([dwy])")
_DAYS: Final = {"d": 1, "w": 7, "y": 365}
_MOST_DAYS: Final = 3653  # ten years: longer is a slip of the pen
_MAX_WHO, _MAX_SCOPE = 100, 200


class Consent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was agreed. `until` is its last second, ISO 8601 in UTC; `text` as it was written."""

    who: str
    scope: str
    until: str
    text: str

    @property
    def until_epoch_s(self) -> float:
        """When it ends, in epoch seconds."""
        return datetime.fromisoformat(self.until).timestamp()

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it: evidence that a record still says what was agreed."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


def parse_consent(text: str, now_epoch_s: float) -> Consent:
    """Return the consent that `text`, "who, scope, until", tells of.

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
    return Consent(who=who, scope=scope, until=end.isoformat("T", "seconds"), text=text)


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
