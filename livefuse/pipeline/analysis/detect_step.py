"""The first operation: where the faces are, new or followed, and which of them are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.errors import ConfigError
from livefuse.face import Face
from livefuse.pipeline.analysis.blazeface import BlazeFaceDetector
from livefuse.pipeline.analysis.centerface import CenterFaceDetector
from livefuse.pipeline.analysis.retinaface import create_retinaface_detector
from livefuse.pipeline.analysis.rotate import RotatingDetector
from livefuse.pipeline.analysis.scrfd import ScrfdDetector
from livefuse.pipeline.analysis.select import FaceSelector
from livefuse.pipeline.analysis.track import FaceTracker
from livefuse.pipeline.analysis.yoloface import YoloFaceDetector
from livefuse.pipeline.analysis.yunet import YuNetDetector
from livefuse.token import COVERING

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.pipeline.analysis.detect import Detector
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.runtime.session import Network, SessionCache
    from livefuse.token import Token

DETECTORS: Final[dict[str, Callable[[Network, int, int, float], Detector]]] = {
    "centerface": CenterFaceDetector,
    "blazeface": BlazeFaceDetector,
    "scrfd": ScrfdDetector,
    "retinaface": create_retinaface_detector,
    "yoloface": YoloFaceDetector,
    "yunet": YuNetDetector,
}


class DetectStep:
    """Where the faces are, new or followed. See `state.Step`."""

    def __init__(self, tracker: FaceTracker) -> None:
        self._tracker = tracker
        self._selector = FaceSelector()

    def prepare(self, token: Token) -> None:
        """See `Step.prepare`; the detector is there since the step was made."""

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.is_trial:
            self._tracker.try_detector(state.frame)
        self._tracker.spare(
            state.rung.detect_every,
            light_only=state.rung.light_looks,
            hides_faces=not COVERING.isdisjoint(state.token.operations),
        )
        tracking = self._tracker.update(state.frame)
        if not tracking.detected:
            state.spared.add("detect")
        state.faces = [Face(track) for track in tracking.tracks]
        state.is_cut = tracking.cut
        self._selector.choose(state.faces, state.token.parameters, state.dt_s)
        if tracking.lost:
            state.cover_reason = "lost_face"
        how = "detected" if tracking.detected else "followed"
        state.did = f"{how} {len(tracking.tracks)}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._tracker.reset()
        self._selector.reset()


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
    detector = DETECTORS[family](network, *sides, settings.keep_score)
    return RotatingDetector(detector) if settings.rotations else detector


def create_detect_step(context: StepContext) -> DetectStep:
    """Return the step; its network is loaded.

    Raises:
        ModelError: the network cannot be had.
        ConfigError: it is not a detector.
    """
    settings = context.config.detect
    tracker = FaceTracker(
        create_detector(context.config, context.sessions, every_frame=context.every_frame),
        context.config.track,
        every_n=settings.every_frame_every_n if context.every_frame else settings.every_n,
        min_score=settings.min_score,
        light_on_change=context.every_frame,
        full_every_n=0 if context.every_frame else settings.full_every_n,
    )
    return DetectStep(tracker)
