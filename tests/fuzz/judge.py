"""Every picture that reaches the encoder, judged: is a face to be seen that should not be.

Two judges, neither of them the job's own settings: likeness (each true face, at its place) and a
detector (CenterFace at the picture's full size, anywhere; what it finds is told apart by likeness).

A face that is bare is a failure, but for three narrow, counted kinds that no setting of the job
can help: `too_early` (it came in, was never covered yet, and no look was due since the reference
finds it), `unfindable` (the reference does not find it in the camera's own picture either) and
`blind` (the run keeps the detector blind to a face it has never seen, or for longer than the
tracker holds). A face that jumps by more than half its width from one picture that the job treats
to the next is a new one: nothing follows it. A picture that only stands tells nothing of who the
pipeline has seen: it may be the one before's.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from livefuse.frame import Frame, create_frame
from livefuse.token import GENERATING
from tests.fuzz.likeness import BARE, LEFT, measure_likeness
from tests.fuzz.promise import Chosen, Key, is_promised
from tests.fuzz.scene import find_seen

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import FrameHandle
    from livefuse.pipeline.analysis.detect import Detector
    from livefuse.pipeline.state import Outcome
    from livefuse.token import Token
    from tests.fuzz.faults import Faults
    from tests.fuzz.scene import TrueFace

SURE: Final = 0.5
_KEPT: Final = 400  # frames: one that is held is shown long after others have come
_RECENT: Final = 45
_GONE: Final = 5
_JUMP: Final = 0.4  # of a face's height: half its width from one picture to the next
EXCUSES: Final = ("too_early", "unfindable", "blind")


@dataclass
class Truth:
    """A picture of the camera as it came into the job: planes, faces, what is filmed of it."""

    index: int
    buffer: NDArray[np.uint8]
    faces: list[TrueFace]
    inner: tuple[int, int, int, int]
    chosen: dict[str, Key | None]

    @property
    def luma(self) -> NDArray[np.uint8]:
        """Its Y plane."""
        return self.buffer[: self.buffer.shape[0] * 2 // 3]


@dataclass
class Offence:
    """A picture that should not have been shown."""

    seed: int
    index: int
    what: str
    picture: NDArray[np.uint8]
    truth: NDArray[np.uint8]


@dataclass
class _Met:
    """What is known of one face since it came in."""

    is_covered: bool = False
    is_unwatched: bool = False
    findable: int = 0
    away: int = 0
    run: int = 0


@dataclass
class Judge:
    """Shown every picture of one run."""

    seed: int
    faults: Faults
    detector: Detector
    detects_every: int = 1
    longest_look: int = 6
    hold_frames: int = 15
    counts: Counter[str] = field(default_factory=Counter)
    longest: Counter[str] = field(default_factory=Counter)
    offences: list[Offence] = field(default_factory=list)
    likeness: dict[str, list[float]] = field(default_factory=dict)
    on_shown: Callable[[Frame, Truth, Outcome, bool], None] | None = None
    get_token: Callable[[], Token] | None = None
    _truths: dict[FrameHandle, Truth] = field(default_factory=dict)
    _recent: deque[Truth] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _outcomes: dict[FrameHandle, Outcome] = field(default_factory=dict)
    _chosen: Chosen = field(default_factory=Chosen)
    _met: dict[Key, _Met] = field(default_factory=dict)
    _treated: Truth | None = None
    _blind_run: int = 0
    _may_excuse: bool = True

    def note_arrived(self, handle: FrameHandle, truth: Truth) -> None:
        """Take what the camera filmed."""
        if self.faults.find_at(truth.index, "blind"):
            self._blind_run += 1
            self.faults.last_blind = truth.index
            self._chosen.unsettle()
        else:
            self._blind_run = 0
        self._note_jumps(truth, self._recent[-1] if self._recent else None)
        truth.chosen = self._chosen.note(truth.faces)
        self._truths[handle] = truth
        self._recent.append(truth)
        if len(self._truths) > _KEPT:
            del self._truths[next(iter(self._truths))]

    def note_renewed(self) -> None:
        """Another pipeline takes over, which has seen nobody yet."""
        self._met.clear()
        self._chosen.unsettle()

    def _note_jumps(self, truth: Truth, last: Truth | None) -> None:
        """Begin anew with a face that nothing could have followed: a cut that leaves the wall."""
        before = {face.key: face for face in last.faces} if last is not None else {}
        for face in truth.faces:
            old = before.get(face.key)
            if old is None:
                continue
            apart_px = math.dist(face.centre, old.centre)
            if apart_px > _JUMP * min(face.height_px, old.height_px):
                self.counts["jumps"] += 1
                self._met[face.key] = _Met()

    def note_outcome(self, handle: FrameHandle, outcome: Outcome) -> None:
        """Take what was done."""
        self._outcomes[handle] = outcome
        if (truth := self._truths.get(handle)) is not None:
            # Between them pictures may have been dropped: the job sees a larger step.
            self._note_jumps(truth, self._treated)
            self._treated = truth
        if outcome.covered_whole:
            self._chosen.unsettle()
        if not outcome.vouched and not outcome.error:
            # Covered whole without a look (asked, overload, loading): who is there then is new.
            for met in self._met.values():
                met.is_unwatched = True
        if len(self._outcomes) > _KEPT:
            del self._outcomes[next(iter(self._outcomes))]

    def look(self, frame: Frame, *, is_held: bool) -> None:
        """Judge what is shown."""
        frame.fill_planes()
        truth, outcome = self._truths[frame.handle], self._outcomes[frame.handle]
        self.counts["shown"] += 1
        self.counts["held"] += is_held
        self.counts["covered_whole"] += outcome.covered_whole
        if outcome.covered_whole:
            self.counts[f"because {outcome.reason}"] += 1
        if self.on_shown is not None:
            self.on_shown(frame, truth, outcome, is_held)
        if is_held and self.get_token is not None:
            # What is asked for while a picture stands is asked of that picture, too.
            stricter = self._find_stricter(outcome, truth)
            self._may_excuse = stricter is outcome.token
            outcome = replace(outcome, token=stricter)
        bare = self._look_at_faces(frame, truth, outcome, is_held=is_held)
        self._may_excuse = True
        if self.counts["shown"] % self.detects_every == 0:
            self._detect(frame, truth, outcome, bare)

    def _find_stricter(self, outcome: Outcome, truth: Truth) -> Token:
        assert self.get_token is not None
        now = replace(outcome, token=self.get_token())
        more = [is_promised(face, now, truth.chosen) for face in truth.faces]
        return now.token if all(more) else outcome.token

    # By likeness.

    def _look_at_faces(
        self, frame: Frame, truth: Truth, outcome: Outcome, *, is_held: bool
    ) -> bool:
        any_bare = False
        for number, face in enumerate(truth.faces):
            met = self._met.setdefault(face.key, _Met())
            seen = find_seen(truth.faces, number, truth.inner)
            likeness = measure_likeness(frame.y, truth.luma, face, seen)
            if likeness is None:
                self.counts["faces hardly there"] += 1
                met.away += 1
                if met.away >= _GONE:
                    self._met[face.key] = _Met(away=met.away)
                continue
            met.away = 0
            if not is_promised(face, outcome, truth.chosen):
                self.counts["faces not promised"] += 1
                continue
            self.counts["faces promised"] += 1
            has_own = not GENERATING.isdisjoint(outcome.token.operations)
            # A failure may show the last good picture instead, with another face in it.
            is_whole = outcome.covered_whole and not (has_own and _holds_pictures(outcome))
            kind = "whole" if is_whole else "replaced" if has_own else "covered"
            if likeness < (BARE if kind == "replaced" else LEFT):
                self.likeness.setdefault(kind, []).append(likeness)
                if kind != "whole" and not is_held:
                    met.is_covered, met.is_unwatched = True, False
                met.run = 0
                continue
            any_bare = True
            self._accuse(frame, truth, outcome, face, likeness)
        return any_bare

    def _accuse(
        self, frame: Frame, truth: Truth, outcome: Outcome, face: TrueFace, likeness: float
    ) -> None:
        """Count a bare face as what it is."""
        met = self._met[face.key]
        may_excuse = self._may_excuse and not outcome.covered_whole
        excuse = self._find_excuse(truth, face, met) if may_excuse else ""
        if excuse:
            met.run += 1
            self.counts[excuse] += 1
            self.longest[excuse] = max(self.longest[excuse], met.run)
            return
        state = "covered before" if met.is_covered else f"new, found for {met.findable}"
        self._tell(frame, truth, f"bare {likeness:.2f} who {face.key} ({state}) {_tell(outcome)}")

    def _find_excuse(self, truth: Truth, face: TrueFace, met: _Met) -> str:
        was_blind = truth.index - self.faults.last_blind < self.longest_look
        if met.is_unwatched and was_blind:
            return "blind"
        if self._blind_run and (not met.is_covered or self._blind_run > self.hold_frames):
            return "blind"
        if not self._is_findable(truth, face):
            return "unfindable"
        met.findable += 1
        return "too_early" if not met.is_covered and met.findable < self.longest_look else ""

    def _is_findable(self, truth: Truth, face: TrueFace) -> bool:
        picture = create_frame(truth.buffer.shape[1], truth.buffer.shape[0] * 2 // 3)
        picture.buffer[:] = truth.buffer
        return any(
            found.score >= SURE and _is_on(found, face) for found in self.detector.detect(picture)
        )

    # By the reference detector.

    def _detect(self, frame: Frame, truth: Truth, outcome: Outcome, is_bare: bool) -> None:
        self.counts["looked at by the reference"] += 1
        for found in self.detector.detect(frame):
            if found.score < SURE:
                continue
            face = next((face for face in truth.faces if _is_on(found, face)), None)
            if face is not None:
                self._weigh(outcome, is_promised(face, outcome, truth.chosen), is_bare)
            elif self._is_of_before(found, frame, outcome):
                self._tell(frame, truth, f"a face of before at {_tell_box(found)} {_tell(outcome)}")
            else:
                self.counts["reference: nobody"] += 1

    def _weigh(self, outcome: Outcome, promised: bool, is_bare: bool) -> None:
        """Count what was found where a face is: likeness has judged that face already."""
        if not promised:
            self.counts["reference: may be seen"] += 1
        elif is_bare:
            self.counts["reference: bare"] += 1
        elif not GENERATING.isdisjoint(outcome.token.operations):
            self.counts["reference: the new face"] += 1
        else:
            self.counts["reference: a cover like a face"] += 1

    def _is_of_before(self, found: Detection, frame: Frame, outcome: Outcome) -> bool:
        """Say whether what was found, where nobody is, is somebody who was filmed lately."""
        for before in self._recent:
            for face in before.faces:
                if not _is_on(found, face) or not is_promised(face, outcome, before.chosen):
                    continue
                likeness = measure_likeness(frame.y, before.luma, face)
                if likeness is not None and likeness >= BARE:
                    return True
        return False

    def _tell(self, frame: Frame, truth: Truth, what: str) -> None:
        self.counts["BARE"] += 1
        offence = Offence(self.seed, truth.index, what, frame.buffer.copy(), truth.buffer)
        if len(self.offences) < 40:
            self.offences.append(offence)


def _holds_pictures(outcome: Outcome) -> bool:
    return outcome.token.parameters.on_failure == "hold" and bool(outcome.error)


def _is_on(found: Detection, face: TrueFace) -> bool:
    box = found.box
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return math.dist(middle, face.centre) < 0.5 * face.height_px


def _tell(outcome: Outcome) -> str:
    token = outcome.token
    parameters = token.parameters
    how = f"{parameters.select}/{parameters.blur_whom} blend {parameters.blend_ratio}"
    done = ",".join(f"{entry.state}:{entry.reason}" for entry in token.log[-8:])
    tracks = [
        f"{t.track_id}@{(t.box.x0 + t.box.x1) / 2:.0f},{(t.box.y0 + t.box.y1) / 2:.0f}"
        f"w{t.box.width:.0f}m{t.missed}"
        for t in outcome.faces
    ]
    return f"[{','.join(token.operations)}] {how} {outcome.rung} {tracks} {outcome.error} {done}"


def _tell_box(found: Detection) -> str:
    return ",".join(f"{value:.0f}" for value in found.box)
