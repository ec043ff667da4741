"""Asks a daemon or a worker over HTTP, on a port or a unix socket: for gRPC and `LIVEFUSE_URL`.

Any thread may ask; a few connections are kept for the next one. Errors name the address and never
the key (C76).
"""

from __future__ import annotations

import contextlib
import http.client
import math
import select
import socket
import ssl
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from livefuse.control.trust import Trust
from livefuse.errors import DaemonError, DaemonTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from livefuse.control.address import Address

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_IDLE_S: Final = 15.0  # servers let go of idle connections later than this


class Query(NamedTuple):
    """What is sent: `path` as it stands in the request, query included."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None


class Answer(NamedTuple):
    """What came back; names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class HttpClient:
    """Keeps up to `max_idle` connections to one server. Safe from any thread.

    `certificate`: the file that the server's certificate is (trust.py).
    """

    def __init__(
        self, address: Address, *, certificate: Path | None = None, max_idle: int = 4
    ) -> None:
        self.address = address
        self._trust = Trust(certificate) if address.scheme == "https" else None
        self._idle: deque[tuple[float, http.client.HTTPConnection]] = deque(maxlen=max_idle)
        self._lock = threading.Lock()
        self._is_closed = False

    def ask(
        self,
        query: Query,
        timeout_s: float,
        on_open: Callable[[Callable[[], None]], object] | None = None,
    ) -> Answer:
        """Send `query` and return what comes back within `timeout_s`, whatever its status.

        `on_open` is given what ends the exchange at once, from any thread.

        Raises:
            DaemonTimeoutError, DaemonError: it did not come.
        """
        with Exchange(self, query, timeout_s) as exchange:
            if on_open is not None:
                on_open(exchange.abort)
            return exchange.read_all()

    def take(self) -> http.client.HTTPConnection:
        """Return a connection, an idle one if there is; not yet connected otherwise."""
        while True:
            with self._lock:
                since_s, connection = self._idle.pop() if self._idle else (math.inf, None)
            if connection is None:
                return self._create()
            if time.monotonic() - since_s < _IDLE_S and not _is_spent(connection):
                return connection
            connection.close()

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection for the next who asks; the oldest gives way."""
        with self._lock:
            is_kept = not self._is_closed and bool(self._idle.maxlen)
            is_full = len(self._idle) == self._idle.maxlen
            gone = self._idle.popleft()[1] if is_kept and is_full else None
            if is_kept:
                self._idle.append((time.monotonic(), connection))
        if not is_kept:
            connection.close()
        if gone is not None:
            gone.close()

    def close(self) -> None:
        """Let go of the idle connections; those in use end with their exchange."""
        with self._lock:
            self._is_closed = True
            idle = [connection for _, connection in self._idle]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def _create(self) -> http.client.HTTPConnection:
        where = self.address
        if where.socket:
            return _UnixConnection(where.socket)
        if self._trust is not None:
            context = self._trust.get_context()
            return http.client.HTTPSConnection(where.host, where.port, context=context)
        return http.client.HTTPConnection(where.host, where.port)


class Exchange:
    """One question and its answer. `abort` may be called from any thread, the rest from one."""

    def __init__(self, client: HttpClient, query: Query, timeout_s: float) -> None:
        self._client = client
        self._query = query
        self._end_s = time.monotonic() + timeout_s
        self._connection = client.take()
        self._answer: http.client.HTTPResponse | None = None
        # Of its own: http.client forgets the socket of an answer that is the connection's last.
        self._socket: socket.socket | None = None
        self._head = Answer(0, {}, b"")
        self._is_whole = self._is_aborted = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # from here on the socket may be somebody else's
            self._socket = None
        if self._is_whole and not self._is_aborted and self._connection.sock is not None:
            self._client.give_back(self._connection)
        else:
            self._connection.close()
        if self._answer is not None:
            self._answer.close()

    def abort(self) -> None:
        """End it: whoever reads is told at once."""
        self._is_aborted = True
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def open(self) -> Answer:
        """Send the question; return status and headers, the data still to come.

        Raises:
            DaemonTimeoutError, DaemonError: no answer came.
        """
        with self._explain():
            connection, query = self._connection, self._query
            connection.timeout = self._count_left_s()
            if connection.sock is None:
                connection.connect()
            self._socket = connection.sock
            self._check_wanted()
            self._socket.settimeout(self._count_left_s())
            path = self._client.address.base + query.path
            connection.request(query.method, path, query.body, dict(query.headers))
            self._socket.settimeout(self._count_left_s())
            answer = self._answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        self._head = Answer(answer.status, names, b"")
        return self._head

    def read_all(self) -> Answer:
        """Send the question and return the whole answer.

        Raises:
            DaemonTimeoutError, DaemonError: it did not come, or is too large.
        """
        self.open()
        return self.read_rest()

    def read_rest(self) -> Answer:
        """Return the whole answer, once opened.

        Raises:
            DaemonTimeoutError, DaemonError: it did not come, or is too large.
        """
        data = bytearray()
        while chunk := self._read(_CHUNK_BYTES):
            data += chunk
            if len(data) > MAX_ANSWER_BYTES:
                raise DaemonError(f"{self._client.address} answers more than can be held")
        self._is_whole = True
        return Answer(self._head.status, self._head.headers, bytes(data))

    def read_line(self, patience_s: float) -> bytes:
        """Return the next line of the answer, nothing at its end; for streams, once opened.

        Raises:
            DaemonTimeoutError, DaemonError: nothing came for `patience_s`, or it broke off.
        """
        with self._explain():
            line = self._get_answer(patience_s).readline(MAX_ANSWER_BYTES)
            self._check_wanted()
            return line

    def _read(self, size: int) -> bytes:
        with self._explain():
            return self._get_answer(self._count_left_s()).read1(size)

    def _get_answer(self, patience_s: float) -> http.client.HTTPResponse:
        if self._answer is None or self._socket is None:
            raise ConnectionError
        # Since Python 3.13 the last byte of an answer that ends its connection closes the socket.
        if not self._answer.isclosed():
            self._socket.settimeout(patience_s)
        return self._answer

    def _count_left_s(self) -> float:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def _check_wanted(self) -> None:
        if self._is_aborted:
            raise ConnectionAbortedError

    @contextlib.contextmanager
    def _explain(self) -> Iterator[None]:
        where = self._client.address
        try:
            yield
        except TimeoutError:
            raise DaemonTimeoutError(
                f"{where} did not answer in time", hint="is it busy, or another program?"
            ) from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or "no TLS there"
            raise DaemonError(
                f"{where} is not trusted ({reason})", hint="name its certificate in SSL_CERT_FILE"
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._is_aborted:
                raise DaemonError(f"the question to {where} was taken back") from None
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise DaemonError(
                f"{where} cannot be reached ({reason})", hint="is  livefuse serve  running there?"
            ) from None


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        """Connect."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(self.timeout)
        try:
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


def _is_spent(connection: http.client.HTTPConnection) -> bool:
    """Say whether an idle connection has been closed by the server, or speaks unasked."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
