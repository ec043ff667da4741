"""How long each step takes on this machine: the pipeline on a made picture with a face.

"CUDA applied" and three frames a second are both true when a step that nobody thought of is the
slow one, so each is timed and the slowest is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import msgspec

from livefuse.clock import NS_PER_S, SystemClock
from livefuse.control.doctor.check import Check
from livefuse.errors import LivefuseError, ModelError
from livefuse.face import SourceFace
from livefuse.frame import TIME_BASE_HZ, create_frame
from livefuse.ingest.scene.talking_head import TalkingHead, load_portrait
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import STEPS, Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.safety.cover import cover_frame
from livefuse.token import NEEDS, OPERATIONS, Parameters, Token, create_token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.config import Config

ROUNDS: Final = 50
DEFAULT_OPERATIONS: Final[tuple[str, ...]] = ("detect", "blur")
# It makes a whole new picture, so it is not one of many: timed by itself.
_ALONE: Final = "puppet"
_FPS: Final = 30
_MAX_S: Final = 6
_LEAST_ROUNDS: Final = 3
_MIN_USEFUL_FPS: Final = 15.0
_AMOUNTS: Final = {"smooth": 0.6, "even": 0.4}


class StepTime(NamedTuple):
    """What a step cost, waiting included: mean and p95 in ms."""

    name: str
    mean_ms: float
    p95_ms: float


class StepTimer:
    """Times steps on the demo's moving head, drawn as large as a camera's picture."""

    def __init__(
        self,
        config: Config,
        rounds: int = ROUNDS,
        *,
        sessions: SessionCache | None = None,
        seconds_apart: float = 1 / _FPS,
    ) -> None:
        """Take what is timed; `list_operations` and `measure` do the work.

        The rounds' pictures are `seconds_apart` in the head's movement, a frame for the pipeline.
        """
        self._config = config
        self._rounds = rounds
        self._sessions = sessions or SessionCache(config.models)
        self._seconds_apart = seconds_apart
        self.size = _parse_size(config.ingest.camera_size)
        self._clock = SystemClock()
        self._head = TalkingHead(*self.size)
        self._frame = create_frame(*self.size)
        self.left_out: dict[str, str] = {}

    def list_operations(self) -> tuple[str, ...]:
        """Return what works here; `left_out` says of the others why they do not."""
        pipeline = self._create_pipeline()
        try:
            return tuple(name for name in STEPS if self._can_prepare(pipeline, name))
        finally:
            pipeline.close()

    def measure(self, operations: Iterable[str]) -> list[StepTime]:
        """Return the times of `operations`, in order, over all rounds, or those of six seconds.

        Raises:
            LivefuseError: a step cannot be had, or does not do its work.
        """
        token = _create_token(operations)
        pipeline = self._create_pipeline()
        try:
            pipeline.prepare(token)
            pipeline.warm_up(*self.size, token)
            times: dict[str, list[float]] = {name: [] for name in token.operations}
            ends_ns = self._clock.now_ns() + _MAX_S * NS_PER_S
            for turn in range(self._rounds):
                for name, took_ms in self._process(pipeline, token, turn):
                    times[name].append(took_ms)
                if turn + 1 >= _LEAST_ROUNDS and self._clock.now_ns() > ends_ns:
                    break
        finally:
            pipeline.close()
        return [_summarise(name, values) for name, values in times.items()]

    def _process(
        self, pipeline: Pipeline, token: Token, turn: int
    ) -> tuple[tuple[str, float], ...]:
        self._head.draw(self._frame, turn * self._seconds_apart)
        self._frame.pts = turn * TIME_BASE_HZ // _FPS
        outcome = pipeline.process(self._frame, token)
        if outcome.error:
            raise ModelError(f"a step does not do its work ({outcome.error})")
        return outcome.steps

    def _can_prepare(self, pipeline: Pipeline, name: str) -> bool:
        try:
            pipeline.prepare(_create_token((*NEEDS.get(name, ()), name)))
        except LivefuseError as error:
            self.left_out[name] = error.message
            return False
        return True

    def _create_pipeline(self) -> Pipeline:
        # The demo's own portrait is the source: no store is opened, and nothing leaves here.
        rgb = cv2.cvtColor(load_portrait(), cv2.COLOR_BGR2RGB)
        source = SourceFace("doctor", rgb, "0" * 64)  # type: ignore[arg-type] # cv2 keeps uint8
        services = Services(
            cover=cover_frame,
            cover_loading=cover_frame,
            load_source=lambda _id: source,
            list_gallery=tuple,
            is_allowed=bool,
        )
        return Pipeline(self._config, self._sessions, self._clock, services)


def check_steps(config: Config, rounds: int = ROUNDS) -> list[Check]:
    """Return a line for the default operations, for all of them, and for the puppet."""
    timer = StepTimer(config, rounds)
    usable = timer.list_operations()
    together = tuple(name for name in usable if name != _ALONE)
    groups = {"steps": tuple(name for name in DEFAULT_OPERATIONS if name in usable)}
    if together != groups["steps"]:
        groups["all steps"] = together
    if _ALONE in usable:
        groups[_ALONE] = (*NEEDS[_ALONE], _ALONE)
    checks = [_check_group(timer, name, names) for name, names in groups.items() if names]
    for reason in dict.fromkeys(timer.left_out.values()):
        names = ", ".join(name for name, why in timer.left_out.items() if why == reason)
        checks.append(Check("warning", "steps", f"{names} not timed: {reason}", "mend that first"))
    return checks


def _check_group(timer: StepTimer, name: str, operations: tuple[str, ...]) -> Check:
    try:
        return describe_times(name, timer.measure(operations), timer.size)
    except LivefuseError as error:
        return Check("problem", name, error.message, error.hint or "please report it")


def describe_times(name: str, times: list[StepTime], size: tuple[int, int]) -> Check:
    """Return the line about a group of steps: each one's time, the slowest, the rate."""
    each = ", ".join(f"{step.name} {step.mean_ms:.1f}" for step in times)
    total_ms = sum(step.mean_ms for step in times)
    slowest = max(times, key=lambda step: step.mean_ms)
    fps = 1000.0 / max(total_ms, 1e-3)
    text = (
        f"{slowest.name} is the slowest, {slowest.mean_ms:.1f} ms a frame (p95 "
        f"{slowest.p95_ms:.1f}); together {total_ms:.1f} ms, which allows {fps:.0f} frames a "
        f"second on one thread ({each} ms, {size[0]}x{size[1]}, one face)"
    )
    if fps >= _MIN_USEFUL_FPS:
        return Check("ok", name, text)
    cure = f"leave {_choose_to_spare(times)} out, or take --config configs/light.toml"
    return Check("warning", name, text, cure)


def _choose_to_spare(times: list[StepTime]) -> str:
    """Return the dearest step that no other one needs."""
    needed = {need for step in times for need in NEEDS.get(step.name, ())}
    free = [step for step in times if step.name not in needed] or times
    return max(free, key=lambda step: step.mean_ms).name


def _parse_size(text: str) -> tuple[int, int]:
    """Return the even sides of "WIDTHxHEIGHT" px."""
    width, _, height = text.partition("x")
    return int(width) // 2 * 2, int(height) // 2 * 2


def _create_token(operations: Iterable[str]) -> Token:
    names = sorted(set(operations), key=OPERATIONS.__getitem__)
    token = create_token(names, now_epoch_s=0.0)
    parameters = Parameters(beautify=dict(_AMOUNTS))
    return msgspec.structs.replace(token, source_face="doctor", parameters=parameters)


def _summarise(name: str, values: list[float]) -> StepTime:
    ordered = sorted(values)
    p95 = ordered[min(round(0.95 * (len(ordered) - 1)), len(ordered) - 1)]
    return StepTime(name, sum(ordered) / len(ordered), p95)
