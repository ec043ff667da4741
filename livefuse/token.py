"""The token: the immutable packet of state that goes with a frame. What to do, what was done.

It holds references, never pixels: `source_face` is an id in the face store, `target_face` a frame
handle. A change makes a new token; threads share one through a `TokenCell`, whose reference is
replaced whole, so nobody sees a half-applied change.
"""

from __future__ import annotations

import difflib
import threading
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from livefuse.errors import TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_LOG_ENTRIES: Final = 16
MAX_TOKEN_BYTES: Final = 4096
_MAX_TEXT: Final = 64

# Operation -> the rank it must keep: a later rank never comes before an earlier one.
OPERATIONS: Final[dict[str, int]] = {
    "detect": 0,
    "align": 1,
    "identify": 2,
    "background": 3,
    "swap": 4,
    "puppet": 4,
    "beautify": 5,
    "enhance": 6,
    "blur": 7,
}
# What must come before an operation for it to know what it needs.
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "align": ("detect",),
    "identify": ("detect", "align"),
    "swap": ("detect", "align"),
    "puppet": ("detect", "align"),
    "beautify": ("detect", "align"),
    "enhance": ("detect", "align"),
    "blur": ("detect",),
}
COVERING: Final = frozenset({"blur", "swap", "puppet"})
"""Operations whose purpose is to hide or replace a face: a job with one of them fails closed."""

GENERATING: Final = frozenset({"swap", "puppet"})
"""Operations that make a face: what they touch leaves with its marks."""

Selector = Literal["all", "largest", "left-most", "id", "reference"]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the operations are done.

    `select` picks the faces that swap, puppet, beautify and enhance work on: by size, by place,
    by track id or by the gallery's names, both listed in `people`. `blur_whom` auto: the others
    when a swap has the chosen ones, else the chosen. `beautify` are amounts by parameter name.
    """

    face_size: Annotated[int, msgspec.Meta(ge=16, le=2048)] = 256
    blend_ratio: Share = 0.85
    enable_gfpgan: bool = True
    device_mode: Literal["auto", "light", "cpu", "cuda", "tensorrt"] = "auto"
    select: Selector = "all"
    people: tuple[str, ...] = ()
    blur_whom: Literal["auto", "all", "chosen", "others"] = "auto"
    on_failure: Literal["skip", "hold", "alert"] = "skip"
    beautify: dict[str, float | str] = msgspec.field(default_factory=dict)


class LogEntry(msgspec.Struct, frozen=True):
    """One change of state: when (epoch seconds), to what, why, and how long the step took."""

    at: float
    state: str
    reason: str = ""
    ms: float = 0.0


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do with a frame and what has been done. JSON names are the field names."""

    request_id: str
    source_face: str = ""
    target_face: str = ""
    operations: tuple[str, ...] = ("detect", "blur")
    parameters: Parameters = Parameters()
    state: str = "initialized"
    timestamp: float = 0.0
    ttl_s: float = 300.0
    log: tuple[LogEntry, ...] = ()
    extensions: dict[str, Any] = msgspec.field(default_factory=dict)

    def update_state(self, state: str, *, at: float, reason: str = "", ms: float = 0.0) -> Token:
        """Return a new token in `state`, its log one entry longer (the oldest go first)."""
        entry = LogEntry(at, state[:_MAX_TEXT], reason[:_MAX_TEXT], round(ms, 3))
        return msgspec.structs.replace(
            self, state=entry.state, log=(*self.log, entry)[-MAX_LOG_ENTRIES:]
        )

    def is_expired(self, now_epoch_s: float) -> bool:
        """Say whether `ttl_s` has passed since `timestamp`."""
        return now_epoch_s > self.timestamp + self.ttl_s

    def to_json(self) -> bytes:
        """Return the token as JSON, at most 4 KiB: the oldest log entries give way.

        Raises:
            TokenError: it is too large even without its log.
        """
        token = self
        while len(data := msgspec.json.encode(token)) > MAX_TOKEN_BYTES:
            if not token.log:
                raise TokenError(
                    f"a token of {len(data)} bytes is larger than {MAX_TOKEN_BYTES}",
                    hint="keep pictures in the face store and refer to them by id",
                )
            token = msgspec.structs.replace(token, log=token.log[1:])
        return data


def create_token(
    operations: Iterable[str], *, now_epoch_s: float, request_id: str | None = None
) -> Token:
    """Return a fresh token with checked operations and a new UUID.

    Raises:
        TokenError: an operation is unknown or stands in the wrong place.
    """
    return Token(
        request_id=request_id or str(uuid.uuid4()),
        operations=check_operations(operations),
        timestamp=now_epoch_s,
    )


def check_operations(operations: Iterable[str]) -> tuple[str, ...]:
    """Return `operations` as a tuple, or say what is wrong with them.

    Raises:
        TokenError: unknown name (with the nearest right one), twice, or out of order.
    """
    names = tuple(operations)
    for name in names:
        if name not in OPERATIONS:
            near = difflib.get_close_matches(name, OPERATIONS, n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise TokenError(
                f"unknown operation {name!r}", hint=f"{guess}choose from {', '.join(OPERATIONS)}"
            )
    if len(set(names)) != len(names):
        raise TokenError("an operation is listed twice", hint="list each operation once")
    ordered = tuple(sorted(names, key=OPERATIONS.__getitem__))
    if names != ordered:
        raise TokenError(
            f"operations in the wrong order: {', '.join(names)}",
            hint=f"write {','.join(ordered)}",
        )
    _check_needs(names)
    return names


def _check_needs(names: tuple[str, ...]) -> None:
    missing = {need for name in names for need in NEEDS.get(name, ()) if need not in names}
    if missing:
        whole = sorted({*names, *missing}, key=OPERATIONS.__getitem__)
        needy = next(name for name in names if missing & set(NEEDS.get(name, ())))
        needed = " and ".join(name for name in whole if name in missing)
        raise TokenError(f"{needy} needs {needed} before it", hint=f"write {','.join(whole)}")


def parse_token(data: bytes | str) -> Token:
    """Return the token that `data` (JSON) describes, its operations checked.

    Raises:
        TokenError: it is not a token.
    """
    try:
        token = msgspec.json.decode(data, type=Token)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise TokenError(
            f"this is not a token ({error})", hint="see the token's JSON Schema"
        ) from None
    check_operations(token.operations)
    return token


class TokenCell:
    """One token shared by many threads: reading is one reference, updates lose nothing."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._lock = threading.Lock()

    def get(self) -> Token:
        """Return the current token; never waits."""
        return self._token

    def update(self, change: Callable[[Token], Token]) -> Token:
        """Replace the token by `change(token)`; concurrent updates follow one another."""
        with self._lock:
            self._token = change(self._token)
            return self._token
