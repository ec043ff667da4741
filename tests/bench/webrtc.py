"""webrtc_latency: a camera in Chromium to the picture that comes back, against aiortc's own way.

The camera is a clip with a counter and a face, 720p30. The page reads the counter off both videos,
its camera's and the one that comes back, and notes when each was shown: the difference is what a
person sees between the two. aiortc's way is that of its video-transform example: decode, to an
array, back, encode again for each peer. Both are measured in turn by one browser, on loopback.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
_LONGEST_MS = 1500
_NAMES = ("webrtc_latency", "webrtc_latency_p95", "webrtc_blur", "webrtc_aiortc")


class Measured(NamedTuple):
    """What a page has seen: delays in ms, and how wide its pictures were in px."""

    delays_ms: list[float]
    width_px: int

    def percentile(self, share: float) -> float:
        """Return a percentile of the delays in ms."""
        return float(np.percentile(self.delays_ms, share))


@bench(*_NAMES)
def measure_webrtc(folder: Path) -> dict[str, Result]:
    """p50 and p95 from glass to glass; ours without operations and with blur; over aiortc's."""
    clip = write_camera_clip(folder / "camera.y4m", WIDTH, HEIGHT, FRAMES)
    ways: dict[str, Callable[[Any], Measured]] = {
        "livefuse": lambda page: _through_livefuse(page, ()),
        "aiortc": _through_aiortc,
        "blur": lambda page: _through_livefuse(page, ("detect", "blur")),
    }
    found: dict[str, list[Measured]] = {name: [] for name in ways}
    with browsing(clip) as context:
        for _ in range(_ROUNDS):
            for name, way in ways.items():
                page = context.new_page()
                found[name].append(way(page))
                page.close()
    p50 = {name: [one.percentile(50) for one in rounds] for name, rounds in found.items()}
    p95 = {name: [one.percentile(95) for one in rounds] for name, rounds in found.items()}
    ratios = [ours / theirs for ours, theirs in zip(p50["livefuse"], p50["aiortc"], strict=True)]
    detail = {f"{name}_p50_ms": round(median(values), 1) for name, values in p50.items()}
    detail |= {f"{name}_p95_ms": round(median(values), 1) for name, values in p95.items()}
    for name, rounds in found.items():
        detail[f"{name}_pictures"] = sum(len(one.delays_ms) for one in rounds)
        detail[f"{name}_width_px"] = min(one.width_px for one in rounds)
    return {
        "webrtc_latency": Result(median(p50["livefuse"]), "ms", "<= 35", detail),
        "webrtc_latency_p95": Result(median(p95["livefuse"]), "ms", "<= 60"),
        "webrtc_blur": Result(median(p50["blur"]), "ms", "<= 60"),
        "webrtc_aiortc": Result(median(ratios), "ratio", "<= 0.5"),
    }


def _through_livefuse(page: Any, operations: tuple[str, ...]) -> Measured:
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


def _through_aiortc(page: Any) -> Measured:
    server = _TransformServer()
    page.expose_function("answerExchange", server.answer)
    serve_text(page, _PAGE.read_text("utf-8"))
    page.evaluate(f"exchange({WIDTH}, {HEIGHT})")
    delays = _measure(page)
    page.evaluate("hangUp()")
    server.close()
    return delays


def _measure(page: Any) -> Measured:
    """Return the delays in ms of the counters that both videos have shown, and the width seen.

    Where a machine is short of time Chromium sends smaller pictures, which are quicker.
    """
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
            delay_ms = at_ms - started.pop(counter)
            # The clip begins again after 2 s: what is later belongs to another round.
            delays += [delay_ms] if delay_ms < _LONGEST_MS else []
    if len(delays) < 5:
        raise RuntimeError(f"only {len(delays)} pictures of {len(shown['out'])} could be matched")
    return Measured(delays, int(median([row[2] for row in shown["out"]])))


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
