"""noop_latency: RTMP to RTMP at 720p30, end to end, against ffmpeg with low-latency flags.

A publisher burns a counter into each picture and notes when it sent it; a reader decodes the far
end and notes when it saw it. Both relays take the same stream in turn; the same two ends are part
of both figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from livefuse.config import EncodeConfig
from tests.bench.harness import LIVEFUSE, ROOT, Result, bench, median
from tests.bench.hold import _end
from tests.bench.noop import ffmpeg_options
from tests.wire.servers import NginxRtmp

if TYPE_CHECKING:
    from pathlib import Path

_ROUNDS = 3
_SECONDS = 12


@bench("noop_latency")
def measure_latency(folder: Path) -> dict[str, Result]:
    """p50 from the publisher's hand to the reader's eye, ours over ffmpeg's."""
    p50: dict[str, list[float]] = {"livefuse": [], "ffmpeg": []}
    p95: dict[str, list[float]] = {"livefuse": [], "ffmpeg": []}
    sent = folder / "sent.jsonl"
    with NginxRtmp() as server:
        seconds = 2 * _ROUNDS * (_SECONDS + 12)
        publisher = _spawn_end("publish", server.url("in"), sent, seconds)
        try:
            while not server.is_publishing("in"):
                time.sleep(0.1)
            for turn in range(_ROUNDS):
                for who in ("livefuse", "ffmpeg"):
                    seen = folder / f"{who}{turn}.jsonl"
                    url = server.url(f"out-{who}-{turn}")
                    _relay(who, server, url, seen)
                    delays = _match(sent, seen)
                    p50[who].append(float(np.percentile(delays, 50)))
                    p95[who].append(float(np.percentile(delays, 95)))
        finally:
            _end(publisher)
    ratios = [a / b for a, b in zip(p50["livefuse"], p50["ffmpeg"], strict=True)]
    detail = {f"{who}_p50_ms": round(median(values), 1) for who, values in p50.items()}
    detail |= {f"{who}_p95_ms": round(median(values), 1) for who, values in p95.items()}
    return {"noop_latency": Result(median(ratios), "ratio", "<= 1.1", detail)}


def _relay(who: str, server: NginxRtmp, url: str, seen: Path) -> None:
    source = server.url("in")
    encode = ffmpeg_options(EncodeConfig(), EncodeConfig().threads)
    commands = {
        "livefuse": [*LIVEFUSE, "run", "--from", source, "--to", url, "--operations", "none",
                     "--quiet", "--set", "http.enabled=false"],
        "ffmpeg": ["ffmpeg", "-v", "error", "-fflags", "nobuffer", "-flags", "low_delay",
                   "-probesize", "200000", "-analyzeduration", "500000", "-threads", "1",
                   "-i", source, *encode, "-flush_packets", "1",
                   "-f", "flv", url],
    }  # fmt: skip
    relay = subprocess.Popen(commands[who], cwd=ROOT)
    try:
        deadline = time.monotonic() + 20
        while not server.is_publishing(url.rpartition("/")[2]):
            if time.monotonic() > deadline or relay.poll() is not None:
                raise RuntimeError(f"{who} does not publish")
            time.sleep(0.1)
        time.sleep(2)
        reader = _spawn_end("read", url, seen, _SECONDS)
        reader.wait(_SECONDS + 30)
    finally:
        _end(relay)


def _spawn_end(role: str, url: str, path: Path, seconds: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.bench.latency_ends", role, url, str(path), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT)


def _match(sent: Path, seen: Path) -> list[float]:
    """Return the delays in ms of the pictures that both ends saw, the first second left out."""
    times = {row[0]: row[1] for row in map(json.loads, sent.read_text("utf-8").splitlines())}
    rows = [json.loads(line) for line in seen.read_text("utf-8").splitlines()]
    delays = [(at - times[n]) / 1e6 for n, at in rows[30:] if n in times]
    if len(delays) < 100:
        raise RuntimeError(f"only {len(delays)} of {len(rows)} pictures could be matched")
    return delays
