"""Hide secrets from the process list: a URL on the command line is there for every user to read.

Linux shows in /proc/PID/cmdline whatever stands in the process's own argument memory, between
arg_start and arg_end (fields 48 and 49 of /proc/PID/stat, see proc(5)). That memory is ours to
write, through /proc/self/mem.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from livefuse.redact import redact_text

_PROC: Final = Path("/proc/self")
_ARG_START: Final = 48 - 3  # counted after the command's name, which is field 2 and in brackets
_ARG_END: Final = 49 - 3


def hide_secrets_in_arguments() -> bool:
    """Redact every URL in this process's visible arguments; False where that cannot be done."""
    try:
        fields = (_PROC / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        with (_PROC / "mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            old = memory.read(end - start)
            new = redact_arguments(old)
            if new != old:
                memory.seek(start)
                memory.write(new)
    except (OSError, ValueError, IndexError):
        return False
    return True


def redact_arguments(block: bytes) -> bytes:
    """Return an argument block (each argument ended by NUL) redacted, of the same length.

    The rest is filled with NULs and the last byte is one: the kernel takes anything else there for
    a title that goes on into the environment.
    """
    arguments = block.rstrip(b"\0").split(b"\0")
    safe = [redact_text(a.decode("utf-8", "surrogateescape")) for a in arguments]
    if all(s.encode("utf-8", "surrogateescape") == a for s, a in zip(safe, arguments, strict=True)):
        return block
    joined = "\0".join(safe).encode("utf-8", "surrogateescape")
    return joined[: len(block) - 1].ljust(len(block), b"\0")
