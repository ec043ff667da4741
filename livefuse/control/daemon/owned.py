"""Which jobs a key has made that run or are to, looked up from beside the daemon. For commands."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Final

from livefuse.control.daemon.folder import find_daemon_folder
from livefuse.control.daemon.life import ACTIVE

if TYPE_CHECKING:
    from livefuse.config import Config

DATABASE: Final = "jobs.db"
_BUSY_S: Final = 2.0


def list_owned(config: Config, key_id: str) -> list[str] | None:
    """Return the jobs of that key that are not over, the oldest first; None: that cannot be known.

    Nothing is made or changed: where there was never a daemon there are no jobs.
    """
    path = find_daemon_folder(config) / DATABASE
    if not path.is_file():
        return []
    places = ", ".join("?" * len(ACTIVE))
    query = f"SELECT job_id FROM job WHERE owner = ? AND phase IN ({places}) ORDER BY created"  # noqa: S608 - question marks
    try:
        address = f"{path.as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, timeout=_BUSY_S, uri=True)) as db:
            return [job_id for (job_id,) in db.execute(query, (key_id, *sorted(ACTIVE)))]
    except (sqlite3.Error, ValueError):
        return None
