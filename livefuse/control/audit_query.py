"""Which audit log is meant, and from when on: for the command line and the API."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.errors import ConfigError
from livefuse.safety.audit_anchor import ANCHOR_FILE
from livefuse.safety.audit_files import AUDIT_FOLDER, CURRENT
from livefuse.safety.audit_head import HEAD_FILE, knows_head
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.keys import KEY_FILE, KeyRing

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import Config

_AGO: Final = re.compile(r"(\d{1,6})([smhdw])")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def find_audit(config: Config, clock: Clock, folder: str = "") -> tuple[Path, KeyRing | None]:
    """Return the folder of the log and the keys to check it with; by default this machine's.

    `folder` is a copy: of the log alone or of the whole safety folder. Its keys are those that came
    with it, else this machine's where they fit; None when there are none.

    Raises:
        ConfigError: there is no log in `folder`, or keys cannot be read.
    """
    own = find_safety_folder(config.safety)
    if not folder:
        return own / AUDIT_FOLDER, KeyRing(own, clock)
    place = Path(folder).expanduser()
    found = next((p for p in (place, place / AUDIT_FOLDER) if _is_log(p)), None)
    if found is None:
        raise ConfigError(
            f"there is no audit log in {place}", hint=f"name the folder that {CURRENT} lies in"
        )
    if (found.parent / KEY_FILE).is_file():
        return found, KeyRing(found.parent, clock)
    ring = KeyRing(own, clock)
    return found, ring if knows_head(found, ring) else None


def _is_log(folder: Path) -> bool:
    """Say whether a log is, or by its anchor was, in `folder`."""
    is_anchored = folder.name == AUDIT_FOLDER and (folder.parent / ANCHOR_FILE).is_file()
    return (folder / CURRENT).is_file() or (folder / HEAD_FILE).is_file() or is_anchored


def parse_since(text: str, now_epoch_s: float) -> float:
    """Return the time, in epoch seconds, of `2026-11-30`, `2026-11-30T16:00` (UTC) or `2h` ago.

    Raises:
        ConfigError: it is none of these.
    """
    text = text.strip()
    if ago := _AGO.fullmatch(text):
        return max(0.0, now_epoch_s - int(ago[1]) * _UNITS_S[ago[2]])
    try:
        when = datetime.fromisoformat(text)
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text[:40]!r} is no time", hint="write 2026-11-30, 2026-11-30T16:00 (UTC) or 2h"
        ) from None
