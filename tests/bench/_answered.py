"""What the benches of networks share: answers given again, CPU time of one thread, pairs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

import cv2

from tests.bench.harness import median

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Answered:
    """A session that gives the same answer to inputs of one shape without running again.

    A caller may write to an answer, so `mend` makes them as they were, outside what is counted.
    """

    all: ClassVar[list[Answered]] = []

    def __init__(self, session: Any) -> None:
        self._session = session
        self._answers: dict[tuple[int, ...], Any] = {}
        self._given: dict[tuple[int, ...], Any] = {}
        self.all.append(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, names: Any, feeds: dict[str, Any]) -> Any:
        shape = next(iter(feeds.values())).shape
        if shape not in self._answers:
            self._answers[shape] = self._session.run(names, feeds)
            self._given[shape] = [answer.copy() for answer in self._answers[shape]]
        return list(self._given[shape])

    @classmethod
    def mend(cls) -> None:
        """Make every answer as it was."""
        for one in cls.all:
            for shape, answers in one._answers.items():
                for answer, given in zip(answers, one._given[shape], strict=True):
                    given[...] = answer


def answer_again(*networks: Any) -> None:
    """Have each network give its first answer to a shape again."""
    for network in networks:
        if not isinstance(network._session, Answered):
            network._session = Answered(network._session)


def count_ms(work: Callable[[], Any]) -> float:
    """Return the CPU time of this thread that `work` takes."""
    started = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - started) / 1e6


def measure_in_turns(
    works: Mapping[str, Callable[[], Any]], rounds: int, frames: int = 4
) -> dict[str, list[float]]:
    """Return each work's CPU ms for each round, all of them in every round; OpenCV has one thread.

    A turn is a few frames, as a stream is, and its median counts: the first finds the caches full
    of the other's pixels.
    """
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    took: dict[str, list[float]] = {name: [] for name in works}
    try:
        for _ in range(rounds):
            for name, work in works.items():
                turn = []
                for _ in range(frames):
                    Answered.mend()
                    turn.append(count_ms(work))
                took[name].append(median(turn))
    finally:
        cv2.setNumThreads(threads)
    return took


def take_medians(took: dict[str, list[float]]) -> dict[str, float]:
    """Return each work's median."""
    return {name: median(values) for name, values in took.items()}


def take_quiet(values: list[float]) -> float:
    """Return the lowest decile: a neighbour on the same core adds up to 60 %, and takes nothing."""
    return sorted(values)[len(values) // 10]


def tell(values: dict[str, float], unit: str = "ms") -> dict[str, float]:
    """Return `values` for a result's detail."""
    return {f"{name}_{unit}": round(value, 3) for name, value in values.items()}


def list_ratios(some: Iterable[float], others: Iterable[float]) -> list[float]:
    """Return each pair's ratio."""
    return [one / other for one, other in zip(some, others, strict=True)]
