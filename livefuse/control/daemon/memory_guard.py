"""Finds workers that hold more memory than they may, for the daemon to end. Pure.

A job sees to `pipeline.memory_limit_mb` by itself (livefuse/job/memory.py), within seconds. Some
cannot: their supervisor hangs, or the memory is not the pipeline's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container

_PATIENCE_S: Final = 15.0
"""More than a job takes for what it does about it."""
_HOPELESS_SHARE: Final = 2.0


class MemoryGuard:
    """Of all workers, by their process ids. One thread."""

    def __init__(self) -> None:
        self._since_s: dict[int, float] = {}

    def judge(self, pid: int, held_bytes: int, limit_bytes: int, now_s: float) -> str:
        """Return why the process is to be ended, nothing when it is not; 0 is no limit."""
        if not limit_bytes or held_bytes <= limit_bytes:
            self._since_s.pop(pid, None)
            return ""
        since_s = self._since_s.setdefault(pid, now_s)
        if now_s - since_s < _PATIENCE_S and held_bytes < _HOPELESS_SHARE * limit_bytes:
            return ""
        held, limit = held_bytes >> 20, limit_bytes >> 20
        return f"it held {held} MB of memory, more than the {limit} MB it may"

    def keep_only(self, pids: Container[int]) -> None:
        """Forget all processes but `pids`: their numbers may come again."""
        self._since_s = {pid: since_s for pid, since_s in self._since_s.items() if pid in pids}
