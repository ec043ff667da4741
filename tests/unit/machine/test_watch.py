"""Once a second, and only what has changed is told."""

import threading

from livefuse.clock import NS_PER_S, ManualClock, SystemClock
from livefuse.config import GovernorConfig
from livefuse.machine import MachineReader, MachineWatch, Reading, Usage, graphics
from livefuse.machine.graphics import GraphicsMemory, find_index


class FakeReader(MachineReader):
    def __init__(self, readings):
        self.readings, self.read_count = iter(readings), 0

    def read(self):
        self.read_count += 1
        return next(self.readings)


def test_changes_are_told_and_nothing_else():
    told: list[set[str]] = []
    calm, full = Reading(frequency_khz=100), Reading(memory=Usage(99, 100), frequency_khz=100)
    capped = Reading(frequency_khz=50)
    reader = FakeReader([calm, calm, full, full, capped, calm])
    watch = MachineWatch(GovernorConfig(), ManualClock(), told.append, reader=reader)
    for _ in range(6):
        watch.look()
    assert told == [{"memory_constrained"}, {"low_power"}, set()]


def test_it_looks_once_a_second_until_it_is_ended():
    clock = ManualClock()

    class Ending(FakeReader):
        def read(self):
            if self.read_count == 4:
                watch.end()
            return super().read()

    reader = Ending([Reading()] * 9)
    watch = MachineWatch(GovernorConfig(), clock, lambda reasons: None, reader=reader)
    watch.run()
    assert reader.read_count == 5
    assert clock.now_ns() == 5 * NS_PER_S


def test_its_own_thread_ends_at_once():
    watch = MachineWatch(GovernorConfig(), SystemClock(), lambda reasons: None)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    watch.end()
    thread.join(5)
    assert not thread.is_alive()


def test_without_a_graphics_card_nothing_is_said_of_one(monkeypatch):
    assert GraphicsMemory().read() is None
    monkeypatch.setattr(graphics, "_is_loaded", lambda name: True)
    monkeypatch.setattr(graphics, "_NVML", "libnot-there.so.1")
    memory = GraphicsMemory()
    assert memory.read() is None
    assert memory.read() is None


class FakeNvml:
    """Answers as the library does: by what is written into the caller's structures."""

    def __init__(self, state=0):
        self.state, self.index = state, None

    def nvmlInit_v2(self):  # noqa: N802 - the library's name
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):  # noqa: N802 - the library's name
        self.index = index.value
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):  # noqa: N802 - the library's name
        memory._obj.total, memory._obj.used, memory._obj.free = 80, 60, 20
        return self.state


def test_a_cards_memory_is_read_where_cuda_is_in_use(monkeypatch):
    library = FakeNvml()
    monkeypatch.setattr(graphics, "_is_loaded", lambda name: True)
    monkeypatch.setattr("ctypes.CDLL", lambda name: library)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5")
    memory = GraphicsMemory(1)
    assert memory.read() == Usage(60, 80)
    assert library.index == 5
    library.state = 999
    assert memory.read() is None


def test_a_cards_number_is_the_one_among_all():
    assert find_index(2, None) == 2
    assert find_index(1, "4,2") == 2
    assert find_index(1, "4") is None
    assert find_index(0, "GPU-8f6a") is None


def test_a_machine_that_cannot_be_read_presses_nobody():
    """A job does not depend on its sensors: the watch ends, the job does not."""

    class Broken(FakeReader):
        def read(self):
            raise OSError("sensors gone")

    told: list[set[str]] = []
    watch = MachineWatch(GovernorConfig(), ManualClock(), told.append, reader=Broken([]))
    watch.run()
    assert told == [set()]
