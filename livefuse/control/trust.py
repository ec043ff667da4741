"""Which server is the right one, by its certificate."""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

from livefuse.errors import ConfigError
from livefuse.safety.folder import sign_file

if TYPE_CHECKING:
    from pathlib import Path


class Trust:
    """Trusts the one file that the server's certificate is, whatever name is in it, whoever signed.

    Without one the system's (and SSL_CERT_FILE's) authorities are asked. A file that
    is written anew is read again, and what was trusted stays so: the server may not have read it.
    """

    def __init__(self, certificate: Path | None) -> None:
        """Read the file.

        Raises:
            ConfigError: it cannot be read, or holds no certificate.
        """
        self._certificate = certificate
        self._signature: tuple[int, int, int] | None = None
        self._context = ssl.create_default_context() if certificate is None else _create_bare()
        if certificate is not None:
            try:
                self._read(certificate)
            except (OSError, ssl.SSLError) as error:
                reason = getattr(error, "strerror", None) or "it is no certificate"
                raise ConfigError(f"{certificate} cannot be read ({reason})") from None

    def get_context(self) -> ssl.SSLContext:
        """Return what a new connection is made with, from any thread."""
        path = self._certificate
        if path is not None and sign_file(path) not in {None, self._signature}:
            # Half written: the next connection looks again.
            with contextlib.suppress(OSError, ssl.SSLError):
                self._read(path)
        return self._context

    def _read(self, path: Path) -> None:
        signature = sign_file(path)
        self._context.load_verify_locations(path)
        self._signature = signature


def _create_bare() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
