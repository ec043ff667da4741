"""Where to listen: on loopback as one likes; wider only by TLS, or behind a proxy that has it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.control.api.key import is_loopback
from livefuse.errors import ConfigError
from livefuse.safety.folder import sign_file
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from livefuse.config import HttpConfig

_PROTOCOLS: Final = ["http/1.1"]
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound


class Certificate:
    """A certificate and its key, read again when the files change. On the control loop."""

    def __init__(self, cert: str, key: str) -> None:
        """Read them.

        Raises:
            ConfigError: they cannot be used.
        """
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        self.context.set_alpn_protocols(_PROTOCOLS)
        self._paths = Path(cert).expanduser(), Path(key or cert).expanduser()
        self._signatures = self._sign()
        try:
            self._load()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the certificate {self._paths[0]} cannot be used ({_explain(error)})",
                hint="check http.tls_cert and http.tls_key: PEM, the key without a passphrase",
            ) from None

    def refresh(self) -> None:
        """Look whether the files are others; those who are connected keep the old one.

        One that cannot be used is told of, and the old one stays.
        """
        signatures = self._sign()
        if signatures == self._signatures:
            return
        self._signatures = signatures
        try:
            self._load()
            get_logger("http").info("certificate", cause="read again")
        except (OSError, ValueError) as error:
            get_logger("http").error("certificate", cause=f"the old one stays: {_explain(error)}")

    def _load(self) -> None:
        cert, key = self._paths
        # Without an answer to it OpenSSL would ask the terminal for a passphrase.
        self.context.load_cert_chain(cert, key, password=lambda: "")

    def _sign(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(sign_file, self._paths))


def prepare_binding(config: HttpConfig) -> Certificate | None:
    """Return the certificate to listen with, None for plain HTTP.

    Raises:
        ConfigError: the certificate cannot be used, or others than this machine would send their
            keys unencrypted.
    """
    if config.tls_key and not config.tls_cert:
        raise ConfigError("http.tls_key without http.tls_cert", hint="set both, or neither")
    if config.tls_cert:
        return Certificate(config.tls_cert, config.tls_key)
    if not (is_loopback(config.host) or config.trusted_proxies or config.allow_insecure):
        raise ConfigError(
            f"http.host is {config.host}: keys and pictures would go unencrypted",
            hint="set http.tls_cert and http.tls_key, or http.trusted_proxies, or, where everybody "
            "on the way may see them, http.allow_insecure = true",
        )
    return None


def build_base_url(host: str, port: int, *, has_tls: bool) -> str:
    """Return the address, as this machine reaches it, of what listens on `host` and `port`."""
    host = _EVERYWHERE.get(host, host)
    return f"{'https' if has_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _explain(error: OSError | ValueError) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or "unreadable"
