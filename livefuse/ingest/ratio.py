"""Ratios as PyAV gives them: those of each release have a type of their own."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol


class Ratio(Protocol):
    """A Fraction, or since PyAV 19 an AVRational; false where there is none."""

    @property
    def numerator(self) -> int:
        """What is divided."""
        ...

    @property
    def denominator(self) -> int:
        """What it is divided by."""
        ...

    def __float__(self) -> float:
        """Return it as a number."""
        ...


def to_fraction(ratio: Ratio | None) -> Fraction | None:
    """Return `ratio` as what can be calculated with; None where there is none."""
    return Fraction(ratio.numerator, ratio.denominator) if ratio else None
