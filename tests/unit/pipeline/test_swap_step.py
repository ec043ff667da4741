"""The swap step: replaced or covered, never bare; another source aside; no flicker."""

from __future__ import annotations

import itertools
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError, ConsentError, LivefuseError
from livefuse.face import Box, Face, SourceFace, Track
from livefuse.frame import create_frame
from livefuse.geometry import measure_radius
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.blur import FaceBlur
from livefuse.pipeline.source_keeper import SourceKeeper
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.pipeline.swap_step import SwapStep, build_swapper, create_swap_step
from livefuse.token import Parameters, create_token
from tests.faces import create_services, share_sessions

BARE, PAINT = 220, 60
BOX = Box(200.0, 100.0, 320.0, 260.0)


class PaintSwapper:
    """Paints the face's box in one grey, when it can; counts its sources."""

    def __init__(self, log, grey=PAINT):
        self.log, self.grey, self.can = log, grey, True

    def prepare(self, source):
        self.log.append(source.face_id)
        if source.face_id == "bad":
            raise ConfigError("no face in it", hint="take another")
        self.grey = int(source.digest[:2], 16)

    def reset(self):
        self.log.append("reset")

    def swap(self, state, face):
        if not self.can or face.mesh is None:
            return False
        box = face.track.box
        state.frame.y[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)] = self.grey
        return True


class LaterExecutor(Executor):
    """Runs nothing until told."""

    def __init__(self):
        self.waiting = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        return future

    def run_one(self):
        future, fn, args = self.waiting.pop(0)
        try:
            future.set_result(fn(*args))
        except LivefuseError as error:
            future.set_exception(error)


def load_source(face_id):
    if face_id == "revoked":
        raise ConsentError("no consent for revoked", hint="enrol again")
    grey = {"one": "3c", "two": "50"}.get(face_id, "3c")
    return SourceFace(face_id, np.zeros((4, 4, 3), np.uint8), grey * 32)


class Bench:
    """A step with a painter for a swapper, and frames to run it on."""

    def __init__(self, aside=None):
        self.prepared: list[str] = []
        self.swappers: list[PaintSwapper] = []
        services = replace(create_services(), load_source=load_source)
        context = StepContext(Config(), share_sessions(), True, aside or InlineExecutor(), services)

        def create():
            self.swappers.append(PaintSwapper(self.prepared))
            return self.swappers[-1]

        keeper = SourceKeeper(context.aside, partial(build_swapper, context, create))
        self.step = SwapStep(keeper, FaceBlur(Config().blur))
        self.track_id = 7

    def run(self, *, mesh=True, source="one", blend_ratio=1.0, is_cut=False, dt_s=1 / 30):
        """Run one frame; return the brightest grey in the middle of the face and the state."""
        token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
        token = msgspec.structs.replace(
            token, source_face=source, parameters=Parameters(blend_ratio=blend_ratio)
        )
        frame = create_frame(640, 360)
        frame.y[:] = 40
        frame.y[100:260, 200:320] = np.where(np.arange(120) // 4 % 2, BARE, 100)
        points = np.array([(240, 150), (280, 150), (260, 180), (245, 220), (275, 220)], np.float32)
        track = Track(self.track_id, BOX, points, 0.9, 0.0)
        face = Face(track, mesh=np.zeros((478, 3), np.float32) if mesh else None)
        state = FrameState(frame, token, dt_s=dt_s, is_cut=is_cut, faces=[face])
        self.step.run(state)
        return int(frame.y[140:220, 230:290].max()), state

    def prepare(self, source="one"):
        token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
        self.step.prepare(msgspec.structs.replace(token, source_face=source))


@pytest.fixture
def bench():
    bench = Bench()
    bench.prepare()
    return bench


def test_a_chosen_face_is_replaced(bench):
    grey, state = bench.run()
    assert grey == PAINT
    assert state.faces[0].is_replaced
    assert not state.covers
    assert state.did == "swapped 1"


def test_a_face_that_cannot_be_replaced_is_covered(bench):
    grey, state = bench.run(mesh=False)
    assert not state.faces[0].is_replaced
    assert grey < BARE - 20  # what is left is blurred with what is around
    middle = np.array([[260.0, 180.0]])
    assert measure_radius(state.covers[0], middle)[0] < 0.5
    corners = np.array([(BOX.x0, 180.0), (BOX.x1, 180.0), (260.0, BOX.y0), (260.0, BOX.y1)])
    assert (measure_radius(state.covers[0], corners) < 1.0).all()
    assert state.did == "swapped 0, covered 1"


def test_a_face_that_nobody_chose_is_left_alone(bench):
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, source_face="one")
    _, state = bench.run()
    face = Face(state.faces[0].track, mesh=state.faces[0].mesh, chosen=False)
    frame = create_frame(640, 360)
    before = frame.buffer.copy()
    bench.step.run(FrameState(frame, token, faces=[face]))
    assert (frame.buffer == before).all()


def test_who_is_not_known_yet_is_covered_until_known(bench):
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, source_face="one")
    _, state = bench.run()
    track = state.faces[0].track
    face = Face(track, mesh=state.faces[0].mesh, chosen=False, is_doubtful=True)
    state = FrameState(create_frame(640, 360), token, faces=[face])
    bench.step.run(state)
    assert len(state.covers) == 1
    assert not face.is_replaced


@pytest.mark.parametrize("blend_ratio", [0.0, 0.001])
def test_a_blend_of_nought_is_the_input(bench, blend_ratio):
    """R19."""
    grey, state = bench.run(blend_ratio=blend_ratio)
    assert grey == BARE
    assert (state.frame.y[100:260, 204:208] == BARE).all()
    assert state.did == "off"


def test_who_walks_in_fades_in_out_of_the_cover(bench):
    """C62: a third, two thirds, all of it; and what it is mixed with is the cover."""
    bench.run()
    bench.track_id = 8
    covered = bench.run(mesh=False)[1].frame.y.astype(np.float32)
    bench.track_id = 9
    for share in (1 / 3, 2 / 3, 1.0, 1.0):
        state = bench.run()[1]
        seen = state.frame.y[140:220, 230:290]
        wanted = share * PAINT + (1 - share) * covered[140:220, 230:290]
        assert np.abs(seen - wanted).max() <= 1.0  # rounding
        assert state.faces[0].is_replaced
        assert (state.frame.y[:, 450:] == 40).all()  # nothing else is touched


def test_out_of_a_cover_it_comes_in_three_steps_of_the_picture(bench):
    """C62: no two pictures differ by more than a third of what changes. Into a cover it is one
    step: what cannot be replaced any more must not shine through for a frame."""
    pictures = [bench.run(mesh=False)[1].frame.y.astype(np.float32) for _ in range(2)]
    while len(pictures) < 40:
        pictures.append(bench.run()[1].frame.y.astype(np.float32))
    whole = np.abs(pictures[-1] - pictures[0]).mean()
    steps = [np.abs(b - a).mean() / whole for a, b in itertools.pairwise(pictures)]
    assert whole > 1.0
    assert max(steps) == pytest.approx(1 / 3, abs=0.03)
    assert sum(step > 0.01 for step in steps) == 3


def test_after_a_cut_it_is_there_at_once(bench):
    bench.run()
    bench.track_id = 9
    grey, _ = bench.run(is_cut=True)
    assert grey == PAINT


def test_swap_and_cover_change_once_a_second_at_most(bench):
    """C62: noisy meshes."""
    shown = []
    for index in range(300):
        _, state = bench.run(mesh=index % 7 != 0 or index < 10)
        shown.append(state.faces[0].is_replaced)
    back = [i for i in range(1, 300) if shown[i] and not shown[i - 1]]
    assert back
    assert min(np.diff([0, *back])) >= 30
    assert shown[0]


def test_never_bare(bench):
    rng = np.random.default_rng(4)
    for index in range(120):
        bench.track_id = int(rng.integers(0, 3))
        grey, state = bench.run(mesh=bool(rng.random() < 0.7), is_cut=index % 50 == 49)
        assert grey < BARE - 20
        assert state.faces[0].is_replaced or state.covers


def test_another_source_is_made_ready_aside():
    """C17: the old one is shown meanwhile, no frame is lost."""
    aside = LaterExecutor()
    bench = Bench(aside)
    bench.prepare("one")
    assert bench.run()[0] == 0x3C
    for _ in range(5):
        assert bench.run(source="two")[0] == 0x3C
    assert len(aside.waiting) == 1  # asked once, not for every frame
    aside.run_one()
    assert bench.run(source="two")[0] == 0x50
    assert bench.prepared == ["one", "two"]


def test_a_source_that_changes_while_one_is_made_ready_comes_next():
    aside = LaterExecutor()
    bench = Bench(aside)
    bench.prepare("one")
    bench.run(source="two")
    bench.run(source="three")
    assert len(aside.waiting) == 1
    aside.run_one()
    assert bench.run(source="three")[0] == 0x3C  # two is not wanted any more
    bench.run(source="three")
    aside.run_one()
    bench.run(source="three")
    assert bench.prepared == ["one", "two", "three"]
    bench.run(source="two")
    bench.run(source="three")
    aside.run_one()
    bench.run(source="three")
    assert not aside.waiting  # what is shown need not be made again


@pytest.mark.parametrize("source", ["bad", "revoked"])
def test_a_source_that_cannot_be_used_leaves_the_old_one_and_is_told(bench, source):
    bench.run()
    grey, state = bench.run(source=source)
    assert grey == PAINT
    assert "no " in state.did
    bench.run(source=source)
    assert bench.prepared.count("bad") <= 1  # tried once
    with pytest.raises(LivefuseError):
        bench.prepare(source)


def test_without_a_source_it_does_not_start(bench):
    with pytest.raises(ConfigError, match="source face"):
        bench.prepare("")


def test_a_job_whose_source_is_not_ready_covers():
    bench = Bench(LaterExecutor())
    grey, state = bench.run()
    assert grey < BARE - 20
    assert state.covers


def test_the_default_is_the_mesh_swap():
    context = StepContext(Config(), share_sessions(), True, InlineExecutor(), create_services())
    assert isinstance(create_swap_step(context), SwapStep)
    assert Config().swap.model == "mesh"
