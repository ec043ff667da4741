"""Each cause has its own error and its own sentence (C37), and none holds a secret (C76)."""

from __future__ import annotations

import socket
import threading
from typing import Any

import av
import av.error
import pytest

from livefuse.config import IngestConfig
from livefuse.errors import (
    IngestAuthError,
    IngestConnectError,
    IngestError,
    IngestNotFoundError,
    IngestTimeoutError,
    IngestUnsupportedError,
)
from livefuse.ingest.diagnose import diagnose_open_error, probe_network

CONFIG = IngestConfig(open_timeout_ms=1000)
SECRET = "hunter2secret"
URL = f"rtsp://admin:{SECRET}@127.0.0.1:1/cam"


def make_error(name):
    kind = getattr(av.error, name)
    return kind(1, "words", f"rtsp://admin:{SECRET}@127.0.0.1:1/cam")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("HTTPUnauthorizedError", IngestAuthError),
        ("HTTPForbiddenError", IngestAuthError),
        ("HTTPNotFoundError", IngestNotFoundError),
        ("HTTPServerError", IngestConnectError),
        ("ConnectionRefusedError", IngestConnectError),
        ("ExitError", IngestTimeoutError),
        ("TimeoutError", IngestTimeoutError),
        ("InvalidDataError", IngestUnsupportedError),
        ("DecoderNotFoundError", IngestUnsupportedError),
        ("OSError", IngestConnectError),
    ],
)
def test_each_cause_has_its_error_and_no_secret(name, kind):
    """C37, C76."""
    found = diagnose_open_error(make_error(name), URL, CONFIG, 0.1)
    assert type(found) is kind
    assert SECRET not in str(found)
    assert found.hint


def test_all_sentences_differ():
    """C37."""
    names = ["HTTPUnauthorizedError", "HTTPNotFoundError", "ConnectionRefusedError", "ExitError",
             "InvalidDataError", "DecoderNotFoundError"]  # fmt: skip
    texts = {str(diagnose_open_error(make_error(name), URL, CONFIG, 0.1)) for name in names}
    assert len(texts) == len(names)


def test_what_fails_at_the_time_limit_is_a_timeout():
    found = diagnose_open_error(make_error("InvalidDataError"), URL, CONFIG, 1.0)
    assert type(found) is IngestTimeoutError


def test_unknown_host_is_told_from_a_refusal(monkeypatch):
    def fail(*_args, **_options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    found = probe_network("rtmp://nowhere.test/live/key", 1.0, CONFIG)
    assert isinstance(found, IngestConnectError)
    assert "no such host: nowhere.test" in str(found)


def test_name_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: gate.wait(5))
    found = probe_network("rtmp://slow.test/live/key", 0.05, CONFIG)
    gate.set()
    assert isinstance(found, IngestConnectError)


def test_closed_port_is_refused():
    found = probe_network("rtmp://127.0.0.1:1/live/key", 1.0, CONFIG)
    assert isinstance(found, IngestConnectError)
    assert "refused" in str(found)


def test_plain_server_does_not_speak_tls():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            peer, _ = listener.accept()
            with peer:
                peer.recv(100)
                peer.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        found = probe_network(f"rtmps://127.0.0.1:{port}/live/key", 1.0, CONFIG)
        thread.join(2)
    assert type(found).__name__ == "IngestTlsError"
    assert "does not speak TLS" in str(found)


def test_healthy_server_leaves_the_cause_to_ffmpeg():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert probe_network(f"rtmp://127.0.0.1:{port}/live/key", 1.0, CONFIG) is None


def test_every_diagnosis_is_an_ingest_error():
    kinds: set[Any] = {*av.error.classes.values()}
    for kind in kinds:
        assert isinstance(diagnose_open_error(kind(1, "x", URL), URL, CONFIG, 0.0), IngestError)
