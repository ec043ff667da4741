"""What can be done to a frame, in which order, and what each operation needs before it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from livefuse.errors import TokenError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Operation -> the rank it must keep: a later rank never comes before an earlier one.
OPERATIONS: Final[dict[str, int]] = {
    "detect": 0,
    "align": 1,
    "identify": 2,
    "background": 3,
    "swap": 4,
    "puppet": 4,
    "beautify": 5,
    "enhance": 6,
    "blur": 7,
}
# What must come before an operation for it to know what it needs.
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "align": ("detect",),
    "identify": ("detect", "align"),
    "swap": ("detect", "align"),
    "puppet": ("detect", "align"),
    "beautify": ("detect", "align"),
    "enhance": ("detect", "align"),
    "blur": ("detect",),
}
COVERING: Final = frozenset({"blur", "swap", "puppet"})
"""Operations whose purpose is to hide or replace a face: a job with one of them fails closed."""

HIDING: Final = COVERING | {"background"}
"""Operations that hide something: a frame that they did not treat is not shown."""

GENERATING: Final = frozenset({"swap", "puppet"})
"""Operations that make a face: they need a source face, and what they touch leaves marked."""


LEAST_BLEND: Final = 0.5 / 255
"""A blend_ratio below this leaves 8 bits as they were: nothing is generated then."""


def check_operations(operations: Iterable[str]) -> tuple[str, ...]:
    """Return `operations` as a tuple, or say what is wrong with them.

    Raises:
        TokenError: unknown name (with the nearest right one), twice, or out of order.
    """
    names = tuple(operations)
    for name in names:
        if name not in OPERATIONS:
            near = difflib.get_close_matches(name, OPERATIONS, n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise TokenError(
                f"unknown operation {name!r}", hint=f"{guess}choose from {', '.join(OPERATIONS)}"
            )
    if len(set(names)) != len(names):
        raise TokenError("an operation is listed twice", hint="list each operation once")
    ordered = tuple(sorted(names, key=OPERATIONS.__getitem__))
    if names != ordered:
        raise TokenError(
            f"operations in the wrong order: {', '.join(names)}",
            hint=f"write {','.join(ordered)}",
        )
    _check_needs(names)
    return names


def _check_needs(names: tuple[str, ...]) -> None:
    missing = {need for name in names for need in NEEDS.get(name, ()) if need not in names}
    if missing:
        whole = sorted({*names, *missing}, key=OPERATIONS.__getitem__)
        needy = next(name for name in names if missing & set(NEEDS.get(name, ())))
        needed = " and ".join(name for name in whole if name in missing)
        raise TokenError(f"{needy} needs {needed} before it", hint=f"write {','.join(whole)}")
