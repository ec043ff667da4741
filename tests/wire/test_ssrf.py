"""A source from the network is no way into the files and the network of this machine (SSRF).

`127.0.0.1` plays the internet, `127.0.0.2` the network behind us: a job that may dial the one must
never reach the other, whoever names it: a redirect, a playlist, a key, an RTSP server.
"""

from __future__ import annotations

import http.server
import os
import socket
import ssl
import subprocess
import threading

import pytest

from livefuse.addresses import Networks
from livefuse.clock import SystemClock
from livefuse.config import AccessConfig, IngestConfig
from livefuse.errors import IngestError, LivefuseError, RefusedError
from livefuse.ingest import create_ingest
from livefuse.ingest.dial import Dialler
from livefuse.ingest.relay import Proxy
from tests.clips import write_clip
from tests.sinks import CollectingSink
from tests.wire.servers import find_program, require

pytestmark = pytest.mark.wire
CONFIG = IngestConfig(open_timeout_ms=2500, read_timeout_ms=2500)
ACCESS = AccessConfig(restrict="on", networks=("127.0.0.1",))
HEAD = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n"


class Server(http.server.ThreadingHTTPServer):
    """Serves `pages` by path: bytes, or where to redirect to."""

    daemon_threads = True

    def __init__(self, host, context=None):
        self.pages, self.asked, self.hosts = {}, [], []
        super().__init__((host, 0), Handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://{host}:{self.server_port}"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
        self.thread.join(5)

    def handle_error(self, request, client_address):
        """A client that hangs up is what is tested."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.hosts.append(self.headers["Host"])
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
        elif isinstance(page, str):
            self.send_response(302)
            self.send_header("Location", page)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_response(200)
            kind = "application/vnd.apple.mpegurl" if page.startswith(b"#EXTM3U") else "video/mp2t"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    def log_message(self, format, *args):  # noqa: A002 - its name there
        pass


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("ssrf") / "clip.ts", frames=20)


@pytest.fixture
def outside():
    with Server("127.0.0.1") as server:
        yield server


@pytest.fixture
def inside(clip):
    with Server("127.0.0.2") as server:
        server.pages["/x.ts"] = clip.read_bytes()
        yield server


def play(url, access, config=CONFIG, stop_after=5):
    """Run the ingest of `url`; return how many frames came and the error it ended with."""
    ingest = create_ingest(
        url, config, SystemClock(), paced=False, every_frame=False, access=access
    )
    sink = CollectingSink(ingest=ingest, capacity=4, stop_after=stop_after)
    try:
        ingest.run(sink)
    except LivefuseError as error:
        return len(sink.pts), error
    return len(sink.pts), None


def list_segment(url, extra=""):
    return f"{HEAD}{extra}#EXTINF:1,\n{url}\n#EXT-X-ENDLIST\n".encode()


@pytest.mark.parametrize("access", [None, ACCESS], ids=["owner", "others"])
@pytest.mark.parametrize(
    "name",
    [
        "file://{path}", "{path}", "concat:{path}|{path}", "subfile,,start,0,end,0,,:{path}",
        "async:file:{path}", "cache:file:{path}", "crypto:file:{path}", "file:{path}",
        "../../../../../../../../..{path}",
    ],
)  # fmt: skip
def test_a_playlist_opens_no_files(outside, clip, access, name):
    """The file is a video that would play, so that silence means refusal."""
    outside.pages["/list.m3u8"] = list_segment(name.format(path=clip))
    frames, error = play(f"{outside.url}/list.m3u8", access)
    assert frames == 0
    assert isinstance(error, IngestError)


@pytest.mark.parametrize("access", [None, ACCESS], ids=["owner", "others"])
def test_other_formats_that_lead_elsewhere_are_not_read(outside, clip, access):
    outside.pages["/concat"] = f"ffconcat version 1.0\nfile '{clip}'\n".encode()
    outside.pages["/sdp.sdp"] = (
        b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 5004 RTP/AVP 33\r\n"
    )
    for path in ("/concat", "/sdp.sdp"):
        frames, error = play(f"{outside.url}{path}", access)
        assert frames == 0
        assert isinstance(error, IngestError)


@pytest.mark.parametrize(("access", "may_play"), [(None, True), (ACCESS, False)])
def test_a_playlist_on_disc_plays_for_its_owner_alone(tmp_path, clip, access, may_play):
    """Below media_folders there may be files that others put there."""
    (tmp_path / "list.m3u8").write_bytes(list_segment(clip))
    (tmp_path / "concat.txt").write_text(f"ffconcat version 1.0\nfile '{clip}'\n")
    frames, error = play(str(tmp_path / "list.m3u8"), access)
    assert (frames > 0) == may_play
    assert may_play or isinstance(error, IngestError)
    if not may_play:
        assert play(str(tmp_path / "concat.txt"), access)[0] == 0
    assert play(str(clip), access)[0] > 0


def test_an_owner_may_and_the_test_sees_it(outside, inside):
    """The control: without the policy the same playlist does reach the inside."""
    outside.pages["/list.m3u8"] = list_segment(f"{inside.url}/x.ts")
    frames, _ = play(f"{outside.url}/list.m3u8", None)
    assert frames > 0
    assert inside.asked == ["/x.ts"]


@pytest.mark.parametrize(
    "way", ["segment", "key", "map", "variant", "redirect", "redirected segment"]
)
def test_nothing_over_http_leads_inside(outside, inside, clip, way):
    outside.pages["/x.ts"] = clip.read_bytes()
    outside.pages["/go.ts"] = f"{inside.url}/x.ts"
    pages = {
        "segment": list_segment(f"{inside.url}/x.ts"),
        "key": list_segment("/x.ts", f'#EXT-X-KEY:METHOD=AES-128,URI="{inside.url}/k"\n'),
        "map": list_segment("/x.ts", f'#EXT-X-MAP:URI="{inside.url}/m"\n'),
        "variant": f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{inside.url}/y.m3u8\n".encode(),
        "redirect": f"{inside.url}/x.ts",
        "redirected segment": list_segment("/go.ts"),
    }
    outside.pages["/list.m3u8"] = pages[way]
    frames, error = play(f"{outside.url}/list.m3u8", ACCESS)
    assert inside.asked == []
    assert outside.asked
    if way in ("segment", "redirect", "redirected segment", "variant"):
        assert frames == 0
        assert isinstance(error, RefusedError)
        assert "may not dial" in str(error)
        assert "127.0.0.2" not in str(error)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.2:80/", "http://2130706434/", "http://0x7f.2/x.m3u8", "hls://127.0.0.2/x.m3u8",
     "rtsp://127.0.0.2/x", "rtmp://127.0.0.2/a/b", "rtsps://127.0.0.2/x", "tcp://127.0.0.2:80",
     "udp://127.0.0.2:5000", "http://169.254.169.254/latest/meta-data/"],
)  # fmt: skip
def test_what_may_not_be_dialled_is_refused_at_the_dial(url):
    frames, error = play(url, ACCESS)
    assert frames == 0
    assert isinstance(error, RefusedError)


def test_a_stream_over_http_plays_through_the_door(outside, clip):
    outside.pages["/x.ts"] = clip.read_bytes()
    outside.pages["/list.m3u8"] = list_segment("/x.ts?token=1")
    outside.pages["/x.ts?token=1"] = clip.read_bytes()
    outside.pages["/moved"] = "/x.ts"
    for path in ("/x.ts", "/list.m3u8", "/moved"):
        frames, error = play(f"{outside.url}{path}", ACCESS)
        assert (frames >= 5, error) == (True, None), path
    assert set(outside.hosts) == {outside.url.removeprefix("http://")}


def test_an_environment_that_goes_past_proxies_does_not(outside, inside, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    outside.pages["/go"] = f"{inside.url}/x.ts"
    assert isinstance(play(f"{outside.url}/go", ACCESS)[1], RefusedError)
    assert inside.asked == []
    assert "no_proxy" not in os.environ


def test_tls_goes_through_end_to_end(tmp_path, clip):
    """CONNECT: the certificate is checked by FFmpeg against the server's own name."""
    require("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [find_program("openssl") or "", "req", "-x509", "-newkey", "rsa:2048", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=x"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server("127.0.0.1", context) as server:
        server.pages["/x.ts"] = clip.read_bytes()
        trusting = IngestConfig(open_timeout_ms=2500, ca_file=str(certificate))
        frames, error = play(f"{server.url}/x.ts", ACCESS, trusting)
        assert (frames >= 5, error) == (True, None)
        assert isinstance(play(f"{server.url}/x.ts", ACCESS)[1], IngestError)


class RedirectingRtsp:
    """Answers DESCRIBE with 302, its first line in two pieces."""

    def __init__(self, location):
        self.location = location
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while True:
                peer, _ = self.listener.accept()
                with peer:
                    self.serve(peer)
        except OSError:
            return

    def serve(self, peer):
        text = b""
        while data := peer.recv(4096):
            text += data
            if b"\r\n\r\n" in text:
                method, cseq = text.split(b" ", 1)[0], text.lower().split(b"cseq:")[1].split()[0]
                text = b""
                if method == b"OPTIONS":
                    peer.sendall(
                        b"RTSP/1.0 200 OK\r\nCSeq: " + cseq + b"\r\nPublic: DESCRIBE\r\n\r\n"
                    )
                    continue
                peer.sendall(b"RTSP/1.0 3")
                peer.sendall(
                    b"02 Moved\r\nCSeq: " + cseq + f"\r\nLocation: {self.location}\r\n\r\n".encode()
                )

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


@pytest.mark.parametrize(("access", "is_reached"), [(None, True), (ACCESS, False)])
def test_an_rtsp_server_redirects_nobody_inside(access, is_reached):
    with socket.create_server(("127.0.0.2", 0)) as target:
        target.settimeout(0.5)
        server = RedirectingRtsp(f"rtsp://127.0.0.2:{target.getsockname()[1]}/x")
        reached = threading.Event()

        def watch():
            try:
                peer, _ = target.accept()
                peer.close()
                reached.set()
            except OSError:
                pass

        target.settimeout(4)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        frames, error = play(f"rtsp://127.0.0.1:{server.port}/x", access)
        assert frames == 0
        if is_reached:
            thread.join(5)
        else:
            assert isinstance(error, RefusedError)
        assert reached.is_set() == is_reached
        server.close()
        target.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_a_name_is_judged_at_each_dial_and_the_judged_address_is_dialled():
    """DNS rebinding: public when asked first, inside when asked again."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    dialler = Dialler("tcp://cam.example:81", ACCESS, 1.0, lambda _host: answers.pop(0))
    assert dialler.choose("tcp://cam.example:81").address == "tcp://127.0.0.1:81"
    with pytest.raises(RefusedError):
        dialler.choose("tcp://cam.example:81")


def test_the_proxy_dials_only_what_is_allowed(outside, inside):
    """Rebinding inside the door: it looks the name up itself, once, and dials what it found."""
    names = {"out.example": "127.0.0.1", "in.example": "127.0.0.2"}
    proxy = Proxy(Networks(["127.0.0.1"]), lambda host: [names[host]], 2.0)
    try:
        for line, expected in [
            (f"GET http://out.example:{outside.server_port}/nix HTTP/1.1", b"404"),
            (f"GET http://in.example:{inside.server_port}/x.ts HTTP/1.1", b"403"),
            (f"CONNECT in.example:{inside.server_port} HTTP/1.1", b"403"),
            (f"CONNECT 127.0.0.2:{inside.server_port} HTTP/1.1", b"403"),
            (f"GET gopher://out.example:{outside.server_port}/ HTTP/1.1", b"400"),
            ("GET / HTTP/1.1", b"400"),
        ]:
            with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as link:
                link.sendall(f"{line}\r\nHost: x\r\nProxy-Authorization: y\r\n\r\n".encode())
                assert link.recv(100).split()[1] == expected, line
        assert inside.asked == []
        for junk in (b"\x00" * 40_000, b"GET\r\n\r\n", b"\xff\xff \r\n\r\n"):
            with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as link:
                try:
                    link.sendall(junk)
                    assert link.recv(100) == b""
                except ConnectionError:
                    pass
    finally:
        proxy.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", proxy.port), timeout=2).recv(1)
