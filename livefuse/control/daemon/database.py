"""The daemon's one SQLite file: opened, brought up to date, read and written in transactions.

What a transaction wrote is on the disc when it returns (WAL, synchronous FULL): neither kill -9 nor
a power cut loses what a client was told.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, Final

from livefuse.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BUSY_S: Final = 5.0

# One script for each version that the file has had; never changed, only added to.
MIGRATIONS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE job (
        job_id TEXT PRIMARY KEY, owner TEXT NOT NULL, owner_name TEXT NOT NULL,
        phase TEXT NOT NULL, reason TEXT NOT NULL, since REAL NOT NULL, created REAL NOT NULL,
        is_wanted INTEGER NOT NULL, restarts INTEGER NOT NULL, revision INTEGER NOT NULL, spec BLOB
    ) STRICT;
    CREATE TABLE change (
        number INTEGER PRIMARY KEY, job_id TEXT NOT NULL REFERENCES job ON DELETE CASCADE,
        epoch_s REAL NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX change_of_job ON change (job_id, number);
    CREATE TABLE answer (
        caller TEXT NOT NULL, name TEXT NOT NULL, request BLOB NOT NULL, epoch_s REAL NOT NULL,
        status INTEGER NOT NULL, body BLOB NOT NULL, location TEXT NOT NULL,
        PRIMARY KEY (caller, name)
    ) STRICT;
    CREATE TABLE fact (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    """,
    """
    ALTER TABLE job ADD COLUMN ending BLOB;
    """,
)


class Database:
    """One file, one connection. Safe from any thread; blocks for milliseconds: not for a loop."""

    def __init__(self, path: Path) -> None:
        """Open or make the file at `path`, for its owner only; its folder is there.

        Raises:
            ConfigError: it is of a newer livefuse, or damaged.
            StorageError: it cannot be opened or written.
        """
        self.path = path
        self._lock = threading.RLock()
        _create_private(path)
        with self._explain():
            self._db = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()

    def read(self, query: str, *values: Any) -> list[sqlite3.Row]:  # noqa: ANN401 - what SQLite takes
        """Return all rows of a query.

        Raises:
            StorageError: the file cannot be read.
        """
        with self._lock, self._explain():
            return self._db.execute(query, values).fetchall()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Make what happens within one transaction: whole, or not at all.

        Raises:
            StorageError: it cannot be written; nothing was changed.
        """
        with self._lock, self._explain():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def _prepare(self) -> None:
        db = self._db
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise ConfigError(
                f"{self.path} was written by a newer livefuse",
                hint="install that one, or set daemon.folder to another folder",
            )
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            # executescript would end the transaction: the script carries its own.
            db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")

    @contextlib.contextmanager
    def _explain(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "") in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
                raise ConfigError(
                    f"{self.path} is damaged", hint="restore it from a backup, or move it away"
                ) from None
            raise StorageError(
                f"cannot keep jobs in {self.path} ({error})",
                hint="make room on the disc, or set daemon.folder",
            ) from None


def _create_private(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StorageError(
            f"cannot keep jobs in {path} ({error.strerror})", hint="set daemon.folder"
        ) from None
