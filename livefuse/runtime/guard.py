"""Whether what a network said can be used: not NaN, not infinite, not out of range, not flat.

A network that runs in half precision or on a broken driver does not fail, it answers garbage; and
garbage compared with a threshold looks like "no face". What is expected depends on the task.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

_WHOLE: Final = 1 << 18  # up to so many values all are looked at: 0.05 ms
_SAMPLES: Final = 1 << 16
_FLAT_FROM: Final = 64  # fewer equal values may be an answer (a flag, a box)


class Expectation(NamedTuple):
    """What the numbers of a task look like.

    `limit` bounds their absolute value. `may_be_flat`: the same value everywhere is an answer; else
    it is a fault, unless the input is flat itself.
    """

    limit: float = math.inf
    may_be_flat: bool = True


ANYTHING: Final = Expectation()
# By the manifest's task. Limits are far outside what a sound network says, and far inside what an
# overflow does. A mask of nothing is an answer; a detector's zeros everywhere would bare a face.
EXPECTATIONS: Final[dict[str, Expectation]] = {
    "detect": Expectation(1e6, may_be_flat=False),
    "align": Expectation(1e6, may_be_flat=False),
    "identify": Expectation(1e4, may_be_flat=False),
    "swap": Expectation(100.0, may_be_flat=False),
    "enhance": Expectation(1000.0, may_be_flat=False),
    "mask": Expectation(1e4),
    "background": Expectation(1e4),
    "convert": Expectation(1e4, may_be_flat=False),
    "text": Expectation(1e6, may_be_flat=False),
}


def find_fault(
    outputs: Sequence[NDArray[Any]], feeds: Mapping[str, NDArray[Any]], expectation: Expectation
) -> str:
    """Return in a few words what is wrong with `outputs`, or nothing.

    Outputs of up to 262,144 values are looked at wholly, larger ones at 65,536 places spread over
    them: 0.01 to 0.2 ms in all.
    """
    flat, wide = 0, 0
    for output in outputs:
        if output.dtype.kind != "f" or not output.size:
            continue
        values = _sample(output)
        low, high = float(values.min()), float(values.max())  # both carry NaN along
        if math.isnan(low) or math.isinf(low) or math.isinf(high):
            return "not finite"
        if max(-low, high) > expectation.limit:
            return f"out of range ({low:.3g} to {high:.3g})"
        if output.size >= _FLAT_FROM:
            wide += 1
            flat += low == high
    if wide and flat == wide and not expectation.may_be_flat and not _is_any_flat(feeds.values()):
        return "the same value everywhere"
    return ""


def _is_any_flat(feeds: Iterable[NDArray[Any]]) -> bool:
    wide = (_sample(feed) for feed in feeds if feed.size >= _FLAT_FROM)
    return any(values.min() == values.max() for values in wide)


def _sample(array: NDArray[Any]) -> NDArray[Any]:
    """Return all values, or evenly spread ones; an odd step meets every channel and column."""
    if array.size <= _WHOLE:
        return array
    step = array.size // _SAMPLES | 1
    return array.reshape(-1)[::step]
