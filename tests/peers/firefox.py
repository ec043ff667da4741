"""The page in Firefox: `python -m tests.peers.firefox`.

A Firefox that has not fetched OpenH264 yet sends VP8 and can watch nothing by WebRTC; the page must
say so. One that has H.264 must show what comes back.
"""

from __future__ import annotations

import base64
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2

from tests.browser.faces import find_faces, is_covered
from tests.faces import create_face_frame, read_bgr
from tests.peers.firefox_link import Firefox, Tab
from tests.peers.programs import Livefuse, need
from tests.peers.report import Report, run

SIZE = (640, 360)
# A camera that shows a face which goes to and fro.
_CAMERA = """() => {
  const devices = navigator.mediaDevices;
  if (!devices) return;
  const real = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async ({ audio }) => {
    const image = new Image();
    image.src = "data:image/jpeg;base64,PICTURE";
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    setInterval(() => context.drawImage(image, 20 * Math.sin(performance.now() / 700), 0), 33);
    const stream = canvas.captureStream(30);
    const sound = audio ? (await real({ audio: true })).getTracks() : [];
    for (const track of sound) stream.addTrack(track);
    return stream;
  };
}"""
_CODECS = "RTCRtpReceiver.getCapabilities('video').codecs.map((one) => one.mimeType)"
_FAR = "performance.getEntries().map((one) => one.name).filter((one) => /^https?:/.test(one))"


def main(report: Report) -> None:
    """Open the page that a job prints, and use it."""
    need("firefox-esr")
    settings = ("http.port=0", 'webrtc.addresses=["127.0.0.1"]', "ingest.canvas=640x360")
    options = [part for setting in settings for part in ("--set", setting)]
    source = f"demo:?size={SIZE[0]}x{SIZE[1]}"
    picture = read_bgr(create_face_frame(110, SIZE))
    jpeg = base64.b64encode(cv2.imencode(".jpg", picture)[1].tobytes()).decode()
    with (
        tempfile.TemporaryDirectory(prefix="livefuse-firefox-") as folder,
        Livefuse(Path(folder), ["--from", source, *options]) as job,
        Firefox() as firefox,
        Tab(firefox, _CAMERA.replace("PICTURE", jpeg)) as tab,
    ):
        tab.go(job.page)
        codecs = tab.run(_CODECS)
        report.say(f"Firefox {tab.version}: {', '.join(codecs)}")
        has_h264 = "video/H264" in codecs
        look(report, tab, has_h264=has_h264)
        send(report, tab, job, has_h264=has_h264)
        leave(report, tab, job)
        report.check(not tab.complaints, "the console has nothing to say", tab.complaints)


def look(report: Report, tab: Tab, *, has_h264: bool) -> None:
    """See the three views, and what is said of a picture that cannot be shown."""
    report.check(
        tab.wait("document.getElementById('health').innerText.includes('Online')"), "online"
    )
    if has_h264:
        report.check(is_playing(tab), "the job's picture plays")
    else:
        report.check(tab.wait("document.getElementById('no-viewer').checkVisibility()"), "told why")
        report.say(tab.read("#no-viewer"))
    report.keep("studio", tab.shoot())
    for name in ("monitor", "outputs"):
        tab.click(f"#tab-{name}")
        time.sleep(1)
        report.keep(name, tab.shoot())
    tab.click("#tab-studio")


def send(report: Report, tab: Tab, job: Livefuse, *, has_h264: bool) -> None:
    """Press Start my camera; the job gets pictures, and they come back with the face covered."""
    tab.click("#microphone")
    tab.click("#start-camera")
    is_on = tab.wait("document.getElementById('stop-camera').checkVisibility()")
    report.check(is_on, "the camera is on", tab.read("#source-problem"))
    figures: dict[str, Any] = {}

    def has_frames() -> bool:
        figures.update(json.loads(job.get("status", "camera")))
        return int(figures["frames_out"]) > 30

    began = time.monotonic()
    while not has_frames() and time.monotonic() - began < 90:
        time.sleep(0.5)
    media = figures.get("media", {})
    report.check(figures["frames_out"] > 30, "its pictures arrive", media)
    report.say(f"{figures['fps_in']:.1f} fps in, {figures['fps_out']:.1f} out, {figures['counts']}")
    shown = job.take_snapshot("camera")
    raw = tab.picture("before")
    report.keep("snapshot", shown)
    if report.check(raw is not None, "the picture before is shown") and raw is not None:
        boxes = find_faces(raw)
        report.check(boxes and all(is_covered(shown, raw, b) for b in boxes), "covered", boxes)
    if has_h264:
        report.check(is_playing(tab), "the picture after plays")
        after = tab.picture("after")
        if report.check(after is not None, "the picture after is shown") and after is not None:
            report.keep("after", after)
            report.check(not find_faces(after), "with no face to be seen", find_faces(after))
    else:
        report.check(tab.wait("document.getElementById('no-viewer').checkVisibility()"), "told why")
        report.say(tab.read("#no-viewer"))
    report.keep("camera", tab.shoot())


def leave(report: Report, tab: Tab, job: Livefuse) -> None:
    """Stop the camera: the drawn picture comes back. Nobody else was asked for anything."""
    tab.click("#stop-camera")
    report.check(
        tab.wait("document.getElementById('start-camera').checkVisibility()"), "camera off"
    )
    report.check(tab.wait("document.getElementById('job').value === 'main'"), "the demo is back")
    far = [url for url in tab.run(_FAR) if not url.startswith(job.base)]
    report.check(not far, "nobody else was contacted by the page", far)


def is_playing(tab: Tab) -> bool:
    """Wait until pictures come, one after the other."""
    clock = "(document.getElementById('after').srcObject ? after.currentTime : 0)"
    if not tab.wait(f"{clock} > 0"):
        return False
    first = tab.run(clock)
    return tab.wait(f"{clock} > {first} + 0.3")


if __name__ == "__main__":
    run("firefox", main)
