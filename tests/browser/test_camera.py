"""The camera of a browser: sent by WHIP, filtered, watched by WHEP, on the page."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from tests.browser.faces import find_faces, is_covered

pytestmark = [pytest.mark.wire, pytest.mark.timeout(180)]
# From the click on: the change of the centre of the picture, seen frame by frame in the page.
_TIME_CHANGE = """([selector, limit]) => new Promise((resolve) => {
  const video = document.getElementById("after");
  const canvas = new OffscreenCanvas(16, 16);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const read = () => {
    const { videoWidth: w, videoHeight: h } = video;
    context.drawImage(video, w * 0.45, h * 0.25, w * 0.1, h * 0.3, 0, 0, 16, 16);
    return context.getImageData(0, 0, 16, 16).data;
  };
  const before = read();
  const started = performance.now();
  const look = () => {
    const now = read();
    let sum = 0;
    for (let i = 0; i < now.length; i += 4) sum += Math.abs(now[i] - before[i]);
    const waited = performance.now() - started;
    if (sum / 256 > limit || waited > 20000) resolve(waited);
    else video.requestVideoFrameCallback(look);
  };
  document.querySelector(selector).click();
  video.requestVideoFrameCallback(look);
})"""


def start_camera(visitor):
    visitor.find("#start-camera").click()
    visitor.wait(lambda: visitor.find("#stop-camera").is_visible(), "the camera is on")
    visitor.wait(lambda: visitor.find("#job").input_value() == "camera", "its job is looked at")
    visitor.wait_playing()


def count_viewers(api, job="camera"):
    status = api.ask("GET", f"/v1/jobs/{job}/status").value
    return sum(one["viewers"] for one in status["outputs"] if one["kind"] == "webrtc")


def get_face(visitor):
    raw = visitor.wait(lambda: visitor.picture("before"), "the raw picture")
    (box,) = find_faces(raw)
    return raw, box


def read_counters(visitor, many):
    """Return so many counters, each another than the one before; one that is not read is left."""
    counters = [visitor.wait(visitor.counter, "a counter")]
    while len(counters) < many:
        seen = visitor.wait(
            lambda: (now := visitor.counter()) not in {None, counters[-1]} and (now or 60),
            "the next",
        )
        counters.append(seen % 60)
    return counters


def wait_covered(visitor, raw, box, *, covered=True):
    def look():
        shown = visitor.picture()
        return shown is not None and is_covered(shown, raw, box) is covered

    visitor.wait(look, f"the face is {'covered' if covered else 'to be seen'}")


def test_one_press_and_the_face_is_covered(visit, empty):
    """Pictures read back from the page: the face is hidden, the counter in them goes on."""
    visitor = visit()
    visitor.wait_text("#stage-said", "Start your camera")
    visitor.find("#microphone").check()
    start_camera(visitor)
    raw, box = get_face(visitor)
    assert raw.shape == (180, 320, 3)
    shown = visitor.picture()
    assert shown.shape == raw.shape
    assert is_covered(shown, raw, box)
    counters = read_counters(visitor, 6)
    steps = [(b - a) % 60 for a, b in itertools.pairwise(counters)]
    assert all(0 < step < 40 for step in steps), counters
    # The split moves by keys; the card says what is done.
    visitor.find("#split").focus()
    for _ in range(5):
        visitor.page.keyboard.press("ArrowLeft")
    assert visitor.page.evaluate("stage.style.getPropertyValue('--split')") == "45%"
    assert visitor.find("#operation-blur").is_checked()

    # Sound is off until it is wanted.
    assert visitor.page.evaluate("after.muted") is True
    visitor.find("#sound").click()
    heard = "[after.muted, after.srcObject.getAudioTracks().length, sound.textContent]"
    assert visitor.page.evaluate(heard) == [False, 1, "Sound off"]

    # Another page watches; a page that goes takes its lines with it.
    second = visit(camera=False)
    second.wait_playing()
    assert second.read("#raw-note")
    visitor.wait(lambda: count_viewers(empty) == 2, "two viewers")
    second.page.close()
    visitor.wait(lambda: count_viewers(empty) == 1, "the one that closed is gone")
    visitor.find("#stop-camera").click()
    visitor.wait_text("#stage-said", "Start your camera")
    assert empty.ask("GET", "/v1/jobs").value == {"jobs": []}


def test_what_is_switched_is_seen_at_once(visit, empty, record_property):
    """From the click to the changed picture; covering hides everything."""
    # A page that is left hangs up twice: by its peers, and in so many words.
    visitor = visit(expects=(r"404 .*/v1/jobs/camera/wh[ie]p/",))
    start_camera(visitor)
    raw, box = get_face(visitor)
    wait_covered(visitor, raw, box)
    visitor.find("#operation-blur").click()
    wait_covered(visitor, raw, box, covered=False)
    visitor.find("#operation-blur").click()
    wait_covered(visitor, raw, box)
    times_ms = [visitor.page.evaluate(_TIME_CHANGE, ["#operation-blur", 4]) for _ in range(3)]
    record_property("switched_ms", [round(time_ms) for time_ms in times_ms])
    print(f"from the click to the picture: {[round(t) for t in times_ms]} ms")
    assert min(times_ms) < 500
    started = time.monotonic()
    visitor.find("#cover").click()
    visitor.wait_text("#stage-said", "Everything is covered")
    visitor.wait(lambda: np.std(visitor.picture()) < 0.8 * np.std(raw), "covered whole")
    assert visitor.find("#cover").get_attribute("aria-pressed") == "true"
    print(f"covered after {time.monotonic() - started:.1f} s")
    # A reload: the camera is let go, what is covered stays covered, until told otherwise.
    visitor.page.reload()
    visitor.wait(lambda: visitor.read("#cover") == "Show again", "still covered")
    start_camera(visitor)
    assert visitor.read("#cover") == "Show again"
    visitor.find("#cover").click()
    visitor.wait(lambda: visitor.counter() is not None, "to be seen again")


def test_the_camera_outlives_a_change_of_the_language(visit, empty):
    """The same track goes on being sent to the same job; what is refused is told in Chinese."""
    visitor = visit(expects=("status of 4",))
    start_camera(visitor)
    track = "before.srcObject.getVideoTracks()[0]"
    sent = visitor.page.evaluate(f"{track}.id")
    started = empty.ask("GET", "/v1/jobs/camera").value
    visitor.find("#language").click()
    visitor.wait_text("#stop-camera", "停止我的摄像头")
    assert visitor.page.evaluate(f"[{track}.id, {track}.readyState]") == [sent, "live"]
    visitor.wait_playing()
    assert visitor.wait(visitor.counter, "a counter") is not None
    now = empty.ask("GET", "/v1/jobs/camera").value
    assert [now["state"], now["spec"]] == [started["state"], started["spec"]]
    visitor.find("#tab-outputs").click()
    visitor.find("#target").fill("../elsewhere.mp4")
    visitor.find("#add-target").click()
    visitor.wait_text("#target-problem", "经 HTTP 要求的文件不能放在那里。")
    visitor.find("#tab-studio").click()
    visitor.find("#stop-camera").click()
    visitor.wait_text("#stage-said", "请启动摄像头")
    assert empty.ask("GET", "/v1/jobs").value == {"jobs": []}


def test_another_page_takes_over(visit, empty):
    """The one that had the camera job says so and lets its own camera go."""
    first = visit(expects=("status of 40",))
    start_camera(first)
    second = visit(expects=("status of 40",))
    start_camera(second)
    first.wait_text("#source-problem", "The connection of your camera was ended", 60)
    assert first.find("#start-camera").is_visible()
    assert second.find("#stop-camera").is_visible()
    first.wait_playing()  # now it watches the other's
    assert first.read("#raw-note")


def test_a_camera_that_is_refused(visit, empty):
    visitor = visit(camera=False)
    visitor.find("#start-camera").click()
    said = visitor.wait_text("#source-problem", "camera")
    assert said == (
        "The browser does not give the camera. "
        "Allow it beside the address bar, then press Start my camera again."
    )
    assert empty.ask("GET", "/v1/jobs").value == {"jobs": []}
    assert visitor.find("#start-camera").is_enabled()


def test_no_camera_away_from_localhost(visit, empty):
    """Browsers give none to plain http; the page says so before anybody presses anything."""
    visitor = visit(init="delete Navigator.prototype.mediaDevices")
    said = visitor.wait_text("#insecure", "localhost")
    assert f"http://127.0.0.1:{empty.server.port}" in said
    visitor.find("#start-camera").click()
    visitor.wait_text("#source-problem", "Browsers give a camera to https and localhost only")
