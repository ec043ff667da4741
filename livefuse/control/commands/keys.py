"""`livefuse keys`: who may call the API. Made, listed and revoked while it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.control.keys import KeyStore

_LENGTH: Final = re.compile(r"(\d{1,6})([mhdwy])")
_LENGTH_S: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_MOST_S: Final = 100 * _LENGTH_S["y"]
_WHO: Final = "command line"

RoleName = Annotated[
    str,
    Parameter(
        name="--role",
        metavar="ROLE",
        help="viewer looks; streamer makes jobs of its own; operator may all; scraper reads "
        "/metrics, for Prometheus.",
    ),
]
Name = Annotated[str, Parameter(metavar="NAME", help="Whose it is, to find it again.")]
Expires = Annotated[
    str,
    Parameter(metavar="LENGTH", help="How long it opens: 30m, 12h, 90d, 2w, 1y; else for ever."),
]
Key = Annotated[str, Parameter(metavar="ID|NAME", help="As `livefuse keys list` shows it.")]

StopJobs = Annotated[
    bool,
    Parameter(
        name="--stop-jobs", negative=(), help="Stop the jobs that it has made, too, once and now."
    ),
]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    keys = App(name="keys", help="Who may call the API of `livefuse serve`.")
    keys.command(create)
    keys.command(list_keys, name="list")
    keys.command(revoke)
    app.command(keys)


def create(
    *,
    role: RoleName,
    name: Name = "",
    expires: Expires = "",
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    length_s = parse_length_s(expires) if expires else None
    store, now_epoch_s = _open_store(load_config(config, tuple(settings or ())))
    from livefuse.control.keys import parse_role  # noqa: PLC0415 - loads HTTP

    end = None if length_s is None else now_epoch_s + length_s
    key, secret = store.create(parse_role(role), name, expires_epoch_s=end, who=_WHO)
    say(secret)
    until = f" until {key.expires[:16]}" if key.expires else ""
    complain(f"key {key.key_id} of {key.name}, {key.role}{until}: it is shown only now")


def list_keys(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """List the keys: id, role, state, made, last used, until, name."""
    store, now_epoch_s = _open_store(load_config(config, tuple(settings or ())))
    uses = store.list_uses()
    for key in store.list_keys():
        used = uses.get(key.key_id, "")[:16] or "never"
        until = (key.revoked or key.expires)[:16] or "-"
        state = key.get_state(now_epoch_s)
        say(
            f"{key.key_id}  {key.role:<8} {state:<8} made {key.created[:16]}  used {used:<16}  "
            f"until {until:<16}  {key.name}"
        )


def revoke(
    key: Key,
    /,
    *,
    stop_jobs: StopJobs = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Let nobody in by a key any more.

    What is watched and sent with it ends within seconds. The jobs that it has made go on, but for
    what it sends to them, unless --stop-jobs is said, now or later.
    """
    tree = load_config(config, tuple(settings or ()))
    store, _ = _open_store(tree)
    from livefuse.control.daemon.owned import list_owned  # noqa: PLC0415 - only here

    gone = store.revoke(key, who=_WHO, stops_jobs=stop_jobs)
    say(f"revoked {gone.key_id}, {gone.role} {gone.name}")
    jobs = list_owned(tree, gone.key_id)
    if gone.stops_jobs:
        say(f"its jobs stop: {', '.join(jobs)}" if jobs else "its jobs stop")
    elif jobs is None:
        complain("its jobs cannot be looked up: GET /v1/jobs tells which there are")
    elif jobs:
        say(f"its jobs go on: {', '.join(jobs)}")
        say(f"to stop them:  livefuse keys revoke {gone.key_id} --stop-jobs")


def parse_length_s(text: str) -> float:
    """Return the seconds of `30m`, `12h`, `90d`, `2w` or `1y`.

    Raises:
        ConfigError: it is none, or none that a key can last.
    """
    found = _LENGTH.fullmatch(text.strip().lower())
    length_s = int(found[1]) * _LENGTH_S[found[2]] if found else 0
    if not 0 < length_s <= _MOST_S:
        raise ConfigError(f"--expires {text[:32]!r} is no length", hint="write 12h, 90d or 1y")
    return float(length_s)


def _open_store(tree: Config) -> tuple[KeyStore, float]:
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.control.keys import KeyStore  # noqa: PLC0415 - loads HTTP
    from livefuse.safety.audit import AuditLog  # noqa: PLC0415 - loads cryptography
    from livefuse.safety.folder import find_safety_folder  # noqa: PLC0415 - not for every command

    clock, folder = SystemClock(), find_safety_folder(tree.safety)
    return KeyStore(folder, clock, AuditLog(folder, clock, tree.audit)), clock.epoch_s()
