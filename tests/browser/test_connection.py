"""What the page says when livefuse is away or does not let it in, and how it comes back."""

from __future__ import annotations

import pytest

from tests.apis import KEY, RunningApi
from tests.wire.servers import find_free_port

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]
_AWAY = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY", "ERR_CONNECTION_RESET")
_DRAWN = {"id": "main", "spec": {"source": "demo:?size=320x180", "operations": ["detect", "blur"]}}


def test_without_the_key(visit, api, drawn):
    """A wrong key: a sentence and a form; the right one opens the page and is kept for a reload."""
    visitor = visit(f"{api.server.base_url}/?key=wrong", camera=False, expects=("status of 401",))
    visitor.wait_text("#key-form", "needs the key of livefuse")
    said = visitor.wait_text("#problem", "key is missing or wrong")
    assert "use the address that was printed" in said.lower()
    assert not visitor.find("#cover").is_visible()
    visitor.find("#key").fill(KEY)
    visitor.page.keyboard.press("Enter")
    visitor.wait_playing()
    assert KEY not in visitor.page.url
    visitor.page.reload()
    visitor.wait_playing()
    assert visitor.read("#key-form") == ""


def test_livefuse_goes_and_comes_back(visit, tmp_path):
    port = find_free_port()
    settings = (f"http.port={port}", "governor.enabled=false")
    with RunningApi(tmp_path, *settings) as first:
        first.ask("POST", "/v1/jobs", {**_DRAWN, "start": True})
        visitor = visit(first.server.get_url("/"), camera=False, expects=_AWAY)
        visitor.wait_playing()
    visitor.wait_text("#lost", "The connection to livefuse is lost. It is tried again.")
    visitor.find("#cover").click()
    visitor.wait_text("#problem", "There is no answer from livefuse")
    with RunningApi(tmp_path, *settings) as second:
        second.ask("POST", "/v1/jobs", {**_DRAWN, "start": True})
        visitor.wait(lambda: visitor.read("#lost") == "", "it is back")
        visitor.wait_playing()
        assert visitor.wait_text("#health", "Online") == "Online"
        visitor.page.goto("about:blank")


def test_the_camera_comes_back_by_itself(visit, tmp_path):
    port = find_free_port()
    settings = (f"http.port={port}", "governor.enabled=false")
    with RunningApi(tmp_path, *settings) as first:
        visitor = visit(first.server.get_url("/"), expects=(*_AWAY, "status of 404"))
        visitor.find("#start-camera").click()
        visitor.wait_playing()
    visitor.wait_text("#lost", "lost")
    with RunningApi(tmp_path, *settings) as second:
        visitor.wait(
            lambda: any(j.job_id == "camera" for j in second.manager.list_managed()), "again", 60
        )
        visitor.wait(lambda: visitor.read("#lost") == "", "it is back")
        visitor.wait_playing()
        assert visitor.find("#stop-camera").is_visible()
        visitor.page.goto("about:blank")


def test_a_page_with_only_the_picture(visit, api, drawn):
    """For OBS's browser source; it takes its time until there is something to see."""
    url = f"{api.server.base_url}/?view=screen&job=main&key={KEY}"
    visitor = visit(url, camera=False)
    visitor.wait_playing()
    assert visitor.find("button").count() == 0
    assert visitor.page.evaluate(
        "[innerWidth, innerHeight].join() === [after.clientWidth, after.clientHeight].join()"
    )


def test_without_webrtc(visit, api, drawn):
    """A browser that cannot: the sentence names an address that players take."""
    visitor = visit(camera=False, init="delete window.RTCPeerConnection")
    said = visitor.wait_text("#no-viewer", "WebRTC")
    assert f"{api.server.base_url}/v1/jobs/main/live.flv?key={KEY}" in said


# As Firefox is before it has fetched OpenH264.
_ONLY_VP8 = """
const { addTransceiver } = RTCPeerConnection.prototype;
RTCPeerConnection.prototype.addTransceiver = function (what, options) {
  const made = addTransceiver.call(this, what, options);
  const known = RTCRtpReceiver.getCapabilities("video").codecs;
  const wanted = known.filter((codec) => codec.mimeType === "video/VP8");
  if (what === "video") made.setCodecPreferences(wanted);
  return made;
};
"""


def test_without_h264(visit, api, drawn):
    """Said at once, in whole sentences, and left standing; it is not asked for all the time."""
    visitor = visit(camera=False, init=_ONLY_VP8, expects=("status of 406",))
    said = visitor.wait_text("#no-viewer", "OpenH264")
    assert "in this browser: The stream is H.264, and the offer has only VP8. Use a" in said
    assert f". It can be watched in VLC or OBS at this address: {api.server.base_url}/v1" in said
    visitor.page.wait_for_timeout(4000)
    assert visitor.read("#no-viewer") == said
    assert visitor.read("#stage-said") == ""
    assert len([url for url in visitor.asked if url.endswith("/whep")]) == 1


def test_the_page_lets_in_nobody_else(visit, api, drawn):
    """The policy that the browser was given: nothing but this server, and no frame around it."""
    visitor = visit(camera=False, expects=("Content Security Policy", "violates"))
    refused = visitor.page.evaluate(
        """async () => {
          const told = [];
          const hear = (event) => told.push(event.effectiveDirective);
          document.addEventListener("securitypolicyviolation", hear);
          await fetch("http://127.0.0.2:9/").catch(() => {});
          document.head.append(Object.assign(document.createElement("script"), { text: "1" }));
          const image = new Image();
          image.src = "http://127.0.0.2:9/x.png";
          await new Promise((resolve) => setTimeout(resolve, 500));
          return told;
        }"""
    )
    assert {"connect-src", "script-src-elem", "img-src"} <= set(refused)
    visitor.asked.clear()  # those were asked for by this test
