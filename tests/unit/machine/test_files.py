"""The kernel's files, as laptops, containers and single-board computers have them."""

from __future__ import annotations

import pytest

from livefuse.machine import MachineReader, Reading, Usage, read_rss_bytes

GIB = 2**30


def write_all(root, files):
    """Write each text into its file below `root`; return a reader of it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return MachineReader(root)


def test_a_machine_that_tells_nothing_is_read_all_the_same(tmp_path):
    assert MachineReader(tmp_path).read() == Reading()


def test_this_machine_can_be_read():
    reading = MachineReader().read()
    assert reading.memory is None or 0.0 < reading.memory.share <= 1.0
    assert reading.stalled_share is None or 0.0 <= reading.stalled_share <= 1.0
    held = read_rss_bytes()
    assert held is not None
    assert 10 * 2**20 < held < 100 * GIB


@pytest.mark.parametrize("bounded", ["pod/box", "pod"])
def test_a_containers_memory_is_what_it_cannot_give_back(tmp_path, bounded):
    """Whoever bounds it may stand further up; the page cache does not count."""
    top = "sys/fs/cgroup"
    files: dict[str, object] = {"proc/self/cgroup": "0::/pod/box"}
    for folder in ("pod", "pod/box"):
        files[f"{top}/{folder}/memory.max"] = 2 * GIB if folder == bounded else "max"
        files[f"{top}/{folder}/memory.current"] = int(1.5 * GIB)
        files[f"{top}/{folder}/memory.stat"] = f"anon 7\ninactive_file {GIB}\nfile {GIB}"
    files[f"{top}/{bounded}/memory.pressure"] = (
        "some avg10=25.00 avg60=1.00 avg300=0.00 total=1\n"
        "full avg10=90.00 avg60=0.00 avg300=0.00 total=0"
    )
    reading = write_all(tmp_path, files).read()
    assert reading.memory == Usage(GIB // 2, 2 * GIB)
    assert reading.stalled_share == 0.25


def test_an_unbounded_machine_is_told_by_its_stalls(tmp_path):
    files = {
        "proc/self/cgroup": "0::/",
        "proc/pressure/memory": "some avg10=3.50 avg60=0.00 avg300=0.00 total=9",
    }
    reading = write_all(tmp_path, files).read()
    assert reading.memory is None
    assert reading.stalled_share == pytest.approx(0.035)


def test_heat_is_measured_against_the_trip_that_slows_down(tmp_path):
    zones = "sys/class/thermal"
    files = {
        # A fan comes on at 50; from 85 the kernel slows down.
        f"{zones}/thermal_zone0/temp": 71_000,
        f"{zones}/thermal_zone0/trip_point_0_type": "active",
        f"{zones}/thermal_zone0/trip_point_0_temp": 50_000,
        f"{zones}/thermal_zone0/trip_point_1_type": "passive",
        f"{zones}/thermal_zone0/trip_point_1_temp": 85_000,
        f"{zones}/thermal_zone0/trip_point_2_type": "critical",
        f"{zones}/thermal_zone0/trip_point_2_temp": 105_000,
        # Has no trip of its own, and says so in the two ways that there are.
        f"{zones}/thermal_zone1/temp": 99_000,
        f"{zones}/thermal_zone1/trip_point_0_type": "passive",
        f"{zones}/thermal_zone1/trip_point_0_temp": -274_000,
        f"{zones}/thermal_zone1/trip_point_1_type": "passive",
        f"{zones}/thermal_zone1/trip_point_1_temp": 0,
    }
    assert write_all(tmp_path, files).read().over_trip_c == pytest.approx(-14.0)
    files[f"{zones}/thermal_zone0/temp"] = 86_500
    assert write_all(tmp_path, files).read().over_trip_c == pytest.approx(1.5)


def test_cores_that_slow_themselves_down_are_counted(tmp_path):
    cpus = "sys/devices/system/cpu"
    files = {f"{cpus}/cpu{n}/thermal_throttle/core_throttle_count": n for n in range(4)}
    files |= {f"{cpus}/cpufreq/policy{n}/scaling_max_freq": 2_000_000 for n in range(4)}
    reading = write_all(tmp_path, files).read()
    assert (reading.throttled, reading.frequency_khz) == (6, 8_000_000)


@pytest.mark.parametrize(
    ("online", "status", "left"), [(1, "Discharging", None), (0, "Discharging", 0.15),
                                   (0, "Full", None), (None, "Discharging", 0.15)],
)  # fmt: skip
def test_a_battery_counts_while_it_is_in_use(tmp_path, online, status, left):
    supplies = "sys/class/power_supply"
    files = {
        f"{supplies}/BAT0/type": "Battery",
        f"{supplies}/BAT0/status": status,
        f"{supplies}/BAT0/capacity": 15,
        f"{supplies}/hidpp_battery_0/type": "Battery",
        f"{supplies}/hidpp_battery_0/scope": "Device",
        f"{supplies}/hidpp_battery_0/status": "Discharging",
        f"{supplies}/hidpp_battery_0/capacity": 90,
    }
    if online is not None:
        files |= {f"{supplies}/AC/type": "Mains", f"{supplies}/AC/online": online}
    assert write_all(tmp_path, files).read().battery_share == left


def test_files_of_nonsense_tell_nothing(tmp_path):
    files = {
        "proc/self/cgroup": "0::/../../etc",
        "proc/pressure/memory": "some nonsense\nfull",
        "sys/class/power_supply/BAT0/type": "Battery",
        "sys/class/power_supply/BAT0/status": "Discharging",
        "sys/class/power_supply/BAT0/capacity": "many",
        "sys/class/thermal/thermal_zone0/temp": "hot",
        "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive",
        "sys/class/thermal/thermal_zone0/trip_point_0_temp": 85_000,
    }
    assert write_all(tmp_path, files).read() == Reading()
