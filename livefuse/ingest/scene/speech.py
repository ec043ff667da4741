"""When the talking head speaks and blinks, how far its mouth opens: pure functions of time.

The mouth and the voice read the same functions, so that sound and picture belong together. Times
are seconds since the start; everything is deterministic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYLLABLE_S: Final = 0.19
_PHRASE_SYLLABLES: Final = 19
_PAUSE_SYLLABLES: Final = 5
_BLINK_SLOT_S: Final = 2.7
_BLINK_CLOSE_S: Final = 0.08
_BLINK_OPEN_S: Final = 0.16
# The first three formants (Hz) of a, e, i, o, u, schwa in a female voice (Hillenbrand et al. 1995,
# rounded).
VOWELS_HZ: Final = np.array(
    [
        [940, 1550, 2800],
        [730, 2060, 2970],
        [440, 2760, 3370],
        [555, 1035, 2830],
        [460, 1105, 2735],
        [620, 1670, 2800],
    ],
    np.float64,
)


def hash_to_unit(index: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a pseudo-random number in [0, 1) for each whole number."""
    value = np.sin(index * 12.9898 + 4.1414) * 43758.5453
    return np.asarray(value - np.floor(value), np.float64)


def compute_loudness(times_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how loud the voice is, 0 to 1, at each time."""
    syllable = np.floor(times_s / SYLLABLE_S)
    place = times_s / SYLLABLE_S - syllable
    level = 0.4 + 0.6 * hash_to_unit(syllable)
    is_pause = syllable % _PHRASE_SYLLABLES >= _PHRASE_SYLLABLES - _PAUSE_SYLLABLES
    is_pause |= hash_to_unit(syllable + 1000.0) < 0.07  # noqa: PLR2004 - now and then a short stop
    return np.asarray(np.where(is_pause, 0.0, level) * np.sin(np.pi * place) ** 2, np.float64)


def compute_formants(time_s: float) -> NDArray[np.float64]:
    """Return the three formants (Hz) at `time_s`, gliding from vowel to vowel."""
    syllable = np.floor(time_s / SYLLABLE_S)
    place = time_s / SYLLABLE_S - syllable
    picks = hash_to_unit(np.array([syllable, syllable + 1.0]) + 500.0) * len(VOWELS_HZ)
    here, there = VOWELS_HZ[picks.astype(int)]
    glide = max(0.0, (place - 0.6) / 0.4)
    return np.asarray(here + (there - here) * glide, np.float64)


def compute_mouth_opening(time_s: float) -> float:
    """Return how far the mouth is open, 0 to 1."""
    return float(compute_loudness(np.array([time_s]))[0])


def compute_blink(time_s: float) -> float:
    """Return how far the eyes are closed, 0 to 1: about every three seconds, for a quarter."""
    slot = time_s // _BLINK_SLOT_S
    start = float(hash_to_unit(np.array([slot + 77.0]))[0]) * (_BLINK_SLOT_S - 0.5)
    since = time_s - slot * _BLINK_SLOT_S - start
    if since < 0.0 or since > _BLINK_CLOSE_S + _BLINK_OPEN_S:
        return 0.0
    if since < _BLINK_CLOSE_S:
        return since / _BLINK_CLOSE_S
    return 1.0 - (since - _BLINK_CLOSE_S) / _BLINK_OPEN_S
