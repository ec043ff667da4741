"""Blocking calls beside the loop, and the signals that end a run."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import uvloop

from livefuse.control.background import STOPPED_AT_ONCE, call_in_thread, catch_signals

ROOT = Path(__file__).parents[3]


def test_the_result_and_the_error_come_back():
    async def run():
        assert await call_in_thread("add", lambda: 1 + 1) == 2
        with pytest.raises(ZeroDivisionError):
            await call_in_thread("divide", lambda: 1 // 0)

    uvloop.run(run())


def test_the_loop_may_close_while_a_call_goes_on():
    release = threading.Event()

    async def run():
        future = call_in_thread("wait", release.wait)
        await asyncio.wait({future}, timeout=0.01)

    uvloop.run(run())
    (thread,) = [t for t in threading.enumerate() if t.name == "livefuse-wait"]
    assert thread.daemon
    release.set()
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_fulfils_the_future(number):
    async def run():
        with catch_signals() as stop:
            os.kill(os.getpid(), number)
            async with asyncio.timeout(5):
                return await stop

    # Whoever runs the tests may have it ignored (nohup).
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert uvloop.run(run()) == number.name
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_hangup_may_mean_something_else():
    calls = []

    async def run():
        with catch_signals(on_hangup=lambda: calls.append("again")) as stop:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGHUP)
                await asyncio.sleep(0.05)
            assert not stop.done()
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(5):
                return await stop

    assert uvloop.run(run()) == "SIGTERM"
    assert calls == ["again", "again"]


def test_nohup_is_respected():
    async def run():
        with catch_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
            return stop.done()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert uvloop.run(run()) is False
    finally:
        signal.signal(signal.SIGHUP, before)


CHILD = """
import time, threading, uvloop
from livefuse.control.background import catch_signals, call_in_thread
async def run():
    with catch_signals() as stop:
        print("ready", flush=True)
        print(await stop, flush=True)
        await call_in_thread("hang", threading.Event().wait)
uvloop.run(run())
"""


def test_the_second_signal_ends_at_once():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as child:
        assert child.stdout is not None
        for line in (b"ready\n", b"SIGINT\n"):
            assert child.stdout.readline() == line
            child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=10)
    assert child.returncode == STOPPED_AT_ONCE == 130
    assert err == b"livefuse: stopped at once\n"
