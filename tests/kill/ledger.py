"""What was answered, and so what has to be there. What was not answered may be so or otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ACTIVE = frozenset({"loading", "running", "degraded"})


@dataclass(slots=True)
class Entry:
    """One job. Each set holds what it may be; an answered change leaves one."""

    there: set[bool] = field(default_factory=lambda: {False})
    blend: set[float] = field(default_factory=set)
    wanted: set[bool] = field(default_factory=lambda: {False})

    def judge(self, view: Mapping[str, Any] | None) -> str:
        """Return what is wrong with the job as it is now; nothing when it is as it may be."""
        if (view is not None) not in self.there:
            return "it is gone" if view is None else "it is there again"
        if view is None:
            return ""
        spec = view["spec"]
        blend = spec["parameters"]["blend_ratio"] if spec else None
        if blend not in self.blend:
            return f"its blend_ratio is {blend} and should be one of {self.blend}"
        if (view["state"] in ACTIVE) not in self.wanted:
            return f"it is {view['state']} ({view['reason']}) and should run: {self.wanted}"
        return ""

    def settle(self, view: Mapping[str, Any] | None) -> None:
        """Take what is now for what has to be."""
        self.there = {view is not None}
        if view is not None:
            self.blend = {view["spec"]["parameters"]["blend_ratio"]}
            self.wanted = {view["state"] in ACTIVE}


class Ledger:
    """The client writes while it works, the rounds read while it rests."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.answered = self.unanswered = 0

    def compare(self, jobs: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return every difference between what was answered and what is."""
        wrong = [
            f"{name}: {fault}"
            for name, entry in self.entries.items()
            if (fault := entry.judge(jobs.get(name)))
        ]
        return wrong + [f"{name}: nobody made it" for name in jobs.keys() - self.entries.keys()]

    def settle(self, jobs: Mapping[str, Mapping[str, Any]]) -> None:
        """Go on from what is."""
        for name, entry in self.entries.items():
            entry.settle(jobs.get(name))
        self.entries = {name: entry for name, entry in self.entries.items() if True in entry.there}
