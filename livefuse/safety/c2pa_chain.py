"""The certificates that recordings are signed with (C2PA): a root of this install and its leaf.

Nobody but this install vouches for them, so a reader that is not told of the root says "valid", and
of the signer "untrusted". They lie in one small file below the safety folder, for its owner only,
and are made when the first recording is signed. What the leaf needs is told by the C2PA
specification, section "Digital signatures" (certificate profile): ES256, CA false, digitalSignature
and the extended usage emailProtection.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from livefuse.errors import ConfigError
from livefuse.safety.folder import find_safety_folder, lock_folder, read_private, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import SafetyConfig

C2PA_FILE: Final = "c2pa.json"
_CURE: Final = "; if somebody may have copied it, move the file away instead: a new root is made"
_ORGANISATION: Final = "livefuse"
# Without an authority's time stamp a signature is good as long as its certificate is.
_ROOT_LIFE: Final = timedelta(days=365 * 50)
_LEAF_LIFE: Final = timedelta(days=365 * 30)
_LEAST_LIFE: Final = timedelta(days=365 * 20)
"""A leaf that has less left is followed by another of the same root."""


class C2paChain(NamedTuple):
    """PEM texts: leaf and root, the leaf's key (PKCS 8), and the root alone, for who verifies."""

    chain: str
    key: str
    root: str

    def __repr__(self) -> str:
        return "C2paChain(...)"


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificates and keys as PEM."""

    root: str
    root_key: str
    leaf: str
    leaf_key: str


def load_c2pa_chain(config: SafetyConfig, now_epoch_s: float) -> C2paChain:
    """Return the install's chain, made or renewed where needed. From any thread or process.

    Raises:
        ConfigError: the file cannot be read or written, is damaged, or others can read it.
    """
    folder = find_safety_folder(config)
    path = folder / C2PA_FILE
    now = datetime.fromtimestamp(now_epoch_s, UTC)
    file = _read(path)
    if file is None or _is_ending(file, now):
        with lock_folder(folder):
            file = _read(path)  # another process may have been quicker
            if file is None or _is_ending(file, now):
                file = _make(file, now)
                write_private(path, msgspec.json.format(msgspec.json.encode(file)))
    return C2paChain(file.leaf + file.root, file.leaf_key, file.root)


def read_c2pa_root(config: SafetyConfig) -> str:
    """Return the root's certificate as PEM, "" when nothing was signed here yet.

    Raises:
        ConfigError: the file cannot be read, is damaged, or others can read it.
    """
    file = _read(find_safety_folder(config) / C2PA_FILE)
    return file.root if file is not None else ""


def _make(before: _File | None, now: datetime) -> _File:
    """Return a new leaf, of the root before or a new one."""
    if before is None:
        key = ec.generate_private_key(ec.SECP256R1())
        root = _certify("root", key.public_key(), None, key, now)
    else:
        key, root = _parse_key(before.root_key), _parse(before.root)
    leaf_key = ec.generate_private_key(ec.SECP256R1())
    leaf = _certify("recordings", leaf_key.public_key(), root, key, now)
    return _File(
        root=_write(root),
        root_key=_write_key(key),
        leaf=_write(leaf),
        leaf_key=_write_key(leaf_key),
    )


def _certify(
    name: str,
    public: ec.EllipticCurvePublicKey,
    root: x509.Certificate | None,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.Certificate:
    """Return the certificate of `public`, signed with `key` of `root`; None: it is the root."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, f"{_ORGANISATION} {name}"),
        ]
    )
    is_root = root is None
    usage = x509.KeyUsage(
        digital_signature=not is_root,
        key_cert_sign=is_root,
        crl_sign=is_root,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if root is None else root.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + (_ROOT_LIFE if is_root else _LEAF_LIFE))
        .add_extension(x509.BasicConstraints(is_root, 0 if is_root else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    if not is_root:
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])
        builder = builder.add_extension(purpose, critical=False)
    return builder.sign(key, hashes.SHA256())


def _is_ending(file: _File, now: datetime) -> bool:
    return _parse(file.leaf).not_valid_after_utc - now < _LEAST_LIFE


def _read(path: Path) -> _File | None:
    """Return what the file holds, None when there is none."""
    try:
        file = msgspec.json.decode(read_private(path, "the signing key", _CURE), type=_File)
        _check(file)
    except FileNotFoundError:
        return None
    # Of these kinds are msgspec's and cryptography's own.
    except (ValueError, TypeError, InvalidSignature):
        raise ConfigError(
            f"the signing key in {path} is damaged",
            hint="restore it from a backup, or move it away: a new root is made",
        ) from None
    return file


def _check(file: _File) -> None:
    """Raise ValueError unless certificates and keys belong together."""
    root, leaf = _parse(file.root), _parse(file.leaf)
    leaf.verify_directly_issued_by(root)
    pairs = ((root, file.root_key), (leaf, file.leaf_key))
    if any(cert.public_key() != _parse_key(key).public_key() for cert, key in pairs):
        raise ValueError("a key of another certificate")


def _parse(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def _parse_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("no key of an elliptic curve")
    return key


def _write(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _write_key(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
