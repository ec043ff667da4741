"""A tiny RTSP server that fails on purpose: it answers each method as it was told to, on loopback.

It never sends RTP: `silent` is the fault of case C31. `status` answers DESCRIBE with that code.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

SDP_H264 = (
    "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=fake\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
    "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
    "a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==\r\n"
    "a=control:track1\r\n"
)
SDP_SOUND = (
    "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=fake\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
    "m=audio 0 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=control:track1\r\n"
)
_WORDS = {200: "OK", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 500: "Error"}


class FakeRtsp:
    """Serves until closed; counts DESCRIBE requests and connections."""

    def __init__(self, *, status: int = 200, sdp: str = SDP_H264) -> None:
        self.describes = 0
        self.connections = 0
        self._status = status
        self._sdp = sdp
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._peers: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, name="fake-rtsp", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self._peers:
            peer.close()
        self._thread.join(2)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        text = b""
        try:
            while data := peer.recv(4096):
                text += data
                while b"\r\n\r\n" in text:
                    request, _, text = text.partition(b"\r\n\r\n")
                    peer.sendall(self._answer(request.decode("latin1")))
        except OSError:
            return

    def _answer(self, request: str) -> bytes:
        lines = request.split("\r\n")
        method = lines[0].split(" ")[0]
        cseq = next((x.split(":")[1].strip() for x in lines if x.lower().startswith("cseq")), "0")
        status, headers, body = 200, "", ""
        if method == "OPTIONS":
            headers = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"
        elif method == "DESCRIBE":
            self.describes += 1
            status = self._status
            if status == 401:
                headers = 'WWW-Authenticate: Basic realm="fake"\r\n'
            if status == 200:
                body = self._sdp
                headers = "Content-Type: application/sdp\r\n"
        elif method == "SETUP":
            headers = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n"
        else:
            headers = "Session: 1\r\n"
        head = f"RTSP/1.0 {status} {_WORDS[status]}\r\nCSeq: {cseq}\r\n{headers}"
        return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
