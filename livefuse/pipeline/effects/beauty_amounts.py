"""What beautify is asked for as numbers ready to use, and how they come and go without a pop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.beauty import COLOURS, PARAMETERS
from livefuse.pipeline.planes import convert_colour

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from livefuse.frame import Colour

Yuv = tuple[float, float, float]

# Which master scales which kind; `texture` only says how smoothing is done, so nothing scales it.
_MASTER_OF: Final = {"skin": "skin", "tone": "skin", "shape": "shape", "makeup": "makeup"}
_UNSCALED: Final = frozenset({"texture"})
AMOUNT_NAMES: Final = tuple(name for name, row in PARAMETERS.items() if row.kind != "master")
COLOUR_NAMES: Final = tuple(COLOURS)
# At these amounts a parameter does nothing by itself.
_DRIVERS: Final = np.array([name not in _UNSCALED for name in AMOUNT_NAMES])


@dataclass(slots=True, frozen=True, eq=False)
class Amounts:
    """Amounts by name, masters already in them, and colours as Y, U, V by name."""

    vector: NDArray[np.float64]
    by_name: dict[str, float]
    colours: dict[str, Yuv]
    is_nothing: bool

    def __getitem__(self, name: str) -> float:
        """Return the amount called `name`."""
        return self.by_name[name]

    def has_any(self, *names: str) -> bool:
        """Say whether one of `names` does something."""
        return any(self.by_name[name] != 0.0 for name in names)


def create_amounts(vector: NDArray[np.float64]) -> Amounts:
    """Return the amounts that `vector` holds: AMOUNT_NAMES, then Y, U, V of COLOUR_NAMES."""
    count = len(AMOUNT_NAMES)
    values = vector.tolist()
    colours = {
        name: (values[at], values[at + 1], values[at + 2])
        for name, at in zip(COLOUR_NAMES, range(count, len(values), 3), strict=True)
    }
    return Amounts(
        vector=vector,
        by_name=dict(zip(AMOUNT_NAMES, values[:count], strict=True)),
        colours=colours,
        is_nothing=not np.any(vector[:count][_DRIVERS]),
    )


def resolve_amounts(values: Mapping[str, float | str], colour: Colour) -> Amounts:
    """Return what `values` (checked, see `livefuse.beauty`) mean in planes of `colour`."""

    def read(name: str) -> float:
        return float(values.get(name, PARAMETERS[name].default))

    numbers = []
    for name in AMOUNT_NAMES:
        amount = read(name)
        if name not in _UNSCALED:
            amount *= read("strength") * read(_MASTER_OF[PARAMETERS[name].kind])
        numbers.append(amount)
    for name in COLOUR_NAMES:
        red, green, blue = bytes.fromhex(str(values.get(name, COLOURS[name].default))[1:])
        numbers.extend(float(value) for value in convert_colour((red, green, blue), colour))
    return create_amounts(np.array(numbers))


def scale_amounts(amounts: Amounts, share: float) -> Amounts:
    """Return `amounts` with all that does something multiplied by `share`."""
    if share == 1.0 or amounts.is_nothing:
        return amounts
    vector = amounts.vector.copy()
    vector[: len(AMOUNT_NAMES)][_DRIVERS] *= share
    return create_amounts(vector)


class AmountRamp:
    """Amounts on their way from one look to the next, at an even speed."""

    def __init__(self, ramp_s: float) -> None:
        """A change takes `ramp_s` seconds; 0: at once."""
        self._ramp_s = ramp_s
        self._shown: Amounts | None = None
        self._target: Amounts | None = None
        self._speed: NDArray[np.float64] | None = None

    def advance(self, target: Amounts, dt_s: float) -> Amounts:
        """Return what is shown `dt_s` after the call before; the first is `target` itself."""
        if self._shown is None or self._ramp_s <= 0.0:
            self._shown = self._target = target
            return target
        if self._target is not target:
            self._target = target
            self._speed = np.abs(target.vector - self._shown.vector) / self._ramp_s
        if self._shown is not target and self._speed is not None:
            self._shown = self._move(self._shown, target, self._speed * dt_s)
        return self._shown

    @staticmethod
    def _move(shown: Amounts, target: Amounts, step: NDArray[np.float64]) -> Amounts:
        way = target.vector - shown.vector
        near = np.abs(way) <= step * (1 + 1e-9)
        if near.all():
            return target
        vector = np.where(near, target.vector, shown.vector + np.clip(way, -step, step))
        return create_amounts(vector)
