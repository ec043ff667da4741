"""Loopback doors for FFmpeg: what it dials goes through us, so that we say where it may go.

FFmpeg follows redirects, and playlists name further addresses. So it is given no network but these
doors, and what comes to one is dialled here, by addresses that were judged (livefuse/addresses.py):
between the look at a name and the dialling nothing can change, and no redirect leads past it.

    Proxy       an HTTP proxy, for http and https (CONNECT; TLS stays FFmpeg's, end to end)
    RtspRelay   one RTSP server; an answer that leads to another one ends it

Only jobs of others than the owner go this way. Each connection has a thread of its own.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from livefuse.addresses import check_host
from livefuse.errors import RefusedError

if TYPE_CHECKING:
    from livefuse.addresses import Networks, Resolver

_LOOPBACK: Final = "127.0.0.1"
_MAX_CONNECTIONS: Final = 32
_PIECE_BYTES: Final = 64 * 1024
_MAX_HEAD_BYTES: Final = 32 * 1024
_HEAD_END: Final = b"\r\n\r\n"
_HEAD_S: Final = 10.0
_REDIRECT: Final = re.compile(rb"RTSP/1\.[01] 3\d\d")
_REDIRECT_BYTES: Final = 12
_HTTP_PORTS: Final = {"http": 80, "https": 443}
_OWN_HEADERS: Final = re.compile(rb"(?im)^(?:proxy-[a-z-]+|connection):[^\r\n]*\r\n")


class Relay(ABC):
    """A listening door on the loopback interface. Safe from any thread."""

    def __init__(self, networks: Networks, resolve: Resolver, timeout_s: float) -> None:
        """Listen; nothing is dialled yet.

        Raises:
            OSError: this machine has no free port.
        """
        self.has_refused = False
        """Whether somebody was to be dialled who may not be."""
        self._networks = networks
        self._resolve = resolve
        self._timeout_s = timeout_s
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._listener = socket.create_server((_LOOPBACK, 0), backlog=_MAX_CONNECTIONS)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="livefuse-door", daemon=True).start()

    def close(self) -> None:
        """Hang up on everybody and listen no more."""
        with self._lock:
            self._is_closed = True
            # A shut socket wakes the thread that waits for it, which then closes it.
            for sock in (*self._open, self._listener):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    @abstractmethod
    def serve(self, client: socket.socket) -> None:
        """Serve one connection of FFmpeg's, in a thread of its own."""

    def dial(self, host: str, port: int) -> socket.socket:
        """Connect to `host` by an address that is allowed.

        Raises:
            RefusedError: none is.
            OSError: nobody answers.
        """
        try:
            addresses = check_host(host, self._networks, self._resolve).addresses
        except RefusedError:
            self.has_refused = True
            raise
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                return self._connect(address, port)
        return self._connect(addresses[-1], port)

    def splice(self, client: socket.socket, server: socket.socket) -> None:
        """Pass bytes both ways until one end has closed."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(client, selectors.EVENT_READ)
            waiting.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in waiting.select():
                    sock, other = (client, server) if key.fileobj is client else (server, client)
                    data = sock.recv(_PIECE_BYTES)
                    if not data or (sock is server and not self.is_fit(data)):
                        return
                    other.sendall(data)

    def is_fit(self, data: bytes) -> bool:
        """Say whether what the server sends may be passed on."""
        return bool(data)

    def _connect(self, address: str, port: int) -> socket.socket:
        sock = socket.create_connection((address, port), timeout=self._timeout_s)
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._keep(sock)

    def _keep(self, sock: socket.socket) -> socket.socket:
        with self._lock:
            if self._is_closed:
                sock.close()
                raise OSError("the door is closed")
            self._open.add(sock)
        return sock

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
        sock.close()

    def _accept(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if len(self._open) >= 2 * _MAX_CONNECTIONS:
                    client.close()
                    continue
                threading.Thread(
                    target=self._run, args=(client,), name="livefuse-door", daemon=True
                ).start()

    def _run(self, client: socket.socket) -> None:
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.serve(self._keep(client))
        except (OSError, RefusedError, ValueError):
            pass  # one end has gone, or nobody may be dialled: hanging up says so
        finally:
            self._forget(client)


class Proxy(Relay):
    """An HTTP proxy for the http and https of one job."""

    @property
    def url(self) -> str:
        """What FFmpeg's option `http_proxy` takes."""
        return f"http://{_LOOPBACK}:{self.port}"

    def serve(self, client: socket.socket) -> None:
        """Read where to, dial it, and pass on what is said; one request a connection."""
        head, rest = _read_head(client)
        line, _, headers = head.partition(b"\r\n")
        method, target, version = line.decode("ascii").split(" ")
        is_tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if is_tunnel else target)
        scheme = "https" if is_tunnel else parts.scheme
        if scheme not in _HTTP_PORTS or not parts.hostname:
            _answer(client, "400 Bad Request")
            return
        try:
            server = self.dial(parts.hostname, parts.port or _HTTP_PORTS[scheme])
        except RefusedError:
            _answer(client, "403 Forbidden")
            return
        except OSError:
            _answer(client, "502 Bad Gateway")
            return
        try:
            if is_tunnel:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n" + rest)
            else:
                path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
                # A further request on this connection might be meant for somebody else.
                kept = _OWN_HEADERS.sub(b"", headers + b"\r\n")
                first = f"{method} {path} {version}\r\nConnection: close\r\n".encode()
                server.sendall(first + kept + b"\r\n" + rest)
            self.splice(client, server)
        finally:
            self._forget(server)


class RtspRelay(Relay):
    """A door to one RTSP server, which may not send FFmpeg elsewhere."""

    def __init__(
        self, host: str, port: int, networks: Networks, resolve: Resolver, timeout_s: float
    ) -> None:
        """Listen; the server is dialled when somebody comes."""
        self._host, self._port = host, port
        self._tail = b""
        super().__init__(networks, resolve, timeout_s)

    def serve(self, client: socket.socket) -> None:
        """Dial the server and pass on what is said."""
        server = self.dial(self._host, self._port)
        self._tail = b""
        try:
            self.splice(client, server)
        finally:
            self._forget(server)

    def is_fit(self, data: bytes) -> bool:
        """Refuse an answer 3xx, also one that comes in two pieces (RFC 2326, section 11.3)."""
        seen = self._tail + data
        self._tail = seen[-_REDIRECT_BYTES:]
        if _REDIRECT.search(seen):
            self.has_refused = True
            return False
        return True


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return a request's line and headers, and what came behind them."""
    client.settimeout(_HEAD_S)
    data = b""
    while _HEAD_END not in data:
        piece = client.recv(_PIECE_BYTES)
        data += piece
        if not piece or len(data) > _MAX_HEAD_BYTES:
            raise OSError("no request")
    client.settimeout(None)
    head, _, rest = data.partition(_HEAD_END)
    return head, rest


def _answer(client: socket.socket, status: str) -> None:
    client.sendall(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
