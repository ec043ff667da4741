"""No picture jumps when a rung is changed or a frame has no time (C62): measured on pictures."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest

from livefuse.config import LADDER, Config
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.enhance_step import create_enhance_step
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.runtime.session import SessionCache
from livefuse.token import Parameters, create_token
from tests.faces import analyse, create_face_frame, create_services
from tests.standins import install_standins

WHOLE, HALF, OFF = LADDER[:3]
MODELS = ("classical", "gfpgan_1.4")
STEP = 1 / 3


class Show:
    """The same picture again and again through one enhance step; keeps what is shown of the face.

    The same picture: whatever changes from frame to frame is the step's doing.
    """

    def __init__(self, model, sessions):
        config = Config()
        enhance = msgspec.structs.replace(config.enhance, model=model, amount=1.0)
        config = msgspec.structs.replace(config, enhance=enhance, models=sessions._config)
        context = StepContext(config, sessions, False, InlineExecutor(), create_services())
        self.step = create_enhance_step(context)
        self.runs = 0
        if model != "classical":
            self._count(self.step._enhancer)
        self.frame = create_face_frame(250, (640, 480))
        self.face = analyse(create_face_frame(250, (640, 480))).faces[0]
        self.states: list[FrameState] = []
        self.pictures: list[np.ndarray] = []

    def _count(self, enhancer):
        run = enhancer._run

        def count(blob):
            self.runs += 1
            return run(blob)

        enhancer._run = count

    def show(self, frames, rung=WHOLE, *, is_on=True, **state):
        for _ in range(frames):
            token = create_token(("detect", "align", "enhance"), now_epoch_s=0.0)
            token = msgspec.structs.replace(token, parameters=Parameters(enable_gfpgan=is_on))
            frame = create_face_frame(250, (640, 480))
            self.states.append(FrameState(frame, token, faces=[self.face], rung=rung, **state))
            self.step.run(self.states[-1])
            self.pictures.append(frame.y.astype(np.float32))
        return self.states[-1]

    def shares(self):
        """Return of each frame how much of the whole enhancement it shows."""
        bare = self.frame.y.astype(np.float32)
        whole = max(float(np.abs(picture - bare).mean()) for picture in self.pictures)
        return [float(np.abs(picture - bare).mean()) / whole for picture in self.pictures]

    def largest_jump(self):
        """Return the largest difference of two frames as a share of the whole enhancement."""
        bare = self.frame.y.astype(np.float32)
        whole = max(float(np.abs(picture - bare).mean()) for picture in self.pictures)
        pairs = itertools.pairwise([bare, *self.pictures])
        return max(float(np.abs(one - other).mean()) for one, other in pairs) / whole


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    return SessionCache(install_standins(tmp_path_factory.mktemp("models"), "gfpgan_1.4"))


@pytest.mark.parametrize("model", MODELS)
def test_a_rung_that_goes_and_comes_fades_over_three_frames(sessions, model):
    """R42: and what fades out is the last gain, so that going down costs no more runs."""
    show = Show(model, sessions)
    show.show(6)
    runs = show.runs
    show.show(5, OFF)
    assert show.runs == runs
    show.show(6)
    shares = show.shares()
    assert shares[2] == shares[5] == pytest.approx(1.0, abs=0.03)
    assert shares[8] == shares[10] == 0.0
    assert shares[6] == pytest.approx(2 / 3, abs=0.05)
    assert shares[7] == pytest.approx(1 / 3, abs=0.05)
    assert shares[13] == pytest.approx(1.0, abs=0.03)
    assert show.largest_jump() <= STEP + 0.04  # rounding of grey levels


@pytest.mark.parametrize("model", MODELS)
def test_single_late_frames_and_half_the_runs_are_not_seen(sessions, model):
    show = Show(model, sessions)
    show.show(4)
    show.show(1, is_late=True)
    show.show(3)
    show.show(6, HALF)
    show.show(1, HALF, is_late=True)
    show.show(4)
    shares = show.shares()
    assert min(shares[3:]) >= 0.97
    assert show.largest_jump() <= STEP + 0.04


def test_late_frames_and_half_the_runs_show_what_is_kept(sessions):
    show = Show("gfpgan_1.4", sessions)
    show.show(4)
    assert show.runs == 4
    show.show(1, is_late=True)
    assert show.runs == 4
    assert show.states[-1].did == "enhanced 1 as before"
    show.show(6, HALF)
    assert show.runs == 7


def test_what_is_kept_fades_out_when_there_is_no_time_for_long(sessions):
    """A gain of a second ago would lie beside the face."""
    show = Show("gfpgan_1.4", sessions)
    show.show(4)
    show.show(15, is_late=True)
    assert show.runs == 4
    assert show.shares()[-1] == 0.0
    assert show.states[-1].is_enhanced is False
    show.show(4)
    assert show.shares()[-1] == pytest.approx(1.0, abs=0.03)
    assert show.largest_jump() <= STEP + 0.04


def test_it_never_comes_back_with_an_old_gain(sessions):
    """The first frame after a pause is enhanced anew, whatever the half rate's turn is."""
    show = Show("gfpgan_1.4", sessions)
    for pause in range(5, 9):
        show.show(4, HALF)
        show.show(pause, OFF)
        runs = show.runs
        state = show.show(1, HALF)
        assert show.runs == runs + 1
        assert state.did == "enhanced 1"
        show.show(3, HALF)
    assert show.largest_jump() <= STEP + 0.04


def test_a_user_who_switches_it_off_sees_no_jump_either(sessions):
    show = Show("gfpgan_1.4", sessions)
    show.show(4)
    show.show(4, is_on=False)
    assert show.states[-1].did == "off"
    assert show.shares()[-1] == 0.0
    assert show.largest_jump() <= STEP + 0.04


@pytest.mark.parametrize("model", MODELS)
def test_a_sounding_does_the_work_and_is_not_seen(sessions, model):
    show = Show(model, sessions)
    show.show(4)
    show.show(4, OFF)
    runs = show.runs
    state = show.show(1, OFF, is_sounding=True)
    assert show.runs == runs + (model != "classical")
    assert "enhance" not in state.spared  # its cost is the whole work's
    assert show.shares()[-1] < 0.02
    assert np.abs(show.pictures[-1] - show.pictures[-2]).max() <= 2
    show.show(1, OFF)
    assert show.shares()[-1] == 0.0
