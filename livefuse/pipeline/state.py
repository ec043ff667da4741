"""What the steps of one frame write for one another, and what a step is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from livefuse.config import LADDER, Rung

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.config import Config
    from livefuse.face import Face, KnownFace, SourceFace, Track
    from livefuse.frame import Frame
    from livefuse.geometry import Ellipse
    from livefuse.runtime.session import SessionCache
    from livefuse.token import Token


@dataclass(slots=True)
class FrameState:
    """One frame on its way through the steps. Lives as long as the frame's turn.

    `dt_s` is the time since the frame before; `is_cut`: nothing before it shows the same scene.
    `covers`: ellipses (px) within which nothing of the frame is left. `cover_reason` asks for the
    whole picture to be covered. `source_shown` is the face that a swap or puppet shows.
    `rung` tells what is spared under load, `is_late` that this one frame has no time for more than
    it must, `is_sounding` that what is spared is to be done once, unseen, so that its cost is
    known; `spared`: steps that did less than their whole work. `is_enhanced`: whether faces are
    seen enhanced, None when there is nothing to enhance. A step says in `did`, in a few words, what
    it did.
    `person_mask` is uint8, the whole picture in a smaller size: 255 is person. `is_trial`: a made
    picture before the first frame; whatever may run later is to run now, so that nothing is built
    in the middle of a stream.
    """

    frame: Frame
    token: Token
    dt_s: float = 1 / 30
    is_cut: bool = False
    faces: list[Face] = field(default_factory=list)
    covers: tuple[Ellipse, ...] = ()
    cover_reason: str = ""
    person_mask: NDArray[np.uint8] | None = None
    did: str = ""
    error: str = ""
    rung: Rung = LADDER[0]
    is_late: bool = False
    is_sounding: bool = False
    is_enhanced: bool | None = None
    spared: set[str] = field(default_factory=set)
    source_shown: str = ""
    started_ns: int = 0
    is_trial: bool = False
    times: list[tuple[str, float]] = field(default_factory=list)

    @property
    def chosen(self) -> list[Face]:
        """The faces that the token's selector picked."""
        return [face for face in self.faces if face.chosen]


class Load(NamedTuple):
    """What the governor says of a frame.

    `change` is a state for its token's log (`downgraded_for_performance`) when the rung has just
    changed, with the `reason`.
    """

    rung: Rung = LADDER[0]
    is_late: bool = False
    change: str = ""
    reason: str = ""
    is_sounding: bool = False


NO_CONSENT: Final = "no_consent"
"""The reason of a cover: the source face may not be shown (any more)."""


@dataclass(slots=True, frozen=True)
class Outcome:
    """What was done to a frame.

    `vouched`: every step did its work. `covered_whole`: nothing of the picture can be seen, because
    of `reason` (`loading`, `overload`, `lost_face`, `step_failed`,
    `no_consent`); `error` tells more. `steps`
    are (name, ms). Inside `covers` (px) nothing of the frame is left. `rung` is the one it was
    treated on.
    """

    token: Token
    vouched: bool
    faces: tuple[Track, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    covered_whole: bool = False
    reason: str = ""
    error: str = ""
    covers: tuple[Ellipse, ...] = field(default=())
    spared: frozenset[str] = frozenset()
    is_enhanced: bool | None = None
    rung: str = ""


class Step(Protocol):
    """One operation. Keeps what it needs from frame to frame; frames come in order."""

    def prepare(self, token: Token) -> None:
        """Load and build what `token` asks for, and run each network once; may take its time.

        Called before the first frame, from another thread than `run`.

        Raises:
            LivefuseError: what is asked for cannot be had, in words for a user.
        """
        ...

    def run(self, state: FrameState) -> None:
        """Do it, and say what was done in `state.did`. Any exception means: not vouched for.

        Never loads or builds: what a changed token asks for is made aside, and the old shown
        meanwhile.
        """
        ...

    def reset(self) -> None:
        """Forget the frames so far; the next one is the first."""
        ...


@dataclass(slots=True, frozen=True)
class Services:
    """What a pipeline is given from outside.

    `cover` hides a whole picture (safety.cover), `cover_loading` (if another) one that came before
    the networks were ready. `load_source` gives the face that a token's
    `source_face` names, once its consent has been checked; `is_allowed` says, quickly, whether the
    consent still holds, and `explain_refusal`, if there is one, in words why it does not;
    `list_gallery` gives the people who are known by name.
    """

    cover: Callable[[Frame], None]
    load_source: Callable[[str], SourceFace]
    list_gallery: Callable[[], tuple[KnownFace, ...]]
    is_allowed: Callable[[str], bool]
    cover_loading: Callable[[Frame], None] | None = None
    explain_refusal: Callable[[str], str] | None = None


@dataclass(slots=True, frozen=True)
class StepContext:
    """What a step is made from.

    `aside` runs work off the frame's thread, one piece after the other (in `every_frame` mode
    right away, so that replays repeat).
    """

    config: Config
    sessions: SessionCache
    every_frame: bool
    aside: Executor
    services: Services
