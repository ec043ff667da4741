"""Which pictures may be seen after a loss, and how long a decoder is borne with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.ingest.trust import (
    ERROR_BUDGET,
    LONGEST_DISTRUST_NS,
    MAX_RENEWALS,
    SHORTEST_DISTRUST_NS,
    ErrorBudget,
    Trust,
)


def admit(trust, at_ms, *, key=False, corrupt=False, pts=None):
    return trust.admits(pts, at_ms * NS_PER_MS, is_key=key, is_corrupt=corrupt)


def test_after_a_marked_picture_only_a_whole_keyframe_is_seen():
    """C44: FFmpeg marks the picture that was hit, not those that refer to it."""
    trust = Trust()
    assert admit(trust, 0, key=True)
    assert not admit(trust, 33, corrupt=True)
    assert not admit(trust, 66)
    assert not admit(trust, 99, key=True, corrupt=True)
    assert not admit(trust, 132)
    assert admit(trust, 165, key=True)
    assert admit(trust, 198)


def test_a_keyframe_whose_packet_was_damaged_is_not_whole():
    trust = Trust()
    trust.suspect(7, 0)
    assert not admit(trust, 1, key=True, pts=7)
    assert admit(trust, 2, key=True, pts=8)


def test_without_keyframes_the_picture_comes_back_after_two_seconds():
    trust = Trust()
    trust.distrust(0)
    assert not admit(trust, 1900)
    assert admit(trust, SHORTEST_DISTRUST_NS // NS_PER_MS)


def test_where_keyframes_come_seldom_they_are_waited_for():
    trust = Trust()
    admit(trust, 0, key=True)
    admit(trust, 4000, key=True)
    trust.distrust(5 * NS_PER_S)
    assert not admit(trust, 8000)
    assert admit(trust, 11_000)


def test_lasting_damage_does_not_hold_the_picture_for_ever():
    trust = Trust()
    shown = [
        at for at in range(0, 30_000, 33)
        if admit(trust, at, corrupt=at % 990 == 0) and at
    ]  # fmt: skip
    assert LONGEST_DISTRUST_NS / NS_PER_MS <= shown[0] < 12_000


def test_while_damaged_keyframes_come_a_whole_one_is_waited_for():
    trust = Trust()
    assert admit(trust, 0, key=True)
    for at in range(33, 30_000, 33):
        is_key = at % 990 == 0
        assert not admit(trust, at, key=is_key, corrupt=is_key or at == 33)
    assert admit(trust, 30_000, key=True)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3000)), max_size=60))
def test_a_marked_picture_is_never_seen(pictures):
    trust, now = Trust(), 0
    for is_key, is_corrupt, wait_ms in pictures:
        now += wait_ms
        assert not (admit(trust, now, key=is_key, corrupt=is_corrupt) and is_corrupt)


def test_errors_are_skipped_then_the_decoder_is_renewed_then_the_source_is_dialled_again():
    budget = ErrorBudget()
    verdicts = [budget.note_error() for _ in range((ERROR_BUDGET + 1) * (MAX_RENEWALS + 1))]
    assert verdicts.count("renew") == MAX_RENEWALS
    assert verdicts[ERROR_BUDGET] == "renew"
    assert verdicts[-1] == "reopen"


def test_errors_between_good_pictures_are_borne():
    budget = ErrorBudget()
    for _ in range(500):
        assert budget.note_error() == "skip"
        for _ in range(3):
            budget.note_picture()
