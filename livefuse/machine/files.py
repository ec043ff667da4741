"""The kernel's files about memory, heat and power (Linux); elsewhere there are none."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.machine.reading import Reading, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_KIB: Final = 1024
_LEAST_TRIP: Final = 30_000  # millidegrees: zones that have no such trip say 0 or -274000
_MAX_COUNTERS: Final = (
    32  # of throttling, one for each core: a large machine need not be read whole
)


class MachineReader:
    """Reads. `root` stands for `/`; `read_gpu` gives the memory of the graphics card in use."""

    def __init__(
        self, root: Path = Path("/"), read_gpu: Callable[[], Usage | None] = lambda: None
    ) -> None:
        """Find the files once: sensors do not come and go."""
        self._root = root
        self._read_gpu = read_gpu
        self._cgroup = _find_cgroup(root)
        sys = root / "sys"
        self._trips = list(_list_trips(sys / "class/thermal"))
        counters = sorted(sys.glob("devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"))
        self._counters = counters[:_MAX_COUNTERS]
        self._supplies = _list_supplies(sys / "class/power_supply")
        caps = sorted(sys.glob("devices/system/cpu/cpufreq/policy*/scaling_max_freq"))
        self._caps = caps[:_MAX_COUNTERS]

    def read(self) -> Reading:
        """Return a reading of now; about a millisecond. Never raises for what is not there."""
        return Reading(
            memory=self._read_memory(),
            stalled_share=self._read_stall(),
            gpu_memory=self._read_gpu(),
            over_trip_c=self._read_heat(),
            throttled=_add_up(self._counters),
            battery_share=self._read_battery(),
            frequency_khz=_add_up(self._caps),
        )

    def _read_memory(self) -> Usage | None:
        """Return the memory of the cgroup that is bounded; a full machine is told by its stalls."""
        if self._cgroup is None:
            return None
        used, total = (_read_int(self._cgroup / f"memory.{n}") for n in ("current", "max"))
        if used is None or total is None:
            return None
        # Pages of files that nobody reads any more are given back when asked for.
        idle = _read_table(self._cgroup / "memory.stat").get("inactive_file", 0)
        return Usage(max(used - idle, 0), total)

    def _read_stall(self) -> float | None:
        path = self._root / "proc/pressure/memory"
        if self._cgroup is not None and (self._cgroup / "memory.pressure").exists():
            path = self._cgroup / "memory.pressure"
        for line in _read_text(path).splitlines():
            if line.startswith("some"):
                with contextlib.suppress(ValueError, IndexError):
                    return float(line.split("avg10=")[1].split()[0]) / 100.0
        return None

    def _read_heat(self) -> float | None:
        over = [
            (temperature - trip) / 1000.0
            for path, trip in self._trips
            if (temperature := _read_int(path)) is not None
        ]
        return max(over, default=None)

    def _read_battery(self) -> float | None:
        """Return the share that is left of the fullest battery, when that is what we run on."""
        mains = [p for p in self._supplies if _read_text(p / "type").strip() != "Battery"]
        if any(_read_int(path / "online") for path in mains):
            return None
        left = [
            capacity / 100.0
            for path in self._supplies
            if _read_text(path / "status").strip() == "Discharging"
            and (capacity := _read_int(path / "capacity")) is not None
        ]
        return max(left, default=None)


def read_rss_bytes(root: Path = Path("/")) -> int | None:
    """Return how much memory this process holds; None where the kernel does not tell."""
    held = _read_table(root / "proc/self/status").get("VmRSS:")
    return None if held is None else held * _KIB


def _find_cgroup(root: Path) -> Path | None:
    """Return the folder of our cgroup (version 2) that bounds its memory, or None."""
    path = "/"
    for line in _read_text(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            path = line[3:].strip()
    top = root / "sys/fs/cgroup"
    folder = top / path.lstrip("/")
    # Whoever bounds us may be a folder further up: a slice, or a pod around its container.
    for candidate in (folder, *folder.parents):
        if _read_int(candidate / "memory.max") is not None:
            return candidate
        if candidate == top:
            break
    return None


def _list_trips(folder: Path) -> Iterable[tuple[Path, int]]:
    """Return the file of each zone's temperature with its lowest trip that slows a core down."""
    for zone in sorted(folder.glob("thermal_zone*")):
        trips = [
            level
            for kind in zone.glob("trip_point_*_type")
            if _read_text(kind).strip() in {"passive", "hot"}
            and (level := _read_int(kind.with_name(kind.name[:-4] + "temp"))) is not None
            and level > _LEAST_TRIP
        ]
        if trips:
            yield zone / "temp", min(trips)


def _list_supplies(folder: Path) -> list[Path]:
    """Return mains and batteries of the machine; those of a mouse are not ours."""
    return [
        path for path in sorted(folder.glob("*")) if _read_text(path / "scope").strip() != "Device"
    ]


def _add_up(paths: list[Path]) -> int | None:
    values = [value for path in paths if (value := _read_int(path)) is not None]
    return sum(values) if values else None


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _read_int(path: Path) -> int | None:
    try:
        return int(_read_text(path))
    except ValueError:
        return None


def _read_table(path: Path) -> dict[str, int]:
    """Return the numbers of a file whose lines are a name and a number."""
    table: dict[str, int] = {}
    for line in _read_text(path).splitlines():
        words = line.split()
        with contextlib.suppress(ValueError, IndexError):
            table[words[0]] = int(words[1])
    return table
