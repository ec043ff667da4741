"""What lies beside a recording, as values: FILE.mkv.jsonl, one JSON object a line.

The first line is a `Head`. Then, in the order in which things came: an `Opened` for each
connection, a `Stored` for each packet, a `Happened` for each change of the input's state, a `Gap`
where packets are missing, and an `End` when it was closed well.

Matroska keeps milliseconds from 0, wants AAC without ADTS and H.264 with lengths instead of start
codes, and has one set of parameters per track. So each `Stored` says where in the file its bytes
lie, what was changed about them, and its true stamps; `restore_data` gives the bytes as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from livefuse.ingest.base import InputState
from livefuse.packet import AudioInfo

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = 1
SUFFIX: Final = ".jsonl"
_LENGTH_BYTES: Final = 4
_SHORTEST_START: Final = 3

# What FFmpeg and a file's offsets can hold: a line that says more is damage, found when it is read.
Moment = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Stamp = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
Term = Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
Ratio = tuple[Term, Term]
StartLength = Annotated[int, msgspec.Meta(ge=3, le=1 << 26)]


class Head(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", tag="recording"
):
    """The first line. `id` stands in the Matroska file too (its segment's UUID)."""

    version: int
    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    source: str = ""
    made_by: str = ""
    begun: str = ""


class VideoParameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a decoder has to be told. `base` and `aspect` are numerator and denominator."""

    codec: str
    decoder: str
    width: Count = 0
    height: Count = 0
    pix_fmt: str = ""
    extradata: bytes = b""
    base: Ratio | None = None
    aspect: Ratio | None = None
    fps: Annotated[float, msgspec.Meta(gt=0.0, le=1000.0)] = 30.0
    reorder_depth: Count = 0


class Opened(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", tag="connection"
):
    """A connection was opened, `at` ns after the recording's start."""

    at: Moment
    video: VideoParameters
    audio: AudioInfo | None = None
    is_finite: bool = False


class Stored(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", tag="packet"
):
    """A packet that came `at` ns; `pts`, `dts` and `duration` in `base` seconds as the source said.

    `pos` and `size` say where its bytes lie in the Matroska file, `raw` holds them where it has no
    place for them, `head` what was taken off before them, `starts` the lengths of the start codes
    that became lengths of four bytes. `crc` is CRC-32 of the bytes as they came.
    """

    at: Moment
    sound: bool = False
    pts: Stamp | None = None
    dts: Stamp | None = None
    duration: Stamp = 0
    base: Ratio | None = None
    key: bool = False
    corrupt: bool = False
    pos: Moment = 0
    size: Count = 0
    crc: int = 0
    head: bytes = b""
    starts: tuple[StartLength, ...] | None = None
    raw: bytes | None = None
    side: dict[str, bytes] = {}


class Happened(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", tag="state"
):
    """The input's state became `state`, `at` ns."""

    at: Moment
    state: InputState


class Gap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", tag="gap"):
    """So many packets are missing here: whoever reads the source, or the disc, was too slow."""

    at: Moment
    packets: Count


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", tag="end"):
    """The recording was closed well, `at` ns."""

    at: Moment


Line = Head | Opened | Stored | Happened | Gap | End


def get_sidecar_path(path: Path) -> Path:
    """Return where the side-car of the recording at `path` lies."""
    return path.with_name(path.name + SUFFIX)


def pack_annexb(data: bytes) -> tuple[bytes, tuple[int, ...]] | None:
    """Return `data` with lengths of four bytes for start codes, and how long each of those was.

    Zeros before a start code count to it. None when `data` does not begin with one.
    """
    places = _find_starts(data)
    if not places or places[0][0]:
        return None
    pieces: list[bytes] = []
    for index, (_, begin) in enumerate(places):
        end = places[index + 1][0] if index + 1 < len(places) else len(data)
        pieces += ((end - begin).to_bytes(_LENGTH_BYTES, "big"), data[begin:end])
    return b"".join(pieces), tuple(begin - start for start, begin in places)


def _find_starts(data: bytes) -> list[tuple[int, int]]:
    """Return where each start code (zeros, then 0 0 1) begins, and where what follows does."""
    places: list[tuple[int, int]] = []
    free = 0
    at = data.find(b"\0\0\1")
    while at >= 0:
        start = at
        while start > free and not data[start - 1]:
            start -= 1
        free = at + _SHORTEST_START
        places.append((start, free))
        at = data.find(b"\0\0\1", free)
    return places


def restore_data(line: Stored, stored: bytes) -> bytes:
    """Return the packet's bytes as they came; `stored` is what lies in the file.

    Raises:
        ValueError: the two do not fit.
    """
    if line.raw is not None:
        return line.raw
    if line.starts is None:
        return line.head + stored
    pieces = [line.head]
    at = 0
    for length in line.starts:
        size = int.from_bytes(stored[at : at + _LENGTH_BYTES], "big")
        begin = at + _LENGTH_BYTES
        pieces += (b"\1".rjust(length, b"\0"), stored[begin : begin + size])
        at = begin + size
    if at != len(stored):
        raise ValueError("lengths and bytes do not fit")
    return b"".join(pieces)
