"""(R55) Nothing is contacted but the endpoints that a job names: strace watches every process.

A program that dialled anything else, a name server included, would be seen here whether or not the
machine could have reached it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest

from tests.wire.servers import HOST, require, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.wire.servers import NginxRtmp

pytestmark = pytest.mark.wire

_CALLS = "connect,sendto,sendmsg,sendmmsg"
_PEER = re.compile(
    r"sin6?_port=htons\((?P<port>\d+)\).*?"
    r'(?:inet_addr\("(?P<v4>[^"]+)"\)|inet_pton\(AF_INET6, "(?P<v6>[^"]+)")'
)


class Peer(NamedTuple):
    """An address that was dialled or sent to."""

    host: str
    port: int


def watch(folder: Path, *command: str, code: int = 0) -> set[Peer]:
    """Run a command; return every internet address that it or a child of it has dialled."""
    require("strace")
    trace = folder / "trace"
    done = subprocess.run(
        trace_calls(trace, *command),
        cwd=folder, env=be_alone(folder), capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr.decode()
    return read_peers(trace)


def trace_calls(trace: Path, *command: str) -> list[str]:
    """Return the command line that runs `command` and writes whom it and its children dial."""
    calls = ["-e", f"trace={_CALLS}", "-o", str(trace)]
    return ["strace", "-f", "-qq", "--seccomp-bpf", *calls, *command]


def be_alone(folder: Path) -> dict[str, str]:
    """Return an environment with a private store of its own."""
    return {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}


def read_peers(trace: Path) -> set[Peer]:
    """Return every internet address that was dialled."""
    found = (_PEER.search(line) for line in trace.read_text(errors="replace").splitlines())
    return {Peer(m["v4"] or m["v6"], int(m["port"])) for m in found if m is not None}


def livefuse(*arguments: str) -> tuple[str, ...]:
    """Return a command line of livefuse."""
    return (sys.executable, "-m", "livefuse", *arguments)


@pytest.mark.parametrize(
    ("code", "peer"),
    [
        # A datagram socket that is connected sends nothing: nothing leaves this machine.
        ("s(2, 2).connect(('192.0.2.1', 4711))", Peer("192.0.2.1", 4711)),
        ("s(2, 2).sendto(b'', ('127.0.0.1', 53))", Peer("127.0.0.1", 53)),
        ("s(10, 2).connect(('::1', 4712))", Peer("::1", 4712)),
    ],
)
def test_the_guard_sees_what_is_dialled_by_a_child(tmp_path: Path, code: str, peer: Peer) -> None:
    child = (
        f"import socket, contextlib; s = socket.socket\nwith contextlib.suppress(OSError): {code}"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], timeout=9)"
    assert peer in watch(tmp_path, sys.executable, "-c", parent)


def test_a_drawn_face_is_swapped_and_enhanced_without_a_word_to_anybody(tmp_path: Path) -> None:
    """Every embedded network is loaded, the page and its streams are served, a file is written."""
    operations = "detect,align,identify,background,swap,beautify,enhance"
    arguments = ["--operations", operations, "--source-face", "avatar:robot", "--look", "natural"]
    peers = watch(
        tmp_path,
        *livefuse("run", "--from", "demo:", "--to", "a.mp4", "--for", "4", "--quiet", *arguments),
    )
    assert peers == set()
    assert (tmp_path / "a.mp4").stat().st_size > 10_000


def test_a_job_dials_its_target_and_nobody_else(tmp_path: Path, nginx: NginxRtmp) -> None:
    peers = watch(
        tmp_path,
        *livefuse("run", "--from", "demo:", "--to", nginx.url("guard"), "--for", "4", "--quiet"),
    )
    assert peers == {Peer(HOST, nginx.port)}


@pytest.mark.parametrize(
    "arguments",
    [("doctor",), ("models", "list"), ("looks", "list"), ("faces", "list"), ("--version",)],
)
def test_commands_ask_nobody(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert watch(tmp_path, *livefuse(*arguments)) == set()


def test_a_daemon_and_its_workers_ask_nobody(tmp_path: Path) -> None:
    """`livefuse serve` for a while, networks loaded by a worker that waits for a job."""
    settings = ("http.port=0", f"safety.folder={tmp_path / 'safety'}")
    words = [word for setting in settings for word in ("--set", setting)]
    # In the foreground: else it tells the whole group too, and twice is "at once".
    limited = ("timeout", "--foreground", "--preserve-status", "--signal=TERM", "20")
    assert watch(tmp_path, *limited, *livefuse("serve", *words)) == set()
    log = (tmp_path / "safety" / "audit" / "audit.jsonl").read_text()
    assert "daemon.started" in log
    assert "daemon.stopped" in log


@pytest.mark.timeout(180)
def test_a_job_of_a_daemon_dials_its_target_and_nobody_else(
    tmp_path: Path, nginx: NginxRtmp
) -> None:
    """Its worker, and what that starts, are watched as well."""
    require("strace")
    settings = (
        "http.port=0", "http.require_key=false", "access.restrict=off", "daemon.spare_workers=0",
        "rtmp.backoff_max_ms=400",
    )  # fmt: skip
    words = [word for setting in settings for word in ("--set", setting)]
    trace, said = tmp_path / "trace", tmp_path / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            trace_calls(trace, *livefuse("serve", *words)), cwd=tmp_path, env=be_alone(tmp_path),
            stdout=out, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        wait_until(lambda: b"serves at http" in said.read_bytes(), 60, "the daemon")
        address = re.findall(r"serves at (http://\S+)", said.read_text())[0]
        spec = {"source": "demo:?size=320x180", "targets": [nginx.url("daemon-guard")]}
        body = json.dumps({"spec": spec, "start": True}).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}/v1/jobs", data=body, headers=kind)
        with urllib.request.urlopen(request, timeout=90) as answer:
            assert answer.status == 201
        wait_until(lambda: nginx.is_publishing("daemon-guard"), 60, "its stream")
    finally:
        for traced in psutil.Process(process.pid).children():
            traced.terminate()
        process.wait(30)
    assert read_peers(trace) == {Peer(HOST, nginx.port)}
