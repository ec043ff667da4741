"""When keys of the API were used last: told at each call, written seldom."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.errors import LivefuseError
from livefuse.safety.folder import lock_folder, write_private
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.clock import Clock

_USED: Final = "used.json"
_USED_EVERY_S: Final = 600.0


class KeyUses:
    """Of the keys in `folder`: for each written at most every ten minutes, of `most` the newest."""

    def __init__(self, folder: Path, clock: Clock, most: int) -> None:
        self._folder = folder
        self._clock = clock
        self._most = most
        self._told: dict[str, float] = {}

    def note(self, key_id: str) -> None:
        """Take a use; from any thread, returns at once."""
        now = self._clock.epoch_s()
        if now - self._told.get(key_id, float("-inf")) < _USED_EVERY_S:
            return
        self._told[key_id] = now
        threading.Thread(
            target=self._write, args=(key_id, now), daemon=True, name="livefuse-keys"
        ).start()

    def read(self) -> dict[str, str]:
        """Return the last use of each key, as far as is known."""
        try:
            return msgspec.json.decode((self._folder / _USED).read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _write(self, key_id: str, now_epoch_s: float) -> None:
        try:
            with lock_folder(self._folder):
                uses = self.read() | {key_id: write_time(now_epoch_s)}
                newest = sorted(uses.items(), key=lambda use: use[1])[-self._most :]
                write_private(self._folder / _USED, msgspec.json.encode(dict(newest)))
        except LivefuseError as error:
            get_logger("keys").warning("when a key was used is not written", cause=str(error))


def write_time(epoch_s: float) -> str:
    """Return a time as key files have it: ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat("T", "seconds")
