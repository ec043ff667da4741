"""Figures keep nobody waiting: asked once for all, given up after a second."""

import asyncio
import threading

import pytest

from livefuse.control.api import figures
from livefuse.control.api.figures import Figures


def test_many_who_ask_at_once_cost_one_call():
    calls = []

    async def use():
        told = Figures()
        gate = threading.Event()

        def measure():
            gate.wait(5)
            calls.append(1)
            return len(calls)

        asked = [asyncio.ensure_future(told.ask("job", measure)) for _ in range(5)]  # noqa: TID251
        await asyncio.sleep(0.05)
        gate.set()
        assert await asyncio.gather(*asked) == [1] * 5
        assert await told.ask("job", measure) == 2
        assert await told.collect(None) is None

    asyncio.run(use())


def test_what_hangs_is_given_up_and_asked_again_when_it_answers(monkeypatch):
    monkeypatch.setattr(figures, "PATIENCE_S", 0.05)

    async def use():
        told, gate, calls = Figures(), threading.Event(), []

        def hang():
            calls.append(1)
            gate.wait(5)
            return "figures"

        for _ in range(3):
            assert await told.ask("stuck", hang) is None
        assert len(calls) == 1
        monkeypatch.setattr(figures, "PATIENCE_S", 5.0)
        assert await told.ask("other", lambda: "at once") == "at once"
        gate.set()
        async with asyncio.timeout(5):
            while await told.ask("stuck", hang) is None:
                pass
        assert len(calls) <= 2

    asyncio.run(use())


def test_a_fault_reaches_who_asked_and_nobody_else():
    async def use():
        told = Figures()

        def fail():
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await told.ask("job", fail)
        asked = asyncio.ensure_future(told.ask("job", fail))  # noqa: TID251
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.sleep(0.1)

    asyncio.run(use())
