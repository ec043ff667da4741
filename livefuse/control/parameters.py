"""What `--look` and `--param` say, as the parameters of a job's token."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import msgspec

from livefuse.beauty import COLOURS, PARAMETERS, check_beautify
from livefuse.errors import TokenError
from livefuse.token import Parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.config import BeautifyConfig

_FIELDS: Final = {field.name for field in msgspec.structs.fields(Parameters)} - {"beautify"}
_SEPARATOR: Final = ","
_WORDS: Final = {"true": True, "false": False}


def create_parameters(look: str, settings: Sequence[str], config: BeautifyConfig) -> Parameters:
    """Return the look's amounts, changed by `NAME=VALUE` settings; both may be left out.

    A name is one of the token's parameters or one of beautify's.

    Raises:
        TokenError: an unknown name or look, a value that does not fit.
    """
    beautify: dict[str, float | str] = {}
    if look:
        from livefuse.looks import load_look  # noqa: PLC0415 - reads files, not for every run

        beautify |= load_look(look, config.looks)
    fields: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not text:
            raise TokenError(f"cannot read the parameter {setting!r}", hint="write NAME=VALUE")
        if name in _FIELDS:
            fields[name] = _read_value(name, text)
        elif name in PARAMETERS or name in COLOURS:
            beautify[name] = _read_number(text)
        else:
            _refuse_name(name)
    try:
        return msgspec.convert({**fields, "beautify": check_beautify(beautify)}, Parameters)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None


def _read_value(name: str, text: str) -> Any:  # noqa: ANN401 - any of the parameters' types
    if name == "people":
        return [part.strip() for part in text.split(_SEPARATOR) if part.strip()]
    if text in _WORDS:
        return _WORDS[text]
    return _read_number(text)


def _read_number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and "." not in text else number


def _explain(said: str) -> TokenError:
    """Return what msgspec `said` of a value (`... - at $.name`), with what fits there."""
    reason, _, path = said.partition(" - at `$.")
    name = path.rstrip("`").partition("[")[0]
    kind = next((f.type for f in msgspec.structs.fields(Parameters) if f.name == name), None)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    hint = (
        f"choose from {', '.join(map(str, choices))}" if choices else "see  livefuse token schema"
    )
    return TokenError(
        f"the parameter {name or 'given'} does not fit: {reason[:1].lower()}{reason[1:]}", hint=hint
    )


def _refuse_name(name: str) -> None:
    known = sorted(_FIELDS | set(PARAMETERS) | set(COLOURS))
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise TokenError(
        f"unknown parameter {name!r}",
        hint=f"{guess}see  livefuse token schema  and  livefuse looks parameters",
    )
