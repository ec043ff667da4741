"""Where enrolled faces lie on disk, each in a folder of its own.

<safety folder>/keys.json              the keys (keys.py)
<safety folder>/faces/ID/record.json   who, what for, until when, and the hashes (records.py)
                         picture       the picture's file, sealed (seal.py)
                         embedding     what the network made of it, sealed
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import msgspec

from livefuse.errors import ConfigError, ConsentError, TokenError
from livefuse.safety.folder import lock_folder, make_private_folder, sign_file, write_private
from livefuse.safety.records import RECORD_FILE, FaceRecord, is_face_id, read_record
from livefuse.safety.sealed_parts import PARTS, Part, SealedParts

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from livefuse.safety.keys import KeyRing


class Shelf:
    """The files of enrolled faces. Knows nothing of who may be shown. Safe from any thread."""

    def __init__(self, folder: Path, keys: KeyRing) -> None:
        """Take the safety folder; nothing is read or made yet."""
        self._folder = folder / "faces"
        self._parts = SealedParts(self._folder, keys)

    def lock(self) -> AbstractContextManager[None]:
        """Make the folder and keep other writers out, threads and processes.

        Raises:
            ConfigError: it cannot be made or locked.
        """
        make_private_folder(self._folder.parent)
        return lock_folder(self._folder)

    def list_ids(self) -> list[str]:
        """Return the ids of all that lies here, readable or not."""
        try:
            return sorted(path.name for path in self._folder.iterdir() if is_face_id(path.name))
        except OSError:
            return []  # nothing was enrolled yet

    def list_records(self) -> tuple[FaceRecord, ...]:
        """Return the records that can be read, the oldest first."""
        found = []
        for face_id in self.list_ids():
            with contextlib.suppress(ConsentError):
                found.append(self.read_record(face_id))
        return tuple(sorted(found, key=lambda record: (record.created, record.face_id)))

    def has(self, face_id: str) -> bool:
        """Say whether anything of this face lies here."""
        return is_face_id(face_id) and (self._folder / face_id).is_dir()

    def sign_record(self, face_id: str) -> tuple[int, int, int] | None:
        """Return what changes when the record does, or None when there is none."""
        return sign_file(self._folder / face_id / RECORD_FILE) if is_face_id(face_id) else None

    def read_record(self, face_id: str) -> FaceRecord:
        """Return the face's record.

        Raises:
            ConsentError: it is not there, damaged, or does not say what was agreed.
        """
        if not is_face_id(face_id):
            raise ConsentError(
                f"no face {face_id[:64]!r} is enrolled", hint="run  livefuse faces list"
            )
        return read_record(self._folder / face_id / RECORD_FILE)

    def write_record(self, record: FaceRecord) -> None:
        """Write the record, whole.

        Raises:
            ConfigError: it cannot be written.
        """
        folder = self._folder / record.face_id
        make_private_folder(folder)
        write_private(folder / RECORD_FILE, msgspec.json.format(msgspec.json.encode(record)))

    def has_part(self, record: FaceRecord, part: Part) -> bool:
        """Say whether this part is kept."""
        return self._parts.has(record.face_id, part)

    def write_part(self, record: FaceRecord, part: Part, data: bytes) -> None:
        """Seal `data` and keep it.

        Raises:
            ConfigError: it cannot be written, or the keys cannot be read.
        """
        self._parts.write(record.face_id, part, _tell_kind(record, part), data)

    def open_part(self, record: FaceRecord, part: Part) -> bytes:
        """Return what was sealed under this very record.

        Raises:
            ConsentError: it is not there, or does not open.
            ConfigError: the keys cannot be read.
        """
        try:
            return self._parts.open(record.face_id, part, _tell_kind(record, part))
        except TokenError as error:
            reason = error.message
        raise ConsentError(
            f"the {part} of {record.person} cannot be used ({reason})",
            hint="enroll the picture again",
        )

    def delete_parts(self, face_id: str, parts: tuple[Part, ...] = PARTS) -> None:
        """Delete what is kept of a face but its record.

        Raises:
            ConfigError: it cannot be deleted.
        """
        for part in parts:
            path = self._folder / face_id / part
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise _explain(error, path) from None

    def remove(self, face_id: str) -> None:
        """Delete all that is kept of a face.

        Raises:
            ConfigError: it cannot be deleted.
        """
        folder = self._folder / face_id
        try:
            (folder / RECORD_FILE).unlink(missing_ok=True)  # first: from now on nobody is enrolled
            shutil.rmtree(folder)
        except OSError as error:
            raise _explain(error, folder) from None

    def reseal(self) -> int:
        """Seal with the newest key what an older one sealed; return how many files that were.

        Raises:
            ConsentError: one does not open.
            ConfigError: the folder cannot be written.
        """
        changed = 0
        for record in self.list_records():
            for part in self._parts.list_old(record.face_id):
                self.write_part(record, part, self.open_part(record, part))
                changed += 1
        return changed


def _tell_kind(record: FaceRecord, part: Part) -> str:
    """Return what a part is sealed as: a record that somebody rewrites opens none."""
    return f"{part}:{record.face_id}:{record.picture_sha256}:{record.consent_sha256}"


def _explain(error: OSError, path: Path) -> ConfigError:
    return ConfigError(
        f"cannot remove {path} ({error.strerror or 'busy'})", hint="check who may write there"
    )
