"""What the governor decides reaches the frames, and stands in their tokens."""

import itertools

import pytest

from livefuse.clock import NS_PER_MS, ManualClock
from livefuse.config import LADDER, GovernorConfig, Rung, load_config
from livefuse.errors import ConfigError
from livefuse.job.load_control import LoadControl
from livefuse.pipeline.state import Outcome
from livefuse.telemetry import Telemetry
from livefuse.token import create_token

FRAME_MS = 1000 / 30
PARTS = {"detect": 0, "align": 0, "swap": 1, "enhance": 1}
OPERATIONS = ("detect", "align", "swap", "enhance")
TOKEN = create_token(OPERATIONS, now_epoch_s=0.0)


class Run:
    def __init__(self, **config):
        self.clock = ManualClock()
        self.telemetry = Telemetry(self.clock)
        self.control = LoadControl(GovernorConfig(**config), FRAME_MS, PARTS, self.telemetry, 3)
        self.loads = []

    def feed(self, seconds, enhance_ms=5.0, other_ms=5.0, age_ms=1.0):
        for _ in range(round(30 * seconds)):
            self.clock.advance(round(FRAME_MS * NS_PER_MS))
            load = self.control.take(age_ms)
            self.loads.append(load)
            if load is None:
                continue
            is_spared = load.rung.enhance_share == 0 and not load.is_sounding
            spared = {"enhance"} if is_spared else set()
            times = [(name, other_ms) for name in OPERATIONS[:-1]]
            times.append(("enhance", 0.1 if spared else enhance_ms))
            outcome = Outcome(
                TOKEN,
                vouched=True,
                steps=tuple(times),
                spared=frozenset(spared),
                is_enhanced=load.rung.enhance_share > 0,
            )
            self.control.note(self.clock.now_ns(), outcome)
        return self.control.rung_name


def test_what_fits_is_left_alone():
    run = Run()
    assert run.feed(10) == "everything"
    assert {load.change for load in run.loads} == {""}


def test_enhance_goes_first_and_one_frames_token_says_so():
    """R42, R43"""
    run = Run()
    run.feed(3)
    assert run.feed(2, enhance_ms=130.0) == "enhance_off"
    changes = [load for load in run.loads if load.change]
    assert [(c.change, c.reason) for c in changes] == [
        ("downgraded_for_performance", "deadline: enhance_off")
    ]
    assert run.telemetry.counts()["downgrades"] == 1


def test_it_comes_back_and_says_so():
    run = Run()
    run.feed(3)
    run.feed(2, enhance_ms=60.0, other_ms=12.0)
    assert run.control.rung_name != "everything"
    assert run.feed(40) == "everything"
    assert run.loads[-1].rung == LADDER[0]
    names = [load.change for load in run.loads if load.change]
    assert names[-1] == "upgraded_for_performance"


def test_half_the_frames_are_left_out_on_that_rung():
    run = Run()
    run.feed(3)
    run.feed(3, other_ms=33.0, enhance_ms=33.0)
    while run.control.rung_name != "frames_half":
        run.feed(1 / 30, other_ms=33.0, enhance_ms=33.0, age_ms=60.0)
        assert len(run.loads) < 300
    run.feed(0.9, other_ms=33.0, enhance_ms=33.0)
    last = run.loads[-20:]
    assert sum(load is None for load in last) == 10
    assert not any(one is None and other is None for one, other in itertools.pairwise(last))


def test_a_frame_that_is_old_already_is_late():
    run = Run()
    run.feed(3)
    old, young = run.control.take(100.0), run.control.take(1.0)
    assert old is not None
    assert young is not None
    assert (old.is_late, young.is_late) == (True, False)


def test_switched_off_it_spares_nothing():
    run = Run(enabled=False)
    assert run.feed(5, enhance_ms=500.0, age_ms=500.0) == "everything"
    assert not any(load.is_late for load in run.loads)


@pytest.mark.parametrize("share", [0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0])
def test_a_rung_shows_the_share_of_the_frames_that_it_says(share):
    run = Run(rungs=(Rung(name="some", frame_share=share),), enabled=False)
    run.feed(20)
    shown = sum(load is not None for load in run.loads)
    assert shown == pytest.approx(share * len(run.loads), abs=1)


@pytest.mark.parametrize("rungs", ["[]", '[{name="none", frame_share=0.0}]'])
def test_a_ladder_that_shows_nothing_is_refused(rungs):
    with pytest.raises(ConfigError):
        load_config(None, (f"governor.rungs={rungs}",))


def test_what_presses_reaches_the_rung_the_token_and_the_counters():
    """From another thread than the pipeline's; each source takes back only what it said."""
    run = Run()
    run.feed(1)
    run.control.note_pressure("machine", {"thermal"})
    run.control.note_pressure("watchdog", {"memory_constrained"})
    assert run.feed(1) == "enhance_half"
    run.control.note_pressure("watchdog", ())
    assert run.feed(5) == "enhance_off"
    run.control.note_pressure("machine", ())
    assert run.feed(20) == "everything"
    changes = [load.reason for load in run.loads if load.change]
    assert changes[:2] == ["memory_constrained: enhance_half", "thermal: enhance_off"]


def test_a_try_reaches_one_frame():
    """C09: what got dear alone is tried on single frames, and comes back when it is cheap."""
    run = Run()
    run.feed(3)
    run.feed(9, enhance_ms=130.0)
    assert run.control.rung_name == "enhance_off"
    assert sum(load.is_sounding for load in run.loads) == 1
    assert run.feed(10) == "everything"
    assert run.telemetry.counts()["downgrades"] == 1


def test_it_tells_what_was_spared_for_how_long_and_why():
    run = Run()
    run.feed(4)
    run.feed(8, enhance_ms=130.0)
    run.control.note_pressure("machine", {"low_power"})
    run.feed(2, enhance_ms=130.0)
    told = run.control.describe()
    assert (told["rung_index"], run.control.rung_name) == (3, "detect_5th")
    assert told["changes"] == {"deadline": 1, "low_power": 1}
    assert told["pressures"] == ["low_power"]
    assert told["rung_seconds"]["everything"] == pytest.approx(4.3, abs=0.3)
    assert told["rung_seconds"]["enhance_off"] == pytest.approx(7.7, abs=0.3)
    assert sum(told["rung_seconds"].values()) == pytest.approx(14.0, abs=0.1)
    assert told["enhanced_frames"] + told["not_enhanced_frames"] == len(run.loads)
    assert told["enhanced_share"] == pytest.approx(4.3 / 14, abs=0.03)


def test_without_a_face_there_is_no_share():
    assert Run().control.describe()["enhanced_share"] is None
