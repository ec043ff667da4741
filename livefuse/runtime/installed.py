"""models/installed.toml: what is known of the files that this machine's user brought.

One row a model: its digest when it came, where from, and who accepted its licence when.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTALLED: Final = "installed.toml"
_HEAD: Final = (
    "# Written by livefuse models import, pull and accept: files that were brought here.\n"
)


class Installed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row. Empty `accepted_by`: the licence needs no acceptance, or has none."""

    name: str
    file: str
    sha256: str
    bytes: int
    licence: str
    origin: str = ""
    imported_at: str = ""
    accepted_by: str = ""
    accepted_at: str = ""

    @property
    def accepted(self) -> bool:
        """Whether somebody accepted the licence."""
        return bool(self.accepted_by)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    installed: tuple[Installed, ...] = ()


def read_installed(folder: Path) -> dict[str, Installed]:
    """Return the rows of `folder` by name; none when there is no file.

    Raises:
        ModelError: it cannot be read or understood.
    """
    path = folder / INSTALLED
    try:
        text = path.read_text("utf-8")
        rows = msgspec.convert(tomllib.loads(text), _Table).installed
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ModelError(
            f"{path} cannot be used ({error})",
            hint="mend that row, or delete the file and import the models again",
        ) from None
    return {row.name: row for row in rows}


def write_installed(folder: Path, row: Installed) -> None:
    """Put `row` in place of the one of its name, atomically.

    Raises:
        ModelError: the folder cannot be written.
    """
    rows = read_installed(folder)
    rows[row.name] = row
    text = _HEAD + "".join(_format_row(msgspec.structs.asdict(each)) for each in rows.values())
    try:
        handle, name = tempfile.mkstemp(prefix=f".{INSTALLED}.", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(folder / INSTALLED)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise ModelError(
            f"cannot write {folder / INSTALLED} ({error.strerror or 'no access'})",
            hint="set models.folder to a folder of yours that holds manifest.toml",
        ) from None


def _format_row(row: Mapping[str, str | int]) -> str:
    """Return a TOML table; JSON's strings are TOML's basic strings."""
    lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in row.items()]
    return "\n[[installed]]\n" + "\n".join(lines) + "\n"
