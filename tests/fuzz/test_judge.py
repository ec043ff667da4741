"""The judge is judged: it fires on faces that are bare, moved, dimmed, and on no cover."""

from __future__ import annotations

from collections import Counter

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.pipeline.state import Outcome
from livefuse.safety.cover import cover_frame, draw_slate
from livefuse.token import Parameters, create_token
from tests.faces import create_frame_by_bgr, create_pipeline
from tests.fuzz.faults import Faults
from tests.fuzz.judge import SURE, Judge, Truth
from tests.fuzz.likeness import BARE, LEFT, measure_likeness
from tests.fuzz.plan import Fault, Plan, make_plan
from tests.fuzz.promise import Chosen, is_promised
from tests.fuzz.run import create_reference
from tests.fuzz.scene import Actor, Place, Scene, draw_scene, find_seen

SIZE = (320, 180)
WHOLE = (0, 0, *SIZE)
PLACES = {
    "small": (0, Place(0.5, 0.5, 60.0), 1.0),
    "large": (2, Place(0.5, 0.5, 140.0, 0.3), 1.0),
    "turned": (1, Place(0.4, 0.5, 100.0, 0.0, 0.6), 1.0),
    "rolled": (0, Place(0.6, 0.5, 90.0, -0.6), 1.0),
    "dark": (1, Place(0.5, 0.5, 80.0), 0.4),
}


def film(who, place, light=1.0):
    scene = Scene(0, who + 3, light, (Actor(who, ((0, place), (9, place))),))
    bgr, faces = draw_scene(scene, 0, SIZE, 1.0)
    return create_frame_by_bgr(bgr), faces


def treat(frame, operations, source="", style="gaussian"):
    config = Config()
    blur = msgspec.structs.replace(config.blur, style=style)
    pipeline = create_pipeline(msgspec.structs.replace(config, blur=blur), every_frame=True)
    token = msgspec.structs.replace(create_token(operations, now_epoch_s=0.0), source_face=source)
    pipeline.prepare(token)
    return pipeline.process(frame, token)


@pytest.mark.parametrize("name", PLACES)
def test_what_is_bare_is_far_from_what_is_covered(name):
    frame, faces = film(*PLACES[name])
    true, face = frame.y.copy(), faces[0]
    bare = {
        "as it is": true,
        "moved": np.roll(true, (5, -8), (0, 1)),
        "dimmed": (true * 0.5 + 30).astype(np.uint8),
        "coded": cv2.imdecode(cv2.imencode(".jpg", true, [cv2.IMWRITE_JPEG_QUALITY, 30])[1], 0),
    }
    for how, luma in bare.items():
        likeness = measure_likeness(luma, true, face)
        assert likeness is not None
        assert likeness > BARE + 0.1, how
    for style in ("gaussian", "mosaic", "solid"):
        covered, _ = film(*PLACES[name])
        treat(covered, ("detect", "blur"), style=style)
        likeness = measure_likeness(covered.y, true, face)
        assert likeness is not None
        assert likeness < LEFT - 0.1, style
    for whole in (cover_frame, draw_slate):
        covered, _ = film(*PLACES[name])
        whole(covered)
        likeness = measure_likeness(covered.y, true, face)
        assert likeness is not None
        assert likeness < 0.1, whole


@pytest.mark.parametrize("avatar", ["robot", "fox", "porcelain"])
def test_an_avatar_is_not_its_wearer(avatar):
    for place in ("small", "turned"):
        frame, faces = film(*PLACES[place])
        true = frame.y.copy()
        treat(frame, ("detect", "align", "swap"), f"avatar:{avatar}")
        likeness = measure_likeness(frame.y, true, faces[0])
        assert likeness is not None
        assert likeness < BARE - 0.1


def test_half_a_cover_is_seen_as_bare():
    frame, faces = film(*PLACES["large"])
    true, face = frame.y.copy(), faces[0]
    x = round(face.centre[0])
    frame.y[:, x + 15 :] = 90  # the left eye and half of the mouth are left
    likeness = measure_likeness(frame.y, true, face)
    assert likeness is not None
    assert likeness > LEFT


def test_a_face_at_the_edge_or_behind_another_is_told_from_one_that_is_there():
    frame, faces = film(0, Place(-0.05, 0.5, 100.0))
    assert measure_likeness(frame.y, frame.y, faces[0], find_seen(faces, 0, WHOLE)) is None
    behind, before = Place(0.5, 0.5, 80.0), Place(0.52, 0.5, 100.0)
    actors = tuple(
        Actor(who, ((0, place), (9, place))) for who, place in ((0, behind), (1, before))
    )
    bgr, faces = draw_scene(Scene(0, 1, 1.0, actors), 0, SIZE, 1.0)
    luma = create_frame_by_bgr(bgr).y
    assert measure_likeness(luma, luma, faces[0], find_seen(faces, 0, WHOLE)) is None
    assert measure_likeness(luma, luma, faces[1], find_seen(faces, 1, WHOLE)) is not None


def test_the_reference_finds_every_bare_face_and_no_covered_one():
    detector = create_reference()
    for name, place in PLACES.items():
        frame, faces = film(*place)
        found = [d for d in detector.detect(frame) if d.score >= SURE]
        assert len(found) == 1, name
        assert abs((found[0].box.x0 + found[0].box.x1) / 2 - faces[0].centre[0]) < 15
        treat(frame, ("detect", "blur"))
        assert not [d for d in detector.detect(frame) if d.score >= SURE], name


class Bench:
    """A judge that is shown made pictures."""

    def __init__(self, plan=None):
        self.faults = Faults(plan or Plan(0))
        self.judge = Judge(0, self.faults, create_reference())
        self.index = 0

    def show(self, frame, faces, true, operations=("detect", "blur"), **outcome):
        frame.handle = frame.handle._replace(generation=self.index)
        self.judge.note_arrived(frame.handle, Truth(self.index, true, faces, WHOLE, {}))
        token = create_token(operations, now_epoch_s=0.0)
        self.judge.note_outcome(frame.handle, Outcome(token, vouched=True, **outcome))
        self.judge.look(frame, is_held=False)
        self.index += 1


def test_the_judge_accuses_a_bare_face_and_the_reference_confirms_it():
    bench = Bench()
    for _ in range(bench.judge.longest_look + 2):
        frame, faces = film(*PLACES["large"])
        bench.show(frame, faces, frame.buffer.copy())
    counts = bench.judge.counts
    assert counts["too_early"] == bench.judge.longest_look - 1, "a new face is waited for so long"
    assert counts["BARE"] == 3
    assert counts["reference: bare"] == bench.index
    assert "new, found for" in bench.judge.offences[0].what


def test_a_picture_that_says_it_is_covered_whole_has_no_excuse():
    bench = Bench()
    frame, faces = film(*PLACES["large"])
    bench.show(frame, faces, frame.buffer.copy(), covered_whole=True, reason="loading")
    assert bench.judge.counts["BARE"] == 1


def test_a_new_pipeline_has_seen_nobody_yet():
    bench = Bench(Plan(0, faults=[Fault("blind", 1, 9)]))
    frame, faces = film(*PLACES["large"])
    bare = frame.buffer.copy()
    treat(frame, ("detect", "blur"))
    bench.show(frame, faces, bare)
    frame.buffer[:] = bare
    bench.show(frame, faces, bare)
    assert bench.judge.counts["BARE"] == 1, "what was covered stays covered"
    bench.judge.note_renewed()
    bench.show(frame, faces, bare)
    assert bench.judge.counts["BARE"] == 1
    assert bench.judge.counts["blind"] == 1


def test_somebody_of_a_picture_before_is_found_by_the_reference():
    bench = Bench()
    frame, faces = film(*PLACES["large"])
    bare = frame.buffer.copy()
    treat(frame, ("detect", "blur"))
    bench.show(frame, faces, bare)
    old, _ = film(*PLACES["large"])
    empty = create_frame_by_bgr(np.full((180, 320, 3), 90, np.uint8)).buffer
    bench.show(old, [], empty)
    assert bench.judge.counts["BARE"] == 1
    assert "a face of before" in bench.judge.offences[0].what


def test_who_may_be_seen_is_not_judged():
    faces = [film(0, Place(0.3, 0.5, 60.0))[1][0], film(1, Place(0.7, 0.5, 100.0))[1][0]]
    chosen = Chosen()
    meant = [chosen.note(faces) for _ in range(80)][-1]
    assert meant == {"largest": (0, 1), "left-most": (0, 0)}

    def list_promised(operations, meant, **parameters):
        token = create_token(
            operations, now_epoch_s=0.0, parameters=Parameters(select="largest", **parameters)
        )
        outcome = Outcome(token, vouched=True)
        return [is_promised(face, outcome, meant) for face in faces]

    blur = ("detect", "blur")
    assert list_promised(blur, meant, blur_whom="others") == [True, False]
    assert list_promised(blur, meant, blur_whom="chosen") == [False, True]
    assert list_promised(blur, meant, blur_whom="all") == [True, True]
    assert list_promised(blur, {}, blur_whom="others") == [False, False], "who is meant is open"
    assert list_promised(("detect", "align", "swap", "blur"), {}) == [True, True]
    assert list_promised(("detect", "align", "swap"), meant, blend_ratio=0.5) == [False, False]


def test_a_plan_is_its_seed_and_plans_meet_every_fault():
    assert make_plan(7) == make_plan(7)
    assert make_plan(7) != make_plan(8)
    plans = [make_plan(seed) for seed in range(60)]
    met = Counter(fault.kind for plan in plans for fault in plan.faults)
    met += Counter(hand.kind for plan in plans for hand in plan.hands)
    assert set(met) == {
        "raise", "raise_late", "raise_once", "slow", "blind", "detector_error", "mesh", "burst",
        "patch", "consent", "renew", "pressure",
    }  # fmt: skip
    assert all(plan.scenes for plan in plans)
    assert sum(len(plan.gaps) for plan in plans) > 30
    assert sum(len(plan.sources) for plan in plans) > 30
