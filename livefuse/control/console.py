"""Words for people: standard output for what was asked for, standard error for what went wrong."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO


def say(text: str) -> None:
    """Write a line to standard output."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """Write a line to standard error, after the program's name."""
    _write(sys.stderr, f"livefuse: {make_one_line(text)}")


def make_one_line(text: str) -> str:
    """Return `text` with its line breaks and runs of spaces as single spaces."""
    return " ".join(text.split())


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except BrokenPipeError:
        # The reader has gone (`livefuse ... | head`): the stream goes on, its words go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
