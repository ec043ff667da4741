"""House rules that a machine can keep; each failure names the file and what to do."""

import os
import re

import pytest

from tests.contract.repo import ROOT, list_files, list_functions, read_text, tell

MODULE_LINES = 300
FUNCTION_LINES = 60
SCRIPT_LINES = 25
# In pieces, so that this file holds none of what it looks for.
UNFINISHED = re.compile("|".join((r"\bTO" + "DO\\b", r"\bFIX" + "ME\\b", r"\bX" + "XX\\b")))
REGISTRY_HOSTS = re.compile(
    r"(?:py" + r"pi|python" + r"hosted|npm" + r"js|de" + r"bian)\.(?:org|com|net|io)\b"
)
EXCEPTION = re.compile(r"#\s*(?:noqa|type:\s*ignore)(?P<rest>.*)$")
REASONED = re.compile(r"^(?::\s*[A-Z0-9, ]+\s+-\s+\S|\[[a-z-, ]+\]\s*(?:#|-)\s*\S)")


def list_sources():
    return [p for p in list_files(".py") if tell(p).startswith("livefuse/")]


def join(lines):
    return "\n".join(["", *lines])


def find_lines(pattern, paths):
    return [
        f"{tell(path)}:{number}: {line.strip()[:80]}"
        for path in paths
        for number, line in enumerate(read_text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_nothing_is_left_for_later():
    found = find_lines(UNFINISHED, list_files())
    assert not found, join(found)


def test_no_registry_is_named():
    found = find_lines(REGISTRY_HOSTS, list_files())
    assert not found, join(found)


def test_modules_are_short():
    lengths = {tell(p): len(read_text(p).splitlines()) for p in list_sources()}
    long = [f"{name}: {n} lines" for name, n in lengths.items() if n > MODULE_LINES]
    assert not long, join(long)


def test_functions_are_short():
    long = [
        f"{tell(path)}:{node.name}: {lines} lines"
        for path in list_sources()
        for node in list_functions(path)
        if (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long, join(long)


def test_every_exception_to_a_rule_gives_its_reason():
    bare = [
        f"{tell(path)}:{number}: {line.strip()}"
        for path in list_sources()
        for number, line in enumerate(read_text(path).splitlines(), 1)
        if (found := EXCEPTION.search(line)) and not REASONED.search(found["rest"])
    ]
    assert not bare, join(bare)


def test_scripts_are_short_and_can_be_run():
    scripts = [p for p in list_files() if p.parent.name in {"scripts", ".ci"} and not p.suffix]
    assert len(scripts) >= 5
    assert [tell(p) for p in scripts if not os.access(p, os.X_OK)] == []
    assert [tell(p) for p in scripts if len(read_text(p).splitlines()) > SCRIPT_LINES] == []
    assert [tell(p) for p in scripts if "set -eu" not in read_text(p)] == []


@pytest.mark.parametrize(("folder", "mark"), [("tests/wire", "wire"), ("tests/e2e", "e2e")])
def test_tests_carry_the_mark_of_their_folder(folder, mark):
    files = [p for p in list_files(".py") if p.name.startswith("test_")]
    there = [p for p in files if tell(p).startswith(folder)]
    assert [tell(p) for p in there if f"pytest.mark.{mark}" not in read_text(p)] == []


def test_every_test_asserts_or_expects():
    idle = []
    for path in list_files(".py"):
        if not path.name.startswith("test_"):
            continue
        lines = read_text(path).splitlines()
        functions = {
            node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
            for node in list_functions(path)
        }
        expecting = ["assert", "pytest.raises", "pytest.fail"]
        expecting += [f"{name}(" for name, body in functions.items() if _has_any(body, expecting)]
        expecting += ["check_", "expect_"]  # helpers of other modules
        idle += [
            f"{tell(path)}:{name}"
            for name, body in functions.items()
            if name.startswith("test_") and not _has_any(body.partition("\n")[2], expecting)
        ]
    assert not idle, join(idle)


def _has_any(body, words):
    return any(word in body for word in words)


def test_the_package_is_typed_and_licensed():
    for name in ("livefuse/py.typed", "LICENSE", "models/NOTICE", "README.md", "CHANGELOG.md"):
        assert (ROOT / name).is_file(), name
