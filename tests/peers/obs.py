"""OBS Studio before and behind livefuse: `python -m tests.peers.obs [watch] [push]`.

watch   a Media Source plays live.flv of `livefuse run --from demo:` (README, OBS in five lines).
push    OBS streams to `livefuse run --from listen:rtmp://...`, stops, and streams again.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import cv2
import numpy as np

from livefuse.frame import create_frame
from livefuse.ingest.scene.drawing import read_counter
from livefuse.ingest.scene.talking_head import TalkingHead
from tests.browser.faces import find_faces, is_covered
from tests.faces import ASTRONAUT, read_bgr
from tests.measure import Recording, find_beeps, measure_av_offsets_ms, record
from tests.media import make_clip
from tests.peers.obs_link import FPS, SIZE, Link, Obs
from tests.peers.programs import Display, Livefuse, need, wait_some
from tests.peers.report import Report, run
from tests.wire.servers import HOST, find_free_port
from tests.wire.test_ingest_listen import is_listening

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

SCENE = "Scene"
LOOKS = 8
STREAM_S = 20.0
AGAIN_S = 8.0
PAUSE_S = 3.0
PLACE = {"positionX": 300, "positionY": 60, "scaleX": 0.55, "scaleY": 0.55}


def main(report: Report) -> None:
    """Do both, or the one that the command line names."""
    need("obs", "Xvfb")
    wanted = sys.argv[1:] or ["watch", "push"]
    with (
        tempfile.TemporaryDirectory(prefix="livefuse-obs-") as name,
        Display() as display,
        Obs(display) as obs,
        obs.connect() as link,
    ):
        tell_version(report, link)
        for word in wanted:
            {"watch": watch, "push": push}[word](report, link, display, Path(name))


def tell_version(report: Report, link: Link) -> None:
    """Say which OBS this is, and whether it has a browser."""
    versions = link.ask("GetVersion")
    report.say(f"OBS {versions['obsVersion']}, obs-websocket {versions['obsWebSocketVersion']}")
    kinds = link.ask("GetInputKindList")["inputKinds"]
    report.say(f"Browser Source: {'there' if 'browser_source' in kinds else 'not in this OBS'}")
    link.ask("SetCurrentProgramScene", sceneName=SCENE)


def watch(report: Report, link: Link, display: Display, folder: Path) -> None:
    """Let a Media Source play a job, and look at it."""
    source = f"demo:?size={SIZE[0]}x{SIZE[1]}&sync=1"
    with Livefuse(folder, ["--from", source, "--set", "http.port=0"]) as job:
        settings = {"is_local_file": False, "input": job.link("live.flv"), "input_format": "flv"}
        link.ask(
            "CreateInput",
            sceneName=SCENE,
            inputName="livefuse",
            inputKind="ffmpeg_source",
            inputSettings=settings,
        )
        began = time.monotonic()
        is_there = wait_some(lambda: read_number(link.shoot("livefuse")) is not None, 20)
        report.check(is_there, "a Media Source shows live.flv", f"{time.monotonic() - began:.1f} s")
        time.sleep(2)
        judge_watched(report, link, job)
        report.keep("watching", display.shoot())
        counts = link.ask("GetStats")
        report.say(f"OBS: {counts['activeFps']:.1f} fps, {counts['cpuUsage']:.0f} % of a core")
        link.ask("RemoveInput", inputName="livefuse")
        report.check(job.end() == 0, "livefuse ends as it should")


def judge_watched(report: Report, link: Link, job: Livefuse) -> None:
    """Compare what OBS shows with what was drawn and with what livefuse shows at that moment."""
    numbers: list[int] = []
    delays_ms: list[float] = []
    covered = 0
    for _ in range(LOOKS):
        shown = link.shoot("livefuse")
        number = read_number(shown)
        now = read_number(job.take_snapshot())
        if shown is None or number is None or now is None:
            continue
        numbers.append(number)
        delays_ms.append((now - number) * 1000 / FPS)
        raw = draw_head(number)
        boxes = find_faces(raw)
        covered += bool(boxes) and all(is_covered(shown, raw, box) for box in boxes)
        report.keep("media_source", shown)
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    report.check(len(numbers) == LOOKS, "each look sees a picture", f"{len(numbers)} of {LOOKS}")
    report.check(all(step > 0 for step in steps), "the picture moves on", numbers)
    report.check(covered == len(numbers) > 0, "the face is covered", f"{covered} of {len(numbers)}")
    report.say(f"behind livefuse's own picture: {np.median(delays_ms):.0f} ms (median)")


def push(report: Report, link: Link, display: Display, folder: Path) -> None:
    """Let OBS stream to livefuse, twice, and look at the file."""
    scene = make_scene(link, folder)
    port, out = find_free_port(), folder / "pushed.mp4"
    server = {"server": f"rtmp://{HOST}:{port}/live", "key": "key", "use_auth": False}
    link.ask(
        "SetStreamServiceSettings",
        streamServiceType="rtmp_custom",
        streamServiceSettings=server,
    )
    source = f"listen:rtmp://{HOST}:{port}/live/key"
    with Livefuse(folder, ["--from", source, "--to", str(out), "--set", "http.port=0"]) as job:
        wait_some(lambda: is_listening(server["server"]), 30)
        report.check(link.stream(is_on=True), "OBS streams to listen:")
        time.sleep(STREAM_S)
        report.keep("streaming", display.shoot())
        report.keep("snapshot", job.take_snapshot())
        sent = link.ask("GetStreamStatus")
        report.say(
            f"OBS sent {sent['outputTotalFrames']} frames, skipped {sent['outputSkippedFrames']}, "
            f"{sent['outputBytes'] * 8 / max(sent['outputDuration'], 1):.0f} kb/s"
        )
        report.check(link.stream(is_on=False), "OBS stops")
        time.sleep(PAUSE_S)
        report.check(link.stream(is_on=True), "OBS streams again")
        time.sleep(AGAIN_S)
        report.check(link.stream(is_on=False), "OBS stops again")
        time.sleep(1)
        report.check(job.end() == 0, "livefuse ends as it should")
        report.say("\n      ".join(job.text.splitlines()[-25:]))
    judge_pushed(report, out, scene)


def make_scene(link: Link, folder: Path) -> Picture:
    """Lay a portrait over bars with a counter, a flash and beeps; return what OBS shows then."""
    clip = make_clip(folder / "clip.mp4", 8.0, SIZE, float(FPS), face=False)
    sources = {
        "bars": ("ffmpeg_source", {"local_file": str(clip), "looping": True}),
        "portrait": ("image_source", {"file": str(ASTRONAUT)}),
    }
    items = {
        name: link.ask(
            "CreateInput", sceneName=SCENE, inputName=name, inputKind=kind, inputSettings=settings
        )["sceneItemId"]
        for name, (kind, settings) in sources.items()
    }
    link.ask(
        "SetSceneItemTransform",
        sceneName=SCENE,
        sceneItemId=items["portrait"],
        sceneItemTransform=PLACE,
    )
    wait_some(lambda: read_number(link.shoot()) is not None, 20)
    scene = link.shoot()
    assert scene is not None
    return scene


def judge_pushed(report: Report, path: Path, scene: Picture) -> None:
    """Look at every picture of the file that OBS's stream became."""
    recording = record(path, timeout_s=120, keep_every=5)
    numbers = [picture.counter for picture in recording.video if picture.counter is not None]
    length_s = recording.video[-1].pts_s - recording.video[0].pts_s
    report.say(f"{len(recording.video)} pictures in {length_s:.1f} s, {recording.video_codec}")
    report.check(
        len(numbers) > (STREAM_S + AGAIN_S - 4) * FPS, "pictures with a counter", len(numbers)
    )
    steps = np.diff(numbers)
    report.check(np.mean(steps == 1) > 0.9, "one after the other", f"{np.mean(steps == 1):.1%}")
    boxes = find_faces(scene)
    report.check(len(boxes) == 1, "OBS's scene shows one face", boxes)
    kept = [(p.pts_s, p.bgr) for p in recording.kept if p.bgr is not None]
    bare = [at_s for at_s, bgr in kept if not all(is_covered(bgr, scene, box) for box in boxes)]
    report.check(kept and not bare, f"faces in {len(kept)} pictures are covered", bare[:5])
    if kept:
        report.keep("pushed", kept[len(kept) // 3][1])
    judge_sound(report, recording)


def judge_sound(report: Report, recording: Recording) -> None:
    """Find the beeps, and how far they are from the flashes."""
    beeps = find_beeps(recording)
    report.check(len(beeps) > STREAM_S, "its sound is there", f"{len(beeps)} beeps")
    offsets = measure_av_offsets_ms(recording)
    report.check(len(offsets) > STREAM_S / 2, "flashes with a beep", len(offsets))
    if offsets:
        report.say(
            f"sound behind the picture: {np.median(offsets):.0f} ms (median), "
            f"{min(offsets):.0f} to {max(offsets):.0f}"
        )


def draw_head(number: int) -> Picture:
    """Return picture `number` of `demo:` as it is before anything is done, BGR."""
    frame = create_frame(*SIZE)
    TalkingHead(*SIZE).draw(frame, number / FPS)
    return cast("Picture", read_bgr(frame))


def read_number(picture: Picture | None) -> int | None:
    """Return the counter in a picture."""
    if picture is None:
        return None
    return read_counter(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY))  # type: ignore[arg-type] # uint8 stays


if __name__ == "__main__":
    run("obs", main)
