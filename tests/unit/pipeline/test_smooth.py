import numpy as np

from livefuse.pipeline.analysis.smooth import OneEuroFilter


def run(values, min_cutoff=1.5, beta=6.0, unit=100.0):
    euro = OneEuroFilter(min_cutoff, beta)
    return np.array([euro.smooth(np.array([float(v)]), 1 / 30, unit)[0] for v in values])


def test_the_first_value_comes_back_as_it_is():
    assert run([42.0])[0] == 42.0


def test_a_still_signal_rests():
    noise = np.random.default_rng(1).normal(0, 1, 300)
    assert run(200 + noise)[30:].std() < 0.5


def test_a_fast_one_lags_less_than_a_frame():
    line = np.arange(60) * 20.0  # 600 px a second for a face of 100 px
    assert (line - run(line))[20:].max() < 20.0


def test_more_beta_follows_faster():
    line = np.arange(60) * 5.0
    assert abs(line - run(line, beta=20.0))[-1] < abs(line - run(line, beta=1.0))[-1]


def test_after_a_reset_nothing_of_the_past_is_left():
    euro = OneEuroFilter(1.0, 0.0)
    euro.smooth(np.array([0.0]), 1 / 30, 1.0)
    euro.reset()
    assert euro.smooth(np.array([900.0]), 1 / 30, 1.0)[0] == 900.0
