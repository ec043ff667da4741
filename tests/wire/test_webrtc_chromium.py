"""A real Chromium sends its camera by WHIP and watches by WHEP."""

from __future__ import annotations

import itertools
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from livefuse.rtc import peer as rtc_peer
from livefuse.rtc.patches import PLAYOUT_DELAY
from tests.browser import CHROMIUM, ORIGIN, browsing, serve_text, write_camera_clip
from tests.webrtc import wait_for
from tests.wire.servers import require
from tests.wire.test_webrtc import get_input_state, get_whep, get_whip, running

pytestmark = pytest.mark.wire
PAGE = Path(__file__).parents[1] / "webrtc_page.html"


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """A browser whose camera shows a face and a counter, 640x360."""
    require(CHROMIUM)
    clip = write_camera_clip(tmp_path_factory.mktemp("camera") / "face.y4m", 640, 360)
    with browsing(clip) as browser:
        yield browser


def open_page(context, job):
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda request: page.faults.append(request.url) if is_far(request) else None)
    page.expose_function("answerWhip", lambda sdp: get_whip(job).answer(sdp).answer_sdp)
    page.expose_function("answerWhep", lambda sdp: get_whep(job).answer(sdp).answer_sdp)
    serve_text(page, PAGE.read_text("utf-8"))
    return page


def is_far(request):
    return urlsplit(request.url).hostname != urlsplit(ORIGIN).hostname


def wait_on(page, condition, timeout_s, what):
    """Wait while the page goes on living."""
    wait_for(lambda: page.wait_for_timeout(50) or condition(), timeout_s, what)


def list_seen(page, name):
    """Return the counters that `name` (raw, out) has shown, each once in a row, and its sizes."""
    rows = page.evaluate(f"seen.{name}")
    counters = [counter for counter, _ in itertools.groupby(row[0] for row in rows)]
    return counters, {(row[2], row[3]) for row in rows}


def test_a_camera_goes_in_and_comes_out(context):
    """Pictures read back from the page: its camera's counter goes on in what it watches."""
    with running("whip:", "ingest.canvas=640x360") as job:
        page = open_page(context, job)
        page.evaluate("publish(640, 360)")
        wait_on(page, lambda: job.state == "running", 20, "the job")
        page.evaluate("watch()")
        wait_on(page, lambda: len(page.evaluate("seen.out")) > 40, 20, "pictures")
        counters, sizes = list_seen(page, "out")
        known = [counter for counter in counters if counter is not None]
        assert sizes == {(640, 360)}
        assert len(known) > 0.9 * len(counters)
        steps = [(b - a) % 60 for a, b in itertools.pairwise(known)]
        assert sum(0 < step < 30 for step in steps) > 0.9 * len(steps)
        coded = page.evaluate("readStats(viewer, 'codec')")
        assert {"video/H264", "audio/opus"} == {codec["mimeType"] for codec in coded}
        (sound,) = [
            one
            for one in page.evaluate("readStats(viewer, 'inbound-rtp')")
            if one["kind"] == "audio"
        ]
        assert sound["packetsReceived"] > 20
        # Agreed on by both; that it is obeyed is measured (webrtc_latency in scripts/bench).
        assert PLAYOUT_DELAY in page.evaluate("viewer.remoteDescription.sdp")
        page.evaluate("hangUp()")
        wait_on(page, lambda: get_input_state(job) != "live", 10, "the camera is gone")
        assert page.faults == []
        page.close()


def test_a_viewer_whose_network_changes_restarts_ice(context):
    with running("test:?size=320x180&fps=30&audio=0") as job:
        page = open_page(context, job)
        page.evaluate("watch(false)")
        wait_on(page, lambda: len(page.evaluate("seen.out")) > 5, 20, "pictures")
        (viewer,) = get_whep(job)._viewers
        page.expose_function("patchSession", lambda body: viewer.session.patch(body, "*"))
        name = page.evaluate("restartIce(viewer)")
        agent = viewer.session._peer._restarts
        wait_on(page, lambda: agent._active.local_username == name, 10, "the other path")
        seen = len(page.evaluate("seen.out"))
        wait_on(page, lambda: len(page.evaluate("seen.out")) > seen + 20, 10, "pictures")
        assert page.faults == []
        page.close()


def test_a_page_that_is_reloaded_sends_again(context, monkeypatch):
    monkeypatch.setattr(rtc_peer, "SILENCE_S", 4.0)
    with running("whip:", "ingest.canvas=640x360") as job:
        page = open_page(context, job)
        page.evaluate("publish(640, 360, false)")
        wait_on(page, lambda: job.state == "running", 20, "the job")
        page.reload()
        wait_on(page, lambda: getattr(get_whip(job)._session, "silent_s", 9) > 3, 10, "silence")
        page.evaluate("publish(640, 360, false)")
        before = job.statistics().frames_in
        wait_on(page, lambda: job.statistics().frames_in > before + 10, 15, "pictures again")
        page.evaluate("watch(false)")
        wait_on(page, lambda: len(page.evaluate("seen.out")) > 10, 15, "pictures")
        assert page.faults == []
        page.close()
        wait_for(lambda: not get_whep(job).status().viewers, 25, "the viewer is collected")
