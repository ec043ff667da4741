"""What is wrong with a source is said in words of its own, by real peers (C31, C37, C76)."""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest

from livefuse.clock import NS_PER_S, SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import (
    IngestAuthError,
    IngestConnectError,
    IngestNotFoundError,
    IngestTimeoutError,
    IngestTlsError,
    IngestUnsupportedError,
)
from livefuse.ingest import create_ingest
from tests.sinks import CollectingSink
from tests.wire.fake_rtsp import SDP_SOUND, FakeRtsp
from tests.wire.servers import HOST, find_free_port, find_program, require, wait_until

pytestmark = pytest.mark.wire
CONFIG = IngestConfig(open_timeout_ms=1500)
PASSWORD = "pa55w0rd-of-cam"


def fail_to_open(url, kind, config=CONFIG):
    """Run the ingest of `url`; return the error, which is of `kind` and holds no secret."""
    ingest = create_ingest(url, config, SystemClock(), paced=True, every_frame=False)
    sink = CollectingSink()
    with pytest.raises(kind) as caught:
        ingest.run(sink)
    assert type(caught.value) is kind
    assert PASSWORD not in str(caught.value)
    assert caught.value.hint
    assert "live" not in sink.states
    return caught.value


def test_server_that_sends_nothing_times_out():
    """C31."""
    clock = SystemClock()
    with FakeRtsp() as server:
        started_ns = clock.now_ns()
        fail_to_open(f"rtsp://admin:{PASSWORD}@{HOST}:{server.port}/x", IngestTimeoutError)
        assert clock.now_ns() - started_ns < 2.5 * NS_PER_S
        assert server.describes >= 1


def test_server_that_sends_nothing_can_be_left_at_once():
    """C31."""
    config = IngestConfig(open_timeout_ms=6000)
    with FakeRtsp() as server:
        url = f"rtsp://{HOST}:{server.port}/x"
        ingest = create_ingest(url, config, SystemClock(), paced=True, every_frame=False)
        thread = threading.Thread(target=ingest.run, args=(CollectingSink(),), daemon=True)
        thread.start()
        wait_until(lambda: server.describes, 5)
        ingest.stop()
        thread.join(2)
        assert not thread.is_alive()


def test_port_that_accepts_and_says_nothing_times_out():
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        for scheme in ("rtsp", "rtmp"):
            error = fail_to_open(f"{scheme}://{HOST}:{port}/live/key", IngestTimeoutError)
            assert "sent no picture" in str(error)


def test_wrong_password_is_asked_once():
    """C37."""
    with FakeRtsp(status=401) as server:
        url = f"rtsp://admin:{PASSWORD}@{HOST}:{server.port}/x"
        assert "user name or password" in str(fail_to_open(url, IngestAuthError))
        assert server.describes <= 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, IngestAuthError), (404, IngestNotFoundError), (500, IngestConnectError)],
)
def test_rtsp_refusals(status, kind):
    """C37."""
    with FakeRtsp(status=status) as server:
        assert fail_to_open(f"rtsp://{HOST}:{server.port}/x", kind).message


def test_sound_alone_has_no_video_stream():
    # FFmpeg waits its whole time for sound that never comes before it says what streams there are.
    with FakeRtsp(sdp=SDP_SOUND) as server:
        error = fail_to_open(f"rtsp://{HOST}:{server.port}/x", IngestUnsupportedError)
    assert "no video stream" in str(error)


@pytest.mark.parametrize("scheme", ["rtsp", "rtmp", "http", "tcp"])
def test_closed_port_is_refused(scheme):
    """C37."""
    url = f"{scheme}://{HOST}:{find_free_port()}/live/key"
    assert "refused" in str(fail_to_open(url, IngestConnectError))


@contextmanager
def black_hole():
    """A port that answers nothing at all, as behind a firewall: its queue of callers is full."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(0)
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(listener.getsockname())
        try:
            yield listener.getsockname()[1]
        finally:
            for caller in callers:
                caller.close()


@pytest.mark.parametrize("scheme", ["rtsp", "rtmp", "http", "tcp"])
def test_black_holed_port_times_out(scheme):
    clock = SystemClock()
    with black_hole() as port:
        started_ns = clock.now_ns()
        fail_to_open(f"{scheme}://{HOST}:{port}/live/key", IngestTimeoutError)
        assert clock.now_ns() - started_ns < (2 * 1.5 + 1) * NS_PER_S


@pytest.mark.parametrize("scheme", ["rtsp", "rtmp", "https"])
def test_what_is_being_dialled_can_be_left_at_once(scheme):
    """The reader in FFmpeg is left behind, counted, and ends by its own time-out."""
    config = IngestConfig(open_timeout_ms=3000)
    with black_hole() as port:
        url = f"{scheme}://{HOST}:{port}/live/key"
        ingest = create_ingest(url, config, SystemClock(), paced=True, every_frame=False)
        sink = CollectingSink()
        before = threading.active_count()
        thread = threading.Thread(target=ingest.run, args=(sink,), daemon=True)
        thread.start()
        time.sleep(0.4)
        ingest.stop()
        thread.join(2)
        assert not thread.is_alive()
        assert sink.states[-1] == "ended"
        assert sink.counts["abandoned_readers"] == 1
        wait_until(lambda: threading.active_count() <= before, 8, "end of the reader")


@pytest.mark.parametrize("scheme", ["rtsp", "rtmp", "http", "https"])
def test_unknown_host_is_named(scheme):
    """C37."""
    url = f"{scheme}://no-such-host.invalid/live/key"
    assert "no such host: no-such-host.invalid" in str(fail_to_open(url, IngestConnectError))


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers /CODE with that status."""

    def do_GET(self):
        self.send_response(int(self.path.strip("/")))
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_args):
        pass


@contextmanager
def web_server(certificate=None):
    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_args):
            """A refused handshake is what the test is about."""

    with Server((HOST, 0), Answers) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(2)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, IngestAuthError),
        (404, IngestNotFoundError),
        (503, IngestConnectError),
        (200, IngestUnsupportedError),
    ],
)
def test_http_answers(status, kind):
    """C37."""
    with web_server() as port:
        assert str(port) in str(fail_to_open(f"http://{HOST}:{port}/{status}", kind))


def test_untrusted_certificate_is_refused_unless_allowed(tmp_path):
    """C37."""
    require("openssl")
    path = tmp_path / "own.pem"
    command = [find_program("openssl") or "", "req", "-x509", "-newkey", "rsa:2048", "-nodes"]
    command += ["-keyout", str(path), "-out", str(tmp_path / "cert.pem"), "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{HOST}"]
    subprocess.run(command, check=True, capture_output=True, timeout=20)
    certificate = tmp_path / "cert.pem"
    path.write_bytes(path.read_bytes() + certificate.read_bytes())
    with web_server(path) as port:
        url = f"https://{HOST}:{port}/404"
        assert "not trusted" in str(fail_to_open(url, IngestTlsError))
        for config in (
            IngestConfig(open_timeout_ms=1500, ca_file=str(certificate)),
            IngestConfig(open_timeout_ms=1500, tls_verify=False),
        ):
            fail_to_open(url, IngestNotFoundError, config)
