"""The keys that seal tokens and faces: a small file below the safety folder, for its owner only.

New things are sealed with the newest key. `rotate` adds one; older ones still open what they
sealed, until they are retired: a retired key is gone, and what it sealed stays closed.
"""

from __future__ import annotations

import secrets
import threading
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.errors import ConfigError, TokenError
from livefuse.safety.folder import lock_folder, read_private, sign_file, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.clock import Clock

KEY_FILE: Final = "keys.json"
KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 4
MAX_KEYS: Final = 64


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One key. `secret` is base64, empty once it is retired; `created` ISO 8601."""

    key_id: str
    created: str
    secret: str = ""

    @property
    def is_retired(self) -> bool:
        """Whether it opens nothing any more."""
        return not self.secret

    def __repr__(self) -> str:
        return f"Key({self.key_id}, {'retired' if self.is_retired else 'in use'})"


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keys: tuple[Key, ...] = ()
    version: int = 1


class KeyRing:
    """The keys of one safety folder, oldest first. Safe from any thread; sees others' changes."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Take the folder; nothing is read or made before a key is wanted."""
        self.folder = folder
        self._path = folder / KEY_FILE
        self._clock = clock
        self._lock = threading.Lock()
        self._signature: tuple[int, int, int] | None = None
        self._keys: tuple[Key, ...] = ()

    def list_keys(self) -> tuple[Key, ...]:
        """Return the keys, the oldest first.

        Raises:
            ConfigError: the file cannot be read, or others can read it.
        """
        with self._lock:
            signature = sign_file(self._path)
            if signature != self._signature:
                self._keys = self._read() if signature is not None else ()
                self._signature = signature
            return self._keys

    def get_current(self) -> tuple[str, bytes]:
        """Return id and secret of the newest key; the first one is made when there is none.

        Raises:
            ConfigError: the file cannot be read or written.
        """
        if not (usable := self._list_usable()):
            with lock_folder(self.folder):
                if not (usable := self._list_usable()):  # another process may have been quicker
                    usable = [self._add()]
        return usable[-1].key_id, b64decode(usable[-1].secret)

    def get(self, key_id: str) -> bytes:
        """Return the secret of a key that still opens.

        Raises:
            TokenError: there is no such key here, or it is retired.
            ConfigError: the file cannot be read.
        """
        key = next((key for key in self.list_keys() if key.key_id == key_id), None)
        if key is None:
            raise TokenError(
                f"it is sealed with the key {key_id}, which is not in {self._path}",
                hint="open it where it was sealed, or bring that key ring",
            )
        if key.is_retired:
            raise TokenError(
                f"it is sealed with the key {key_id}, which is retired", hint="seal a new one"
            )
        return b64decode(key.secret)

    def rotate(self) -> str:
        """Add a key and return its id; from now on it seals.

        Raises:
            TokenError: there are too many keys in use.
            ConfigError: the file cannot be read or written.
        """
        with lock_folder(self.folder):
            return self._add().key_id

    def retire(self, key_id: str) -> None:
        """Destroy a key's secret.

        Raises:
            TokenError: there is no such key, or it is the one that seals.
            ConfigError: the file cannot be read or written.
        """
        with lock_folder(self.folder):
            keys = self.list_keys()
            if key_id not in {key.key_id for key in keys}:
                known = ", ".join(key.key_id for key in keys) or "none yet"
                raise TokenError(f"there is no key {key_id[:64]!r}", hint=f"the keys are {known}")
            if key_id == self._list_usable()[-1].key_id:
                raise TokenError(f"{key_id} is the key that seals", hint="rotate first")
            self._write(
                tuple(
                    msgspec.structs.replace(key, secret="") if key.key_id == key_id else key
                    for key in keys
                )
            )

    def _list_usable(self) -> list[Key]:
        return [key for key in self.list_keys() if not key.is_retired]

    def _add(self) -> Key:
        keys = list(self.list_keys())
        if len(keys) >= MAX_KEYS:
            oldest_retired = next((key for key in keys if key.is_retired), None)
            if oldest_retired is None:
                raise TokenError(
                    f"there are {len(keys)} keys in use", hint="retire old ones: --retire KEY"
                )
            keys.remove(oldest_retired)
        key = Key(
            key_id=secrets.token_hex(KEY_ID_BYTES),
            created=datetime.fromtimestamp(self._clock.epoch_s(), UTC).isoformat("T", "seconds"),
            secret=b64encode(secrets.token_bytes(KEY_BYTES)).decode(),
        )
        self._write((*keys, key))
        return key

    def _write(self, keys: tuple[Key, ...]) -> None:
        write_private(self._path, msgspec.json.format(msgspec.json.encode(_File(keys=keys))))

    def _read(self) -> tuple[Key, ...]:
        try:
            data = read_private(self._path, "the keys", "and then  livefuse token rotate")
            return msgspec.json.decode(data, type=_File).keys
        except FileNotFoundError:
            return ()  # gone since it was looked at
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
            # Not what the decoder says: it may quote a secret.
            raise ConfigError(
                f"the key file {self._path} is damaged", hint="restore it from a backup"
            ) from None
