"""The certificate of the HTTP API, for gRPC: read again when its files change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from livefuse.control.api.binding import prepare_binding
from livefuse.control.api.key import is_loopback
from livefuse.errors import ConfigError
from livefuse.safety.folder import sign_file

if TYPE_CHECKING:
    from livefuse.config import Config


class TlsFiles:
    """The files of a certificate and its key, which have been found to be good."""

    def __init__(self, certificate: str, key: str) -> None:
        self.certificate = Path(certificate).expanduser()
        self._key = Path(key or certificate).expanduser()
        self._signatures: object = None

    def create_credentials(self) -> grpc.ServerCredentials:
        """Return what a port is opened with.

        Raises:
            ConfigError: a file cannot be read.
        """
        try:
            first = self._read()
        except OSError as error:
            raise ConfigError(
                f"{error.filename} cannot be read ({error.strerror})",
                hint="check http.tls_cert and http.tls_key",
            ) from None
        return grpc.dynamic_ssl_server_credentials(first, self._read_if_changed)

    def _read_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the files' content if it is another; asked at each handshake, from any thread."""
        if self._sign() == self._signatures:
            return None
        try:
            return self._read()
        except OSError:
            return None  # the old one stays

    def _read(self) -> grpc.ServerCertificateConfiguration:
        self._signatures = self._sign()
        pair = self._key.read_bytes(), self.certificate.read_bytes()
        return grpc.ssl_server_certificate_configuration([pair])

    def _sign(self) -> object:
        return sign_file(self._key), sign_file(self.certificate)


def prepare_tls(config: Config) -> TlsFiles | None:
    """Return the files to listen with, None for plain text.

    Raises:
        ConfigError: the certificate cannot be used, or others than this machine would send their
            keys unencrypted.
    """
    http = config.http
    prepare_binding(http)  # refuses files that cannot be used
    if http.tls_cert:
        return TlsFiles(http.tls_cert, http.tls_key)
    if not (is_loopback(config.grpc.host) or http.trusted_proxies or http.allow_insecure):
        raise ConfigError(
            f"grpc.host is {config.grpc.host}: keys and pictures would go unencrypted",
            hint="set http.tls_cert and http.tls_key, or leave grpc.host at 127.0.0.1",
        )
    return None
