"""(R56) Nothing that livefuse does is paid by the call: it is free software that asks nobody.

What it dials while it runs is watched in tests/wire/test_sockets.py.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

import pytest
from packaging.requirements import Requirement

from livefuse.config import load_config
from tests.contract.repo import ROOT, list_files, read_text, tell

FREE = re.compile(r"\b(MIT|BSD|0BSD|Apache|Zlib|CC0-1\.0|LGPL|GPL|MPL)\b", re.IGNORECASE)
ADDRESS = re.compile(r"\bhttps?://([a-z0-9-]+(?:\.[a-z0-9-]+)+)", re.IGNORECASE)
NAMES_ONLY = {
    "www.webrtc.org": "names an RTP header extension",
    "cv.iptc.org": "names a kind of source in C2PA",
    "json-schema.org": "names a dialect of JSON Schema",
    "127.0.0.1": "this machine",
    "www.w3.org": "names a kind of XML",
}


def list_asked_for() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    # A virtual camera needs a driver, so pyvirtualcam (GPL-2.0) is not installed for tests.
    asked = [extras[name] for name in extras if name not in ("dev", "virtualcam")]
    groups = [project["dependencies"], *asked]
    return [Requirement(text).name for group in groups for text in group]


@pytest.mark.parametrize("package", list_asked_for())
def test_what_is_installed_along_is_free_software(package: str) -> None:
    about = importlib.metadata.metadata(package)
    told = " ".join(
        [
            *(about.get_all("License-Expression") or []),
            *(one[:200] for one in about.get_all("License") or []),
            *(one for one in about.get_all("Classifier") or [] if one.startswith("License")),
        ]
    )
    assert FREE.search(told), told
    assert "Proprietary" not in told


def test_no_address_of_a_service_is_in_the_program() -> None:
    kinds = (".py", ".js", ".html", ".css", ".toml")
    paths = [path for path in list_files() if tell(path).startswith("livefuse/")]
    found = {
        (tell(path), host)
        for path in paths
        if path.suffix in kinds
        for host in ADDRESS.findall(read_text(path))
    }
    assert found, "it looks at nothing"
    assert {host for _, host in found} <= NAMES_ONLY.keys(), found


def test_nothing_is_sent_anywhere_unless_somebody_names_the_place() -> None:
    config = load_config(settings=())
    assert config.tracing.endpoint == ""
    assert config.webrtc.ice_servers == ()
    assert config.http.host == "127.0.0.1"
