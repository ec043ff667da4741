"""`livefuse serve` refuses what it cannot do in one line, before it starts anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("daemon.folder=/dev/null/d",), "cannot make the folder"),
        (("daemon.silence_s=0",), "daemon.silence_s cannot be 0"),
        (("http.host=0.0.0.0", "http.port=0"), "0.0.0.0"),
        (("http.host=0.0.0.0", "http.require_key=false", "http.port=0"), "anybody could come in"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(tmp_path, settings, words):
    wanted = (f"safety.folder={tmp_path}", *settings)
    done = subprocess.run(
        [sys.executable, "-m", "livefuse", "serve"] + [w for s in wanted for w in ("--set", s)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
