"""SRT, which the FFmpeg in PyAV's wheels lacks: `srt-live-transmit` receives, we read its pipe."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import IO, TYPE_CHECKING, Final, cast
from urllib.parse import parse_qs, urlsplit

from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from os import PathLike

PROGRAM: Final = "srt-live-transmit"
_JOIN_S: Final = 1.0


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


class SrtChild:
    """One receiving process; `stream` gives MPEG-TS bytes and ends when the process does."""

    def __init__(self, url: str) -> None:
        program = check_srt_url(url)
        self._process = subprocess.Popen(  # noqa: S603 - a found program, no shell
            [program, "-q", url, "file://con"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.stream = cast("IO[bytes]", self._process.stdout)

    def stop(self) -> None:
        """End the process by its own id; from any thread, returns at once. Twice is once."""
        if self._process.poll() is None:
            self._process.kill()

    def close(self) -> None:
        """End the process and give back its pipe; from the thread that reads `stream`."""
        self.stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_JOIN_S)
        self.stream.close()
