"""`faces enroll --live`: clips of a head that does what is asked, and of what must not pass."""

import random

import av
import cv2
import msgspec
import numpy as np
import pytest

from livefuse.control import enrollment
from livefuse.control.cli import main
from livefuse.errors import EXIT_CODES, ConfigError, IngestError, RefusedError
from livefuse.ingest.scene.talking_head import load_portrait
from livefuse.safety.audit_records import parse_line
from livefuse.safety.live import choose_poses
from tests.faces import ASTRONAUT
from tests.turned_heads import draw_head, hold_photo

pytestmark = pytest.mark.timeout(240)  # 20 s of one core, whatever else it does

CONSENT = "Eileen Collins, my live streams, 90d"
SEED = 3
SIZE = (640, 360)
FPS = 5
AMOUNTS: dict[str, dict[str, float]] = {
    "straight": {}, "left": {"yaw_deg": 30}, "right": {"yaw_deg": -30}, "up": {"pitch_deg": 20},
    "down": {"pitch_deg": -20}, "open_mouth": {"mouth": 1.0}, "smile": {"smile": 1.2},
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """A function that runs a command line in a home of its own: code, output, errors."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(enrollment, "create_rng", lambda: random.Random(SEED))
    monkeypatch.setattr(enrollment, "FILMS", frozenset())  # these films know the order

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return run


def write_film(path, pictures):
    """Write BGR pictures as a film, and return `path`."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"crf": "12", "preset": "fast"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for bgr in pictures:
            small = cv2.resize(bgr, SIZE, interpolation=cv2.INTER_AREA)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(small, "bgr24")))
        container.mux(stream.encode(None))
    return path


def act(poses, draw=draw_head):
    """Yield pictures of somebody who does `poses`, each held for 6 frames, never quite still."""
    index = 0
    for pose in poses:
        for share in (0.5, *[1.0] * 6) if pose != "straight" else [1.0] * 6:
            index += 1
            sway = (2.0 * np.sin(index), 1.5 * np.cos(1.7 * index))
            amounts = {name: value * share for name, value in AMOUNTS[pose].items()}
            yield draw(**amounts, shift=sway)


def enroll(run, film, *more):
    return run(
        "faces", "enroll", ASTRONAUT, "--consent", CONSENT, "--name", "Eileen", "--live",
        "--from", film, *more,
    )  # fmt: skip


def test_the_person_in_the_picture_consents_before_a_camera(run, tmp_path):
    """R54: the record says that it was a live match, and of which poses."""
    poses = choose_poses(random.Random(SEED))
    film = write_film(tmp_path / "me.mp4", act(poses))
    code, said, errors = enroll(run, film)
    assert (code, errors) == (0, ""), said
    asked = [line for line in said.splitlines() if " of 5: " in line]
    assert len(asked) >= 5
    assert "straight" in asked[0]
    _, shown, _ = run("faces", "show", "eileen")
    assert f"live match ({','.join(poses)})" in shown
    (path,) = (tmp_path / "data" / "livefuse" / "faces").glob("*/record.json")
    record = msgspec.json.decode(path.read_bytes())
    assert record["consent"]["evidence"]["kind"] == "live"
    log = tmp_path / "data" / "livefuse" / "audit" / "audit.jsonl"
    logged = parse_line(log.read_bytes().splitlines()[-1])
    assert logged is not None
    assert (logged.event, logged.facts["evidence"]) == ("face.enrolled", "live")


def test_a_photograph_held_into_the_camera_fails(run, tmp_path):
    """It shows the face, it is waved about and tilted: and does nothing of what is asked."""
    wave = [
        hold_photo(
            40 * np.sin(0.95 * i), 25 * np.sin(0.5 * i), shift=(8 * np.sin(i), 0), distance=1
        )
        for i in range(14)
    ]
    straight = [hold_photo(shift=(2 * np.sin(i), np.cos(i))) for i in range(6)]
    code, said, errors = enroll(run, write_film(tmp_path / "photo.mp4", straight + wave))
    assert code == EXIT_CODES[RefusedError]
    assert "1 of 5 poses were done" in errors
    assert "printed picture" in errors
    assert "enrolled" not in said
    log = tmp_path / "data" / "livefuse" / "audit" / "audit.jsonl"
    logged = parse_line(log.read_bytes().splitlines()[-1])
    assert logged is not None
    assert (logged.event, logged.who) == ("refusal.live", "cli")
    assert "1 of 5" in str(logged.facts["reason"])
    assert not list((tmp_path / "data").rglob("record.json"))


def test_a_film_that_stands_still_and_one_without_anybody_fail(run, tmp_path):
    still = write_film(tmp_path / "still.mp4", [load_portrait()] * 4)
    code, said, errors = enroll(run, still)
    assert code == EXIT_CODES[RefusedError]
    assert "stands still" in said
    assert "0 of 5" in errors
    empty = write_film(tmp_path / "empty.mp4", [np.full((720, 1280, 3), 128, np.uint8)] * 2)
    code, said, errors = enroll(run, empty)
    assert code == EXIT_CODES[RefusedError]
    assert "nobody is seen" in said


def test_a_film_is_no_camera(run, tmp_path, monkeypatch):
    """Whoever tries often enough has one in the right order."""
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for source in ("demo:", __file__, "test:", "replay:x.lfrec"):
        code, _, errors = enroll(run, source)
        assert (code, "is no camera" in errors) == (EXIT_CODES[ConfigError], True), errors


def test_what_cannot_be_looked_at_is_said(run, tmp_path):
    code, _, errors = enroll(run, tmp_path / "none.mp4")
    assert code in {kind for cls, kind in EXIT_CODES.items() if issubclass(cls, IngestError)}
    assert "none.mp4" in errors
    code, _, errors = enroll(run, "demo:", "--evidence", __file__)
    assert code == EXIT_CODES[ConfigError]
    assert "two kinds of evidence" in errors
