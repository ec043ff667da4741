"""What the README says of keys, codes, inputs and outputs is what there is."""

import re

from livefuse.config import SECTIONS
from livefuse.errors import EXIT_CODES
from livefuse.ingest import SCHEMES
from livefuse.publish.base import FILE_SUFFIXES
from livefuse.token import OPERATIONS
from tests.contract.repo import ROOT

TEXT = (ROOT / "README.md").read_text("utf-8")


def test_every_key_that_is_named_exists():
    named = set(re.findall(rf"\b({'|'.join(SECTIONS)})\.([a-z_]+)\b", TEXT))
    known = {(s, f) for s, kind in SECTIONS.items() for f in kind.__struct_fields__}
    assert {(s, k) for s, k in named if k not in {"py", "toml"}} <= known
    assert ("blur", "style") in named


def test_every_exit_code_is_told():
    table = TEXT[TEXT.index("## Exit codes") : TEXT.index("## Limits")]
    told = set()
    for cell in re.findall(r"^\| ([\d to]+) \|", table, re.MULTILINE):
        first, _, last = cell.partition(" to ")
        told |= set(range(int(first), int(last or first) + 1))
    assert set(EXIT_CODES.values()) <= told


def test_every_way_in_and_out_is_told():
    command_line = TEXT[TEXT.index("## The command line") : TEXT.index("## OBS")]
    for scheme in SCHEMES:
        assert f"{scheme}:" in command_line or scheme == "file", scheme
    for suffix in FILE_SUFFIXES:
        assert suffix in command_line, suffix


def test_every_operation_has_its_row():
    for operation in OPERATIONS:
        assert f"| `{operation}` |" in TEXT


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / target).exists(), target
