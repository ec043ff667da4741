"""(C23) each step is timed on a made picture, and the slow one is named."""

import pytest

from livefuse.config import Config, DetectConfig, IngestConfig
from livefuse.control.doctor import steps as doctor_steps
from livefuse.control.doctor.steps import StepTime, StepTimer, check_steps, describe_times
from livefuse.errors import ModelError
from livefuse.pipeline import steps

SMALL = Config(ingest=IngestConfig(camera_size="641x360"))


class FakeStep:
    def __init__(self, error=None):
        self.error = error

    def prepare(self, token):
        pass

    def run(self, state):
        if self.error:
            raise self.error

    def reset(self):
        pass


@pytest.fixture
def only(monkeypatch):
    """Replace the operations that there are."""

    def replace(**named):
        for name in list(steps.STEPS):
            monkeypatch.delitem(steps.STEPS, name)
        for name, step in named.items():
            monkeypatch.setitem(steps.STEPS, name, lambda context, step=step: step)

    return replace


def test_the_slowest_is_named_with_the_rate_that_all_allow():
    times = [StepTime("detect", 4.0, 9.0), StepTime("blur", 36.0, 40.0)]
    check = describe_times("steps", times, (640, 360))
    assert check.level == "ok"
    assert check.text.startswith("blur is the slowest, 36.0 ms a frame (p95 40.0)")
    assert "together 40.0 ms, which allows 25 frames a second" in check.text
    assert "detect 4.0, blur 36.0 ms, 640x360" in check.text


def test_a_rate_that_is_no_fun_is_a_warning_with_a_way_out():
    times = [StepTime("align", 500.0, 600.0), StepTime("swap", 300.0, 400.0)]
    check = describe_times("steps", times, (640, 360))
    assert check.level == "warning"
    assert check.text.startswith("align is the slowest")
    assert check.cure.startswith("leave swap out")  # which is what needs align


def test_slow_steps_are_timed_a_few_seconds_and_no_more(only, monkeypatch):
    class Slow(FakeStep):
        ran = 0

        def run(self, state):
            self.ran += 1

    slow = Slow()
    only(detect=slow)
    monkeypatch.setattr(doctor_steps, "_MAX_S", 0)
    assert len(StepTimer(SMALL, rounds=50).measure(("detect",))) == 1
    assert slow.ran == 1 + 3  # a trial, and the fewest that say something


def test_real_steps_are_timed_each_round():
    timer = StepTimer(SMALL, rounds=4)
    assert timer.size == (640, 360)
    assert {"detect", "align", "blur"} <= set(timer.list_operations())
    times = timer.measure(("detect", "blur"))
    assert [step.name for step in times] == ["detect", "blur"]
    assert all(step.mean_ms > 0 for step in times)


def test_default_and_all_operations_have_a_line_each(only):
    only(detect=FakeStep(), align=FakeStep(), puppet=FakeStep(), blur=FakeStep())
    checks = check_steps(SMALL, rounds=3)
    assert [(check.level, check.name) for check in checks] == [
        ("ok", "steps"),
        ("ok", "all steps"),
        ("ok", "puppet"),
    ]
    assert "align" in checks[1].text
    assert "puppet" not in checks[1].text


def test_a_step_that_fails_is_a_problem_and_the_others_are_timed(only):
    only(detect=FakeStep(), align=FakeStep(ModelError("no landmarks")), blur=FakeStep())
    checks = check_steps(SMALL, rounds=3)
    assert [(check.level, check.name) for check in checks] == [
        ("ok", "steps"),
        ("problem", "all steps"),
    ]
    assert "no landmarks" in checks[1].text


def test_a_step_that_cannot_be_had_is_left_out_with_its_reason():
    config = Config(detect=DetectConfig(model="no_such_model"))
    checks = check_steps(config, rounds=2)
    assert checks
    assert any("unknown model 'no_such_model'" in check.text for check in checks)
