"""The API and those who mean no good, or whose network breaks: over raw sockets."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import socket
import struct
import time
import tracemalloc
import zlib

import cv2
import numpy as np
import pytest

from livefuse.config import LimitsConfig
from livefuse.control.api import body
from tests.apis import KEY, RunningApi
from tests.wire.servers import wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(90)]

CONSENT = "consent=Anna%20Berger%2C%20tests%2C%2030d"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with RunningApi(tmp_path_factory.mktemp("hostile")) as running:
        spec = {"source": "test:?size=160x120&fps=5", "operations": []}
        made = running.ask("POST", "/v1/jobs", {"id": "main", "spec": spec, "start": True})
        assert made.status == 201
        running.wait_frames("main", 2)
        yield running


def talk(api, data: bytes, *, close_early: bool = False, timeout_s: float = 10.0) -> bytes:
    """Send bytes as they are; return all that comes back."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", api.server.port), 5)) as sock:
        sock.settimeout(timeout_s)
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        if close_early:
            return b""
        said = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            while chunk := sock.recv(65536):
                said += chunk
        return said


def make_head(first: str, *lines: str) -> bytes:
    head = [first, "Host: localhost", f"Authorization: Bearer {KEY}", "Connection: close", *lines]
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")


def read_problem(said: bytes) -> tuple[int, dict[str, str]]:
    head, _, text = said.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head, said[:400]
    return int(head.split()[1]), json.loads(text)


JSON = "Content-Type: application/json"
POST = "POST /v1/jobs HTTP/1.1"


@pytest.mark.parametrize(
    ("lines", "sent", "status"),
    [
        (["Content-Encoding: gzip", "Content-Length: 9"], b"not gzip!", 415),
        (["Content-Length: 999999999"], b"{}", 413),
        (["Content-Length: 2"], b"[]", 422),
        (["Content-Length: 60000"], b"[" * 60000, 422),
        (["Content-Length: 3"], b'"\xff"', 422),
        (["Content-Length: 2", "Content-Encoding: nonsense"], b"{}", 415),
        (["Content-Length: 2", "Content-Encoding: identity"], b"{}", 201),
    ],
)
def test_bodies_that_are_not_what_they_say(api, lines, sent, status):
    said = talk(api, make_head(POST, JSON, *lines) + sent)
    if status == 201:
        assert said.startswith(b"HTTP/1.1 201"), said[:300]
        return
    told = read_problem(said)
    assert told[0] == status
    assert len(told[1]["detail"]) > 10


@pytest.mark.parametrize(
    ("address", "sent_bytes"), [("/v1/jobs", 0x300000), ("/v1/jobs/main/outputs", 0x20000)]
)
def test_a_body_that_does_not_tell_its_length_is_held_no_longer(api, address, sent_bytes):
    """Of a job there may be more, for the picture in it."""
    head = make_head(f"POST {address} HTTP/1.1", JSON, "Transfer-Encoding: chunked")
    said = talk(api, head + b"%x\r\n" % sent_bytes + b" " * sent_bytes + b"\r\n0\r\n\r\n")
    assert read_problem(said)[0] == 413


def test_a_body_that_unpacks_to_a_gigabyte_is_not_unpacked(api):
    packed = gzip.compress(bytes(200_000_000), 1)
    lines = [JSON, "Content-Encoding: gzip", f"Content-Length: {len(packed)}"]
    tracemalloc.start()
    said = talk(api, make_head(POST, *lines) + packed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said.split()[1] == b"415", said[:200]
    assert peak < 20_000_000


@pytest.mark.parametrize(
    "head",
    [
        make_head("GET /v1/jobs/%ff HTTP/1.1"),
        make_head("GET /v1/jobs/%00 HTTP/1.1"),
        make_head("GET /v1/jobs/..%2f..%2fetc HTTP/1.1"),
        make_head("GET //v1/jobs HTTP/1.1"),
        make_head("TRACE /v1/jobs HTTP/1.1"),
        make_head("DELETE /v1/jobs HTTP/1.1"),
        (
            b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Authorization: Bearer \xff\xfe\r\n\r\n"
        ),
        b"GET /v1/jobs?key=%ff%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)
def test_odd_requests_are_told_so(api, head):
    status, problem = read_problem(talk(api, head))
    assert status in (400, 401, 403, 404, 405)
    assert problem["detail"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GARBAGE\r\n\r\n",
        make_head("GET /v1/jobs HTTP/1.1", "Host: evil.example"),
        make_head("POST /v1/jobs HTTP/1.1", "Transfer-Encoding: chunked") + b"zz\r\nno\r\n",
        make_head("GET /" + "a" * 200_000 + " HTTP/1.1"),
        make_head("GET /v1/jobs HTTP/1.1", *(f"X-{n}: {'y' * 50}" for n in range(20_000))),
        make_head("GET /v1/jobs HTTP/1.1", "X: " + "y" * 200_000),
    ],
)
def test_what_is_no_http_is_turned_away(api, data, caplog):
    """In a word of aiohttp's, and without a line in the log."""
    said = talk(api, data)
    assert not said or (said.startswith(b"HTTP/1.") and said.split()[1].startswith(b"4"))
    assert b"Traceback" not in said
    assert KEY.encode() not in said
    assert not caplog.records
    assert api.ask("GET", "/healthz").status == 200


def test_a_client_that_hangs_up_in_its_body_leaves_nothing(api):
    before = len(api.ask("GET", "/v1/jobs").value["jobs"])
    for _ in range(10):
        talk(api, make_head(POST, JSON, "Content-Length: 500") + b'{"id"', close_early=True)
    assert len(api.ask("GET", "/v1/jobs").value["jobs"]) == before


def test_a_body_that_trickles_is_cut_off(api, monkeypatch):
    monkeypatch.setattr(body, "_BODY_S", 0.3)
    said = talk(api, make_head(POST, JSON, "Content-Length: 500") + b'{"id"')
    status, problem = read_problem(said)
    assert status == 408
    assert "body" in problem["detail"]


def test_who_connects_and_says_nothing_is_let_go(api, monkeypatch):
    monkeypatch.setattr(api.server._doorway, "_patience_s", 0.3)
    for said in (b"", b"GET /v1/jobs HTTP/1.1\r\nHost: loc"):
        began = time.monotonic()
        assert talk(api, said) == b""
        assert time.monotonic() - began < 5


def test_many_silent_connections_keep_nobody_out(api, monkeypatch):
    limits = LimitsConfig(connections=40)
    assert LimitsConfig().connections > 100
    monkeypatch.setattr(api.server._doorway.perimeter, "limits", limits)
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            sock = socket.create_connection(("127.0.0.1", api.server.port), 5)
            stack.enter_context(contextlib.closing(sock))
        for _ in range(5):
            assert api.ask("GET", "/v1/jobs").status == 200
    assert api.ask("GET", "/v1/jobs").status == 200


def test_a_wrong_key_waits_and_no_key_does_not(api):
    def time_key(key: str) -> float:
        began = time.monotonic()
        link = http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=10)
        link.request("GET", "/v1/jobs", headers={"Authorization": key} if key else {})
        assert link.getresponse().status == 401
        link.close()
        return time.monotonic() - began

    assert time_key("Bearer wrong") >= 0.2
    assert min(time_key("") for _ in range(5)) < 0.15


def test_the_key_is_in_no_answer(api):
    """Nor in a redirect, a header or an error, wherever it was given."""
    for path in ("/", "/web", "/v1", "/v1/jobs", "/v1/jobs/none", "/v1/openapi.json", "//"):
        answer = api.ask("GET", f"{path}?key={KEY}")
        assert KEY.encode() not in answer.data
        assert KEY not in json.dumps(answer.headers)
        assert "Access-Control-Allow-Origin" not in answer.headers


def make_png(width: int, height: int, rows: int) -> bytes:
    """A PNG whose header promises a size, with `rows` of it packed in next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes((width * 3 + 1) * rows), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def encode(kind: str, side: int = 200) -> bytes:
    return cv2.imencode(f".{kind}", np.full((side, side, 3), 128, np.uint8))[1].tobytes()


@pytest.mark.parametrize(
    ("kind", "picture"),
    [
        ("png", make_png(30_000, 30_000, 200)),
        ("png", make_png(2**31 - 1, 2**31 - 1, 0)),
        ("png", make_png(0, 0, 0)),
        ("png", make_png(7000, 7000, 1)),
        ("png", encode("png")[:-200]),
        ("jpeg", encode("jpg")[:300]),
        ("jpeg", b"\xff\xd8\xff\xe1\xff\xff" + b"Exif\0\0" + bytes(100)),
        ("webp", encode("webp")[:40]),
        ("webp", b"RIFF\xff\xff\xff\xffWEBPVP8X\x0a\0\0\0\x02\0\0\0\xff\xff\xff\xff\xff\xff"),
        ("png", b"GIF89a" + bytes(100)),
        ("png", b""),
        ("png", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("png", encode("png")),
    ],
)
def test_pictures_that_cannot_be_used_are_refused(api, kind, picture):
    tracemalloc.start()
    told = api.ask(
        "PUT",
        f"/v1/jobs/main/source-face?{CONSENT}",
        body=picture,
        headers={"Content-Type": f"image/{kind}"},
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told.status == 422, told.data
    assert "picture" in told.value["detail"] or "face" in told.value["detail"]
    assert peak < 400_000_000


def test_few_pictures_are_held_at_a_time(api):
    """The fifth is told to wait; those that hang up give their places back."""
    lines = ["Content-Type: image/png", "Content-Length: 9000"]
    path = f"/v1/jobs/main/source-face?{CONSENT}"
    head = make_head(f"PUT {path} HTTP/1.1", *lines)
    png = {"Content-Type": "image/png"}
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            sock = socket.create_connection(("127.0.0.1", api.server.port), 5)
            stack.enter_context(contextlib.closing(sock)).sendall(head)
        wait_until(lambda: api.server._api.uploads == 4, 10, "four")
        full = api.ask("PUT", path, body=b"x", headers=png)
        assert full.status == 503
        assert full.headers["Retry-After"]
    wait_until(lambda: api.server._api.uploads == 0, 10, "their places")
    assert api.ask("PUT", path, body=b"x", headers=png).status == 422


@pytest.mark.parametrize(
    "target",
    ["/tmp/evil.mp4", "../evil.mp4", "a/../../evil.mp4", "~/evil.mp4", "file:///tmp/e.mp4"],
)
def test_files_are_written_in_one_folder(api, target):
    """By the spec of a job and by adding an output alike; links do not lead out of it either."""
    inside = api.folder / "out"
    inside.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (inside / "a").symlink_to("/tmp")
    spec = {"source": "test:", "targets": [target]}
    for told in (
        api.ask("POST", "/v1/jobs", {"spec": spec}),
        api.ask("POST", "/v1/jobs/main/outputs", {"url": target}),
    ):
        assert told.status == 422, told.data
        assert "record.folder" in told.value["hint"]


def test_what_is_read_is_not_written(api, face_clip):
    place = api.folder / "out" / "input.mp4"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(face_clip.read_bytes())
    told = api.ask("POST", "/v1/jobs", {"spec": {"source": str(place), "targets": ["input.mp4"]}})
    assert told.status == 422
    assert "while it is read" in told.value["detail"]
