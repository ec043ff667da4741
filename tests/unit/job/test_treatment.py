"""A pipeline at work that is abandoned: nothing of it is shown any more, no frame is lost to it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import structlog.testing

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import Config
from livefuse.frame import FramePool
from livefuse.job.treatment import Setting, Treatment
from livefuse.pipeline.state import Outcome
from livefuse.ring import Ring, RingClosed
from livefuse.telemetry import Telemetry
from livefuse.token import Parameters, TokenCell, create_token

SIZE = (64, 48)


class StubPipeline:
    """Passes frames; `work` is called for each in its one step."""

    def __init__(self, work=lambda: None):
        self.work = work
        self.error = self.reason = ""
        self.closed = 0
        self.is_allowed = True

    def may_show(self, token):
        return self.is_allowed

    def begin(self, frame, token, load=None):
        return SimpleNamespace(frame=frame, token=token)

    def run_step(self, state, name):
        if name == "detect":
            self.work()

    def finish(self, state):
        return Outcome(
            state.token, vouched=not self.error, error=self.error, reason=self.reason,
            covered_whole=bool(self.error),
        )  # fmt: skip

    def close(self):
        self.closed += 1


class Bench:
    def __init__(self, pipeline, operations=("detect", "blur")):
        self.clock = ManualClock()
        self.telemetry = Telemetry(self.clock)
        self.pool: Any = FramePool(*SIZE, 6)
        self.arrived: Ring[Any] = Ring(2)
        self.treated: Ring[Any] = Ring(4)
        self.token = TokenCell(create_token(operations, now_epoch_s=0.0))
        setting = Setting(Config(), self.telemetry, self.pool, self.treated, None)
        self.treatment = Treatment(setting, self.arrived, pipeline, self.token)

    def put(self, pts):
        frame = self.pool.acquire()
        frame.pts = pts
        self.arrived.put(frame)
        return frame

    def start(self):
        def run(loop):
            with pytest.raises(RingClosed):
                loop()

        loops = self.treatment.list_loops().values()
        self.threads = [threading.Thread(target=run, args=(loop,), daemon=True) for loop in loops]
        for thread in self.threads:
            thread.start()

    def join(self):
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("operations", [("detect", "blur"), ("detect", "align", "swap")])
def test_what_an_abandoned_thread_gives_back_is_refused_and_its_frames_are_replaced(operations):
    at_work, go_on = threading.Event(), threading.Event()

    def hang():
        at_work.set()
        assert go_on.wait(10)

    pipeline = StubPipeline(hang)
    bench = Bench(pipeline, operations)
    bench.start()
    held = bench.put(100)
    assert at_work.wait(10)
    bench.put(200)
    work = bench.treatment.pulses[0].work
    assert work is not None
    assert work.name == "detect"
    assert bench.pool.lent == 2
    bench.treatment.abandon()
    assert bench.pool.lent == 0, "one is replaced, one given back"
    assert bench.telemetry.dropped() == {"restarting": 1, "abandoned": 1}
    assert pipeline.closed == 1
    go_on.set()
    bench.join()
    # What was on its way between two parts never comes as far as being given back.
    refused = 1 if len(operations) == 2 else 0
    assert bench.telemetry.counts().get("refused_late_frames", 0) == refused
    assert bench.treated.statistics().put == 0
    assert not bench.treated.is_closed, "another treatment goes on with it"
    # The frame that it still had is nobody's: not even giving it back makes it the pool's.
    bench.pool.release(held)
    frames = [bench.pool.acquire() for _ in range(6)]
    assert len({id(frame) for frame in frames}) == 6
    assert held not in frames
    assert bench.pool.acquire() is None


PLAIN, BLUR = ("detect",), ("detect", "blur")
SWAP = ("detect", "align", "swap")


@pytest.mark.parametrize(
    ("shown", "now", "may_show"),
    [
        ((BLUR, {}), (BLUR, {}), True),
        ((BLUR, {}), (BLUR, {"on_failure": "hold"}), True),
        ((BLUR, {}), (PLAIN, {}), True),
        ((PLAIN, {}), (BLUR, {}), False),
        ((PLAIN, {}), ((*PLAIN, "background"), {}), False),
        ((BLUR, {"blur_whom": "others"}), (BLUR, {"blur_whom": "all"}), False),
        ((BLUR, {}), (BLUR, {"select": "largest"}), False),
        ((SWAP, {"blend_ratio": 0.5}), (SWAP, {"blend_ratio": 1.0}), False),
        ((SWAP, {"blend_ratio": 1.0}), (SWAP, {"blend_ratio": 0.5}), True),
    ],
)
def test_a_picture_that_stands_is_hidden_when_more_is_to_be_hidden_meanwhile(shown, now, may_show):
    def create(asked):
        operations, parameters = asked
        return create_token(operations, now_epoch_s=0.0, parameters=Parameters(**parameters))

    pipeline = StubPipeline()
    bench = Bench(pipeline)
    assert bench.treatment.may_show(), "nothing has been shown yet"
    bench.treatment.last_token = create(shown)
    bench.token.update(lambda _before: create(now))
    assert bench.treatment.may_show() is may_show
    pipeline.is_allowed = False
    assert not bench.treatment.may_show(), "the consent is gone"


def test_at_the_end_of_the_input_what_came_is_finished_and_the_encoder_is_told():
    bench = Bench(StubPipeline())
    bench.put(100)
    bench.put(200)
    bench.arrived.close()
    bench.start()
    bench.join()
    assert [bench.treated.take().pts for _ in range(2)] == [100, 200]
    assert bench.treated.is_closed


def test_a_part_that_dies_leaves_the_encoder_alone():
    def die():
        raise ZeroDivisionError

    bench = Bench(StubPipeline(die))
    bench.put(100)
    with pytest.raises(ZeroDivisionError):
        next(iter(bench.treatment.list_loops().values()))()
    assert not bench.treated.is_closed
    assert bench.treatment.pulses[0].work is None
    bench.treatment.abandon()
    assert bench.pool.lent == 0


def test_a_consent_that_is_gone_is_told_once_a_step_that_fails_each_second():
    pipeline = StubPipeline()
    bench = Bench(pipeline)

    def run(error, reason, frames):
        pipeline.error, pipeline.reason = error, reason
        for _ in range(frames):
            frame = bench.pool.acquire()
            bench.clock.advance(NS_PER_S)
            outcome = pipeline.finish(SimpleNamespace(token=bench.token.get()))
            bench.treatment._hold(frame)
            bench.treatment._give(frame, outcome)
            bench.pool.release(bench.treated.take())

    with structlog.testing.capture_logs() as logs:
        run("the consent is gone", "no_consent", 5)
        assert bench.telemetry.withheld == "the consent is gone"
        run("", "", 1)
        assert bench.telemetry.withheld == ""
        run("the consent is gone", "no_consent", 3)
        run("blur: driver", "step_failed", 4)
        assert bench.telemetry.withheld == ""
    told = [entry["event"] for entry in logs]
    assert (
        told
        == ["no consent, the frame is covered"] * 2 + ["a step failed, the frame is covered"] * 4
    )
    assert bench.telemetry.counts()["covered_no_consent"] == 8


def test_a_part_that_waits_for_one_that_hangs_ends_when_it_is_abandoned():
    """Nobody takes from between them any more."""
    at_work, go_on = threading.Event(), threading.Event()

    class HangsLate(StubPipeline):
        def run_step(self, state, name):
            if name == "blur":
                at_work.set()
                assert go_on.wait(10)

    bench = Bench(HangsLate(), ("detect", "align", "blur"))
    assert len(bench.treatment.pulses) == 2
    bench.start()
    for pts in (100, 200, 300):
        bench.put(pts)
        assert at_work.wait(10)
    bench.treatment.abandon()
    first, last = bench.threads
    first.join(10)
    assert not first.is_alive()
    assert last.is_alive()
    assert bench.pool.lent == 0
    go_on.set()
    bench.join()
    assert bench.telemetry.counts()["refused_late_frames"] == 1
