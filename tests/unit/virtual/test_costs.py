"""Costs: the same for the same call, and a report is as good as a file of costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS
from livefuse.errors import ConfigError
from livefuse.token import OPERATIONS
from livefuse.virtual import (
    DEFAULT_COSTS,
    Costs,
    MeasuredCosts,
    Noise,
    Phase,
    TableCosts,
    read_costs,
)

if TYPE_CHECKING:
    from pathlib import Path


def _ask(model: TableCosts, *works: str) -> list[float]:
    return [model.get_cost_ns(work, 77) / NS_PER_MS for work in works]


def test_a_call_costs_what_the_table_says_and_what_is_not_named_nothing() -> None:
    costs = Costs(costs_ms={"detect": 8.0, "blur": 1.0}, calls_ms={"blur": [2.0, 3.0]})
    asked = _ask(TableCosts(costs), "detect", "blur", "blur", "swap", "blur", "detect")
    assert asked == [8.0, 2.0, 3.0, 0.0, 2.0, 8.0]


def test_a_phase_makes_what_it_names_dearer_while_it_lasts() -> None:
    phases = (Phase(start=2, end=4, factor=3.0, works=("detect",)), Phase(start=3, end=9, factor=2))
    model = TableCosts(Costs(costs_ms={"detect": 1.0, "blur": 1.0}, phases=phases))
    asked = [tuple(_ask(model, "decode", "detect", "blur")[1:]) for _ in range(5)]
    assert asked == [(1, 1), (3, 1), (6, 2), (2, 2), (2, 2)]


def test_every_operation_has_a_usual_cost() -> None:
    assert set(OPERATIONS) | {"decode", "encode"} <= set(DEFAULT_COSTS.costs_ms)


@given(seed=st.integers(), share=st.floats(0, 1), cost=st.floats(0, 1000))
def test_noise_stays_within_its_share_and_is_the_same_again(
    seed: int, share: float, cost: float
) -> None:
    costs = Costs(costs_ms={"work": cost}, noise=Noise(seed=seed, share=share))
    works = ["work"] * 5
    asked = _ask(TableCosts(costs), *works)
    assert asked == _ask(TableCosts(costs), *works)
    tolerance = 1e-6 * cost + 1e-6
    assert all(abs(ms - cost) <= share * cost + tolerance for ms in asked)


def test_noise_differs_from_call_to_call_and_seed_to_seed() -> None:
    def draw(seed: int) -> list[float]:
        costs = Costs(costs_ms={"work": 10.0}, noise=Noise(seed=seed, share=0.5))
        return _ask(TableCosts(costs), *["work"] * 20)

    assert len(set(draw(1))) == 20
    assert draw(1) != draw(2)
    assert 8.0 < sum(draw(1)) / 20 < 12.0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 10**9)), max_size=20))
def test_what_was_measured_comes_again_from_the_file(spent: list[tuple[str, int]]) -> None:
    measured = MeasuredCosts()
    taken = [measured.get_cost_ns(work, ns) for work, ns in spent]
    written = msgspec.json.decode(msgspec.json.encode(measured.costs), type=Costs)
    table = TableCosts(written)
    assert [table.get_cost_ns(work, 0) for work, _ in spent] == taken


def test_a_report_is_a_file_of_costs(tmp_path: Path) -> None:
    costs = Costs(costs_ms={"detect": 8.0}, noise=Noise(seed=3, share=0.1))
    plain, report = tmp_path / "plain.json", tmp_path / "report.json"
    plain.write_bytes(msgspec.json.encode(costs))
    report.write_bytes(msgspec.json.encode({"frames": [], "costs": costs}))
    assert read_costs(plain) == read_costs(report) == costs


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "\xff",
        '{"costs_ms": {"detect": -1}}',
        '{"costs_ms": {"detect": "8"}}',
        '{"noise": {"share": 2}}',
        '{"detect": 8}',
        '{"costs": 5}',
    ],
)
def test_what_is_no_costs_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"costs\.json does not hold costs"):
        read_costs(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the costs"):
        read_costs(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"costs_ms": {"detct": 8.0}}',
        '{"calls_ms": {"detct": [8.0]}}',
        '{"phases": [{"start": 0, "end": 9, "factor": 2.0, "works": ["detct"]}]}',
    ],
)
def test_a_slip_of_the_pen_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="nobody does: detct") as caught:
        read_costs(path)
    assert "detect" in caught.value.hint
