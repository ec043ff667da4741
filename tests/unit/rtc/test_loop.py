"""The peers' loop: one for a process, called from other threads, never for ever."""

import asyncio
import subprocess
import sys
import threading

import pytest

from livefuse.errors import JobError
from livefuse.rtc.loop import RtcLoop, get_loop


def test_there_is_one_loop_with_a_thread_of_its_own():
    assert get_loop() is get_loop()

    async def tell():
        return threading.current_thread()

    thread = get_loop().call(tell())
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_aiortc_is_loaded_before_an_answer_is_waited_for():
    code = (
        "import sys; from livefuse.rtc.loop import get_loop; early = 'aiortc' in sys.modules;"
        "get_loop(); sys.exit(early or 'aiortc' not in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_come_back_to_the_caller():
    async def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        RtcLoop().call(fail())


def test_what_takes_too_long_is_given_up():
    ended = threading.Event()

    async def wait():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(JobError, match="did not answer"):
        RtcLoop().call(wait(), timeout_s=0.05)
    assert ended.wait(5)


def test_spawned_work_runs_beside():
    loop, done = RtcLoop(), threading.Event()

    async def work():
        done.set()

    loop.post(lambda: loop.spawn(work()))
    assert done.wait(5)
