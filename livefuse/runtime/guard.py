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

    `limit` bounds their absolute value; `is_picture`: 4-d outputs of one value only are a fault
    when the input had more than one.
    """

    limit: float = math.inf
    is_picture: bool = False


ANYTHING: Final = Expectation()
# By the manifest's task. Limits are far outside what a sound network says, and far inside what an
# overflow does.
EXPECTATIONS: Final[dict[str, Expectation]] = {
    "detect": Expectation(limit=1e6),
    "align": Expectation(limit=1e6),
    "identify": Expectation(limit=1e4),
    "swap": Expectation(limit=100.0, is_picture=True),
    "enhance": Expectation(limit=1000.0, is_picture=True),
    "mask": Expectation(limit=1e4),
    "background": Expectation(limit=1e4),
    "convert": Expectation(limit=1e4),
    "text": Expectation(limit=1e6),
}


def find_fault(
    outputs: Sequence[NDArray[Any]], feeds: Mapping[str, NDArray[Any]], expectation: Expectation
) -> str:
    """Return in a few words what is wrong with `outputs`, or nothing.

    Small outputs are looked at wholly, large ones at 65,536 places spread over them: 0.02 to
    0.1 ms.
    """
    for output in outputs:
        if output.dtype.kind != "f" or not output.size:
            continue
        values = _sample(output)
        low, high = float(values.min()), float(values.max())  # both carry NaN along
        if math.isnan(low) or math.isinf(low) or math.isinf(high):
            return "not finite"
        if max(-low, high) > expectation.limit:
            return f"out of range ({low:.3g} to {high:.3g})"
        if expectation.is_picture and _is_flat_picture(output, low, high):
            if _is_any_flat(feeds.values()):
                continue  # a blank picture in may be a blank picture out
            return f"the same value everywhere ({low:.3g})"
    return ""


def _is_flat_picture(output: NDArray[Any], low: float, high: float) -> bool:
    return low == high and output.ndim == 4 and output.size >= _FLAT_FROM  # noqa: PLR2004 - N, C, H, W


def _is_any_flat(feeds: Iterable[NDArray[Any]]) -> bool:
    pictures = (_sample(feed) for feed in feeds if feed.ndim == 4 and feed.size)  # noqa: PLR2004 - N, C, H, W
    return any(values.min() == values.max() for values in pictures)


def _sample(array: NDArray[Any]) -> NDArray[Any]:
    """Return all values, or evenly spread ones; an odd step meets every channel and column."""
    if array.size <= _WHOLE:
        return array
    step = array.size // _SAMPLES | 1
    return array.reshape(-1)[::step]
