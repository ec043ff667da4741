"""What FFmpeg or the system said -> the IngestError that tells a person what is wrong (case C37).

FFmpeg says "Input/output error" for an unknown host, an untrusted certificate and a lost line.
Only then the network is asked again, here, within a bounded time: first the name, then the port,
then the certificate. Nobody is asked beforehand: a listener that takes one caller would be used up.
"""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import av.error

from livefuse.errors import (
    IngestAuthError,
    IngestConnectError,
    IngestError,
    IngestNotFoundError,
    IngestTimeoutError,
    IngestTlsError,
    IngestUnsupportedError,
)
from livefuse.redact import redact_text, redact_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import IngestConfig

FOREIGN_ERRORS: Final = (av.error.FFmpegError, OSError, ValueError)
"""What FFmpeg, the system and a broken pipe form raise; anything else is a fault of ours."""
DEFAULT_PORTS: Final = {
    "rtsp": 554,
    "rtsps": 322,
    "rtmp": 1935,
    "rtmps": 443,
    "http": 80,
    "https": 443,
}
_TLS_SCHEMES: Final = frozenset({"https", "rtmps", "rtsps"})
_SLOW: Final = 0.9
_POLL_S: Final = 0.1


def diagnose_open_error(
    error: Exception,
    url: str,
    config: IngestConfig,
    elapsed_s: float,
    stopping: threading.Event | None = None,
) -> IngestError:
    """Return what to tell about `error`, met `elapsed_s` after opening `url` began.

    May ask the network for at most about `open_timeout_ms`, and not for longer than until
    `stopping` is set. Never holds a secret.
    """
    if "://" not in url or url.lower().startswith("file:"):
        return _diagnose_file(error, url)
    timeout_s = config.open_timeout_ms / 1000
    return (
        _diagnose_by_words(error, url, timeout_s, elapsed_s)
        or probe_network(url, timeout_s, config, stopping)
        or _create_end_error(error, url)
    )


def diagnose_from_afar(
    error: Exception, url: str, config: IngestConfig, elapsed_s: float
) -> IngestError:
    """Return what to tell about `error` without asking the network: who asks may not know it."""
    found = _diagnose_by_words(error, url, config.open_timeout_ms / 1000, elapsed_s)
    return found or _create_end_error(error, url)


def _diagnose_by_words(
    error: Exception, url: str, timeout_s: float, elapsed_s: float
) -> IngestError | None:
    by_kind = _diagnose_by_kind(error, url)
    if by_kind is not None:
        return by_kind
    if isinstance(error, (av.error.ExitError, TimeoutError)) or elapsed_s >= _SLOW * timeout_s:
        return create_timeout_error(url, elapsed_s)
    if isinstance(error, (av.error.InvalidDataError, av.error.LookupError)):
        return IngestUnsupportedError(
            f"{redact_url(url)} answers, but not with a stream that can be read",
            hint="check scheme, port and path of the URL",
        )
    return None


def _create_end_error(error: Exception, url: str) -> IngestConnectError:
    return IngestConnectError(
        f"{redact_url(url)} ended the connection ({redact_text(_get_reason(error), (url,))})",
        hint="check that the stream is being published and that path and key are right",
    )


def free_error(error: IngestError) -> IngestError:
    """Return `error` without the frames that it was raised through.

    They would keep the whole lost connection, decoder and pictures, for as long as the error.
    """
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def create_timeout_error(url: str, elapsed_s: float) -> IngestTimeoutError:
    """Return the error of a source that connects and sends nothing, or does not answer at all."""
    return IngestTimeoutError(
        f"{redact_url(url)} sent no picture within {elapsed_s:.1f} s",
        hint="check that the stream is running; a slow one may need ingest.open_timeout_ms",
    )


def create_no_video_error(url: str) -> IngestUnsupportedError:
    """Return the error of a source without pictures."""
    return IngestUnsupportedError(
        f"{redact_url(url)} has no video stream", hint="choose a source with pictures"
    )


def create_codec_error(url: str, codec: str) -> IngestUnsupportedError:
    """Return the error of a source whose pictures cannot be decoded."""
    return IngestUnsupportedError(
        f"{redact_url(url)}: its video ({codec or 'of an unknown codec'}) cannot be decoded here",
        hint="let the source send H.264",
    )


def _diagnose_by_kind(error: Exception, url: str) -> IngestError | None:
    shown = redact_url(url)
    if isinstance(error, (av.error.HTTPUnauthorizedError, av.error.HTTPForbiddenError)):
        return IngestAuthError(
            f"{shown} refused the user name or password",
            hint="check them in the URL; write special characters as %40 and the like",
        )
    if isinstance(error, av.error.HTTPNotFoundError):
        return IngestNotFoundError(
            f"the server does not know {shown}", hint="check the path of the URL"
        )
    if isinstance(error, av.error.HTTPError):
        return IngestConnectError(
            f"{shown} answered with an error ({_get_reason(error)})",
            hint="look into the server's log, or try again later",
        )
    if isinstance(error, ConnectionRefusedError):
        return _create_refused_error(url)
    if isinstance(error, av.error.DecoderNotFoundError):
        return create_codec_error(url, "")
    return None


def _diagnose_file(error: Exception, url: str) -> IngestError:
    if isinstance(error, FileNotFoundError):
        return IngestNotFoundError(f"there is no file {url}", hint="check the path")
    if isinstance(error, (IsADirectoryError, NotADirectoryError)):
        return IngestNotFoundError(f"{url} is a folder, not a file", hint="name a file in it")
    if isinstance(error, PermissionError):
        return IngestNotFoundError(f"{url} may not be read", hint="check the file's permissions")
    if isinstance(error, av.error.DecoderNotFoundError):
        return create_codec_error(url, "")
    return IngestUnsupportedError(
        f"{url} is not a media file that can be read ({_get_reason(error)})",
        hint="check that the file is complete; ffprobe tells more",
    )


def probe_network(
    url: str, timeout_s: float, config: IngestConfig, stopping: threading.Event | None = None
) -> IngestError | None:
    """Ask for the name, the port and the certificate of `url`; None when all three are well.

    Takes at most about `timeout_s`. UDP has no port that could be asked.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    if not host or not port or parts.scheme == "udp":
        return None
    stopping = stopping or threading.Event()
    resolved = _call_bounded(
        lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), timeout_s, stopping
    )
    if stopping.is_set():
        return None
    if resolved is None or isinstance(resolved, OSError):
        return IngestConnectError(
            f"no such host: {host}", hint="check its name, or the network's name server"
        )
    answer = _call_bounded(lambda: _try_port(parts, port, timeout_s, config), timeout_s, stopping)
    if isinstance(answer, ssl.SSLCertVerificationError):
        return IngestTlsError(
            f"the certificate of {host} is not trusted ({answer.verify_message})",
            hint="name its authority in ingest.ca_file, or set ingest.tls_verify=false",
        )
    if isinstance(answer, ssl.SSLError):
        return IngestTlsError(
            f"{host}:{port} does not speak TLS ({answer.reason or 'handshake failed'})",
            hint=f"try {parts.scheme[:-1]}:// or another port",
        )
    if answer is None and not stopping.is_set():
        answer = TimeoutError()
    return _diagnose_socket(answer, url) if isinstance(answer, OSError) else None


def _try_port(parts: SplitResult, port: int, timeout_s: float, config: IngestConfig) -> bool:
    """Connect, and shake hands where TLS is spoken; raises OSError."""
    with socket.create_connection((parts.hostname or "", port), timeout=timeout_s) as peer:
        if parts.scheme in _TLS_SCHEMES:
            _check_certificate(peer, parts, config)
    return True


def _diagnose_socket(error: OSError, url: str) -> IngestError:
    if isinstance(error, ConnectionRefusedError):
        return _create_refused_error(url)
    if isinstance(error, TimeoutError):
        return IngestTimeoutError(
            f"{urlsplit(url).hostname} does not answer",
            hint="check the address, and that no firewall stands between",
        )
    return IngestConnectError(
        f"{urlsplit(url).hostname} cannot be reached ({error.strerror or 'network error'})",
        hint="check the network",
    )


def _create_refused_error(url: str) -> IngestConnectError:
    return IngestConnectError(
        f"{redact_url(url)} refused the connection",
        hint="check that the server is running, and the port",
    )


def _check_certificate(peer: socket.socket, parts: SplitResult, config: IngestConfig) -> None:
    context = ssl.create_default_context(cafile=config.ca_file or None)
    if not config.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(peer, server_hostname=parts.hostname):
        pass


def _call_bounded(
    call: Callable[[], object], timeout_s: float, stopping: threading.Event
) -> object:
    """Return what `call` returns or the OSError it raises; None when it takes too long.

    The system's name lookup cannot be interrupted, so it is left behind in its own thread.
    """
    answer: list[object] = []

    def run() -> None:
        try:
            answer.append(call())
        except (OSError, UnicodeError) as error:
            answer.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=run, name="livefuse-lookup", daemon=True)
    thread.start()
    for _ in range(max(round(timeout_s / _POLL_S), 1)):
        thread.join(_POLL_S)
        if answer or stopping.is_set():
            break
    return answer[0] if answer else None


def _get_reason(error: Exception) -> str:
    """Return the words of `error` without the file name that PyAV puts behind them."""
    return getattr(error, "strerror", None) or type(error).__name__
