"""The real stages of a job, driven in virtual time by a camera, a hand and a plan."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Any

import av
import cv2

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import ConsentError, LivefuseError
from livefuse.frame import TIME_BASE_HZ, create_frame
from livefuse.ingest.base import MediaInfo
from livefuse.ingest.canvas import Canvas
from livefuse.job.intake import Entrance, Intake
from livefuse.job.stages import Stages
from livefuse.job.watchdog import Pulse
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.publish.fanout import FanOut
from livefuse.ring import RingClosed
from livefuse.safety.cover import cover_frame
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks
from livefuse.telemetry import Journal, Telemetry
from livefuse.token import TokenCell, create_token, patch_token
from livefuse.virtual import VirtualClock
from livefuse.workers.local import LOADING_COVERS
from tests.faces import share_sessions
from tests.fuzz.judge import Truth
from tests.fuzz.plan import FPS, Hand, Plan
from tests.fuzz.scene import draw_scene
from tests.replay.steps import create_config

if TYPE_CHECKING:
    from livefuse.face import SourceFace
    from livefuse.frame import Frame
    from livefuse.pipeline.state import Outcome
    from tests.fuzz.faults import Faults
    from tests.fuzz.judge import Judge

_STEP_NS = NS_PER_S // FPS
_JOB = "fuzz"


class _Journal(Journal):
    """Hands to the judge what is decided and what is shown."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def note_drop(self, frame: Frame, reason: str) -> None:
        self._judge.counts[f"dropped {reason}"] += 1

    def note_outcome(self, frame: Frame, outcome: Outcome) -> None:
        self._judge.note_outcome(frame.handle, outcome)

    def note_rung(self, name: str, reason: str) -> None:
        self._judge.counts[f"rung {name}"] += 1

    def note_shown(self, frame: Frame, *, is_held: bool) -> None:
        self._judge.look(frame, is_held=is_held)


class Rig:
    """One run. `run` it once."""

    def __init__(self, plan: Plan, faults: Faults, judge: Judge) -> None:
        self._plan, self._faults, self._judge = plan, faults, judge
        self.clock = VirtualClock(faults, start_ns=NS_PER_S)
        self._config = create_config(**plan.sections)
        self.telemetry = Telemetry(self.clock, _Journal(judge))
        self._entrance = Entrance(_JOB, "live", self.telemetry, ())
        self._entrance.is_ready.set()
        token = create_token((), now_epoch_s=self.clock.epoch_s())
        self.token = TokenCell(patch_token(token, plan.token))
        judge.get_token = self.token.get
        self._fanout = FanOut.create((), self._config, self.clock, lambda: None, lossless=True)
        self._rng = random.Random(f"rig {plan.seed}")
        self._is_allowed = True
        self._stages: Stages | None = None
        self._pipeline = self._create_pipeline()
        self._canvas: Canvas | None = None
        self._start_ns = self.clock.now_ns()

    def run(self) -> None:
        """Film all of it, and see what comes out."""
        try:
            self.clock.start("camera", self._film)
            self.clock.start("hand", self._act, is_daemon=True)
            self.clock.run_until_done()
        finally:
            self.clock.stop()
            self._fanout.close(5.0)

    def _create_pipeline(self) -> Pipeline:
        services = Services(
            cover=cover_frame,
            cover_loading=LOADING_COVERS[self._config.pipeline.while_loading],
            load_source=_refuse,
            list_gallery=tuple,
            is_allowed=lambda face_id: self._is_allowed and not face_id.startswith("f_"),
        )
        return Pipeline(
            self._config, share_sessions(), self.clock, services, aside=InlineExecutor()
        )

    # The camera.

    def _film(self) -> None:
        plan, intake = self._plan, Intake(self._entrance, Pulse("decode", self.clock))
        at_ns = stamp_ns = self.clock.now_ns()
        size = plan.size
        try:
            for index in range(plan.frames):
                gap = plan.gaps.get(index)
                if gap is not None:
                    at_ns += round(gap.seconds * NS_PER_S)
                    stamp_ns += round(gap.seconds * NS_PER_S) if gap.goes_on else 0
                size = plan.sources.get(index, size)
                late_ns = round(self._rng.uniform(0, plan.jitter_ms) * NS_PER_MS)
                self.clock.sleep_until(at_ns + late_ns)
                self._faults.newest = index
                self._take(intake, index, size, stamp_ns)
                at_ns += _STEP_NS
                stamp_ns += _STEP_NS
        finally:
            if self._stages is not None:
                self._stages.end_input()

    def _take(self, intake: Intake, index: int, size: tuple[int, int], stamp_ns: int) -> None:
        width, height = self._plan.size
        scale = min(width / size[0], height / size[1])
        scene = next(scene for scene in reversed(self._plan.scenes) if scene.start <= index)
        bgr, faces = draw_scene(scene, index, size, 1 / scale)
        planes: Any = cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_I420)
        video: Any = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        if self._canvas is None:
            self._canvas = Canvas(video, size=f"{width}x{height}")
            self._open(intake)
        frame = intake.acquire_frame()
        if frame is None:
            self._judge.counts["dropped pool"] += 1
            return
        self._canvas.fill(video, frame)
        left, top = (width - round(size[0] * scale)) // 2, (height - round(size[1] * scale)) // 2
        inner = (left, top, width - left, height - top)
        moved = [face.move(scale, left, top) for face in faces]
        picture = create_frame(width, height)
        self._canvas.fill(video, picture)
        picture.fill_planes()
        self._faults.index_of[frame.handle] = index
        self._judge.note_arrived(frame.handle, Truth(index, picture.buffer, moved, inner, {}))
        frame.pts = (stamp_ns - self._start_ns) * TIME_BASE_HZ // NS_PER_S
        frame.arrival_ns = self.clock.now_ns()
        with contextlib.suppress(RingClosed):
            intake.on_frame(frame)

    def _open(self, intake: Intake) -> None:
        assert self._canvas is not None
        width, height = self._plan.size
        media = MediaInfo(width, height, FPS, self._canvas.colour, None, is_live=True)
        intake.on_media(media)
        if self._plan.loading_s:
            self._pipeline.is_ready = False
        else:
            self._load(self._pipeline)
        stages = self._stages = self._entrance.stages = Stages(
            self._config, media, "live", self.telemetry, self._fanout, JobMarks(_JOB, REPLAY_KEYS)
        )
        self._fanout.open(stages.streams)
        self._start(stages.list_loops(self._pipeline, self.token))

    def _load(self, pipeline: Pipeline) -> None:
        token = self.token.get()
        pipeline.prepare(token)
        pipeline.warm_up(*self._plan.size, token)

    def _start(self, loops: Any) -> None:
        for name, run in loops.items():
            self.clock.start(name, _end_quietly(run))

    # The hand.

    def _act(self) -> None:
        if self._plan.loading_s:
            self.clock.sleep_until(self._start_ns + round(self._plan.loading_s * NS_PER_S))
            self._load(self._pipeline)
        for hand in sorted(self._plan.hands, key=lambda hand: hand.at):
            self.clock.sleep_until(self._find_time_ns(hand.at))
            self._do(hand)

    def _find_time_ns(self, index: int) -> int:
        silent_s = sum(gap.seconds for at, gap in self._plan.gaps.items() if at <= index)
        # In the middle of the silence when it comes before this very frame.
        if index in self._plan.gaps:
            silent_s -= self._plan.gaps[index].seconds / 2
        return self._start_ns + index * _STEP_NS + round(silent_s * NS_PER_S)

    def _do(self, hand: Hand) -> None:
        self._judge.counts[f"hand {hand.kind}"] += 1
        if hand.kind == "consent":
            self._is_allowed = hand.value
        elif hand.kind == "patch":
            self._patch(hand.value)
        elif hand.kind == "renew":
            self._renew(hand.value)
        elif self._stages is not None and self._stages.load is not None:
            pressures = ("memory_constrained",) if hand.value else ()
            self._stages.load.note_pressure("fuzz", pressures)

    def _patch(self, patch: dict[str, Any]) -> None:
        """Change what is asked for, as the API does."""
        before = self.token.get()
        try:
            changed = patch_token(before, patch)
        except LivefuseError:
            self._judge.counts["hand patch refused"] += 1
            return
        if changed.operations != before.operations:
            self._pipeline.prepare_changes(*self._plan.size, changed)
        self.token.update(lambda current: patch_token(current, patch).renew(self.clock.epoch_s()))

    def _renew(self, loading_s: float) -> None:
        """Give the pipeline up and put another in its place, as the watchdog does."""
        stages = self._stages
        if stages is None:
            return
        stages.abandon_treatment()
        self.clock.sleep_until(self.clock.now_ns() + NS_PER_S // 2)
        pipeline = self._pipeline = self._create_pipeline()
        pipeline.is_ready = False
        self._judge.note_renewed()
        self._start(stages.renew_treatment(pipeline, self.token))
        self.clock.sleep_until(self.clock.now_ns() + round(loading_s * NS_PER_S))
        # A face that nobody has consented to: it never gets ready, and what it is given is covered.
        with contextlib.suppress(ConsentError):
            self._load(pipeline)


def _refuse(face_id: str) -> SourceFace:
    raise ConsentError(f"nobody called {face_id} has consented", hint="")


def _end_quietly(run: Any) -> Any:
    def guard() -> None:
        with contextlib.suppress(RingClosed):
            run()

    return guard
