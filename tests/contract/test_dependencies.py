"""What is installed is what is pinned, and what is pinned is what pyproject.toml allows.

An audit against known vulnerabilities needs a database from the network, which no check here may
ask; this is what can be known without: that nothing unlisted runs, so that a list of pins tells all
there is to look up.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distributions
from typing import Final

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.contract.repo import ROOT

# Not pinned: ourselves, the installers, and what scripts/setup installs by its name alone.
OWN: Final = {"livefuse", "pip", "setuptools", "wheel", "insightface"}


def read_pins() -> dict[str, str]:
    """Return the versions that constraints.txt names for this Python."""
    pins: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        row, _, marker = line.partition(";")
        name, equals, version = row.strip().partition("==")
        if equals and (not marker or Marker(marker.strip()).evaluate()):
            pins[canonicalize_name(name)] = version
    return pins


def list_requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(text) for group in groups for text in group]


def test_every_pin_is_exact():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+(; python_version .*)?", line), line


@pytest.mark.parametrize("wanted", list_requirements(), ids=str)
def test_what_is_asked_for_allows_what_is_pinned(wanted):
    pin = read_pins().get(canonicalize_name(wanted.name))
    assert pin is not None
    assert wanted.specifier.contains(pin)


def test_nothing_else_is_installed():
    pins, found = read_pins(), {}
    for one in distributions():
        found[canonicalize_name(one.metadata["Name"])] = one.version
    strangers = {
        name: version
        for name, version in found.items()
        if name not in OWN and pins.get(name) != version
    }
    assert not strangers
