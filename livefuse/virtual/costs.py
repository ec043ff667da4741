"""How long work takes in virtual time: by a table, by what was measured before, or measured."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from livefuse.clock import NS_PER_MS
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NS_PER_US: Final = 1000
_IN_REPORT: Final = "costs"
_SPARED: Final = "_spared"
_CLOCK: Final = "decode"  # each packet is decoded once, so this tells how far the stream has come

Milliseconds = Annotated[float, msgspec.Meta(ge=0.0, le=600_000.0)]


class Noise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Costs vary by up to `share` of themselves, always alike for the same `seed`."""

    seed: int = 0
    share: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From packet `start` on, up to packet `end` (counted as they are decoded), all is dearer.

    By `factor`, or only what is named in `works`.
    """

    start: Annotated[int, msgspec.Meta(ge=0)]
    end: Annotated[int, msgspec.Meta(ge=0)]
    factor: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)]
    works: tuple[str, ...] = ()


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What work costs, as it stands in a file.

    Work is named as `Clock.charge` is told: an operation (`detect`), the same when it was spared
    (`detect_spared`), `decode`, `encode`. `calls_ms` gives each call's cost in turn, and begins
    anew behind its end; `costs_ms` what is the same at each call; what is in neither costs nothing.
    `noise` and `phases` apply to both.
    """

    costs_ms: dict[str, Milliseconds] = {}
    calls_ms: dict[str, list[Milliseconds]] = {}
    noise: Noise | None = None
    phases: tuple[Phase, ...] = ()


DEFAULT_COSTS: Final = Costs(
    costs_ms={
        "decode": 2.5,
        "encode": 7.0,
        "detect": 12.5,
        "detect_spared": 2.6,
        "align": 13.0,
        "align_spared": 0.5,
        "identify": 1.0,
        "background": 13.5,
        "swap": 10.5,
        "puppet": 15.0,
        "beautify": 3.2,
        "enhance": 3.6,
        "enhance_spared": 1.0,
        "blur": 2.6,
    }
)
"""Of 1280x720 with one large face on two slow cores without a graphics card, November 2026."""


_KINDS: Final = frozenset(work.removesuffix(_SPARED) for work in DEFAULT_COSTS.costs_ms)


class TableCosts:
    """A `CostModel` of `Costs`. One clock's; calls are counted from here on."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self._calls: Counter[str] = Counter()

    def get_cost_ns(self, work: str, spent_ns: int) -> int:  # noqa: ARG002 - a table does not measure
        """Return what the table says of this call of `work`."""
        index = self._calls[work]
        self._calls[work] += 1
        calls_ms = self.costs.calls_ms.get(work)
        if calls_ms:
            cost_ms = calls_ms[index % len(calls_ms)]
        else:
            cost_ms = self.costs.costs_ms.get(work, 0.0)
        return round(cost_ms * self._get_factor(work, index) * NS_PER_MS)

    def _get_factor(self, work: str, index: int) -> float:
        """Return the phase's factor, give or take the noise.

        That is a hash: no draw depends on what was drawn before.
        """
        factor = self._find_phase(work)
        noise = self.costs.noise
        if noise is None or not noise.share:
            return factor
        digest = hashlib.blake2b(f"{noise.seed} {work} {index}".encode(), digest_size=8).digest()
        return factor * (1.0 + noise.share * (int.from_bytes(digest) / 2**63 - 1.0))

    def _find_phase(self, work: str) -> float:
        factor = 1.0
        packet = self._calls[_CLOCK]
        for phase in self.costs.phases:
            if phase.start <= packet < phase.end and (not phase.works or work in phase.works):
                factor *= phase.factor
        return factor


class MeasuredCosts:
    """A `CostModel` that takes what the work really took, in whole microseconds, and keeps it.

    The same decisions come from `TableCosts(measured.costs)`.
    """

    def __init__(self) -> None:
        self._calls_ms: dict[str, list[float]] = {}

    @property
    def costs(self) -> Costs:
        """All that was measured so far."""
        return Costs(calls_ms={work: list(ms) for work, ms in sorted(self._calls_ms.items())})

    def get_cost_ns(self, work: str, spent_ns: int) -> int:
        """Return `spent_ns`, rounded as it is kept."""
        cost_ns = max(round(spent_ns / _NS_PER_US) * _NS_PER_US, 0)
        self._calls_ms.setdefault(work, []).append(cost_ns / NS_PER_MS)
        return cost_ns


def read_costs(path: Path) -> Costs:
    """Return the costs in a JSON file, or those that the report of a replay was made with.

    Raises:
        ConfigError: it cannot be read, holds something else, or names work that nobody does.
    """
    try:
        found: Any = msgspec.json.decode(path.read_bytes())
        if isinstance(found, dict) and _IN_REPORT in found:
            found = found[_IN_REPORT]
        costs = msgspec.convert(found, Costs)
    except OSError as error:
        raise ConfigError(
            f"cannot read the costs in {path} ({error.strerror})",
            hint='name a JSON file such as {"costs_ms": {"detect": 8.0}}, or a report',
        ) from None
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} does not hold costs ({error})",
            hint='write JSON such as {"costs_ms": {"detect": 8.0}}, or name a report',
        ) from None
    # A slip of the pen would cost nothing, and nobody would see it.
    named = {work.removesuffix(_SPARED) for work in _list_works(costs)}
    if unknown := sorted(named - _KINDS):
        raise ConfigError(
            f"{path} names work that nobody does: {', '.join(unknown)}",
            hint=f"work is {', '.join(sorted(_KINDS))}, each also with {_SPARED}",
        )
    return costs


def _list_works(costs: Costs) -> Iterator[str]:
    yield from (*costs.costs_ms, *costs.calls_ms)
    for phase in costs.phases:
        yield from phase.works
