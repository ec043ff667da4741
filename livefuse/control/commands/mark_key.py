"""`livefuse mark key`: what others need to verify this install's marks. No secret."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import say
from livefuse.errors import ConfigError

Root = Annotated[
    bool,
    Parameter(name="--root", negative=(), help="Print the root certificate of signed recordings."),
]
Json = Annotated[bool, Parameter(name="--json", negative=(), help="Write it as JSON.")]


_KEY_BYTES: Final = 32


def parse_public_key(text: str) -> bytes:
    """Return the bytes of a public key as `livefuse mark key` prints it.

    Raises:
        ConfigError: it is none.
    """
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ConfigError(
            f"{text[:80]!r} is no public key", hint="it has 64 hex digits: see  livefuse mark key"
        )
    return key


def key(
    *, root: Root = False, json: Json = False, config: ConfigFile = None, settings: Settings = None
) -> None:
    """Print this install's id in marks and the public key that verifies its records.

    The key is Ed25519, 32 bytes in hex. The keys are made when there are none yet; the root
    certificate (C2PA) is made when the first recording is signed.
    """
    # Loads what knows about certificates: not for every command.
    from livefuse.safety.c2pa_chain import read_c2pa_root  # noqa: PLC0415 - as said
    from livefuse.safety.mark_keys import load_mark_keys  # noqa: PLC0415 - as said

    safety = load_config(config, tuple(settings or ())).safety
    if root:
        pem = read_c2pa_root(safety)
        if not pem:
            raise ConfigError(
                "no recording was signed by this install yet",
                hint="its root is made with the first",
            )
        say(pem.rstrip())
        return
    keys = load_mark_keys(safety)
    told = {"install": keys.install_id, "public_key": keys.public_key.hex()}
    if json:
        told["c2pa_root"] = read_c2pa_root(safety)
        say(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
        return
    say(f"install     {told['install']}")
    say(f"public key  {told['public_key']}")
