"""Several frames in the pipeline at once: one is analysed while the one before is painted.

The operations are cut into parts by rank; each part is one thread's work and takes one frame at a
time, so every step still sees all frames in order. With `n` parts the rate is that of the slowest
part instead of that of their sum; the delay of a frame stays their sum. Where there is little to do
the first part does it all: a second thread would only add a hand-over.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.ring import Ring
from livefuse.token import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from livefuse.clock import Condition
    from livefuse.frame import Frame
    from livefuse.pipeline.state import FrameState, Load, Outcome
    from livefuse.pipeline.steps import Pipeline
    from livefuse.token import Token

# For each number of parts, the rank at which each part begins.
_FIRST_RANKS: Final[dict[int, tuple[int, ...]]] = {
    1: (0,),
    2: (0, 3),
    3: (0, 3, 5),
    4: (0, 1, 3, 5),
    5: (0, 1, 2, 4, 5),
    6: (0, 1, 2, 3, 4, 5),
}
MAX_PARTS: Final = max(_FIRST_RANKS)
_LIGHT: Final = frozenset({"detect", "blur"})


def assign_parts(parts: int) -> dict[str, int]:
    """Return for each operation which of so many parts does it."""
    first_ranks = _FIRST_RANKS[parts]
    return {
        name: sum(rank >= first for first in first_ranks) - 1 for name, rank in OPERATIONS.items()
    }


def is_light(operations: Collection[str]) -> bool:
    """Say whether one thread does all of `operations`."""
    return _LIGHT.issuperset(operations)


class Conveyor:
    """Moves frames through a pipeline, each part in a thread that calls `run_part`."""

    def __init__(
        self,
        pipeline: Pipeline,
        threads: int,
        take: Callable[[], tuple[Frame, Token, Load]],
        give: Callable[[Frame, Outcome], None],
        create_condition: Callable[[], Condition] = threading.Condition,
        note_work: Callable[[int, str], None] = lambda _part, _work: None,
    ) -> None:
        """Use at most `threads` parts. `take` waits for the next frame, `give` has it when done.

        Both may raise RingClosed, which ends the part. `note_work` is told what a part begins to do
        with its frame, in its thread; nothing: it waits for the next.
        """
        self.parts = min(threads, MAX_PARTS)
        self.part_of = assign_parts(self.parts)
        self._pipeline = pipeline
        self._take = take
        self._give = give
        self._note_work = note_work
        # A frame waits for the next part, it is not dropped: that is for the ring before the first.
        self._rings: list[Ring[FrameState]] = [
            Ring(1, mode="every_frame", condition=create_condition()) for _ in range(self.parts - 1)
        ]
        # Each is written by one thread, so that they can be compared without a lock.
        self._handed_over = self._handed_in = 0

    def run_part(self, index: int) -> None:
        """Work until there are no more frames; finish those that wait.

        Raises:
            RingClosed: the end.
        """
        try:
            while True:
                state = self._next(index)
                does_all = index == 0 and self._does_all(state)
                for name in state.token.operations:
                    if does_all or self.part_of[name] == index:
                        self._note_work(index, name)
                        self._pipeline.run_step(state, name)
                if does_all or index == len(self._rings):
                    self._finish(index, state)
                else:
                    self._pass_on(index, state)
        finally:
            if index:
                self._rings[index - 1].close(discard=True)  # the part before must not wait
            if index < len(self._rings):
                self._rings[index].close()

    def close(self) -> None:
        """End the pipeline's side work, and each part that waits for another that hangs."""
        for ring in self._rings:
            ring.close(discard=True)
        self._pipeline.close()

    def _next(self, index: int) -> FrameState:
        if index:
            return self._rings[index - 1].take()
        taken = self._take()
        self._note_work(index, "begin")
        return self._pipeline.begin(*taken)

    def _does_all(self, state: FrameState) -> bool:
        """Say whether the first part does the whole frame: no other may be on its way then."""
        is_alone = self._handed_over == self._handed_in
        return is_alone and is_light(state.token.operations)

    def _pass_on(self, index: int, state: FrameState) -> None:
        self._note_work(index, "")
        if index == 0:
            self._handed_over += 1
        self._rings[index].put(state)

    def _finish(self, index: int, state: FrameState) -> None:
        self._note_work(index, "finish")
        outcome = self._pipeline.finish(state)
        self._note_work(index, "")
        self._give(state.frame, outcome)
        if index:
            self._handed_in += 1
