"""Three rounds; fifty by `python -m tests.kill`."""

from __future__ import annotations

import pytest

from tests.kill.ledger import Entry
from tests.kill.rounds import play

pytestmark = [pytest.mark.wire, pytest.mark.timeout(300)]


def test_nothing_that_was_answered_is_lost(tmp_path):
    outcome = play(tmp_path, rounds=3, seed=11)
    print(outcome.describe())
    assert outcome.rounds == 3
    assert outcome.answered > 3


def test_the_ledger_sees_what_is_lost():
    view = {"state": "running", "reason": "", "spec": {"parameters": {"blend_ratio": 0.5}}}
    entry = Entry(there={True}, blend={0.5}, wanted={True})
    assert entry.judge(view) == ""
    assert "gone" in entry.judge(None)
    assert "blend_ratio" in entry.judge(view | {"spec": {"parameters": {"blend_ratio": 0.4}}})
    assert "should run" in entry.judge(view | {"state": "stopped"})
    entry.there = {False}
    assert "there again" in entry.judge(view)
