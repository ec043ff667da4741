"""webrtc_latency: a camera in Chromium to the picture that comes back, against aiortc's own way.

The camera is a clip with a counter and a face, 720p30. The page reads the counter off both videos,
its camera's and the one that comes back, and notes when each was shown: the difference is what a
person sees between the two. aiortc's way is that of its video-transform example: decode, to an
array, back, encode again for each peer. Both are measured in turn by one browser, on loopback.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.contrib.media import MediaRelay
from aiortc.mediastreams import MediaStreamTrack

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.rtc import patches
from livefuse.rtc.loop import RtcLoop
from livefuse.spec import JobSpec
from livefuse.workers.local import Worker
from tests.bench.harness import Result, bench, median
from tests.browser import browsing, serve_text, write_camera_clip

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH, HEIGHT, FRAMES = 1280, 720, 60
LOOPBACK = "127.0.0.1"
_ROUNDS = 2
_WARM_MS, _MEASURE_MS = 6000, 12_000
_PAGE = Path(__file__).parents[1] / "webrtc_page.html"
_NAMES = ("webrtc_latency", "webrtc_latency_p95", "webrtc_blur", "webrtc_aiortc")


@bench(*_NAMES)
def measure_webrtc(folder: Path) -> dict[str, Result]:
    """p50 and p95 from glass to glass; ours without operations and with blur; over aiortc's."""
    clip = write_camera_clip(folder / "camera.y4m", WIDTH, HEIGHT, FRAMES)
    ways: dict[str, Callable[[Any], list[float]]] = {
        "livefuse": lambda page: _through_livefuse(page, ()),
        "aiortc": _through_aiortc,
        "blur": lambda page: _through_livefuse(page, ("detect", "blur")),
    }
    found: dict[str, list[list[float]]] = {name: [] for name in ways}
    with browsing(clip) as context:
        for _ in range(_ROUNDS):
            for name, way in ways.items():
                page = context.new_page()
                found[name].append(way(page))
                page.close()
    p50 = {name: [float(np.percentile(d, 50)) for d in rounds] for name, rounds in found.items()}
    p95 = {name: [float(np.percentile(d, 95)) for d in rounds] for name, rounds in found.items()}
    ratios = [ours / theirs for ours, theirs in zip(p50["livefuse"], p50["aiortc"], strict=True)]
    detail = {f"{name}_p50_ms": round(median(values), 1) for name, values in p50.items()}
    detail |= {f"{name}_p95_ms": round(median(values), 1) for name, values in p95.items()}
    pictures = {f"{name}_pictures": sum(map(len, rounds)) for name, rounds in found.items()}
    return {
        "webrtc_latency": Result(median(p50["livefuse"]), "ms", "<= 35", detail | pictures),
        "webrtc_latency_p95": Result(median(p95["livefuse"]), "ms", "<= 60"),
        "webrtc_blur": Result(median(p50["blur"]), "ms", "<= 60"),
        "webrtc_aiortc": Result(median(ratios), "ratio", "<= 0.5"),
    }


def _through_livefuse(page: Any, operations: tuple[str, ...]) -> list[float]:
    settings = (f'webrtc.addresses=["{LOOPBACK}"]', f"ingest.canvas={WIDTH}x{HEIGHT}")
    worker = Worker(load_config(settings=settings), SystemClock())
    job = worker.add_job("bench", JobSpec("whip:", (), operations, mode="live"))
    job.start()
    try:
        whip, whep = job.get_peers("whip"), job.get_peers("whep")
        page.expose_function("answerWhip", lambda sdp: whip.answer(sdp).answer_sdp)
        page.expose_function("answerWhep", lambda sdp: whep.answer(sdp).answer_sdp)
        serve_text(page, _PAGE.read_text("utf-8"))
        page.evaluate(f"publish({WIDTH}, {HEIGHT}, false)")
        page.evaluate("watch(false)")
        delays = _measure(page)
        page.evaluate("hangUp()")
    finally:
        job.stop(5)
    return delays


def _through_aiortc(page: Any) -> list[float]:
    server = _TransformServer()
    page.expose_function("answerExchange", server.answer)
    serve_text(page, _PAGE.read_text("utf-8"))
    page.evaluate(f"exchange({WIDTH}, {HEIGHT})")
    delays = _measure(page)
    page.evaluate("hangUp()")
    server.close()
    return delays


def _measure(page: Any) -> list[float]:
    """Return the delays in ms of the counters that both videos have shown."""
    page.wait_for_timeout(_WARM_MS)
    page.evaluate("seen.raw = [], seen.out = []")
    page.wait_for_timeout(_MEASURE_MS)
    shown = {name: page.evaluate(f"seen.{name}") for name in ("raw", "out")}
    delays: list[float] = []
    started: dict[int, float] = {}
    events = [(row[1], name, row[0]) for name, rows in shown.items() for row in rows]
    for at_ms, name, counter in sorted(events):
        if counter is None:
            continue
        if name == "raw":
            started[counter] = at_ms
        elif counter in started:
            delays.append(at_ms - started.pop(counter))
    if len(delays) < 5:
        raise RuntimeError(f"only {len(delays)} pictures of {len(shown['out'])} could be matched")
    return delays


class _Transform(MediaStreamTrack):
    """What aiortc's example does with each picture, without an effect."""

    kind = "video"

    def __init__(self, track: Any) -> None:
        super().__init__()
        self._track = track

    async def recv(self) -> av.VideoFrame:
        frame = await self._track.recv()
        picture = av.VideoFrame.from_ndarray(frame.to_ndarray(format="bgr24"), format="bgr24")
        picture.pts, picture.time_base = frame.pts, frame.time_base
        return picture


class _TransformServer:
    """aiortc as it comes, but for the loopback address."""

    def __init__(self) -> None:
        self._loop = RtcLoop()
        self._connection: Any = None

    def answer(self, offer_sdp: str) -> str:
        return self._loop.call(self._answer(offer_sdp))

    def close(self) -> None:
        self._loop.call(self._connection.close())

    async def _answer(self, offer_sdp: str) -> str:
        connection = self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        relay = MediaRelay()

        def take(track: Any) -> None:
            connection.addTrack(_Transform(relay.subscribe(track)))

        connection.on("track", take)
        await connection.setRemoteDescription(RTCSessionDescription(offer_sdp, "offer"))
        for transceiver in connection.getTransceivers():
            agent = transceiver.receiver.transport.transport._connection
            patches.limit_gathering(agent, [LOOPBACK], 0.3)
        await connection.setLocalDescription(await connection.createAnswer())
        return str(connection.localDescription.sdp)
