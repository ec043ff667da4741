"""Before the first frame everything is built: later ones build nothing and are not late."""

import time

import pytest

from livefuse.config import Config
from livefuse.frame import create_frame
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.faces import create_face_frame, create_pipeline

OPERATIONS = ("detect", "align", "blur")
ALL_NETWORKS = ("detect", "align", "identify", "background", "blur")
TICKS = 3000


def process(pipeline, token, frames, first=0):
    """Run `frames`; return the CPU seconds of each, and the outcomes."""
    costs, outcomes = [], []
    for turn, frame in enumerate(frames, first):
        frame.pts = turn * TICKS
        started = time.thread_time()
        outcomes.append(pipeline.process(frame, token))
        costs.append(time.thread_time() - started)
    return costs, outcomes


def create_still(size, seconds=1.0):
    """Return frames of a grey wall."""
    frames = []
    for _ in range(int(30 * seconds)):
        frame = create_frame(*size)
        frame.buffer[: frame.height] = 120
        frames.append(frame)
    return frames


@pytest.mark.parametrize(
    ("size", "operations"),
    [((854, 480), ALL_NETWORKS), ((1280, 720), OPERATIONS), ((1920, 1080), OPERATIONS)],
)
def test_no_session_and_no_shape_is_new_after_warming_up(size, operations):
    """(C15) with and without a face; an engine is built for a session or for a new shape."""
    sessions = SessionCache(Config().models)
    pipeline = create_pipeline(sessions=sessions)
    token = create_token(operations, now_epoch_s=0.0)
    pipeline.prepare(token)
    pipeline.warm_up(*size, token)
    before = sessions.statistics()
    frames = create_still(size, 0.3)
    frames += [create_face_frame(200, size, place=(0.3 + 0.02 * n, 0.5)) for n in range(8)]
    _, outcomes = process(pipeline, token, frames)
    pipeline.close()
    assert all(outcome.vouched for outcome in outcomes)
    assert len(outcomes[-1].faces) == 1
    after = sessions.statistics()
    assert after.sessions_created == before.sessions_created == len(operations) - 1
    assert after.input_shapes == before.input_shapes


def test_the_first_face_after_ten_seconds_without_costs_no_more_than_twice_the_others():
    """(C16) CPU time of the thread: others share the machine."""
    pipeline = create_pipeline()
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    pipeline.prepare(token)
    pipeline.warm_up(1280, 720, token)
    size = (1280, 720)
    process(pipeline, token, create_still(size, 1.0))  # and nine more by the time stamps
    face = create_face_frame(250, size)
    pixels = face.buffer.copy()

    def show(first, count):
        costs = []
        for turn in range(first, first + count):
            face.buffer[:] = pixels
            cost, (outcome,) = process(pipeline, token, [face], turn)
            assert outcome.vouched, outcome.error
            assert len(outcome.faces) == 1
            costs += cost
        return costs

    (first,) = show(300, 1)
    steady = show(301, 45)
    pipeline.close()
    # A face out of nothing is a cut, which has a full look; one in 30 steady frames has one too.
    assert first <= 2 * max(steady), (first, sorted(steady))
