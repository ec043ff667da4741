"""SRT, which the FFmpeg in PyAV's wheels lacks: `srt-live-transmit` receives, we read its pipe."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from livefuse.errors import ConfigError
from livefuse.ingest.child import ReadingChild

if TYPE_CHECKING:
    from os import PathLike

PROGRAM: Final = "srt-live-transmit"


def check_srt_url(url: str, program: str | PathLike[str] | None = None) -> str:
    """Return the path of the program that receives `url`.

    Raises:
        ConfigError: it is not installed, or the URL would show a passphrase in the process list.
    """
    if "passphrase" in parse_qs(urlsplit(url).query):
        raise ConfigError(
            "a passphrase in an SRT URL would be seen by every user of this machine",
            hint=f"{PROGRAM} takes it as an argument only; use a VPN, or RTMPS",
        )
    found = shutil.which(program or PROGRAM)
    if found is None:
        raise ConfigError(
            f"SRT needs the program {PROGRAM}", hint="apt-get install srt-tools, then try again"
        )
    return found


def start_srt(url: str) -> ReadingChild:
    """Start the receiving process; its `stdout` gives MPEG-TS. It ends with the calling thread.

    Raises:
        ConfigError: see `check_srt_url`.
    """
    return ReadingChild([*_bind_to_us(), check_srt_url(url), "-q", url, "file://con"])


def _bind_to_us() -> list[str]:
    """Return what makes the kernel end a program with the thread that starts it, where that is.

    While nothing comes the program writes nothing, so it would not see that its reader has gone.
    """
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL", "--"] if found else []
