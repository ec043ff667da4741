"""What other modalities hand along with a token: typed slots, each under a name of its own.

A name that begins with `x-` is somebody else's: its JSON is carried along, bounded and unread.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from livefuse.errors import TokenError
from livefuse.token.frozen import FrozenDict, freeze

if TYPE_CHECKING:
    from collections.abc import Mapping

FOREIGN_PREFIX: Final = "x-"
MAX_EXTENSIONS: Final = 16
_MAX_NAME: Final = 48

_Ref = Annotated[str, msgspec.Meta(max_length=128, pattern=r"^[^\s/\\]*$")]
_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
_Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class AudioSegment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sound that belongs to the frame: where it is, never its samples.

    `start_pts` counts in the frame's time base (1/90000 s); `ref` names a buffer, if one is kept.
    """

    start_pts: int
    duration_ms: Annotated[float, msgspec.Meta(gt=0.0, le=60_000.0)]
    sample_rate_hz: Annotated[int, msgspec.Meta(ge=8_000, le=192_000)] = 48_000
    channels: Annotated[int, msgspec.Meta(ge=1, le=8)] = 2
    ref: _Ref = ""


class MouthShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mouth: how far it opens, 0..1, how wide it is against its rest, -1..1, and the sound."""

    open: _Share
    width: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)] = 0.0
    viseme: Annotated[str, msgspec.Meta(max_length=16)] = ""


class ExpressionStrength(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How strongly an expression shows, 0..1; `all` is whatever the wearer's face does."""

    strength: _Share
    expression: _Word = "all"


EXTENSIONS: Final[dict[str, type[msgspec.Struct]]] = {
    "audio": AudioSegment,
    "mouth": MouthShape,
    "expression": ExpressionStrength,
}


def freeze_extensions(extensions: Mapping[str, Any]) -> FrozenDict:
    """Return `extensions` frozen, known ones as their structs.

    Raises:
        TokenError: an unknown name without `x-`, a value that does not fit, or too many.
    """
    if len(extensions) > MAX_EXTENSIONS:
        raise TokenError(
            f"{len(extensions)} extensions are more than {MAX_EXTENSIONS}", hint="leave some out"
        )
    return FrozenDict({name: _read(name, value) for name, value in extensions.items()})


def _read(name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    kind = EXTENSIONS.get(name)
    if kind is None:
        if name.startswith(FOREIGN_PREFIX) and len(name) <= _MAX_NAME:
            return freeze(value)
        near = difflib.get_close_matches(name, EXTENSIONS, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise TokenError(
            f"unknown extension {name[:_MAX_NAME]!r}",
            hint=f"{guess}the names are {', '.join(EXTENSIONS)}; your own begin with x-",
        )
    if isinstance(value, kind):
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise TokenError(
            f"the extension {name!r} cannot be used ({error})", hint="see  livefuse token schema"
        ) from None
