"""Room in the header of an MP4 for what it has to say once pictures are generated.

A fragmented MP4 has its header before its first picture, and metadata that PyAV is given after
`start_encoding` is written by none of FFmpeg's muxers, also where the header comes last. So the
fields are there from the beginning, of a job 0, in their box `udta`; but that box is called `free`,
which every reader skips (ISO 14496-12, 8.1.2), until the first marked keyframe: then the fields get
their values, in as many bytes, and the box its name.

Matroska's header carries a checksum and is written again at the end: a recording in it whose first
keyframe is unmarked has the records of its later keyframes and its C2PA signature alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from livefuse.publish.container_mark import ContainerMark

if TYPE_CHECKING:
    import io

_BOX: Final = b"udta"
_SKIPPED: Final = b"free"
_BLANK: Final = ContainerMark(0, "0" * 16).build_fields()
_CHANGING: Final = ("comment", "AIGC")


class LateMark:
    """The file of a recording, empty yet, as FFmpeg is given it. One thread; OSError passes."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._is_due = False
        self._mark: ContainerMark | None = None
        self._places: dict[str, int] = {}
        """Where in the file the fields lie that change."""
        self._box = self._written = 0

    def hide(self) -> dict[str, str]:
        """Return the fields for the header that comes next; they are hidden until `reveal`."""
        self._is_due = True
        return dict(_BLANK)

    def reveal(self, mark: ContainerMark) -> None:
        """Let the header say what `mark` says, now or as soon as it is written."""
        self._mark = mark
        for place, text in self._list_changes(mark):
            os.pwrite(self._file.fileno(), text, place)

    def _list_changes(self, mark: ContainerMark) -> list[tuple[int, bytes]]:
        """Return what is written where; the box's name comes last, for who reads meanwhile."""
        if not self._places:
            return []
        fields = mark.build_fields()
        texts = {name: fields[name].ljust(len(_BLANK[name])).encode() for name in _CHANGING}
        return [*((self._places[name], text) for name, text in texts.items()), (self._box, _BOX)]

    def _hide(self, data: bytes) -> bytes:
        """Return `data` with the box hidden, if it is the header."""
        places = {name: data.find(_BLANK[name].encode()) for name in _CHANGING}
        box = data.rfind(_BOX, 0, max(min(places.values()), 0))
        if box < 0:
            return data
        self._is_due, start = False, self._written  # nothing has been gone back to yet
        self._places = {name: start + place for name, place in places.items()}
        self._box = start + box
        header = bytearray(data)
        header[box : box + len(_BOX)] = _SKIPPED
        for place, text in self._list_changes(self._mark) if self._mark is not None else ():
            header[place - start : place - start + len(text)] = text
        return bytes(header)

    # What FFmpeg asks for.

    def write(self, data: bytes) -> int:
        """Write `data`; of the header what it is to say."""
        written = self._file.write(self._hide(data) if self._is_due else data)
        self._written += written
        return written

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to `offset`."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the place of what is written next."""
        return self._file.tell()
