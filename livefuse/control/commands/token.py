"""`livefuse token`: its schema, sealed tokens, and the keys that seal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.safety.faces import FaceStore

_MOST_BYTES: Final = 64 * 1024
_INPUT: Final = "-"

File = Annotated[
    str,
    Parameter(metavar="FILE", help="A file, or - for standard input.", allow_leading_hyphen=True),
]
Retire = Annotated[
    str,
    Parameter(
        metavar="KEY", help="Destroy this key instead: what it sealed elsewhere stays closed."
    ),
]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    token = App(name="token", help="What goes with each frame: its form, and how it is sealed.")
    token.command(print_schema, name="schema")
    token.command(seal)
    token.command(open_sealed, name="open")
    token.command(rotate)
    app.command(token)


def print_schema() -> None:
    """Print the token's JSON Schema."""
    from livefuse.token import create_token_schema  # noqa: PLC0415 - not for every command

    say(msgspec.json.format(msgspec.json.encode(create_token_schema()), indent=2).decode())


def seal(file: File, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Check a token (JSON) and print it sealed: nobody without the key can read or change it."""
    from livefuse.token import parse_token  # noqa: PLC0415 - not for every command

    token = parse_token(_read_file(file))
    store = _open_store(config, settings)
    from livefuse.safety.seal import seal_token  # noqa: PLC0415 - loads cryptography

    say(seal_token(token, store.keys))


def open_sealed(file: File, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Print the token (JSON) that is sealed in a file."""
    text = _read_file(file).decode("ascii", "replace")
    store = _open_store(config, settings)
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.safety.seal import open_token  # noqa: PLC0415 - loads cryptography

    token = open_token(text, store.keys)
    say(token.to_json().decode())
    if token.is_expired(SystemClock().epoch_s()):
        complain("this token has expired: it can be looked at, not used")


def rotate(*, retire: Retire = "", config: ConfigFile = None, settings: Settings = None) -> None:
    """Add a key that seals from now on; older ones still open until they are retired."""
    store = _open_store(config, settings)
    if retire:
        store.retire_key(retire.strip().lower())
        say(f"retired {retire}: its secret is destroyed")
    else:
        key_id, changed = store.rotate_keys()
        say(f"the key {key_id} seals from now on; {changed} files of enrolled faces sealed anew")
    for key in store.keys.list_keys():
        say(f"{key.key_id}  {'retired' if key.is_retired else 'opens':<8} {key.created}")


def _open_store(config: ConfigFile, settings: Settings) -> FaceStore:
    tree = load_config(config, tuple(settings or ()))
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.safety.audit import open_audit  # noqa: PLC0415 - loads cryptography
    from livefuse.safety.faces import FaceStore  # noqa: PLC0415 - loads OpenCV

    clock = SystemClock()
    return FaceStore(tree.safety, clock, audit=open_audit(tree, clock))


def _read_file(name: str) -> bytes:
    """Return what the file or standard input holds, up to more than any token has."""
    try:
        if name == _INPUT:
            return sys.stdin.buffer.read(_MOST_BYTES)
        with Path(name).open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ConfigError(f"cannot read {name} ({reason})", hint="check its path") from None
