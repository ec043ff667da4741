"""The limit that a sender is told: by loss alone, once a second."""

from hypothesis import given
from hypothesis import strategies as st

from livefuse.rtc.bandwidth import EVERY_MS, MIN_BPS, LossBandwidth

MAX = 6_000_000


def test_it_starts_high_and_is_told_once_a_second():
    bandwidth = LossBandwidth(MAX)
    told = [bandwidth.update(i, 0, float(i)) for i in range(2500)]
    assert [limit for limit in told if limit] == [MAX] * 3


def test_loss_brings_it_down_and_its_end_up_again():
    bandwidth = LossBandwidth(MAX)
    bandwidth.update(0, 0, 0.0)
    assert bandwidth.update(80, 20, EVERY_MS) == MAX * 0.9
    assert bandwidth.update(175, 25, 2 * EVERY_MS) == MAX * 0.9
    assert bandwidth.update(275, 25, 3 * EVERY_MS) == MAX * 0.9 * 1.05


def test_few_packets_say_nothing():
    bandwidth = LossBandwidth(MAX)
    bandwidth.update(0, 0, 0.0)
    assert bandwidth.update(1, 5, EVERY_MS) == MAX


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=60))
def test_it_stays_within_its_bounds(steps):
    bandwidth = LossBandwidth(MAX)
    received = lost = 0
    for step, (came, gone) in enumerate(steps):
        received, lost = received + came, lost + gone
        limit = bandwidth.update(received, lost, step * EVERY_MS)
        assert limit is not None
        assert MIN_BPS <= limit <= MAX
