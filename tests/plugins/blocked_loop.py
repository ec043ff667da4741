"""A test fails when something blocks its event loop: players would stutter, signals wait.

Every loop that a test starts runs in asyncio's debug mode, which tells of slow callbacks; uvloop
does the same. Child processes are not touched. Time in which the loop's thread was ready to run and
had no processor is the machine's, not the callback's: it is taken off. So is what the collector
took, which goes through all that the tests before have left.
"""

import asyncio
import gc
import logging
import re
import threading
import time
from pathlib import Path

import pytest

LIMIT_S = 0.2
_TOOK = re.compile(r"took (\d+\.\d+) seconds")


def read_waits_s():
    """Return how long this thread has waited for a processor in its life, where Linux tells."""
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text()
        return int(text.split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class _Collections:
    """How long the collector has worked in each thread."""

    def __init__(self):
        self.spent_s = {}
        self._began_s = {}

    def note(self, phase, _info):
        thread, now_s = threading.get_native_id(), time.perf_counter()
        if phase == "start":
            self._began_s[thread] = now_s
        elif (began_s := self._began_s.pop(thread, None)) is not None:
            self.spent_s[thread] = self.spent_s.get(thread, 0.0) + now_s - began_s


class _SlowCallbacks(logging.Handler):
    def __init__(self, collections):
        super().__init__(logging.WARNING)
        self.told = []
        self._collections = collections
        self._waits_s = {threading.get_native_id(): read_waits_s()}

    def emit(self, record):
        text = record.getMessage()
        found = _TOOK.search(text)
        if not found:
            return
        thread = threading.get_native_id()
        now_s = read_waits_s() + self._collections.spent_s.get(thread, 0.0)
        waited_s = now_s - self._waits_s.get(thread, 0.0)
        self._waits_s[thread] = now_s
        if float(found[1]) - waited_s > LIMIT_S:
            self.told.append(text)


@pytest.fixture(autouse=True)
def blocked_loop_guard(monkeypatch):
    create = asyncio.Runner.__init__

    def create_in_debug_mode(self, *, debug=None, loop_factory=None):
        create(self, debug=True if debug is None else debug, loop_factory=loop_factory)

    monkeypatch.setattr(asyncio.Runner, "__init__", create_in_debug_mode)
    collections = _Collections()
    gc.callbacks.append(collections.note)
    handler = _SlowCallbacks(collections)
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    gc.callbacks.remove(collections.note)
    if handler.told:
        pytest.fail(f"the event loop was blocked: {handler.told}")
