"""The seams at which a run goes wrong: steps, the detector, the mesh network, what work costs."""

from __future__ import annotations

import contextlib
import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import numpy as np

from livefuse.clock import NS_PER_MS
from livefuse.errors import ModelError
from livefuse.pipeline.analysis import detect_step
from livefuse.pipeline.analysis.facemesh import FaceMesh
from livefuse.pipeline.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.face import Detection
    from livefuse.frame import Frame, FrameHandle
    from livefuse.pipeline.analysis.detect import Detector
    from livefuse.pipeline.state import FrameState, Step
    from livefuse.token import Token
    from tests.fuzz.plan import Fault, Plan

COSTS_MS: Final = {
    "detect": 6.0, "detect_spared": 1.5, "align": 8.0, "align_spared": 0.5, "swap": 7.0,
    "puppet": 9.0, "blur": 2.0, "background": 8.0, "enhance": 3.0, "enhance_spared": 1.0,
    "beautify": 3.0, "encode": 4.0,
}  # fmt: skip
_SPARED: Final = "_spared"


class Faults:
    """What goes wrong on which frame; `done` counts what really did."""

    def __init__(self, plan: Plan) -> None:
        self._by_frame: dict[int, list[Fault]] = defaultdict(list)
        for fault in plan.faults:
            for index in range(fault.start, fault.start + fault.frames):
                self._by_frame[index].append(fault)
        self.index_of: dict[FrameHandle, int] = {}
        self.newest = 0
        self.done: Counter[str] = Counter()
        self.delays_ms: defaultdict[str, float] = defaultdict(float)
        self.rng = random.Random(f"faults {plan.seed}")
        self.last_blind = -1000

    def find(self, frame: Frame, kind: str, step: str = "") -> Fault | None:
        """Return the fault of that kind that this frame is to meet; none for a made picture."""
        return self.find_at(self.index_of.get(frame.handle, -1), kind, step)

    def find_at(self, index: int, kind: str, step: str = "") -> Fault | None:
        """Return the fault of that kind at frame `index` of the camera."""
        for fault in self._by_frame.get(index, ()):
            if fault.kind == kind and fault.step == step:
                return fault
        return None

    def get_cost_ns(self, work: str, spent_ns: int) -> int:
        """See `livefuse.virtual.CostModel`."""
        cost_ms = COSTS_MS.get(work, 0.0)
        burst = self.find_at(self.newest, "burst")
        if burst is not None and work != "encode":
            cost_ms *= burst.amount
        return round((cost_ms + self.delays_ms.pop(work.removesuffix(_SPARED), 0.0)) * NS_PER_MS)

    @contextlib.contextmanager
    def install(self) -> Iterator[None]:
        """Let every pipeline that is made within meet them."""
        steps = {name: self._wrap(name, create) for name, create in STEPS.items()}
        create_detector, find_mesh = detect_step.create_detector, FaceMesh.find

        def create(*args: Any, **options: Any) -> _Detector:
            return _Detector(create_detector(*args, **options), self)

        def find(mesh: FaceMesh, frame: Frame, crop: Any) -> Any:
            points, score = find_mesh(mesh, frame, crop)
            if self.find(frame, "mesh") is None:
                return points, score
            self.done["mesh"] += 1
            return _spoil(points, self.rng), score

        with (
            mock.patch.dict(STEPS, steps),
            mock.patch.object(detect_step, "create_detector", create),
            mock.patch.object(FaceMesh, "find", find),
        ):
            yield

    def _wrap(self, name: str, create: Any) -> Any:
        return lambda context: _Step(name, create(context), self)


class _Step:
    """A step that fails, or takes its time, when it is told to."""

    def __init__(self, name: str, step: Step, faults: Faults) -> None:
        self._name, self._step, self._faults = name, step, faults
        self._tried: FrameHandle | None = None

    def prepare(self, token: Token) -> None:
        self._step.prepare(token)

    def reset(self) -> None:
        self._step.reset()

    def run(self, state: FrameState) -> None:
        faults, name = self._faults, self._name
        slow = faults.find(state.frame, "slow", name)
        if slow is not None and self._tried != state.frame.handle:
            faults.done["slow"] += 1
            faults.delays_ms[name] += slow.amount
        is_first, self._tried = self._tried != state.frame.handle, state.frame.handle
        if faults.find(state.frame, "raise", name):
            self._fail("raise")
        if is_first and faults.find(state.frame, "raise_once", name):
            self._fail("raise_once")
        self._step.run(state)
        if faults.find(state.frame, "raise_late", name):
            self._fail("raise_late")

    def _fail(self, kind: str) -> None:
        self._faults.done[kind] += 1
        raise RuntimeError(f"{kind} by the fuzz")


class _Detector:
    """A detector that sees nobody, or fails, when it is told to."""

    def __init__(self, detector: Detector, faults: Faults) -> None:
        self._detector, self._faults = detector, faults

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        faults = self._faults
        if faults.find(frame, "detector_error"):
            faults.done["detector_error"] += 1
            raise ModelError("the detector fails by the fuzz")
        found = self._detector.detect(frame, light=light)
        if faults.find(frame, "blind"):
            faults.done["blind"] += 1
            return []
        return found


def _spoil(points: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    """Return landmarks that are wrong: nowhere, elsewhere, too large, or anywhere."""
    kind = rng.choice(("nan", "shift", "grow", "noise", "huge"))
    spoilt = points.copy()
    if kind == "nan":
        spoilt[rng.randrange(len(points))] = np.nan
    elif kind == "shift":
        spoilt[:, :2] += (rng.uniform(-200, 200), rng.uniform(-120, 120))
    elif kind == "grow":
        middle = spoilt.mean(axis=0)
        spoilt[:] = middle + (spoilt - middle) * rng.uniform(0.2, 3.0)
    elif kind == "noise":
        spoilt += np.random.default_rng(rng.randrange(1 << 30)).normal(0, 20, points.shape)
    else:
        spoilt *= 1e9
    return spoilt.astype(np.float32)
