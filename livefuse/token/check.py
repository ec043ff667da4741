"""Tokens from outside: read, checked as a whole, patched as a whole."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.beauty import check_beautify
from livefuse.errors import TokenError
from livefuse.token.operations import GENERATING, check_operations
from livefuse.token.parameters import Parameters
from livefuse.token.token import MAX_BODY_BYTES, MAX_TOKEN_BYTES, Token, name_largest_part

if TYPE_CHECKING:
    from collections.abc import Mapping

PATCHABLE: Final = frozenset({"source_face", "operations", "parameters", "ttl_s", "extensions"})
"""What a client may change of a token in use; the rest is the job's own."""

_SCHEMA_HINT: Final = "see  livefuse token schema"
_UNKNOWN_FIELD: Final = re.compile(r"unknown field `([^`]*)`")


def check_token(token: Token) -> Token:
    """Return `token` once all of it is known to be usable: to be called when it is submitted.

    Raises:
        TokenError: operations that are unknown, out of order or lack what they need, a value out
            of its range, or more than a token may weigh.
    """
    check_operations(token.operations)
    _check_values(token)
    _check_weight(token)
    _check_choice(token)
    return token


def parse_token(data: bytes | str) -> Token:
    """Return the token that `data` (JSON) describes, checked.

    Raises:
        TokenError: it is not a token, or one that cannot be used.
    """
    if len(data) > 4 * MAX_TOKEN_BYTES:
        raise TokenError(
            f"{len(data)} bytes are not a token, which has at most {MAX_TOKEN_BYTES}",
            hint="pictures go into the face store: livefuse faces enroll",
        )
    try:
        token = msgspec.json.decode(data, type=Token)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _explain(error) from None
    except RecursionError:
        raise TokenError("this is not a token (nested too deeply)", hint=_SCHEMA_HINT) from None
    return check_token(token)


def patch_token(token: Token, patch: bytes | str | Mapping[str, Any]) -> Token:
    """Return `token` with the JSON merge patch `patch` (RFC 7396) applied, checked as a whole.

    Null takes a value away, so that its default holds again; but not from `operations`, whose
    default hides faces and is not what a job was submitted with. Nothing is changed half: `token`
    itself stays as it is, and what is returned is usable.

    Raises:
        TokenError: the patch is no object, touches what is the job's own, takes `operations` away,
            or makes a token that cannot be used.
    """
    changes = _read_patch(patch)
    if locked := sorted(set(changes) - PATCHABLE):
        raise TokenError(
            f"a patch cannot change {locked[0]!r}",
            hint=f"it can change {', '.join(sorted(PATCHABLE))}",
        )
    if "operations" in changes and changes["operations"] is None:
        raise TokenError(
            "operations: null leaves open what is to be done",
            hint='name them, ["detect", "blur"], or write [] for none',
        )
    try:
        whole = merge_patch(msgspec.to_builtins(token), changes)
        return check_token(msgspec.convert(whole, Token))
    except msgspec.ValidationError as error:
        raise _explain(error) from None
    except RecursionError:
        raise TokenError("the patch is nested too deeply", hint=_SCHEMA_HINT) from None


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON values
    """Return `target` changed by `patch` as RFC 7396, section 2, tells; neither is touched."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def _read_patch(patch: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(patch, bytes | str):
        if len(patch) > MAX_TOKEN_BYTES:
            raise TokenError("the patch is larger than a token", hint=_SCHEMA_HINT)
        try:
            patch = msgspec.json.decode(patch)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TokenError(f"the patch is not JSON ({error})", hint=_SCHEMA_HINT) from None
    if not isinstance(patch, dict):
        raise TokenError("a patch is a JSON object", hint='like {"parameters": {"blend_ratio": 1}}')
    return patch


def _check_values(token: Token) -> None:
    """Check the ranges also of what was made in Python, which msgspec checks only when it reads."""
    try:
        read = msgspec.json.decode(msgspec.json.encode(token), type=Token)
    except msgspec.ValidationError as error:
        raise _explain(error) from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TokenError(
            f"the token holds what JSON cannot carry ({error})", hint=_SCHEMA_HINT
        ) from None
    if read != token:
        raise TokenError(
            "the token would not come back from JSON as it is",
            hint="numbers are finite, names are text",
        )


def _check_weight(token: Token) -> None:
    body = msgspec.structs.replace(token, log=(), state="", timestamp=0.0)
    weight = len(msgspec.json.encode(body))
    if weight > MAX_BODY_BYTES:
        raise TokenError(
            f"the token has {weight} bytes, {MAX_BODY_BYTES} and its log fit",
            hint=f"its {name_largest_part(token)} is the largest part: make it smaller",
        )


def _check_choice(token: Token) -> None:
    operations, parameters = token.operations, token.parameters
    check_beautify(parameters.beautify)
    if parameters.select in {"id", "reference"} and not parameters.people:
        raise TokenError(
            f"select={parameters.select} without people", hint="list whom it means in people"
        )
    if parameters.select == "reference" and "identify" not in operations:
        raise TokenError(
            "select=reference needs identify among the operations",
            hint="add it after detect,align",
        )
    if parameters.blur_whom != "auto" and "blur" not in operations:
        raise TokenError(
            f"blur_whom={parameters.blur_whom} needs blur among the operations",
            hint=f"write {','.join((*operations, 'blur'))}",
        )
    if parameters.blur_whom == "others" and parameters.select == "all":
        raise TokenError(
            "blur_whom=others covers nobody while select=all means everybody",
            hint="say whom you mean: select=largest, left-most, id or reference",
        )
    needy = [name for name in operations if name in GENERATING]
    if needy and not token.source_face:
        raise TokenError(
            f"{needy[0]} needs a source_face",
            hint="give an enrolled face (livefuse faces list) or a drawn one, avatar:NAME",
        )


def _explain(error: Exception) -> TokenError:
    text = str(error)
    hint = _SCHEMA_HINT
    if "_face`" in text:
        hint = "a face is named by its id: pictures go into the face store, livefuse faces enroll"
    if unknown := _UNKNOWN_FIELD.search(text):
        kind = Parameters if "$.parameters" in text else Token
        known = kind.__struct_fields__
        near = difflib.get_close_matches(unknown[1], known, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        hint = f"{guess}the fields are {', '.join(known)}"
    return TokenError(f"this is not a token ({text})", hint=hint)
