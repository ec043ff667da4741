"""Sealing: AES-256-GCM with the newest key of the ring, for what rests on disk or travels.

    LFS1 | key id, 4 bytes | nonce, 12 bytes | ciphertext and tag

The kind of thing (`token`, `face:...`) and the key's id are bound in as associated data, so that
a sealed thing cannot be passed off as another. A sealed token is text: `lf1.` and the rest in
URL-safe base64, at most 4 KiB. It tells nothing but which key it needs.
"""

from __future__ import annotations

import binascii
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from livefuse.errors import TokenError
from livefuse.safety.keys import KEY_ID_BYTES
from livefuse.token import MAX_TOKEN_BYTES, Token, parse_token

if TYPE_CHECKING:
    from livefuse.safety.keys import KeyRing

TEXT_PREFIX: Final = "lf1."
_MAGIC: Final = b"LFS1"
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_HEAD_BYTES: Final = KEY_ID_BYTES + _NONCE_BYTES
_KIND: Final = "token"
# What JSON may weigh so that its sealed text keeps the token's bound: base64 makes 4 of 3.
_MAX_JSON_BYTES: Final = (MAX_TOKEN_BYTES - len(TEXT_PREFIX)) * 3 // 4 - _HEAD_BYTES - _TAG_BYTES


def seal_bytes(data: bytes, kind: str, ring: KeyRing) -> bytes:
    """Return `data` sealed as a thing of `kind`.

    Raises:
        ConfigError: the keys cannot be read, or the first one cannot be made.
    """
    key_id, secret = ring.get_current()
    head = bytes.fromhex(key_id) + secrets.token_bytes(_NONCE_BYTES)
    sealed = AESGCM(secret).encrypt(head[KEY_ID_BYTES:], data, _bind(kind, head))
    return _MAGIC + head + sealed


def open_bytes(sealed: bytes, kind: str, ring: KeyRing) -> bytes:
    """Return what was sealed as a thing of `kind`.

    Raises:
        TokenError: it is not sealed, was altered, is of another kind, or its key is not here or
            retired.
        ConfigError: the keys cannot be read.
    """
    if not sealed.startswith(_MAGIC) or len(sealed) < len(_MAGIC) + _HEAD_BYTES + _TAG_BYTES:
        raise TokenError("this is nothing that livefuse sealed", hint="look for the right file")
    head, body = sealed[len(_MAGIC) :][:_HEAD_BYTES], sealed[len(_MAGIC) + _HEAD_BYTES :]
    secret = ring.get(head[:KEY_ID_BYTES].hex())
    try:
        return AESGCM(secret).decrypt(head[KEY_ID_BYTES:], body, _bind(kind, head))
    except InvalidTag:
        raise TokenError(
            f"it was altered after it was sealed, or it is no {kind.partition(':')[0]}",
            hint="ask for it again where it was made",
        ) from None


class RingSealer:
    """Seals and opens with the keys of one ring, for those who need not know of keys."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    def seal(self, data: bytes, kind: str) -> bytes:
        """Return `data` sealed, as `seal_bytes`."""
        return seal_bytes(data, kind, self._ring)

    def open(self, sealed: bytes, kind: str) -> bytes:
        """Return what was sealed, as `open_bytes`."""
        return open_bytes(sealed, kind, self._ring)


def get_key_id(sealed: bytes) -> str:
    """Return the id of the key that `sealed` needs, as hex."""
    return sealed[len(_MAGIC) :][:KEY_ID_BYTES].hex()


def seal_token(token: Token, ring: KeyRing) -> str:
    """Return `token` sealed, at most 4 KiB of text; the oldest log entries give way.

    Raises:
        TokenError: it is too large even without its log.
        ConfigError: the keys cannot be read, or the first one cannot be made.
    """
    sealed = seal_bytes(token.to_json(_MAX_JSON_BYTES), _KIND, ring)
    text = urlsafe_b64encode(sealed[len(_MAGIC) :]).decode().rstrip("=")
    return TEXT_PREFIX + text


def open_token(text: str, ring: KeyRing, *, now_epoch_s: float | None = None) -> Token:
    """Return the token in `text`, checked; with `now_epoch_s` one that has expired is refused.

    Raises:
        TokenError: it is not sealed, was altered, its key is not here or retired, it has expired,
            or it cannot be used.
        ConfigError: the keys cannot be read.
    """
    text = text.strip()
    if not text.startswith(TEXT_PREFIX) or len(text) > MAX_TOKEN_BYTES:
        raise TokenError(
            "this is not a sealed token",
            hint=f"one begins with {TEXT_PREFIX} and has at most {MAX_TOKEN_BYTES} characters",
        )
    code = text.removeprefix(TEXT_PREFIX)
    try:
        sealed = urlsafe_b64decode(code + "=" * (-len(code) % 4))
    except (binascii.Error, ValueError):
        raise TokenError("the sealed token is cut or altered", hint="copy it whole") from None
    token = parse_token(open_bytes(_MAGIC + sealed, _KIND, ring))
    if now_epoch_s is not None and token.is_expired(now_epoch_s):
        raise TokenError("the token has expired", hint="ask for a new one")
    return token


def _bind(kind: str, head: bytes) -> bytes:
    return b"livefuse/1/" + kind.encode() + b"/" + head[:KEY_ID_BYTES]
