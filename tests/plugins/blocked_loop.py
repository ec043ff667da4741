"""A test fails when something blocks its event loop: players would stutter, signals wait.

Every loop that a test starts runs in asyncio's debug mode, which tells of slow callbacks; uvloop
does the same. Child processes are not touched.
"""

import asyncio
import logging
import re

import pytest

LIMIT_S = 0.2
_TOOK = re.compile(r"took (\d+\.\d+) seconds")


class _SlowCallbacks(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.told = []

    def emit(self, record):
        text = record.getMessage()
        found = _TOOK.search(text)
        if found and float(found[1]) > LIMIT_S:
            self.told.append(text)


@pytest.fixture(autouse=True)
def blocked_loop_guard(monkeypatch):
    create = asyncio.Runner.__init__

    def create_in_debug_mode(self, *, debug=None, loop_factory=None):
        create(self, debug=True if debug is None else debug, loop_factory=loop_factory)

    monkeypatch.setattr(asyncio.Runner, "__init__", create_in_debug_mode)
    handler = _SlowCallbacks()
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    if handler.told:
        pytest.fail(f"the event loop was blocked: {handler.told}")
