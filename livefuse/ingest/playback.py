"""Read a recording again: what came in, in the order and with the stamps it came with.

A recording is a Matroska file and its side-car (sidecar.py). Nothing here waits or knows a clock:
`replay.py` plays one at its own pace, a replay in virtual time takes the same iterator.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, cast

import av
import msgspec
from av.packet import PacketSideData, packet_sidedata_type_from_literal

from livefuse.errors import IngestError, IngestNotFoundError, IngestUnsupportedError
from livefuse.ingest.playback_source import create_recorded_source
from livefuse.ingest.reader import Item
from livefuse.ingest.sidecar import (
    VERSION,
    End,
    Gap,
    Happened,
    Head,
    Line,
    Opened,
    Stored,
    get_sidecar_path,
    restore_data,
)
from livefuse.ingest.source import Source
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.packet import Packet, PktSideDataT
    from av.stream import Stream

    from livefuse.config import IngestConfig
    from livefuse.ingest.base import InputState

_HEADER_BYTES: Final = 4096
_MAX_LINE_BYTES: Final = 128 << 20


class InputEvent(NamedTuple):
    """The input's state changed, so many ns after the recording's start.

    At the start of a connection `live` came from the stage that decoded, which says it again in a
    replay; after `stalled` it is the end of that.
    """

    state: InputState
    arrival_ns: int


Entry = Source | Item | InputEvent
"""What a recording yields: a connection, a packet, a change of state."""


@dataclass(slots=True)
class _Found:
    """What a look through the side-car found."""

    head: Head
    connections: int = 0
    packets: int = 0
    duration_ns: int = 0
    is_closed: bool = False
    states: list[str] = field(default_factory=list)


class Recording:
    """An opened recording. It may be read more than once; every `read` opens the files anew."""

    def __init__(self, path: Path, config: IngestConfig, found: _Found) -> None:
        self._path = path
        self._config = config
        self._found = found

    @property
    def duration_ns(self) -> int:
        """When the last thing came, from the recording's start, in ns."""
        return self._found.duration_ns

    @property
    def source_url(self) -> str:
        """Where it was recorded from, without secrets."""
        return self._found.head.source

    def describe(self) -> dict[str, Any]:
        """Return what it is, for people and reports; the same for the same recording."""
        found = self._found
        return {
            "file": self._path.name,
            "id": found.head.id,
            "source": found.head.source,
            "begun": found.head.begun,
            "duration_s": round(found.duration_ns / 1e9, 3),
            "connections": found.connections,
            "packets": found.packets,
            "closed_well": found.is_closed,
        }

    def read(self) -> Iterator[Entry]:
        """Yield what came, in the order of arrival; times count from the recording's start.

        A `Source` opens each connection: its decoder is new, its `packets` are empty, `opened_ns`
        says when, and it is not bursty, as arrival times are those after any pacing. An `Item`'s
        packet has stamps, time base, flags and side data of the original.

        Raises:
            IngestError: bytes of a packet are not there or are not those that were recorded.
        """
        lost = 0
        with _open(self._path) as file:
            for line in _iter_lines(self._path):
                match line:
                    case Stored():
                        yield self._create_item(file, line, lost)
                        lost = 0
                    case Opened():
                        yield create_recorded_source(line, self._path, self._config)
                    case Happened():
                        yield InputEvent(line.state, line.at)
                    case Gap():
                        lost += line.packets
                    case _:
                        pass

    def _create_item(self, file: IO[bytes], line: Stored, lost: int) -> Item:
        try:
            file.seek(line.pos)
            data = restore_data(line, file.read(line.size))
        except (ValueError, OSError):
            data = b""
        if zlib.crc32(data) != line.crc:
            raise IngestError(
                f"the recording {self._path} is damaged {line.at / 1e9:.3f} s from its start",
                hint="copy it again; what comes before can be used",
            )
        packet: Packet[Stream] = av.Packet(data)
        packet.pts, packet.dts = line.pts, line.dts
        if line.base is not None:
            packet.time_base = Fraction(*line.base)
        if line.duration:
            packet.duration = line.duration
        packet.is_keyframe, packet.is_corrupt = line.key, line.corrupt
        for name, value in line.side.items():
            try:
                _add_side_data(packet, cast("PktSideDataT", name), value)
            except ValueError:  # a kind that this FFmpeg does not know
                raise IngestError(
                    f"the recording {self._path} holds a kind of data that is not known here",
                    hint="play the file itself as --from FILE",
                ) from None
        return Item(packet, not line.sound, line.at, lost)


def open_recording(path: Path | str, config: IngestConfig) -> Recording:
    """Return the recording at `path` (the Matroska file), its side-car looked through.

    Raises:
        IngestError: the file or its side-car is missing, damaged, of another version, or the two
            do not belong together. A side-car whose last line was cut off is no damage.
    """
    path = Path(path)
    with _open(path) as file:
        begin = file.read(_HEADER_BYTES)
        size = file.seek(0, 2)
    lines = _iter_lines(path)
    head = next(lines, None)
    if not isinstance(head, Head):
        raise _explain_damage(path, 1)
    if bytes.fromhex(head.id) not in begin:
        raise IngestError(
            f"{get_sidecar_path(path).name} does not belong to {path.name}",
            hint="keep the two files of a recording together, under the names they were given",
        )
    found = _Found(head)
    for line in lines:
        _note(found, line, path, size)
    if not found.connections or not found.packets:
        raise IngestUnsupportedError(
            f"the recording {path} holds no packets", hint="record again, for longer"
        )
    return Recording(path, config, found)


def _note(found: _Found, line: Line, path: Path, size: int) -> None:
    if isinstance(line, Head):
        raise _explain_damage(path, found.packets + found.connections + 1)
    found.duration_ns = max(found.duration_ns, line.at)
    if isinstance(line, Opened):
        found.connections += 1
    elif isinstance(line, End):
        found.is_closed = True
    elif isinstance(line, Stored):
        found.packets += 1
        if line.raw is None and line.pos + line.size > size:
            raise IngestError(
                f"the recording {path} is shorter than its side-car says",
                hint="copy it again, to its end",
            )


def _open(path: Path) -> IO[bytes]:
    try:
        file = None if path.is_fifo() else path.open("rb")  # a pipe would be waited for
    except OSError as error:
        raise _explain_unreadable(path, error.strerror) from None
    if file is None:
        raise _explain_unreadable(path, "it is a pipe")
    return file


def _explain_unreadable(path: Path, reason: str | None) -> IngestNotFoundError:
    return IngestNotFoundError(
        f"cannot read the recording {redact_url(str(path))} ({reason})",
        hint="livefuse record --from URL FILE.mkv makes one",
    )


def _iter_lines(path: Path) -> Iterator[Line]:
    """Yield the side-car's lines; the last one may have been cut off by a kill."""
    sidecar = get_sidecar_path(path)
    decoder = msgspec.json.Decoder(Line)
    try:
        with sidecar.open("rb") as file:
            number = 0
            while text := file.readline(_MAX_LINE_BYTES):
                number += 1
                if not text.endswith(b"\n"):
                    return
                try:
                    line = decoder.decode(text)
                except (msgspec.DecodeError, msgspec.ValidationError):
                    raise _explain_line(text, path, number) from None
                if isinstance(line, Head) and line.version != VERSION:
                    raise _explain_line(text, path, number)
                yield line
    except OSError as error:
        raise IngestNotFoundError(
            f"the recording {path} has no side-car {sidecar.name} ({error.strerror})",
            hint="it holds the true times: copy it along, or play the file itself as --from FILE",
        ) from None


def _explain_line(text: bytes, path: Path, number: int) -> IngestError:
    try:
        version = msgspec.json.decode(text).get("version", VERSION)
    except (msgspec.DecodeError, AttributeError):
        return _explain_damage(path, number)
    if version == VERSION:
        return _explain_damage(path, number)
    return IngestUnsupportedError(
        f"the recording {path} is of version {version}, and {VERSION} is what can be read",
        hint="use the livefuse that recorded it",
    )


def _explain_damage(path: Path, number: int) -> IngestError:
    return IngestError(
        f"{get_sidecar_path(path)} is damaged at line {number}",
        hint="copy it again, or play the file itself as --from FILE",
    )


def _add_side_data(packet: Packet[Stream], name: PktSideDataT, value: bytes) -> None:
    kind = packet_sidedata_type_from_literal(name)
    data = PacketSideData(kind, len(value))  # type: ignore[call-arg] # PyAV's stub lacks it
    data.update(value)
    packet.set_sidedata(data)
