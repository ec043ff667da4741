"""The audit log as a person meets it: a file that is treated is in it, and a full disc is said."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from livefuse.errors import AuditError, get_exit_code
from tests.contract.repo import ROOT
from tests.media import make_clip

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return make_clip(tmp_path_factory.mktemp("clips") / "a.mp4", 0.5, face=False)


@pytest.fixture
def start(tmp_path):
    """Start livefuse with a safety folder of its own."""

    def start(*arguments, **options):
        command = [sys.executable, "-m", "livefuse", *arguments]
        command += ["--set", f"safety.folder={tmp_path / 'safety'}"]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        return subprocess.Popen(command, cwd=tmp_path, env=env, text=True, **{**pipes, **options})

    return start


@pytest.fixture
def run(start):
    def run(*arguments, **options):
        with start(*arguments, **options) as process:
            out, err = process.communicate(timeout=50)
        return process.returncode, out, err

    return run


def test_a_file_is_in_it_from_its_beginning_to_its_end(run, clip, tmp_path):
    target = tmp_path / "b.mp4"
    plain = ("--operations", "none")
    code, _, err = run("run", "--from", str(clip), "--to", str(target), *plain)
    assert code == 0, err
    code, out, _ = run("audit", "show", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    told = [(record["event"], record["who"]) for record in records]
    assert told[:3] == [("job.created", "cli"), ("job.submitted", "cli"), ("job.started", "cli")]
    assert told[-1] == ("job.stopped", "livefuse")
    assert len(told) <= 6  # a small file may be over before anybody sees it run
    started = records[2]["facts"]
    assert started["source"] == str(clip)
    assert started["outputs"] == [str(target)]
    assert started["mode"] == "every_frame"
    assert run("audit", "verify")[0] == 0


def test_an_unknown_face_is_refused_and_logged(run, clip):
    """(C78)"""
    code, _, err = run("run", "--from", str(clip), "--to", "b.mp4", "--source-face", "eve")
    assert code == 40
    assert "no face 'eve' is enrolled" in err
    (record,) = [json.loads(line) for line in run("audit", "show", "--json")[1].splitlines()]
    assert (record["event"], record["who"]) == ("job.refused", "cli")
    assert record["facts"]["reason"] == "no face 'eve' is enrolled"


def test_nothing_begins_when_the_disc_takes_no_more(run, clip, tmp_path):
    """The kernel's own refusal: no file may grow beyond a kilobyte, which is two records."""
    limit = (resource.RLIMIT_FSIZE, (1024, 1024))
    code, _, err = run(
        "run",
        "--from",
        str(clip),
        "--to",
        "b.mp4",
        preexec_fn=lambda: resource.setrlimit(*limit),
    )
    assert code == get_exit_code(AuditError("")) == 43
    lines = err.strip().splitlines()
    assert len(lines) == 1
    assert "the audit log" in lines[0]
    assert "File too large" in lines[0]
    assert not (tmp_path / "b.mp4").exists()
    code, out, _ = run("audit", "verify")
    assert code == 0, out
