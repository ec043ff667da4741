"""Between an RTSP server and its client, on loopback: loses RTP over UDP, notes its times."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
_PORTS = re.compile(rb"client_port=(\d+)-(\d+)")
_FU_A, _IDR = 28, 5


class RtspRelay:
    """Passes one client's RTSP on. Only what the server sends to the first media is looked at.

    `loss` is the share of its RTP packets over UDP that are lost, drawn from `seed`; of every third
    IDR picture one packet in its middle is lost too. `picture_times` are the moments (monotonic s)
    at which the last packet of each picture passed, over either transport.
    """

    def __init__(self, port: int, *, loss: float = 0.0, seed: int = 1) -> None:
        self._server_port = port
        self._loss, self._random = loss, random.Random(seed)
        self.lost = self.passed = self._idr_packets = self._idrs = 0
        self._idr_time = b""
        self.picture_times: list[float] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server((HOST, 0))
        self._keep(self._listener)
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _keep(self, sock: socket.socket) -> socket.socket:
        self._sockets.append(sock)
        return sock

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        def guard() -> None:
            with contextlib.suppress(OSError, ValueError):  # closed meanwhile
                run(*arguments)

        threading.Thread(target=guard, name="rtsp-relay", daemon=True).start()

    def _accept(self) -> None:
        while True:
            client = self._keep(self._listener.accept()[0])
            server = self._keep(socket.create_connection((HOST, self._server_port)))
            self._start(self._pass_requests, client, server)
            self._start(self._pass_answers, server, client)

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        while data := client.recv(65536):
            server.sendall(_PORTS.sub(self._stand_between, data))

    def _stand_between(self, found: re.Match[bytes]) -> bytes:
        """Return ports of ours in the place of the client's, and pass on what comes there."""
        own = _open_pair()
        for index, sock in enumerate(own):
            target = (HOST, int(found[index + 1]))
            self._start(self._pass_datagrams, self._keep(sock), target, len(self._sockets) < 6)
        first, second = (sock.getsockname()[1] for sock in own)
        return b"client_port=%d-%d" % (first, second)

    def _pass_datagrams(self, sock: socket.socket, target: tuple[str, int], is_first: bool) -> None:
        while data := sock.recv(65536):
            is_rtcp = 200 <= data[1] <= 207
            if is_rtcp or not (is_first and self._is_lost(data)):
                sock.sendto(data, target)

    def _is_lost(self, data: bytes) -> bool:
        if data[1] & 0x80:
            self.picture_times.append(time.monotonic())
        is_lost = self._random.random() < self._loss
        if self._loss and data[12] & 31 == _FU_A and data[13] & 31 == _IDR:
            if data[4:8] != self._idr_time:
                self._idr_time, self._idrs, self._idr_packets = data[4:8], self._idrs + 1, 0
            self._idr_packets += 1
            is_lost = is_lost or (self._idrs % 3 == 0 and self._idr_packets == 3)
        self.lost += is_lost
        self.passed += not is_lost
        return is_lost

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        buffer = b""
        while data := server.recv(65536):
            client.sendall(data)
            buffer = self._note_interleaved(buffer + data)

    def _note_interleaved(self, data: bytes) -> bytes:
        """Note the pictures' ends in RTP that comes by TCP (RFC 2326, 10.12); return the rest."""
        while data:
            if data[:1] != b"$":
                _, found, data = data.partition(b"\r\n\r\n$")
                data = b"$" + data if found else b""
                continue
            if len(data) < 4 or len(data) < 4 + int.from_bytes(data[2:4], "big"):
                return data
            if data[1] == 0 and data[5] & 0x80:
                self.picture_times.append(time.monotonic())
            data = data[4 + int.from_bytes(data[2:4], "big") :]
        return data


def _open_pair() -> tuple[socket.socket, socket.socket]:
    """Return sockets of an even port and the next one, as RTP and RTCP have them."""
    while True:
        first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        first.bind((HOST, 0))
        port = first.getsockname()[1]
        second = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if port % 2 == 0:
            with contextlib.suppress(OSError):
                second.bind((HOST, port + 1))
                return first, second
        first.close()
        second.close()
