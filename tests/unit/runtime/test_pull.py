"""Fetching models from a server on the loopback interface (C69)."""

from __future__ import annotations

import hashlib
import http.server
import socket
import threading

import msgspec
import pytest

from livefuse.errors import ModelError
from livefuse.runtime.pull import Order, pull_model
from livefuse.runtime.registry import ModelRegistry
from tests.standins import install_standins, list_standins

NAME = "yoloface_8n"
DATA = list_standins()[NAME]().SerializeToString()
DIGEST = hashlib.sha256(DATA).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Gives `data` at any path; `cut` closes after so many bytes, `ranges` says it can go on.

    `length` is a Content-Length to lie with.
    """

    daemon_threads = True
    data = DATA
    cut = 0
    length = ""
    ranges = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/models/{NAME}.onnx"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    server: Server

    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.seen.append((self.path, asked))
        data, start = self.server.data, 0
        if asked and self.server.ranges:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.end_headers()
                return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", self.server.length or str(len(data) - start))
        self.end_headers()
        end = self.server.cut or len(data)
        self.wfile.write(data[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    running = Server()
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture
def config(tmp_path):
    return install_standins(tmp_path / "models")


def pull(config, url="", sha256=DIGEST, name=NAME, accept=lambda _: True):
    registry = ModelRegistry(tmp_folder(config))
    seen = []
    brought = pull_model(
        registry, config, Order(name, url, sha256), accept, lambda *at: seen.append(at)
    )
    return registry, brought, seen


def tmp_folder(config):
    from pathlib import Path

    return Path(config.folder)


def list_hidden(config):
    return sorted(p.name for p in tmp_folder(config).iterdir() if p.name.startswith("."))


def test_a_model_is_fetched_checked_and_used(config, server):
    registry, brought, seen = pull(config, server.url, DIGEST.upper())
    assert brought.model.name == NAME
    assert registry.verify_model(NAME).read_bytes() == DATA
    assert registry.get_installed(NAME).origin == server.url
    assert seen[-1] == (len(DATA), len(DATA))
    assert list_hidden(config) == []


def test_what_is_there_is_not_fetched_again(config, server):
    pull(config, server.url)
    _, brought, _ = pull(config, server.url, "")
    assert brought.words == "there already"
    assert len(server.seen) == 1


def test_a_mirror_is_asked_for_the_file(config, server):
    mirror = msgspec.structs.replace(config, mirror=server.url.rpartition("/")[0] + "/")
    pull(mirror)
    assert server.seen == [(f"/models/{NAME}.onnx", None)]


def test_it_goes_on_where_it_broke_off(config, server):
    server.cut = 30_000
    with pytest.raises(ModelError, match=r"30000 of \d+ bytes.*30000 bytes are kept.*go on"):
        pull(config, server.url)
    assert list_hidden(config) == [f".{NAME}.onnx.part"]
    server.cut = 0
    registry, _, seen = pull(config, server.url)
    assert server.seen[-1][1] == "bytes=30000-"
    assert seen[-1] == (len(DATA), len(DATA))
    assert registry.verify_model(NAME).read_bytes() == DATA
    assert list_hidden(config) == []


def test_a_server_that_cannot_go_on_gives_all_of_it(config, server):
    server.cut, server.ranges = 30_000, False
    with pytest.raises(ModelError, match="30000 of"):
        pull(config, server.url)
    server.cut = 0
    registry, _, _ = pull(config, server.url)
    assert registry.verify_model(NAME).read_bytes() == DATA


def test_all_of_it_was_there_already(config, server):
    (tmp_folder(config) / f".{NAME}.onnx.part").write_bytes(DATA)
    registry, _, seen = pull(config, server.url)
    assert seen == []
    assert registry.verify_model(NAME).read_bytes() == DATA


def test_a_longer_leftover_of_another_file_is_replaced(config, server):
    (tmp_folder(config) / f".{NAME}.onnx.part").write_bytes(DATA + b"more")
    registry, _, _ = pull(config, server.url)
    assert registry.verify_model(NAME).read_bytes() == DATA


def test_a_wrong_file_is_kept_aside_with_both_digests(config, server):
    """(C69)"""
    server.data = DATA[:-1] + b"x"
    actual = hashlib.sha256(server.data).hexdigest()
    with pytest.raises(ModelError, match=rf"SHA-256 {actual}, expected {DIGEST}.*kept"):
        pull(config, server.url)
    (kept,) = list_hidden(config)
    assert kept == f".{NAME}.onnx.rejected"
    assert (tmp_folder(config) / kept).read_bytes() == server.data
    assert not (tmp_folder(config) / f"{NAME}.onnx").exists()
    server.data = DATA
    pull(config, server.url)  # the rejected one is not gone on from
    assert server.seen[-1][1] is None


def test_a_right_digest_of_another_model_is_refused(config, server):
    with pytest.raises(ModelError, match=r"is not yunet_2023_mar.*looks like yoloface_8n"):
        pull(config, server.url, DIGEST, "yunet_2023_mar")
    assert not (tmp_folder(config) / "yunet_2023_mar.onnx").exists()


def test_offline_opens_no_socket(config, server, monkeypatch):
    """(C69)"""
    opened = []
    monkeypatch.setattr(socket, "socket", lambda *a, **k: opened.append(a))
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: opened.append(a))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: opened.append(a))
    offline = msgspec.structs.replace(config, offline=True)
    with pytest.raises(ModelError, match=r"models\.offline.*models import FILE"):
        pull(offline, server.url)
    assert opened == []
    assert server.seen == []


def test_a_restricted_licence_is_asked_for_before_anything_is_fetched(config, server):
    """(C70)"""
    with pytest.raises(ModelError, match="not accepted"):
        pull(config, server.url, "0" * 64, "det_10g", lambda _model: False)
    assert server.seen == []


@pytest.mark.parametrize(
    ("url", "sha256", "name", "words"),
    [
        ("", DIGEST, NAME, "no address for yoloface_8n"),
        ("http://h/x", "", NAME, "SHA-256 of yoloface_8n is not known"),
        ("http://h/x", "12", NAME, "not a SHA-256"),
        ("file:///etc/passwd", DIGEST, NAME, "cannot fetch file"),
        ("http://h/x", DIGEST, "centerface", "comes with livefuse"),
        ("http://h/x", DIGEST, "yoloface", "did you mean yoloface_8n"),
    ],
)
def test_what_cannot_be_fetched_is_told(config, url, sha256, name, words):
    with pytest.raises(ModelError, match=words):
        pull(config, url, sha256, name)


def test_a_server_that_fails_is_told_without_secrets(config, server):
    server.server_close()
    server.shutdown()
    url = server.url.replace("http://", "http://user:hunter2@") + "?token=abcdef"
    with pytest.raises(ModelError, match="cannot fetch") as caught:
        pull(config, url)
    assert "hunter2" not in str(caught.value)
    assert "abcdef" not in str(caught.value)


def test_a_server_that_talks_nonsense_is_told(config, server):
    server.length = "many"
    with pytest.raises(ModelError, match="cannot fetch"):
        pull(config, server.url)
