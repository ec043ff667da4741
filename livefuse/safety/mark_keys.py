"""The keys that mark generated pictures: one set for each install, made on first use.

They lie in one small file below the safety folder, for its owner only. The signing key says whose
an SEI record is (Ed25519, RFC 8032), the luma key is the seed of the invisible mark. Who has lost
them can still show marked pictures, but nobody can tell any more whose marks they are; who has
copied them can sign in this install's name.
"""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from livefuse.errors import ConfigError
from livefuse.mark_ids import identify_key, number_job
from livefuse.safety.folder import find_safety_folder, lock_folder, read_private, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import SafetyConfig

MARK_KEY_FILE: Final = "mark_keys.json"
LUMA_KEY_BITS: Final = 64
_SECRET_BYTES: Final = 32
_CURE: Final = (
    "; if somebody may have copied them, move the file away instead: new keys are made, of"
    " another install"
)
_ANEW: Final = "restore it from a backup, or move it away: new keys are made, of another install"


@dataclass(frozen=True, slots=True)
class MarkKeys:
    """What one install marks its pictures with. `signing.sign(data)` is safe from any thread."""

    luma_key: int = field(repr=False)
    """The seed of the invisible mark's patterns, 64 bits. A secret: who has it can take it off."""
    signing: Ed25519PrivateKey = field(repr=False)

    @property
    def public_key(self) -> bytes:
        """The 32 bytes that verify what `signing` signed."""
        return self.signing.public_key().public_bytes_raw()

    @property
    def key_id(self) -> bytes:
        """The 8 bytes by which a record names the key."""
        return identify_key(self.public_key)

    @property
    def install_id(self) -> str:
        """The name of the install in marks: `key_id` in hex."""
        return self.key_id.hex()


@dataclass(frozen=True, slots=True)
class JobMarks:
    """What the pictures of one job are marked with."""

    job_id: str
    keys: MarkKeys

    @property
    def number(self) -> int:
        """The 32-bit number of the job in every mark."""
        return number_job(self.job_id)


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file. `signing` is base64 of the 32 secret bytes."""

    luma: Annotated[int, msgspec.Meta(ge=0)]
    signing: str
    version: Literal[1] = 1


def create_mark_keys(secret: bytes, luma_key: int) -> MarkKeys:
    """Return the keys of 32 secret bytes and a seed of 64 bits."""
    return MarkKeys(luma_key, Ed25519PrivateKey.from_private_bytes(secret))


def make_mark_keys() -> MarkKeys:
    """Return new keys that are kept nowhere."""
    secret = secrets.token_bytes(_SECRET_BYTES)
    return create_mark_keys(secret, secrets.randbits(LUMA_KEY_BITS))


REPLAY_KEYS: Final = create_mark_keys(b"livefuse replay: this is public.", 0x6C697665_66757365)
"""Known to everybody: two installs make the same bytes of a recording."""


def load_mark_keys(config: SafetyConfig) -> MarkKeys:
    """Return the install's keys; they are made when there are none. From any thread or process.

    Raises:
        ConfigError: the file cannot be read or written, is damaged, or others can read it.
    """
    folder = find_safety_folder(config)
    path = folder / MARK_KEY_FILE
    if (keys := _read(path)) is not None:
        return keys
    with lock_folder(folder):
        if (keys := _read(path)) is not None:
            return keys  # another process was quicker
        return _make(path)


def peek_mark_keys(config: SafetyConfig) -> MarkKeys | None:
    """Return the install's keys, None when there are none yet; none are made.

    Raises:
        ConfigError: as `load_mark_keys`.
    """
    return _read(find_safety_folder(config) / MARK_KEY_FILE)


def _make(path: Path) -> MarkKeys:
    keys = make_mark_keys()
    secret = b64encode(keys.signing.private_bytes_raw()).decode()
    file = msgspec.json.encode(_File(luma=keys.luma_key, signing=secret))
    write_private(path, msgspec.json.format(file))
    return keys


def _read(path: Path) -> MarkKeys | None:
    """Return the keys of the file, None when there is none."""
    try:
        data = read_private(path, "the mark keys", _CURE)
        file = msgspec.json.decode(data, type=_File)
        return create_mark_keys(b64decode(file.signing, validate=True), file.luma)
    except FileNotFoundError:
        return None
    except ValueError:  # msgspec's, base64's and cryptography's are of this kind
        # Not what the decoder says: it may quote a secret.
        raise ConfigError(f"the mark keys in {path} are damaged", hint=_ANEW) from None
