"""The operations on a frame, in order, on one page.

    frame, token -> for each operation of the token: its step reads or edits the frame
                 -> a picture that may not be seen is covered whole
                 -> the token with a log entry for each step, and what was found

A step that fails never reaches the caller: analysis is tried once more while the frame is young;
then the picture is covered, or the last good one is held, as the token's policy says. It is
counted, and the next frame starts afresh. A job without an operation that hides something has
nothing to hide, so it passes instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import cv2
import msgspec

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.frame import TIME_BASE_HZ, create_frame
from livefuse.pipeline.analysis.align import create_align_step
from livefuse.pipeline.analysis.detect_step import create_detect_step
from livefuse.pipeline.analysis.identify import create_identify_step
from livefuse.pipeline.aside import create_aside
from livefuse.pipeline.background_step import create_background_step
from livefuse.pipeline.effects.beauty_step import create_beautify_step
from livefuse.pipeline.effects.blur import create_blur_step
from livefuse.pipeline.enhance_step import create_enhance_step
from livefuse.pipeline.policy import ConsentWatch, HeldPicture
from livefuse.pipeline.puppet_step import create_puppet_step
from livefuse.pipeline.state import (
    NO_CONSENT,
    FrameState,
    Load,
    Outcome,
    Services,
    Step,
    StepContext,
)
from livefuse.pipeline.swap_step import create_swap_step
from livefuse.token import COVERING, GENERATING, HIDING, OPERATIONS, Token

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.frame import Frame
    from livefuse.runtime.session import SessionCache

_DEFAULT_DT_S: Final = 1 / 30
_MAX_DT_S: Final = 0.5
_FRAME_LIVES: Final = 6.0  # of a frame's time: rings, parts and encode
LOADING: Final = "loading"
OVERLOAD: Final = "overload"
ASKED: Final = "asked"
_LEFT_OUT: Final = frozenset({LOADING, OVERLOAD, ASKED})
_LAST_ANALYSIS_RANK: Final = OPERATIONS["identify"]

STEPS: Final[dict[str, Callable[[StepContext], Step]]] = {
    "detect": create_detect_step,
    "align": create_align_step,
    "identify": create_identify_step,
    "background": create_background_step,
    "swap": create_swap_step,
    "puppet": create_puppet_step,
    "beautify": create_beautify_step,
    "enhance": create_enhance_step,
    "blur": create_blur_step,
}


class Pipeline:
    """The steps of one job. Frames pass in order, each step one frame at a time.

    `begin`, `run_step` and `finish` are the parts of `process`, for those who let several frames
    be on their way at once (conveyor.py); a step's `run` must then stay with one thread.
    """

    def __init__(
        self,
        config: Config,
        sessions: SessionCache,
        clock: Clock,
        services: Services,
        *,
        every_frame: bool = False,
        aside: Executor | None = None,
    ) -> None:
        """Take what steps are made from; `prepare` makes them.

        With `every_frame` (files) recall goes before delay. `aside` is where side work runs, when
        the mode is not to choose: a replay treats frames as live and yet repeats to the bit.
        """
        # One job has one core; OpenCV's own threads only get in the way of the others.
        cv2.setNumThreads(1)
        self._clock = clock
        self._services = services
        self._context = StepContext(
            config=config,
            sessions=sessions,
            every_frame=every_frame,
            aside=aside or create_aside(every_frame=every_frame),
            services=services,
        )
        self._steps: dict[str, Step] = {}
        self._pts = 0
        self._consent = ConsentWatch(services.is_allowed, services.explain_refusal)
        self._held = HeldPicture()
        self.failures = 0
        self.is_ready = True

    def prepare(self, token: Token) -> None:
        """Make the token's steps and what they need ready; may take seconds.

        Raises:
            ConfigError: a value cannot be used, a picture is missing.
            ModelError: a network cannot be had.
            ConsentError: the source face may not be used.
        """
        for name in token.operations:
            self._get_step(name).prepare(token)

    def warm_up(self, width: int, height: int, token: Token) -> None:
        """Run every step once on a black picture, so that the first real frame is not late.

        Frames that come before that are covered; a token without operations needs none of it.

        Raises:
            LivefuseError: a step cannot do its work.
        """
        state = FrameState(create_frame(width, height), token, is_trial=True)
        for name in token.operations:
            step = self._get_step(name)
            step.run(state)
            step.reset()
        self.is_ready = True

    def prepare_changes(self, width: int, height: int, token: Token) -> None:
        """Make ready the steps of `token` that there were none of so far; may take seconds.

        From any thread but the frames': those that run are left alone, and follow by themselves.

        Raises:
            LivefuseError: what is asked for cannot be had.
        """
        state = FrameState(create_frame(width, height), token, is_trial=True)
        for name in token.operations:
            if name not in self._steps:
                step = STEPS[name](self._context)
                step.prepare(token)
                step.run(state)
                step.reset()
                self._steps[name] = step

    def describe_networks(self) -> dict[str, Any]:
        """Return where networks run, and the other figures of the sessions that jobs share."""
        figures: dict[str, Any] = msgspec.to_builtins(self._context.sessions.statistics())
        return figures

    def may_show(self, token: Token) -> bool:
        """Say whether a picture that was made by `token` may be shown again. Any thread."""
        return self._consent.may_show(token)

    def close(self) -> None:
        """End the side work; nothing may be processed any more."""
        self._context.aside.shutdown(wait=False, cancel_futures=True)

    def process(self, frame: Frame, token: Token) -> Outcome:
        """Do the token's operations on `frame` in place. Never raises.

        A frame that a step failed on is covered whole when the job is to hide faces.
        """
        state = self.begin(frame, token)
        for name in token.operations:
            self.run_step(state, name)
        return self.finish(state)

    def begin(self, frame: Frame, token: Token, load: Load = Load()) -> FrameState:  # noqa: B008 - immutable
        """Return the working state of the next frame; `load` says what is to be spared."""
        dt_s = (frame.pts - self._pts) / TIME_BASE_HZ
        self._pts = frame.pts
        state = FrameState(frame, token, dt_s if 0.0 < dt_s <= _MAX_DT_S else _DEFAULT_DT_S)
        if token.operations:
            state.token = self._create_frame_token(state)
        state.rung, state.is_late = load.rung, load.is_late
        state.is_sounding = load.is_sounding
        state.started_ns = self._clock.now_ns()
        if load.change:
            state.token = state.token.update_state(
                load.change, at=self._clock.epoch_s(), reason=load.reason
            )
        if token.operations or token.parameters.cover_all:
            state.error = _fill_planes(frame)
        if token.parameters.cover_all:
            state.cover_reason = ASKED
        elif token.operations and not self.is_ready:
            state.cover_reason = LOADING
        if load.rung.cover_only and token.operations:
            state.cover_reason = state.cover_reason or OVERLOAD
        if not self._consent.holds(token, state.started_ns):
            state.error, state.cover_reason = self._consent.refusal, NO_CONSENT
        return state

    def _create_frame_token(self, state: FrameState) -> Token:
        """Return the frame's own copy: it names the frame, and lives as long as its deadline."""
        slot, turn = state.frame.handle
        lives_s = _FRAME_LIVES * state.dt_s
        return state.token.create_frame_token(f"{slot}:{turn}", self._clock.epoch_s(), lives_s)

    def run_step(self, state: FrameState, name: str) -> None:
        """Do one operation; after a failure the others are left out. Never raises."""
        if state.error or state.cover_reason in _LEFT_OUT:
            return
        started_ns = self._clock.now_ns()
        state.did = ""
        state.error = self._try_step(state, name)
        if state.error and OPERATIONS[name] <= _LAST_ANALYSIS_RANK and self._is_young(state):
            state.error = self._try_step(state, name)  # it has read the frame, not painted it
        self._clock.charge(f"{name}_spared" if name in state.spared else name)
        took_ms = (self._clock.now_ns() - started_ns) / NS_PER_MS
        state.times.append((name, took_ms))
        state.token = state.token.update_state(
            f"{name}_failed" if state.error else name,
            at=self._clock.epoch_s(),
            reason=state.error or state.did,
            ms=took_ms,
        )

    def finish(self, state: FrameState) -> Outcome:
        """Cover what may not be seen and say what was done."""
        operations = state.token.operations
        if state.error:
            state.cover_reason = state.cover_reason or "step_failed"
            self.failures += 1
        self._consent.shown = state.source_shown
        must_cover = self._must_cover(state)
        if must_cover and state.cover_reason == LOADING:
            (self._services.cover_loading or self._services.cover)(state.frame)
        elif not self._held.serve(state, must_cover=must_cover) and must_cover:
            self._services.cover(state.frame)
        generates = not GENERATING.isdisjoint(operations)
        state.frame.is_generated = generates and state.token.parameters.shows_source
        return Outcome(
            token=state.token,
            vouched=not state.error and state.cover_reason not in _LEFT_OUT,
            faces=tuple(face.track for face in state.faces),
            steps=tuple(state.times),
            covered_whole=must_cover,
            reason=state.cover_reason,
            error=state.error,
            covers=state.covers,
            spared=frozenset(state.spared),
            is_enhanced=state.is_enhanced,
            rung=state.rung.name,
        )

    def _must_cover(self, state: FrameState) -> bool:
        """Say whether nothing of the picture may be seen.

        A face that was lost is nothing to a job that hides the room; what was not treated is.
        """
        is_untreated = bool(state.error) or state.cover_reason in _LEFT_OUT
        hiding = HIDING if is_untreated else COVERING
        hides = not hiding.isdisjoint(state.token.operations)
        if state.cover_reason == ASKED:
            return True
        if state.cover_reason == LOADING:
            return hides or self._context.config.pipeline.while_loading != "pass"
        return hides and bool(state.cover_reason)

    def _try_step(self, state: FrameState, name: str) -> str:
        try:
            self._get_step(name).run(state)
        except Exception as cause:  # noqa: BLE001 - whatever a step meets, the picture is covered
            return f"{name}: {str(cause) or type(cause).__name__}"
        return ""

    def _is_young(self, state: FrameState) -> bool:
        """Say whether the frame's turn is not over yet."""
        return self._clock.now_ns() - state.started_ns < state.dt_s * NS_PER_S

    def _get_step(self, name: str) -> Step:
        step = self._steps.get(name)
        if step is None:
            step = self._steps[name] = STEPS[name](self._context)
        return step


def _fill_planes(frame: Frame) -> str:
    """Make the planes hold the picture; return what went wrong, or nothing."""
    try:
        frame.fill_planes()
    except Exception as cause:  # noqa: BLE001 - as with a step: the picture is covered
        return f"copy: {str(cause) or type(cause).__name__}"
    return ""
