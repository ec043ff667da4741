"""Several frames on their way at once: overlap, order, ends (C08)."""

import contextlib
import threading
import time

import numpy as np
import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config
from livefuse.frame import create_frame
from livefuse.pipeline.conveyor import MAX_PARTS, Conveyor
from livefuse.pipeline.state import Load
from livefuse.pipeline.steps import STEPS, Pipeline
from livefuse.ring import RingClosed
from livefuse.token import create_token
from tests.faces import create_services, share_sessions

OPERATIONS = ("detect", "align", "blur")
PATIENCE_S = 20


class FakeStep:
    """Calls `work(state)`; notes which frames it saw and in which threads."""

    def __init__(self, work=lambda state: None):
        self.work = work
        self.seen = []
        self.threads = set()

    def prepare(self, token):
        pass

    def run(self, state):
        self.threads.add(threading.current_thread().name)
        self.seen.append(state.frame.pts)
        self.work(state)

    def reset(self):
        pass


@pytest.fixture
def steps(monkeypatch):
    made = {name: FakeStep() for name in OPERATIONS}
    for name, step in made.items():
        monkeypatch.setitem(STEPS, name, lambda context, step=step: step)
    return made


def create_pipeline():
    return Pipeline(Config(), share_sessions(), SystemClock(), create_services())


def create_frames(count):
    frames = [create_frame(64, 48) for _ in range(count)]
    for index, frame in enumerate(frames):
        frame.pts = index * 3000
    return frames


def run(frames, parts, token=None, pipeline=None):
    """Move `frames` through a conveyor, by one token or a list of them; return what came out."""
    one = create_token(OPERATIONS, now_epoch_s=0.0) if token is None else token
    tokens = one if isinstance(one, list) else [one] * len(frames)
    waiting, out = list(zip(frames, tokens, strict=True)), []

    def take():
        if not waiting:
            raise RingClosed
        return *waiting.pop(0), Load()

    conveyor = Conveyor(
        pipeline or create_pipeline(),
        parts,
        take,
        lambda frame, outcome: out.append((frame, outcome)),
    )

    def work(index):
        with contextlib.suppress(RingClosed):
            conveyor.run_part(index)

    threads = [
        threading.Thread(target=work, args=(i,), name=f"part-{i}", daemon=True)
        for i in range(conveyor.parts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    return out


@pytest.mark.parametrize("parts", range(1, MAX_PARTS + 3))
def test_every_frame_passes_every_step_in_order(steps, parts):
    frames = create_frames(12)
    out = run(frames, parts)
    assert [frame for frame, _ in out] == frames
    assert all(outcome.vouched for _, outcome in out)
    for step in steps.values():
        assert step.seen == [frame.pts for frame in frames]
        assert len(step.threads) == 1
    assert [[name for name, _ in outcome.steps] for _, outcome in out] == [list(OPERATIONS)] * 12


@pytest.mark.parametrize("parts", [2, 3, MAX_PARTS])
def test_one_frame_is_painted_while_the_next_is_analysed(steps, parts):
    """(C08) Each waits for the other: without overlap both would wait for ever."""
    meet = threading.Barrier(2)
    steps["detect"].work = lambda state: meet.wait(PATIENCE_S) if state.frame.pts else None
    steps["blur"].work = lambda state: meet.wait(PATIENCE_S) if state.frame.pts < 3 * 3000 else None
    out = run(create_frames(4), parts)
    assert [outcome.error for _, outcome in out] == [""] * 4


def test_where_there_is_little_to_do_one_thread_does_it_all(steps):
    token = create_token(("detect", "blur"), now_epoch_s=0.0)
    out = run(create_frames(6), 3, token)
    assert all(outcome.vouched for _, outcome in out)
    assert steps["detect"].threads == steps["blur"].threads
    assert len(steps["blur"].threads) == 1


def test_what_is_done_may_change_while_frames_are_on_their_way(steps):
    """Whole, at a frame's boundary, in order, and a step never works in two threads at once."""
    busy = {name: threading.Lock() for name in OPERATIONS}

    def guard(name):
        def work(state):
            assert busy[name].acquire(blocking=False)
            time.sleep(0.001)
            busy[name].release()

        return work

    for name, step in steps.items():
        step.work = guard(name)
    light = create_token(("detect", "blur"), now_epoch_s=0.0)
    whole = create_token(OPERATIONS, now_epoch_s=0.0)
    tokens = ([light] * 4 + [whole] * 5) * 4
    frames = create_frames(len(tokens))
    out = run(frames, 3, tokens)
    assert [frame for frame, _ in out] == frames
    assert all(outcome.vouched for _, outcome in out)
    for token, (_, outcome) in zip(tokens, out, strict=True):
        assert [name for name, _ in outcome.steps] == list(token.operations)
    assert len(steps["blur"].threads) == 2


def test_with_one_thread_nothing_overlaps(steps):
    busy = threading.Lock()

    def work(state):
        assert busy.acquire(blocking=False)
        busy.release()

    for step in steps.values():
        step.work = work
    assert all(outcome.vouched for _, outcome in run(create_frames(5), 1))
    assert len(set.union(*(step.threads for step in steps.values()))) == 1


def test_a_failed_frame_leaves_the_others_alone(steps):
    def fail(state):
        if state.frame.pts == 2 * 3000:
            raise ValueError("no")

    steps["align"].work = fail
    out = run(create_frames(5), 2)
    assert [outcome.vouched for _, outcome in out] == [True, True, False, True, True]
    assert out[2][1].covered_whole
    assert 2 * 3000 not in steps["blur"].seen


def test_a_part_that_ends_lets_the_others_end(steps):
    """The far end refuses (its ring is closed): nobody may wait for ever."""
    frames = create_frames(20)
    token = create_token(OPERATIONS, now_epoch_s=0.0)

    def give(frame, outcome):
        raise RingClosed

    conveyor = Conveyor(create_pipeline(), 3, lambda: (frames.pop(0), token, Load()), give)

    def work(index):
        with pytest.raises((RingClosed, IndexError)):
            conveyor.run_part(index)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_two_jobs_never_cross(monkeypatch):
    """Each paints its own identity, both at once, with shared sessions."""

    def paint(state):
        state.frame.y[:] = int(state.token.source_face)

    monkeypatch.setitem(STEPS, "detect", lambda context: FakeStep(paint))
    monkeypatch.setitem(STEPS, "blur", lambda context: FakeStep())
    out = {}

    def work(identity):
        token = create_token(("detect", "blur"), now_epoch_s=0.0)
        token = type(token)(request_id="r", operations=token.operations, source_face=str(identity))
        out[identity] = run(create_frames(50), 2, token, create_pipeline())

    threads = [threading.Thread(target=work, args=(identity,)) for identity in (50, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for identity, frames in out.items():
        assert len(frames) == 50
        assert all(np.all(frame.y == identity) for frame, _ in frames)
