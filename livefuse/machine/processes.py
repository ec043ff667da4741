"""What processes use of the machine: cores and memory, theirs and their children's (Linux)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_KIB: Final = 1024
_PARENT, _USER, _SYSTEM, _RESIDENT = 1, 11, 12, 21  # of /proc/PID/stat, behind the name


class Spent(NamedTuple):
    """What a process and its children have spent of processors, and hold of memory.

    `own_bytes` is what the process itself holds.
    """

    cpu_s: float
    memory_bytes: int
    own_bytes: int


def read_spent(pids: Iterable[int], root: Path = Path("/proc")) -> dict[int, Spent]:
    """Return what each of `pids` uses, children and theirs included; who is gone is left out.

    Reads every process of the machine once: some milliseconds, not for an event loop.
    """
    spent: dict[int, Spent] = {}
    children: dict[int, list[int]] = {}
    for path in root.glob("[0-9]*"):
        fields = _read_fields(path)
        if fields is not None:
            pid = int(path.name)
            ticks = int(fields[_USER]) + int(fields[_SYSTEM])
            held = int(fields[_RESIDENT]) * _PAGE_BYTES
            spent[pid] = Spent(ticks / _TICKS_PER_S, held, held)
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    return {pid: _add_up(pid, spent, children) for pid in pids if pid in spent}


def count_cores(root: Path = Path("/")) -> float:
    """Return how many cores this process may use: its affinity, and what its container is given."""
    cores = float(len(os.sched_getaffinity(0)))
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        limit, period = (root / "sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, int(limit) / int(period))
    return cores


def read_free_memory_bytes(root: Path = Path("/")) -> int | None:
    """Return what the machine can still give without swapping, None where it does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * _KIB
    return None


def _add_up(pid: int, spent: dict[int, Spent], children: dict[int, list[int]]) -> Spent:
    cpu_s, memory_bytes, own_bytes = spent[pid]
    waiting, seen = list(children.get(pid, ())), {pid}
    while waiting:
        child = waiting.pop()
        if child not in seen:
            seen.add(child)
            cpu_s += spent[child].cpu_s
            memory_bytes += spent[child].memory_bytes
            waiting += children.get(child, ())
    return Spent(cpu_s, memory_bytes, own_bytes)


def _read_fields(path: Path) -> list[str] | None:
    """Return the numbers of a process; its name may hold spaces and brackets."""
    try:
        return (path / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
