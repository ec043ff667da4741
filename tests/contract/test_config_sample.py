"""configs/livefuse.toml is the code's defaults, every key, each with its reason."""

import tomllib

import msgspec
import pytest

from livefuse.config import SECTIONS, Config, load_config
from tests.contract.repo import ROOT

SAMPLE = ROOT / "configs" / "livefuse.toml"


def test_the_sample_is_the_defaults():
    assert load_config(SAMPLE) == Config()


def test_the_sample_lists_every_key_in_the_codes_order():
    sample = tomllib.loads(SAMPLE.read_text("utf-8"))
    listed = [f"{section}.{key}" for section, table in sample.items() for key in table]
    coded = [
        f"{section}.{field.name}"
        for section, kind in SECTIONS.items()
        for field in msgspec.structs.fields(kind)
    ]
    assert set(coded) - set(listed) == set()
    assert listed == coded


def test_every_key_and_section_has_a_line_of_why():
    lines = [line.strip() for line in SAMPLE.read_text("utf-8").splitlines()]
    bare = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line and not line.startswith("#") and not before.startswith("#")
    ]
    assert bare == []


@pytest.mark.parametrize("path", sorted(SAMPLE.parent.glob("*.toml")), ids=lambda p: p.name)
def test_every_ready_scene_can_be_read(path):
    assert isinstance(load_config(path), Config)
