"""Words that nobody can take end nothing."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from livefuse.control import console

ROOT = Path(__file__).parents[3]
CODE = """
from livefuse.control.console import complain, open_missing_streams, say
open_missing_streams()
say("one"); complain("two"); say("three")
file = open(__file__) if "__file__" in globals() else open("/dev/zero")
assert file.fileno() > 2, file.fileno()
raise SystemExit(7)
"""


@pytest.mark.parametrize(
    "redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"]
)
def test_closed_and_full_streams_are_no_fault(redirection):
    command = f'exec "$0" -c "$1" {redirection}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, CODE],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    if not redirection.startswith((">", "<&- >")):
        assert done.stdout == "one\nthree\n"
    assert "Error" not in done.stderr


def test_a_reader_that_leaves_is_no_fault():
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    with os.fdopen(write_fd, "w", encoding="utf-8") as stream:
        console._write(stream, "one")
        console._write(stream, "two")
        nowhere = Path(os.devnull).stat()
        assert os.path.samestat(os.fstat(stream.fileno()), nowhere)


def test_a_name_that_is_no_text_and_letters_nobody_knows_are_written_escaped(monkeypatch):
    for encoding, text in (("utf-8", "bad\udcff.mp4"), ("ascii", "größe.mp4")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        console.say(text)
        assert stream.buffer.getvalue().count(b"\\") >= 1
        assert stream.buffer.getvalue().endswith(b".mp4\n")
