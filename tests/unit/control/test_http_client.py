"""Asking over HTTP: kept connections, time limits, unix sockets, TLS, and words without keys."""

import contextlib
import http.server
import select
import socket
import socketserver
import ssl
import threading
import time
from typing import Any
from urllib.parse import quote

import pytest

from livefuse.control.address import parse_daemon_url
from livefuse.control.http_client import MAX_ANSWER_BYTES, Exchange, HttpClient, Query
from livefuse.errors import ConfigError, DaemonError, DaemonTimeoutError
from tests.certificates import make_certificate

HELLO = Query("GET", "/hello")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections = 0

    def setup(self):
        super().setup()
        type(self).connections += 1

    def do_GET(self):
        if self.path == "/never":
            time.sleep(3)
            return
        if self.path == "/huge":
            self.send_response(200)
            self.send_header("Content-Length", str(MAX_ANSWER_BYTES + 10))
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(MAX_ANSWER_BYTES // 2**20 + 1):
                    self.wfile.write(bytes(2**20))
            return
        if self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(40):
                    self.wfile.write(b"x\n")
                    time.sleep(0.1)
            self.close_connection = True
            return
        length = int(self.headers.get("Content-Length", 0))
        body = self.path.encode() + b" " + self.rfile.read(length)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Seen", self.headers.get("X-Sent", ""))
        if self.path == "/last":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.path == "/once"

    def do_POST(self):
        self.do_GET()

    def log_message(self, *_):
        pass

    def address_string(self):
        return "peer"


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        return super().get_request()[0], ("", 0)


@contextlib.contextmanager
def serving(server):
    kind = type("Counted", (Handler,), {"connections": 0})
    server.RequestHandlerClass = kind
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield kind
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.block_on_close = False
    return server


@pytest.fixture
def place():
    """An address, and the handler that counts its connections."""
    server = make_server()
    with serving(server) as kind:
        yield f"http://127.0.0.1:{server.server_address[1]}", kind


@contextlib.contextmanager
def asking(url, **options):
    client = HttpClient(parse_daemon_url(url), **options)
    try:
        yield client
    finally:
        client.close()


def wait_spent(client):
    """Until it is seen here that the server has closed the kept connection."""
    ((_, connection),) = client._idle
    assert select.select([connection.sock], [], [], 5)[0]


def test_one_connection_does_for_many_questions(place):
    url, kind = place
    with asking(f"{url}/base/") as client:
        for number in range(5):
            query = Query("POST", "/x?y=1", {"X-Sent": str(number)}, b"body")
            answer = client.ask(query, 5)
            assert answer.status == 200
            assert answer.data == b"/base/x?y=1 body"
            assert answer.headers["x-seen"] == str(number)
    assert kind.connections == 1


def test_a_connection_that_the_server_closed_is_not_used_again(place):
    url, kind = place
    with asking(url) as client:
        for _ in range(3):
            assert client.ask(Query("GET", "/once"), 5).data == b"/once "
            wait_spent(client)
    assert kind.connections == 3


def test_an_answer_that_ends_its_connection_is_read_whole(place):
    """Python 3.13 closes the socket with its last byte."""
    url, kind = place
    with asking(url) as client:
        for _ in range(2):
            assert client.ask(Query("GET", "/last"), 5).data == b"/last "
            assert not client._idle
    assert kind.connections == 2


def test_a_server_that_comes_back_is_found_again():
    server = make_server()
    port = server.server_address[1]
    with asking(f"http://127.0.0.1:{port}") as client:
        with serving(server):
            client.ask(Query("GET", "/once"), 5)
            wait_spent(client)
        with pytest.raises(DaemonError, match="cannot be reached"):
            client.ask(HELLO, 5)
        again = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        again.block_on_close = False
        with serving(again):
            assert client.ask(HELLO, 5).status == 200


def test_no_more_connections_are_kept_than_asked_for(place):
    url, _ = place
    with asking(url, max_idle=2) as client:
        threads = [threading.Thread(target=client.ask, args=(HELLO, 5)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(client._idle) <= 2
    assert not client._idle


@pytest.mark.parametrize("path", ["/never", "/drip"])
def test_the_whole_answer_has_one_time_limit(place, path):
    url, _ = place
    with asking(url) as client:
        began = time.monotonic()
        with pytest.raises(DaemonTimeoutError, match="in time"):
            client.ask(Query("GET", path), 0.4)
        assert time.monotonic() - began < 2.0


def test_an_answer_is_bounded(place):
    url, _ = place
    with asking(url) as client, pytest.raises(DaemonError, match="more than can be held"):
        client.ask(Query("GET", "/huge"), 20)


def test_another_thread_ends_an_exchange_at_once(place):
    url, _ = place
    with asking(url) as client:

        def stop(abort):
            threading.Timer(0.2, abort).start()

        with pytest.raises(DaemonError, match="taken back"):
            client.ask(Query("GET", "/never"), 20, stop)
        with pytest.raises(DaemonError, match="taken back"):
            client.ask(HELLO, 20, lambda abort: abort())


def test_an_end_that_comes_late_harms_nobody(place):
    url, kind = place
    aborts: list[Any] = []
    with asking(url) as client:
        client.ask(HELLO, 5, aborts.append)
        aborts[0]()
        assert client.ask(HELLO, 5).status == 200
    assert kind.connections == 1


def test_lines_of_a_stream_come_one_by_one_and_end_when_told(place):
    url, _ = place
    with asking(url) as client, Exchange(client, Query("GET", "/drip"), 5) as exchange:
        assert exchange.open().status == 200
        assert exchange.read_line(2) == b"x\n"
        threading.Timer(0.1, exchange.abort).start()
        with pytest.raises(DaemonError, match="taken back"):
            while exchange.read_line(2):
                pass


def test_a_unix_socket(tmp_path):
    path = tmp_path / "a b.sock"
    with serving(UnixServer(str(path), Handler)):
        for url in (f"http+unix://{quote(str(path), safe='')}", str(path)):
            with asking(url) as client:
                assert client.ask(HELLO, 5).data == b"/hello "
                assert str(client.address) == f"unix:{path}"
    with asking(str(path)) as client, pytest.raises(DaemonError, match="cannot be reached"):
        client.ask(HELLO, 5)


@contextlib.contextmanager
def serving_tls(certificate, key):
    server = make_server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None
    with serving(server):
        yield f"https://127.0.0.1:{server.server_address[1]}", context


def test_tls_trusts_the_very_certificate_and_no_other(tmp_path):
    own, other = make_certificate(tmp_path), make_certificate(tmp_path, "other")
    with serving_tls(*own) as (url, _):
        with asking(url, certificate=own[0]) as client:
            assert client.ask(HELLO, 5).status == 200
        for certificate in (other[0], None):
            with (
                asking(url, certificate=certificate) as client,
                pytest.raises(DaemonError, match="not trusted"),
            ):
                client.ask(HELLO, 5)
    for path, words in ((tmp_path / "none", "No such file"), (own[1], "no certificate")):
        with pytest.raises(ConfigError, match=words):
            HttpClient(parse_daemon_url(url), certificate=path)


def test_a_certificate_that_is_renewed_is_read_again(tmp_path):
    own = make_certificate(tmp_path)
    with serving_tls(*own) as (url, context), asking(url, certificate=own[0], max_idle=0) as client:
        assert client.ask(HELLO, 5).status == 200
        make_certificate(tmp_path)
        assert client.ask(HELLO, 5).status == 200  # the server has the old one still
        context.load_cert_chain(*own)
        assert client.ask(HELLO, 5).status == 200


@pytest.mark.parametrize(
    ("url", "shown", "key"),
    [
        ("http://127.0.0.1:8090/?key=secret-secret", "http://127.0.0.1:8090", "secret-secret"),
        ("https://HOST", "https://host:443", ""),
        ("http://[::1]:1/a/b/", "http://[::1]:1/a/b", ""),
        ("http+unix://%2Frun%2Fx.sock?key=k", "unix:/run/x.sock", "k"),
        (" /run/y.sock ", "unix:/run/y.sock", ""),
    ],
)
def test_addresses_are_read_and_shown_without_their_key(url, shown, key):
    address = parse_daemon_url(url)
    assert str(address) == shown
    assert address.key == key


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8090", "ftp://h/?key=secret-secret", "http://h:x?key=secret-secret"]
)
def test_what_is_no_address_is_refused_without_its_key(url):
    """C76."""
    with pytest.raises(ConfigError) as caught:
        parse_daemon_url(url)
    assert "secret" not in str(caught.value)


def test_a_peer_that_speaks_no_http():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"220 hello\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        with asking(f"http://127.0.0.1:{port}") as client, pytest.raises(DaemonError):
            client.ask(HELLO, 5)
        thread.join(5)
