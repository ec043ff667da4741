"""`livefuse audit`: exit codes, words, copies."""

from __future__ import annotations

import json
import shutil

import pytest

from livefuse.clock import ManualClock
from livefuse.control.audit_query import parse_since
from livefuse.control.cli import main
from livefuse.errors import ConfigError, get_exit_code
from livefuse.safety.audit import AuditLog


@pytest.fixture
def folder(tmp_path):
    log = AuditLog(tmp_path / "safety", ManualClock())
    log.append("job.started", who="cli", job="a", facts={"outputs": ["x.mp4", "y.mp4"], "n": 1})
    log.append("job.failed", who="livefuse", job="a", facts={"reason": "two words"})
    log.append("job.started", who="anna", job="b")
    return tmp_path / "safety"


@pytest.fixture
def run(folder, capsys):
    def run(*arguments):
        code = main(["audit", *arguments, "--set", f"safety.folder={folder}"])
        return code, capsys.readouterr()

    return run


def edit(folder):
    path = folder / "audit" / "audit.jsonl"
    path.write_text(path.read_text().replace("two words", "no words!"))


def test_whole_is_0(run):
    code, said = run("verify")
    assert code == 0
    assert said.out.startswith("whole: 3 records, 1 to 3, in 1 file; the newest is ")
    code, said = run("verify", "--json")
    assert code == 0
    assert json.loads(said.out)["is_whole"]


def test_broken_is_1_and_says_where_and_how(run, folder):
    edit(folder)
    code, said = run("verify")
    assert code == 1
    assert said.out.splitlines()[0].startswith("audit.jsonl line 2: edited: ")
    assert said.out.splitlines()[1].startswith("broken: ")
    code, said = run("verify", "--json")
    assert code == 1
    fault = json.loads(said.out)["faults"][0]
    assert (fault["line"], fault["sequence"], fault["how"]) == (2, 2, "edited")


def test_records_for_people(run):
    code, said = run("show")
    assert code in (0, None)
    assert said.out.splitlines() == [
        "     1  2023-11-14T22:13:20.000Z  job.started    a  by cli  n=1  outputs=x.mp4,y.mp4",
        '     2  2023-11-14T22:13:20.000Z  job.failed     a  by livefuse  reason="two words"',
        "     3  2023-11-14T22:13:20.000Z  job.started    b  by anna",
    ]


def test_records_that_fit(run):
    def list_numbers(*arguments):
        _, said = run("show", "--json", *arguments)
        return [json.loads(line)["sequence"] for line in said.out.splitlines()]

    assert list_numbers("--job", "a") == [1, 2]
    assert list_numbers("--event", "job.started") == [1, 3]
    assert list_numbers("-n", "2") == [2, 3]
    assert list_numbers("--since", "2023-11-14T22:13:20") == [1, 2, 3]
    assert list_numbers("--since", "2h") == []
    _, said = run("show", "--since", "2h")
    assert said.err == "livefuse: no record fits\n"


class TestCopies:
    """Of the log alone or of all, with its keys, without, or where they are another's."""

    def check(self, run, copy):
        code, said = run("verify", "--json", "--folder", str(copy))
        report = json.loads(said.out)
        assert code == (0 if report["is_whole"] else 1)
        return report["head"], report["is_whole"]

    def test_of_the_whole_store(self, run, folder, tmp_path):
        copy = shutil.copytree(folder, tmp_path / "copy")
        shutil.rmtree(folder)
        assert self.check(run, copy) == ("good", True)
        assert self.check(run, copy / "audit") == ("good", True)

    def test_of_the_log_alone_on_the_same_machine(self, run, folder, tmp_path):
        copy = shutil.copytree(folder / "audit", tmp_path / "copies" / "audit")
        assert self.check(run, copy) == ("good", True)

    def test_of_the_log_alone_on_another(self, run, folder, tmp_path):
        copy = shutil.copytree(folder / "audit", tmp_path / "copies" / "audit")
        shutil.rmtree(folder)
        assert self.check(run, copy) == ("unchecked", True)
        _, said = run("verify", "--folder", str(copy))
        assert "nobody can tell" in said.out
        edit(copy.parent)
        assert self.check(run, copy) == ("unchecked", False)

    def test_that_cannot_be_written(self, run, folder, tmp_path):
        copy = shutil.copytree(folder, tmp_path / "copy")
        (copy / "audit" / ".lock").unlink()
        (copy / "audit").chmod(0o500)
        try:
            assert self.check(run, copy) == ("good", True)
            _, said = run("show", "--folder", str(copy))
            assert len(said.out.splitlines()) == 3
        finally:
            (copy / "audit").chmod(0o700)

    def test_of_nothing(self, run, tmp_path):
        (tmp_path / "empty").mkdir()
        code, said = run("verify", "--folder", str(tmp_path / "empty"))
        assert code == get_exit_code(ConfigError(""))
        assert "there is no audit log" in said.err


def test_nothing_logged_yet_is_whole(tmp_path, capsys):
    assert main(["audit", "verify", "--set", f"safety.folder={tmp_path}"]) == 0
    assert capsys.readouterr().out == "note: nothing has been logged yet\n"


@pytest.mark.parametrize(
    ("text", "epoch_s"),
    [
        ("2023-11-14", 1_699_920_000),
        ("2023-11-14T22:13:20", 1_700_000_000),
        ("2023-11-14T22:13:20+01:00", 1_699_996_400),
        ("90s", 999_910),
        ("2h", 992_800),
        ("999999w", 0),
    ],
)
def test_times(text, epoch_s):
    assert parse_since(text, 1_000_000.0) == epoch_s


@pytest.mark.parametrize("text", ["", "soon", "2h30", "2023-13-01", "-3h", "9" * 400])
def test_no_times(text):
    with pytest.raises(ConfigError, match="no time"):
        parse_since(text, 1_000_000.0)


def test_what_others_wrote_makes_no_line_and_no_colour_of_its_own(run, folder):
    """A target's name may hold a line break and a terminal's escapes: the record shows them."""
    log = AuditLog(folder, ManualClock())
    log.append("output.added", who="bob", job="x", facts={"url": "a\x1b[31m\n99 job.started.mp4"})
    _, said = run("show")
    assert len(said.out.splitlines()) == 4
    assert "\x1b" not in said.out
    assert r"a\x1b[31m\n99" in said.out
