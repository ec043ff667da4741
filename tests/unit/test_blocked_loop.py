"""The guard itself: it sees a blocked loop under asyncio and under uvloop."""

import asyncio
import time

import pytest
import uvloop

from tests.plugins.blocked_loop import LIMIT_S


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_blocked_loop_is_seen(run, blocked_loop_guard):
    async def block():
        await asyncio.sleep(0)
        time.sleep(LIMIT_S * 1.5)  # noqa: ASYNC251 - this is the fault

    run(block())
    assert len(blocked_loop_guard.told) == 1
    blocked_loop_guard.told.clear()


def test_waiting_is_not_blocking(blocked_loop_guard):
    async def wait():
        await asyncio.sleep(LIMIT_S * 1.5)

    uvloop.run(wait())
    assert blocked_loop_guard.told == []
