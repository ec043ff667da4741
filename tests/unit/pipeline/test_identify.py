"""The operation `identify`: who is who, by real networks (R17, R23, R24, C60)."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError
from livefuse.face import Attributes, Box, Face, KnownFace
from livefuse.pipeline.analysis.attributes import describe_attributes
from livefuse.pipeline.analysis.identify import create_identify_step
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.token import Parameters, create_token
from tests.faces import analyse, create_face_frame, create_pipeline, create_services, share_sessions

OPERATIONS = ("detect", "align", "identify")


def create_unit(seed):
    vector = np.random.default_rng(seed).normal(0, 1, 128).astype(np.float32)
    return vector / np.linalg.norm(vector)


ANNA, BOB, CARL = (create_unit(seed) for seed in (1, 2, 3))


class FakeEmbedder:
    """Gives each face the vector of the person who stands there, by the place of the nose."""

    length = 128
    same, keep = 0.9, 0.8

    def __init__(self, who):
        self.who = who
        self.looks = []
        self.sharpness = []

    def embed(self, frame, landmarks5):
        self.sharpness = [1.0] * len(landmarks5)
        self.looks.append(len(landmarks5))
        return np.stack([self.who(float(points[2, 0])) for points in landmarks5])


@pytest.fixture(scope="module")
def seen():
    frame = create_face_frame(150, (640, 480))
    return frame, analyse(frame).faces[0]


def create_context(*, every_frame=False, gallery=(), config=None):
    services = create_services(gallery=gallery)
    return StepContext(
        config or Config(), share_sessions(), every_frame, InlineExecutor(), services
    )


def create_step(who, **more):
    step: Any = create_identify_step(create_context(**more))
    step._embedder = FakeEmbedder(who)
    step._read_gallery(128)
    return step


def place(face, track_id, x, **changes):
    """Return a face like `face` whose nose is at `x`, of the track `track_id`."""
    shift = x - float(face.track.landmarks5[2, 0])
    box = face.track.box
    track = replace(
        face.track,
        track_id=track_id,
        box=Box(box.x0 + shift, box.y0, box.x1 + shift, box.y1),
        landmarks5=face.track.landmarks5 + np.array([shift, 0], np.float32),
    )
    return Face(track, **{"mesh": face.mesh + np.array([shift, 0, 0], np.float32), **changes})


def run(step, frame, *faces, parameters=None):
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    token = msgspec.structs.replace(token, parameters=parameters or Parameters())
    state = FrameState(frame, token, faces=list(faces))
    step.run(state)
    return state.faces


def test_a_person_of_the_gallery_is_known_by_name_and_chosen_by_it():
    frame = create_face_frame(120, (640, 480))
    known = KnownFace("eileen", embed(create_face_frame(200, (640, 480), roll=0.2)))
    services = create_services(gallery=(known, KnownFace("other", ANNA)))
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    for people, chosen in ((("eileen",), True), (("other",), False)):
        parameters = Parameters(select="reference", people=people)
        pipeline = create_pipeline(services=services)
        asked = msgspec.structs.replace(token, parameters=parameters)
        pipeline.prepare(asked)
        state = pipeline.begin(frame, asked)
        for name in OPERATIONS:
            pipeline.run_step(state, name)
        assert not state.error
        (face,) = state.faces
        assert face.person == "eileen"
        assert face.similarity > 0.95
        assert face.chosen is chosen
        assert face.embedding.shape == (128,)
        assert np.linalg.norm(face.embedding) == pytest.approx(1.0, abs=1e-5)
        assert isinstance(face.attributes, Attributes)


def embed(frame):
    state = analyse(frame, OPERATIONS)
    return state.faces[0].embedding


def test_one_look_a_frame_but_all_who_are_new_at_once(seen):
    """The budget: new faces are looked at together, then one face every n-th frame each."""
    frame, face = seen
    step = create_step(lambda x: ANNA if x < 300 else BOB)
    looks = step._embedder.looks
    faces = lambda: (place(face, 1, 100.0), place(face, 2, 500.0))  # noqa: E731
    run(step, frame, *faces())
    assert looks == [2]
    for _ in range(60):
        run(step, frame, *faces())
    assert max(looks[1:]) == 1
    # Two looks each while new, then one every 15 frames: far from one a frame.
    assert 8 <= sum(looks[1:]) <= 14


def test_of_a_crowd_four_are_looked_at_in_one_frame_live_and_all_in_files(seen):
    frame, face = seen
    for every_frame, expected in ((False, [4, 4, 2]), (True, [10])):
        step = create_step(lambda x: ANNA, every_frame=every_frame)
        for _ in range(len(expected)):
            run(step, frame, *(place(face, i, 300.0) for i in range(10)))
        assert step._embedder.looks == expected


def test_a_better_view_is_looked_at_before_its_time(seen):
    frame, face = seen
    step = create_step(lambda x: ANNA)
    aside = {"pose_rad": (0.9, 0.0, 0.0)}
    for _ in range(14):
        run(step, frame, place(face, 1, 300.0, **aside))
    before = len(step._embedder.looks)
    run(step, frame, place(face, 1, 300.0))
    assert len(step._embedder.looks) == before + 1
    for _ in range(4):
        run(step, frame, place(face, 1, 300.0))
    assert len(step._embedder.looks) == before + 1


def test_two_who_cross_keep_their_numbers_though_the_tracker_exchanges_them(seen):
    """The track keeps its identity: an exchange by the tracker is put right by the vectors."""
    frame, face = seen
    gallery = (KnownFace("anna", ANNA), KnownFace("bob", BOB))
    anna_x = [100.0]
    step = create_step(lambda x: ANNA if abs(x - anna_x[0]) < 5 else BOB, gallery=gallery)
    for _ in range(10):
        run(step, frame, place(face, 1, 100.0), place(face, 2, 500.0))
    faces = run(step, frame, place(face, 1, 100.0), place(face, 2, 500.0))
    assert [(f.track.track_id, f.person) for f in faces] == [(1, "anna"), (2, "bob")]
    for x in range(120, 500, 40):  # anna walks to the right, bob to the left
        anna_x[0] = float(x)
        # From where they meet the tracker has track 1 turn back with bob.
        first, second = (x, 600 - x) if x < 300 else (600 - x, x)
        run(step, frame, place(face, 1, float(first)), place(face, 2, float(second)))
    anna_x[0] = 500.0
    for _ in range(3):
        run(step, frame, place(face, 1, 100.0), place(face, 2, 500.0))
    faces = run(step, frame, place(face, 1, 100.0), place(face, 2, 500.0))
    by_place = {f.track.landmarks5[2, 0]: (f.track.track_id, f.person) for f in faces}
    assert by_place == {100.0: (2, "bob"), 500.0: (1, "anna")}
    ids = Parameters(select="id", people=("1",))
    faces = run(step, frame, place(face, 1, 100.0), place(face, 2, 500.0), parameters=ids)
    assert [f.track.landmarks5[2, 0] for f in faces if f.chosen] == [500.0]


def test_a_portrait_on_the_wall_gets_a_number_of_its_own_and_takes_nothing(seen):
    """(C60) for half a second and longer the wearer's number, name and vector stay."""
    frame, face = seen
    gallery = (KnownFace("anna", ANNA),)
    step = create_step(lambda x: ANNA if x < 300 else CARL, gallery=gallery)
    run(step, frame, place(face, 1, 100.0))
    for _ in range(20):
        wearer, portrait = run(step, frame, place(face, 1, 100.0), place(face, 2, 500.0))
        assert (wearer.track.track_id, wearer.person) == (1, "anna")
        assert (portrait.track.track_id, portrait.person) == (2, "")
        assert float(wearer.embedding @ ANNA) > 0.999


def test_who_comes_back_has_the_old_number(seen):
    frame, face = seen
    step = create_step(lambda x: ANNA)
    run(step, frame, place(face, 1, 100.0))
    for _ in range(30):
        run(step, frame)
    assert run(step, frame, place(face, 7, 400.0))[0].track.track_id == 1


def test_held_faces_and_faces_without_a_mesh_are_not_looked_at_again(seen):
    frame, face = seen
    step = create_step(lambda x: ANNA)
    held = place(face, 1, 100.0)
    held.track = replace(held.track, missed=2)
    for _ in range(20):
        run(step, frame, held)
    assert step._embedder.looks == []
    for _ in range(40):
        run(step, frame, place(face, 2, 300.0, mesh=None))
    assert step._embedder.looks == [1]


def test_the_gallery_is_read_again_while_a_stream_runs(seen):
    frame, face = seen
    known: list[KnownFace] = []
    step = create_step(lambda x: ANNA)
    step._context = replace(
        step._context, services=replace(step._context.services, list_gallery=lambda: tuple(known))
    )
    assert run(step, frame, place(face, 1, 100.0))[0].person == ""
    known.append(KnownFace("anna", ANNA))
    names = [run(step, frame, place(face, 1, 100.0))[0].person for _ in range(200)]
    assert names[0] == ""
    assert names[-1] == "anna"


def test_a_name_that_nobody_has_is_refused_before_the_stream_runs():
    step = create_identify_step(create_context(gallery=(KnownFace("anna", ANNA),)))
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    for people, message in (((("ana",)), "did you mean anna"), (("zoe",), "known are anna")):
        wrong = msgspec.structs.replace(
            token, parameters=Parameters(select="reference", people=people)
        )
        with pytest.raises(ConfigError, match=message):
            step.prepare(wrong)
    right = Parameters(select="reference", people=("anna",))
    step.prepare(msgspec.structs.replace(token, parameters=right))


def test_a_bound_of_ones_own_moves_both(seen):
    identify = msgspec.structs.replace(Config().identify, min_similarity=0.5)
    config = msgspec.structs.replace(Config(), identify=identify)
    step = create_identify_step(create_context(config=config))
    assert step._likeness.same == 0.5
    assert step._likeness.keep == pytest.approx(0.476, abs=0.001)


def test_a_detector_is_no_identity_network():
    identify = msgspec.structs.replace(Config().identify, model="centerface")
    config = msgspec.structs.replace(Config(), identify=identify)
    with pytest.raises(ConfigError, match=r"identify\.model"):
        create_identify_step(create_context(config=config))


def describe(frame, face):
    attributes = describe_attributes(frame, face)
    assert attributes is not None
    return attributes


def test_attributes_tell_light_and_expression_and_not_the_person(seen):
    """R23: z_att follows pose, expression and light; z_id does not."""
    frame, face = seen
    rest = describe(frame, face)
    dark = create_face_frame(150, (640, 480))
    dark.y[:, :320] = 16 + (dark.y[:, :320] - 16) // 2
    lit = describe(dark, face)
    assert lit.light < rest.light
    assert lit.light_side > rest.light_side + 0.15
    assert lit[:8] == rest[:8]
    open_mouth = face.mesh.copy()
    open_mouth[14, 1] += 30
    assert describe(frame, replace(face, mesh=open_mouth)).mouth_open > rest.mouth_open
    assert describe_attributes(frame, replace(face, mesh=None)) is None
    vectors = [embed(frame), embed(dark)]
    assert float(vectors[0] @ vectors[1]) > 0.95
