"""The keys of the API, one for each who calls: made, listed and revoked while a daemon runs.

They lie in a small file below the safety folder, which is replaced as a whole, one writer at a
time; whoever reads looks at each call whether it is another one, so that a revoked key is refused
from the next request on. When a key was used is written beside it, seldom: the file that says who
may come in is never touched for that (key_uses.py).
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.control.api.caller import ROLES, Caller, Role
from livefuse.control.key_uses import KeyUses, write_time
from livefuse.errors import ConfigError, JobCapacityError, JobNotFoundError
from livefuse.safety.audit import AuditLog
from livefuse.safety.folder import lock_folder, read_private, sign_file, write_private
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.clock import Clock

FOLDER: Final = "api-keys"
PREFIX: Final = "lfk_"
"""What every key begins with, so that people and scanners know one that lies about."""
MAX_KEYS: Final = 256
_KEYS: Final = "keys.json"
_SECRET_BYTES: Final = 32
_ID_BYTES: Final = 4
_MAX_NAME: Final = 64
_TELL_EVERY_S: Final = 60.0
_FIRST: Final = "first"
_TAKEN_NAMES: Final = frozenset({"livefuse", "cli", "python", "anybody", "local"})


class ApiKey(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A key by its hash. Times are ISO 8601 in UTC, empty: never."""

    key_id: str
    role: Role
    name: str
    digest: str
    created: str
    expires: str = ""
    revoked: str = ""
    stops_jobs: bool = False
    """Whether the jobs that it has made were to stop when it was revoked."""

    def opens(self, now_epoch_s: float) -> bool:
        """Say whether it lets anybody in."""
        return not self.revoked and (
            not self.expires or now_epoch_s < datetime.fromisoformat(self.expires).timestamp()
        )

    def get_state(self, now_epoch_s: float) -> str:
        """Return `opens`, `expired` or `revoked`."""
        return "revoked" if self.revoked else "opens" if self.opens(now_epoch_s) else "expired"


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keys: tuple[ApiKey, ...] = ()
    version: int = 1


class KeyStore:
    """The keys of one safety folder, the oldest first. Safe from any thread and process."""

    def __init__(self, folder: Path, clock: Clock, audit: AuditLog | None = None) -> None:
        """Take the safety folder; nothing is read or made before a key is wanted."""
        self.folder = folder / FOLDER
        self._clock = clock
        self._audit = audit or AuditLog(folder, clock)
        self._lock = threading.Lock()
        self._signature: tuple[int, int, int] | None = None
        self._keys: tuple[ApiKey, ...] = ()
        self._by_digest: dict[str, ApiKey] = {}
        self._uses = KeyUses(self.folder, clock, MAX_KEYS)
        self._told_s = float("-inf")

    def find_caller(self, key: str) -> Caller | None:
        """Return whose key it is, None when it is nobody's or opens no more; never raises.

        Keys are found by their hash: how long that takes tells nothing of any key, as nobody can
        choose what a hash begins with. A file that cannot be read lets nobody in, and is logged.
        """
        try:
            self.list_keys()
        except ConfigError as error:
            self._tell(error)
            return None
        found = self._by_digest.get(hash_key(key))
        if found is None or not found.opens(self._clock.epoch_s()):
            return None
        self._uses.note(found.key_id)
        return Caller(found.key_id, found.role, found.name)

    def list_keys(self) -> tuple[ApiKey, ...]:
        """Return all keys, revoked ones too.

        Raises:
            ConfigError: the file cannot be read, or others can read it.
        """
        path = self.folder / _KEYS
        with self._lock:
            signature = sign_file(path)
            if signature != self._signature:
                self._keys = _read(path) if signature is not None else ()
                self._by_digest = {key.digest: key for key in self._keys}
                self._signature = signature
            return self._keys

    def opens(self, key_id: str) -> bool:
        """Say whether the key of that id lets anybody in; never raises."""
        try:
            keys = self.list_keys()
        except ConfigError as error:
            self._tell(error)
            return False
        now = self._clock.epoch_s()
        return any(key.key_id == key_id and key.opens(now) for key in keys)

    def list_stopping(self) -> list[str]:
        """Return the ids of the keys whose jobs are to stop with them; never raises."""
        try:
            return [key.key_id for key in self.list_keys() if key.revoked and key.stops_jobs]
        except ConfigError as error:
            self._tell(error)
            return []

    def list_uses(self) -> dict[str, str]:
        """Return when each key was used last, to about ten minutes."""
        return self._uses.read()

    def ensure_first_key(self) -> str:
        """Make an operator's key and return it where there has never been one; else nothing.

        Raises:
            ConfigError: the file cannot be read or written.
            AuditError: it could not be logged.
        """
        if self.list_keys():
            return ""
        with lock_folder(self.folder):
            # Another process may have been quicker.
            return "" if self.list_keys() else self._add("operator", _FIRST, "", "")[1]

    def create(
        self, role: Role, name: str = "", *, expires_epoch_s: float | None = None, who: str = ""
    ) -> tuple[ApiKey, str]:
        """Make a key; return its record and the key itself, which is kept nowhere.

        Raises:
            ConfigError: the name cannot be used or is another key's; the file cannot be written.
            JobCapacityError: there are too many.
            AuditError: it could not be logged.
        """
        name = " ".join(name.split())
        if len(name) > _MAX_NAME or not name.isprintable() or name.casefold() in _TAKEN_NAMES:
            raise ConfigError(
                "this is no name for a key",
                hint=f"{_MAX_NAME} letters at most, and none of {', '.join(sorted(_TAKEN_NAMES))}",
            )
        expires = "" if expires_epoch_s is None else write_time(expires_epoch_s)
        with lock_folder(self.folder):
            return self._add(role, name, expires, who)

    def revoke(self, key_id_or_name: str, *, who: str = "", stops_jobs: bool = False) -> ApiKey:
        """Let nobody in any more by the key of that id or name; `stops_jobs`: its jobs stop, too.

        Raises:
            JobNotFoundError: there is no such key.
            ConfigError: the file cannot be read or written.
            AuditError: it could not be logged.
        """
        with lock_folder(self.folder):
            keys = self.list_keys()
            found = _find(keys, key_id_or_name)
            if found.revoked and (found.stops_jobs or not stops_jobs):
                return found
            revoked = found.revoked or write_time(self._clock.epoch_s())
            gone = msgspec.structs.replace(found, revoked=revoked, stops_jobs=stops_jobs)
            self._log("key.revoked", gone, who)
            self._write(tuple(gone if key is found else key for key in keys))
            return gone

    def _tell(self, error: ConfigError) -> None:
        now = self._clock.epoch_s()
        if now - self._told_s >= _TELL_EVERY_S:
            self._told_s = now
            get_logger("keys").error("nobody is let in", cause=str(error))

    def _add(self, role: Role, name: str, expires: str, who: str) -> tuple[ApiKey, str]:
        keys, now = list(self.list_keys()), self._clock.epoch_s()
        if name and any(key.name == name and not key.revoked for key in keys):
            raise ConfigError(
                f"there is a key {name!r} already", hint="revoke it first, or choose another name"
            )
        if len(keys) >= MAX_KEYS:
            closed = next((key for key in keys if not key.opens(now)), None)
            if closed is None:
                raise JobCapacityError(f"there are {len(keys)} keys", hint="revoke some first")
            keys.remove(closed)
        secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        key_id = secrets.token_hex(_ID_BYTES)
        key = ApiKey(
            key_id=key_id,
            role=role,
            name=name or key_id,
            digest=hash_key(secret),
            created=write_time(now),
            expires=expires,
        )
        self._log("key.created", key, who)
        self._write((*keys, key))
        return key, secret

    def _log(self, event: str, key: ApiKey, who: str) -> None:
        facts = {"key": key.key_id, "name": key.name, "role": key.role, "expires": key.expires}
        if key.stops_jobs:
            facts["jobs"] = "stop"
        self._audit.append(event, who=who, facts=facts)

    def _write(self, keys: tuple[ApiKey, ...]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_File(keys=keys)))
        write_private(self.folder / _KEYS, data)


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key.

    No salt and no slow hash, as passwords need: a key is 256 random bits, so there is nothing to
    guess and no two are alike, and every request pays for one hash.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def parse_role(text: str) -> Role:
    """Return the role that `text` names.

    Raises:
        ConfigError: there is none of that name.
    """
    for role in ROLES:
        if role == text.strip().lower():
            return role
    raise ConfigError(f"there is no role {text[:64]!r}", hint=f"the roles are {', '.join(ROLES)}")


def _find(keys: tuple[ApiKey, ...], wanted: str) -> ApiKey:
    """Return the key of that id, else of that name, the newest one, one that opens first."""
    wanted = wanted.strip()
    found = [key for key in keys if key.key_id == wanted] or sorted(
        (key for key in keys if key.name == wanted), key=lambda key: not key.revoked
    )
    if not found:
        raise JobNotFoundError(f"there is no key {wanted[:64]!r}", hint="livefuse keys list")
    return found[-1]


def _read(path: Path) -> tuple[ApiKey, ...]:
    try:
        return msgspec.json.decode(read_private(path, "the keys", ""), type=_File).keys
    except FileNotFoundError:
        return ()  # gone since it was looked at
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConfigError(f"the key file {path} is damaged", hint="restore a backup") from None
