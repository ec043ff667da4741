"""What is kept of a face beside its record, sealed: the picture and what a network made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from livefuse.errors import TokenError
from livefuse.safety.folder import make_private_folder, write_private
from livefuse.safety.seal import get_key_id, open_bytes, seal_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.safety.keys import KeyRing

Part = Literal["picture", "embedding"]
PARTS: Final[tuple[Part, ...]] = ("picture", "embedding")


class SealedParts:
    """Files below `folder`, one folder for each face. Safe from any thread and process.

    `kind` is bound in when a part is sealed: it opens for nobody who says another.
    """

    def __init__(self, folder: Path, keys: KeyRing) -> None:
        """Take the folder; nothing is read or made yet."""
        self._folder = folder
        self._keys = keys

    def has(self, face_id: str, part: Part) -> bool:
        """Say whether this part is kept."""
        return (self._folder / face_id / part).is_file()

    def write(self, face_id: str, part: Part, kind: str, data: bytes) -> None:
        """Seal `data` and keep it.

        Raises:
            ConfigError: it cannot be written, or the keys cannot be read.
        """
        folder = self._folder / face_id
        make_private_folder(folder)
        write_private(folder / part, seal_bytes(data, kind, self._keys))

    def open(self, face_id: str, part: Part, kind: str) -> bytes:
        """Return what was sealed.

        Raises:
            TokenError: it is not there, or does not open; the message says why.
            ConfigError: the keys cannot be read.
        """
        try:
            sealed = (self._folder / face_id / part).read_bytes()
        except OSError as error:
            raise TokenError(error.strerror or "unreadable") from None
        return open_bytes(sealed, kind, self._keys)

    def list_old(self, face_id: str) -> list[Part]:
        """Return the parts of a face that an older key than the newest has sealed.

        Raises:
            ConfigError: the keys cannot be read.
        """
        current, _ = self._keys.get_current()
        folder = self._folder / face_id
        return [
            part
            for part in PARTS
            if self.has(face_id, part) and get_key_id((folder / part).read_bytes()) != current
        ]
