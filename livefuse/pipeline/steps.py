"""The operations on a frame, in order, on one page.

    frame, token -> for each operation of the token: its step reads or edits the frame
                 -> a picture that may not be seen is covered whole
                 -> the token with a log entry for each step, and what was found

A step that fails never reaches the caller: the picture is covered, counted, and the next frame
starts afresh. A job without a covering operation has nothing to hide, so it passes instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import cv2

from livefuse.clock import NS_PER_MS
from livefuse.errors import ConfigError
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.blazeface import BlazeFaceDetector
from livefuse.pipeline.analysis.centerface import CenterFaceDetector
from livefuse.pipeline.analysis.track import FaceTracker
from livefuse.pipeline.effects.blur import FaceBlur

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.face import Track
    from livefuse.frame import Frame
    from livefuse.geometry import Ellipse
    from livefuse.pipeline.analysis.detect import Detector
    from livefuse.runtime.session import Network, SessionCache
    from livefuse.token import Token

COVERING: Final = frozenset({"blur"})
"""Operations whose purpose is to hide a face: a job with one of them fails closed."""


@dataclass(slots=True)
class FrameState:
    """What the steps of one frame write for one another. Lives as long as the frame's turn."""

    frame: Frame
    tracks: tuple[Track, ...] = ()
    covers: tuple[Ellipse, ...] = ()
    cover_reason: str = ""
    did: str = ""


@dataclass(slots=True, frozen=True)
class Outcome:
    """What was done to a frame.

    `vouched`: every step did its work. `covered_whole`: nothing of the picture can be seen, because
    of `reason` (`lost_face`, `step_failed`); `error` tells more. `steps` are (name, ms). Inside
    `covers` (px) nothing of the frame is left.
    """

    token: Token
    vouched: bool
    faces: tuple[Track, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    covered_whole: bool = False
    reason: str = ""
    error: str = ""
    covers: tuple[Ellipse, ...] = field(default=())


class Step(Protocol):
    """One operation. Keeps what it needs from frame to frame; one thread."""

    def run(self, state: FrameState) -> None:
        """Do it, and say what was done in `state.did`. Any exception means: not vouched for."""
        ...

    def reset(self) -> None:
        """Forget the frames so far; the next one is the first."""
        ...


class DetectStep:
    """Where the faces are, new or followed."""

    def __init__(self, tracker: FaceTracker) -> None:
        self._tracker = tracker

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        tracking = self._tracker.update(state.frame)
        state.tracks = tracking.tracks
        if tracking.lost:
            state.cover_reason = "lost_face"
        how = "detected" if tracking.detected else "followed"
        state.did = f"{how} {len(tracking.tracks)}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._tracker.reset()


class BlurStep:
    """Each face covered."""

    def __init__(self, blur: FaceBlur) -> None:
        self._blur = blur

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.cover_reason:
            state.did = "left to the whole cover"
            return
        state.covers = self._blur.cover(state.frame, state.tracks)
        state.did = f"covered {len(state.covers)}"

    def reset(self) -> None:
        """See `Step.reset`; it keeps nothing from frame to frame."""


def create_detector(config: Config, sessions: SessionCache, *, every_frame: bool) -> Detector:
    """Return the configured detector, its network loaded.

    Raises:
        ModelError: the network cannot be had.
        ConfigError: it is not a detector.
    """
    settings = config.detect
    threads = settings.every_frame_threads if every_frame else settings.threads
    network = sessions.get(settings.model, threads)
    family = network.model.family
    if family not in DETECTORS:
        raise ConfigError(
            f"the model {settings.model} does not find faces",
            hint=f"set detect.model to one of the families {', '.join(DETECTORS)}",
        )
    sides = settings.input_long_side, settings.light_input_long_side
    if every_frame:
        sides = settings.every_frame_input_long_side, settings.every_frame_light_input_long_side
    return DETECTORS[family](network, *sides, settings.keep_score)


def _create_detect(config: Config, sessions: SessionCache, every_frame: bool) -> Step:  # noqa: FBT001 - a factory's fixed signature
    settings = config.detect
    tracker = FaceTracker(
        create_detector(config, sessions, every_frame=every_frame),
        config.track,
        every_n=settings.every_frame_every_n if every_frame else settings.every_n,
        min_score=settings.min_score,
        light_on_change=every_frame,
        full_every_n=0 if every_frame else settings.full_every_n,
    )
    return DetectStep(tracker)


def _create_blur(config: Config, _sessions: SessionCache, _every_frame: bool) -> Step:  # noqa: FBT001 - a factory's fixed signature
    return BlurStep(FaceBlur(config.blur))


DETECTORS: Final[dict[str, Callable[[Network, int, int, float], Detector]]] = {
    "centerface": CenterFaceDetector,
    "blazeface": BlazeFaceDetector,
}
STEPS: Final[dict[str, Callable[[Config, SessionCache, bool], Step]]] = {
    "detect": _create_detect,
    "blur": _create_blur,
}


class Pipeline:
    """The steps of one job. One thread; `warm_up` may be called from another before that."""

    def __init__(
        self,
        config: Config,
        sessions: SessionCache,
        clock: Clock,
        *,
        cover: Callable[[Frame], None],
        every_frame: bool = False,
        operations: tuple[str, ...] = ("detect", "blur"),
    ) -> None:
        """Make the steps of `operations` ready; others are made when a token first asks for them.

        `cover` hides a whole picture (safety.cover). With `every_frame` (files) recall goes
        before delay.

        Raises:
            ConfigError: a value cannot be used, a picture is missing.
            ModelError: a network cannot be had.
        """
        # One job has one core; OpenCV's own threads only get in the way of the others.
        cv2.setNumThreads(1)
        self._config = config
        self._sessions = sessions
        self._clock = clock
        self._cover = cover
        self._every_frame = every_frame
        self._steps: dict[str, Step] = {}
        self._operations = operations
        for name in operations:
            self._get_step(name)
        self.failures = 0

    def warm_up(self, width: int, height: int) -> None:
        """Run every step once on a black picture, so that the first real frame is not late.

        Raises:
            LivefuseError: a step cannot do its work.
        """
        for name in self._operations:
            step = self._get_step(name)
            step.run(FrameState(create_frame(width, height)))
            step.reset()

    def process(self, frame: Frame, token: Token) -> Outcome:
        """Do the token's operations on `frame` in place. Never raises.

        A frame that a step failed on is covered whole when the job is to hide faces.
        """
        if not token.operations:
            return Outcome(token, vouched=True)
        state = FrameState(frame)
        times: list[tuple[str, float]] = []
        error = _fill_planes(frame)
        for name in () if error else token.operations:
            started_ns = self._clock.now_ns()
            try:
                self._get_step(name).run(state)
            except Exception as cause:  # noqa: BLE001 - whatever a step meets, the picture is covered
                error = f"{name}: {str(cause) or type(cause).__name__}"
            took_ms = (self._clock.now_ns() - started_ns) / NS_PER_MS
            times.append((name, took_ms))
            token = self._note(token, name, error or state.did, took_ms, failed=bool(error))
            if error:
                break
        if error:
            state.cover_reason = "step_failed"
            self.failures += 1
        must_cover = bool(state.cover_reason) and not COVERING.isdisjoint(token.operations)
        if must_cover:
            self._cover(frame)
        return Outcome(
            token=token,
            vouched=not error,
            faces=state.tracks,
            steps=tuple(times),
            covered_whole=must_cover,
            reason=state.cover_reason,
            error=error,
            covers=state.covers,
        )

    def _get_step(self, name: str) -> Step:
        step = self._steps.get(name)
        if step is None:
            step = STEPS[name](self._config, self._sessions, self._every_frame)
            self._steps[name] = step
        return step

    def _note(self, token: Token, name: str, did: str, took_ms: float, *, failed: bool) -> Token:
        state = f"{name}_failed" if failed else name
        return token.update_state(state, at=self._clock.epoch_s(), reason=did, ms=took_ms)


def _fill_planes(frame: Frame) -> str:
    """Make the planes hold the picture; return what went wrong, or nothing."""
    try:
        frame.fill_planes()
    except Exception as cause:  # noqa: BLE001 - as with a step: the picture is covered
        return f"copy: {str(cause) or type(cause).__name__}"
    return ""
