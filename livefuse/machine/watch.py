"""Looking at the machine once a second."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S, Clock
from livefuse.machine.files import MachineReader
from livefuse.machine.graphics import GraphicsMemory
from livefuse.machine.reading import Reading, judge
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import GovernorConfig

_EVERY_NS: Final = NS_PER_S


class MachineWatch:
    """Looks once a second and tells each change of what presses. `run` has a thread of its own."""

    def __init__(
        self,
        config: GovernorConfig,
        clock: Clock,
        tell: Callable[[set[str]], None],
        *,
        device: int = 0,
        reader: MachineReader | None = None,
    ) -> None:
        """`tell` is called from the thread of `run` with all that presses, when that changes.

        `device` is the graphics card that networks run on, if on one.
        """
        self._config = config
        self._clock = clock
        self._tell = tell
        self._device = device
        self._reader = reader
        self._ended = threading.Event()
        self._before: Reading | None = None
        self._most_khz = 0
        self._told: set[str] = set()

    def run(self) -> None:
        """Look until `end`; a machine that cannot be read presses nobody."""
        try:
            while not self._clock.wait(self._ended, _EVERY_NS):
                self.look()
        except Exception as error:  # noqa: BLE001 - a job does not depend on its sensors
            get_logger("machine").warning("the machine's load cannot be read", cause=str(error))
            self._tell(set())

    def end(self) -> None:
        """Let `run` end."""
        self._ended.set()

    def look(self) -> None:
        """Read, judge, and tell when it has changed."""
        if self._reader is None:
            self._reader = MachineReader(read_gpu=GraphicsMemory(self._device).read)
        reading = self._reader.read()
        self._most_khz = max(self._most_khz, reading.frequency_khz or 0)
        found = judge(reading, self._before or reading, self._most_khz, self._config)
        self._before = reading
        if found != self._told:
            self._told = found
            self._tell(found)
