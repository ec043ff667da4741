"""The token itself: immutable, bounded, references only."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import msgspec

from livefuse.errors import TokenError
from livefuse.token.extensions import freeze_extensions
from livefuse.token.frozen import FrozenDict
from livefuse.token.operations import check_operations
from livefuse.token.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_LOG_ENTRIES: Final = 16
MAX_TOKEN_BYTES: Final = 4096
MAX_BODY_BYTES: Final = 2600
"""What a token may weigh without log, state and timestamp: there is always room for the latest."""

_MAX_TEXT: Final = 64
_MAX_ID: Final = 128
_is_id: Final = re.compile(r"[^\x00-\x1f\x7f]{1,128}").fullmatch
_is_reference: Final = re.compile(r"(?!data:)[^/\\\x00-\x1f\x7f]{0,128}").fullmatch
_Id = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=_MAX_ID, description="Opaque; a new one is a UUID."),
]
_Text = Annotated[str, msgspec.Meta(max_length=_MAX_TEXT)]


class LogEntry(msgspec.Struct, frozen=True):
    """One change of state: when (epoch seconds), to what, why, and how long the step took."""

    at: float
    state: _Text
    reason: _Text = ""
    ms: float = 0.0


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do with a frame and what has been done. JSON names are the field names.

    Raises:
        TokenError: a field holds a picture or a path instead of a reference, or an extension
            cannot be used.
    """

    request_id: _Id
    source_face: Annotated[
        str,
        msgspec.Meta(
            max_length=_MAX_ID,
            description="The face that a swap or a puppet shows: its id in the face store, or "
            "avatar:NAME. Never a picture, never a path.",
        ),
    ] = ""
    target_face: Annotated[
        str,
        msgspec.Meta(max_length=_MAX_ID, description="A frame's handle in the pool, slot:turn."),
    ] = ""
    operations: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            max_length=16,
            description="What is done, in order; [] is nothing. A patch names them: it cannot take "
            "them away (null).",
        ),
    ] = ("detect", "blur")
    parameters: Parameters = Parameters()
    state: Annotated[_Text, msgspec.Meta(description="The latest entry's state.")] = "initialized"
    timestamp: Annotated[
        float, msgspec.Meta(ge=0.0, description="When its time to live began, epoch seconds.")
    ] = 0.0
    ttl_s: Annotated[
        float, msgspec.Meta(gt=0.0, le=31_536_000.0, description="Its time to live, seconds.")
    ] = 300.0
    log: Annotated[
        tuple[LogEntry, ...],
        msgspec.Meta(max_length=MAX_LOG_ENTRIES, description="What was done, the latest last."),
    ] = ()
    extensions: Annotated[
        dict[str, Any], msgspec.Meta(description="Other modalities, each under its name.")
    ] = msgspec.field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        """Refuse what is no reference, and freeze what could change. On the frame's path."""
        if type(self.extensions) is not FrozenDict:
            frozen = freeze_extensions(self.extensions)
            msgspec.structs.force_setattr(self, "extensions", frozen)
        # Spelt out: this runs for every entry of every frame's log.
        if type(self.request_id) is not str or not _is_id(self.request_id):
            _refuse_reference(self.request_id, "request_id")
        if type(self.source_face) is not str or not _is_reference(self.source_face):
            _refuse_reference(self.source_face, "source_face")
        if type(self.target_face) is not str or not _is_reference(self.target_face):
            _refuse_reference(self.target_face, "target_face")

    def update_state(self, state: str, *, at: float, reason: str = "", ms: float = 0.0) -> Token:
        """Return a new token in `state`, its log one entry longer (the oldest go first)."""
        entry = LogEntry(at, state[:_MAX_TEXT], reason[:_MAX_TEXT], round(ms, 3))
        return msgspec.structs.replace(
            self, state=entry.state, log=(*self.log, entry)[-MAX_LOG_ENTRIES:]
        )

    def renew(self, now_epoch_s: float, ttl_s: float | None = None) -> Token:
        """Return a token whose time to live begins again now: how a running job keeps its lease."""
        return msgspec.structs.replace(
            self, timestamp=now_epoch_s, ttl_s=self.ttl_s if ttl_s is None else ttl_s
        )

    def create_frame_token(self, target_face: str, now_epoch_s: float, ttl_s: float) -> Token:
        """Return one frame's own copy of a job's token: it lives as long as the frame's deadline.

        `target_face` is the frame's handle in the pool, slot:turn.

        Raises:
            TokenError: that is no handle but a picture or a path.
        """
        return msgspec.structs.replace(
            self, target_face=target_face, timestamp=now_epoch_s, ttl_s=ttl_s
        )

    def is_expired(self, now_epoch_s: float) -> bool:
        """Say whether `ttl_s` has passed since `timestamp`."""
        return now_epoch_s > self.timestamp + self.ttl_s

    def to_json(self, limit_bytes: int = MAX_TOKEN_BYTES) -> bytes:
        """Return the token as JSON, at most `limit_bytes`: the oldest log entries give way.

        Raises:
            TokenError: it is too large even without its log, or holds what is no text.
        """
        token = self
        while len(data := _encode(token)) > limit_bytes:
            if not token.log:
                raise TokenError(
                    f"a token of {len(data)} bytes is larger than {limit_bytes}",
                    hint=f"its {name_largest_part(self)} is the largest part: make it smaller",
                )
            token = msgspec.structs.replace(token, log=token.log[1:])
        return data


def create_token(  # noqa: PLR0913 - one argument per field that a client chooses
    operations: Iterable[str],
    *,
    now_epoch_s: float,
    request_id: str | None = None,
    source_face: str = "",
    parameters: Parameters | None = None,
    extensions: Mapping[str, Any] | None = None,
    ttl_s: float = 300.0,
) -> Token:
    """Return a fresh token with checked operations and a new UUID; `check_token` checks the rest.

    Raises:
        TokenError: an operation is unknown or stands in the wrong place, the source face is a
            picture or a path, or an extension cannot be used.
    """
    return Token(
        request_id=str(uuid.uuid4()) if request_id is None else request_id,
        source_face=source_face,
        operations=check_operations(operations),
        parameters=parameters or Parameters(),
        timestamp=now_epoch_s,
        ttl_s=ttl_s,
        extensions=dict(extensions or {}),
    )


def name_largest_part(token: Token) -> str:
    """Return the name of the field that weighs most as JSON, the log aside."""
    parts = {
        name: len(msgspec.json.encode(getattr(token, name)))
        for name in token.__struct_fields__
        if name not in {"log", "parameters"}
    }
    for name in token.parameters.__struct_fields__:
        weight = len(msgspec.json.encode(getattr(token.parameters, name)))
        parts[f"parameters.{name}"] = weight
    return max(parts, key=parts.__getitem__)


def _encode(token: Token) -> bytes:
    try:
        return msgspec.json.encode(token)
    except UnicodeEncodeError:
        pass
    # A reason may quote a file's name, which need not be text.
    log = tuple(
        msgspec.structs.replace(
            entry, state=_make_text(entry.state), reason=_make_text(entry.reason)
        )
        for entry in token.log
    )
    try:
        return msgspec.json.encode(
            msgspec.structs.replace(token, log=log, state=_make_text(token.state))
        )
    except UnicodeEncodeError:
        raise TokenError("the token holds what is no text", hint="write UTF-8") from None


def _make_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _refuse_reference(value: object, field: str) -> NoReturn:
    """Say why `value` cannot stand in `field`, without repeating it: it may be a picture."""
    if field == "request_id":
        raise TokenError(
            f"a request_id is 1 to {_MAX_ID} printable characters", hint="a UUID is best"
        )
    if not isinstance(value, str):
        what = f"{type(value).__name__} instead of text"
    elif value.startswith("data:"):
        what = "a data URL"
    elif len(value) > _MAX_ID:
        what = f"{len(value)} characters, which looks like a picture"
    else:
        what = "a path, or characters that cannot be printed"
    raise TokenError(
        f"{field} holds {what}",
        hint="a token refers to faces by id: put the picture into the face store first "
        "(livefuse faces enroll)",
    )
