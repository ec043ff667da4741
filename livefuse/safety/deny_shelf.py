"""Where the faces lie that must not be shown, each in a folder of its own, sealed.

<safety folder>/denied/changed          written with every change: what others look at
                       ID/record.json   a name, when, the picture's hash
                          picture       the picture's file, for another network to look at
                          embedding     what the network made of it
"""

from __future__ import annotations

import contextlib
import re
import shutil
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.errors import ConfigError, RefusedError, TokenError
from livefuse.safety.folder import lock_folder, make_private_folder, sign_file, write_private
from livefuse.safety.sealed_parts import Part, SealedParts

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from livefuse.safety.keys import KeyRing

DENIED_PREFIX: Final = "deny_"
_ID: Final = re.compile(r"deny_[0-9a-f]{12}")
_RECORD, _CHANGED = "record.json", "changed"


class DeniedFace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A face that no source picture may show. `created` is ISO 8601 in UTC."""

    denied_id: str
    name: str
    created: str
    picture_sha256: str
    denied_by: str = ""
    version: int = 1


class DeniedShelf:
    """The files of denied faces. Safe from any thread and process."""

    def __init__(self, folder: Path, keys: KeyRing) -> None:
        """Take the safety folder; nothing is read or made yet."""
        self._folder = folder / "denied"
        self._parts = SealedParts(self._folder, keys)

    def lock(self) -> AbstractContextManager[None]:
        """Make the folder and keep other writers out.

        Raises:
            ConfigError: it cannot be made or locked.
        """
        make_private_folder(self._folder.parent)
        return lock_folder(self._folder)

    def sign(self) -> tuple[int, int, int] | None:
        """Return what changes when a face is denied or let go; None: nobody ever was."""
        return sign_file(self._folder / _CHANGED)

    def list_records(self) -> tuple[DeniedFace, ...]:
        """Return all, the oldest first.

        Raises:
            ConfigError: one cannot be read: nobody can tell any more whom it denies.
        """
        try:
            names = [path.name for path in self._folder.iterdir() if _ID.fullmatch(path.name)]
        except OSError:
            return ()  # nobody was denied yet
        records = [self._read(name) for name in sorted(names)]
        return tuple(sorted(records, key=lambda record: (record.created, record.denied_id)))

    def write(self, record: DeniedFace, picture: bytes, embedding: bytes) -> None:
        """Keep a denied face whole; the record comes last.

        Raises:
            ConfigError: it cannot be written.
        """
        self.write_part(record, "picture", picture)
        self.write_part(record, "embedding", embedding)
        data = msgspec.json.format(msgspec.json.encode(record))
        write_private(self._folder / record.denied_id / _RECORD, data)
        self._touch()

    def write_part(self, record: DeniedFace, part: Part, data: bytes) -> None:
        """Seal `data` and keep it.

        Raises:
            ConfigError: it cannot be written.
        """
        self._parts.write(record.denied_id, part, _tell_kind(record, part), data)

    def open_part(self, record: DeniedFace, part: Part) -> bytes:
        """Return what was sealed under this record.

        Raises:
            ConfigError: it is not there, or does not open.
        """
        try:
            return self._parts.open(record.denied_id, part, _tell_kind(record, part))
        except TokenError as error:
            raise _explain(record.denied_id, error.message) from None

    def remove(self, denied_id: str) -> None:
        """Let a face go.

        Raises:
            ConfigError: it cannot be deleted.
        """
        try:
            shutil.rmtree(self._folder / denied_id)
        except OSError as error:
            raise _explain(denied_id, error.strerror or "busy") from None
        self._touch()

    def reseal(self) -> int:
        """Seal with the newest key what an older one sealed; return how many files that were.

        Raises:
            ConfigError: one does not open, or cannot be written.
        """
        changed = 0
        for record in self.list_records():
            for part in self._parts.list_old(record.denied_id):
                self.write_part(record, part, self.open_part(record, part))
                changed += 1
        return changed

    def find(self, name_or_id: str) -> str:
        """Return the id of the denied face of that name or id, also of one that is damaged.

        Raises:
            RefusedError: there is none.
        """
        wanted = name_or_id.strip()
        if _ID.fullmatch(wanted) and (self._folder / wanted).is_dir():
            return wanted
        with contextlib.suppress(ConfigError):
            for record in self.list_records():
                if record.name.casefold() == wanted.casefold():
                    return record.denied_id
        raise RefusedError(
            f"no face {wanted[:64]!r} is denied", hint="run  livefuse faces deny --list"
        )

    def _read(self, denied_id: str) -> DeniedFace:
        try:
            data = (self._folder / denied_id / _RECORD).read_bytes()
            record = msgspec.json.decode(data, type=DeniedFace)
        except OSError as error:
            raise _explain(denied_id, error.strerror or "unreadable") from None
        except msgspec.MsgspecError:
            raise _explain(denied_id, "its record is damaged") from None
        if record.denied_id != denied_id:
            raise _explain(denied_id, "its record is another's")
        return record

    def _touch(self) -> None:
        write_private(self._folder / _CHANGED, b"")


def _tell_kind(record: DeniedFace, part: Part) -> str:
    return f"denied-{part}:{record.denied_id}:{record.picture_sha256}"


def _explain(denied_id: str, reason: str) -> ConfigError:
    return ConfigError(
        f"the denied face {denied_id} cannot be used ({reason})",
        hint=f"remove it:  livefuse faces deny --remove {denied_id}  and deny its picture again",
    )
