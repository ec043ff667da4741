"""Words for people: standard output for what was asked for, standard error for what went wrong.

Nobody need be listening. A reader that has gone, a full disk behind a redirection or a stream that
was closed from the start ends the words, never the stream that is being worked on.
"""

from __future__ import annotations

import contextlib
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


def open_missing_streams() -> None:
    """Put the null device where standard input, output or error was closed from outside.

    Else the next file that is opened gets that number, and words meant for people land in it.
    Python has no object for such a stream either; call this before anything is opened.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - by number, for the process's life


def _write(stream: TextIO, text: str) -> None:
    try:
        try:
            stream.write(f"{text}\n")
        except UnicodeEncodeError:
            # A file's name need not be text, and a terminal need not know every letter.
            known = text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)
            stream.write(f"{known}\n")
        stream.flush()
    except OSError:
        # The reader has gone (`livefuse ... | head`) or the disk is full.
        _silence(stream)


def _silence(stream: TextIO) -> None:
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - no path
        os.dup2(nowhere.fileno(), stream.fileno())
