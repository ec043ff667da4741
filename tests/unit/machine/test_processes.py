"""What a process and its children use."""

import os
import subprocess
import sys
import time

from livefuse.machine.processes import count_cores, read_free_memory_bytes, read_spent

BUSY = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"


def test_the_work_of_children_is_counted():
    grandchild = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r} + 'input()'])"
    )
    with subprocess.Popen([sys.executable, "-c", grandchild], stdin=subprocess.PIPE) as child:
        deadline_s = time.monotonic() + 30
        while read_spent([child.pid])[child.pid].cpu_s < 0.3 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        spent = read_spent([child.pid, 2**22 + 1])
        child.communicate(b"\n")
    assert set(spent) == {child.pid}
    assert 0.3 <= spent[child.pid].cpu_s < 5.0
    assert 10 << 20 < spent[child.pid].memory_bytes < 200 << 20


def test_a_name_with_brackets_is_read(tmp_path):
    for pid, parent in ((7, 1), (8, 7)):
        (tmp_path / str(pid)).mkdir()
        fields = ["S", str(parent), *["0"] * 9, "100", "50", *["0"] * 8, "3", "0"]
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b (c)) {' '.join(fields)}\n")
    ticks = os.sysconf("SC_CLK_TCK")
    (spent,) = read_spent([7], tmp_path).values()
    assert spent.cpu_s == 300 / ticks
    assert spent.memory_bytes == 6 * os.sysconf("SC_PAGE_SIZE") == 2 * spent.own_bytes


def test_a_containers_share_of_the_cores_counts(tmp_path):
    all_of_them = count_cores(tmp_path)
    folder = tmp_path / "sys/fs/cgroup"
    folder.mkdir(parents=True)
    (folder / "cpu.max").write_text("50000 100000\n")
    assert count_cores(tmp_path) == 0.5
    (folder / "cpu.max").write_text("max 100000\n")
    assert count_cores(tmp_path) == all_of_them >= 1


def test_free_memory_is_told_where_the_kernel_does(tmp_path):
    assert read_free_memory_bytes(tmp_path) is None
    found = read_free_memory_bytes()
    assert found is not None
    assert found > 1 << 20
