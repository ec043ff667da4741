"""Damaged input is read or refused in words; `python -m tests.fuzz.parsers` tries for longer."""

import pytest

from tests.fuzz.parsers import Parser, feed, list_parsers, run

COUNT = 150


@pytest.fixture(scope="module")
def parsers(tmp_path_factory):
    return {parser.name: parser for parser in list_parsers(tmp_path_factory.mktemp("parsers"))}


NAMES = (
    "token", "token patch", "sealed token", "configuration file", "configuration setting", "offer",
    "job of the API", "job_args", "consent", "address", "SEI record", "picture",
)  # fmt: skip


def test_all_parsers_are_tried(parsers):
    assert tuple(parsers) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_good_input_is_read(parsers, name):
    for seed in parsers[name].seeds:
        assert feed(parsers[name], seed) is None


@pytest.mark.parametrize("name", NAMES)
def test_damaged_input_is_read_or_refused(parsers, name):
    assert run(parsers[name], seed=20, count=COUNT) == []


def test_a_parser_that_breaks_is_found():
    def read(data):
        return data.decode("ascii")

    found = run(Parser("ascii", read, (b"plain text",)), seed=1, count=200)
    assert {fault.what.partition(":")[0] for fault in found} == {"UnicodeDecodeError"}
