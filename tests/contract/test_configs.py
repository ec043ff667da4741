"""The ready-made configurations load, and say of each value why."""

import itertools
import tomllib

import pytest

from livefuse.config import Config, load_config
from livefuse.runtime.registry import load_registry
from tests.contract.repo import ROOT

SCENES = sorted(path for path in (ROOT / "configs").glob("*.toml") if path.name != "livefuse.toml")


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_it_loads_and_changes_something(path):
    assert load_config(path) != Config()
    for section, table in tomllib.loads(path.read_text("utf-8")).items():
        defaults = getattr(Config(), section)
        assert all(getattr(defaults, key) != value for key, value in table.items()), section


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_each_value_has_its_reason(path):
    lines = path.read_text("utf-8").splitlines()
    for before, line in itertools.pairwise(lines):
        if "=" in line and not line.startswith("#"):
            assert before.startswith("# "), f"{path.name}: {line}"


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_its_networks_come_with_livefuse(path):
    config = load_config(path)
    registry = load_registry(config.models)
    for section in ("detect", "align", "identify", "background"):
        assert registry.get_model(getattr(config, section).model).embedded


def test_the_light_one_is_there():
    assert "light" in [path.stem for path in SCENES]
