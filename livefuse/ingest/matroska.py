"""Write Matroska by hand, so that it is known where in the file each packet's bytes lie.

RFC 9559 (Matroska) and RFC 8794 (EBML). A file is playable at any moment: the segment and the last
cluster have unknown sizes until they are closed; at the end come an index, sizes and a duration.
"""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNKNOWN: Final = b"\x01" + b"\xff" * 7
_SIZE_BYTES: Final = 8
_EBML: Final = 0x1A45DFA3
_SEGMENT: Final = 0x18538067
_SEEK_HEAD, _SEEK, _SEEK_ID, _SEEK_POSITION = 0x114D9B74, 0x4DBB, 0x53AB, 0x53AC
_INFO, _SCALE, _UUID, _DURATION, _MUXER, _WRITER = (
    0x1549A966,
    0x2AD7B1,
    0x73A4,
    0x4489,
    0x4D80,
    0x5741,
)
_TRACKS: Final = 0x1654AE6B
_CLUSTER, _TIMESTAMP, _SIMPLE_BLOCK = 0x1F43B675, 0xE7, 0xA3
_CUES, _CUE, _CUE_TIME, _CUE_TRACK_PLACES, _CUE_TRACK, _CUE_PLACE = (
    0x1C53BB6B, 0xBB, 0xB3, 0xB7, 0xF7, 0xF1,
)  # fmt: skip
_VOID: Final = 0xEC
_SEEK_SPACE: Final = 96
_DURATION_BYTES: Final = 11
_NS_PER_MS: Final = 1_000_000
_KEYFRAME: Final = 0x80
_LONGEST_CLUSTER_MS: Final = 5000
_SHORTEST_CLUSTER_MS: Final = 500
_LARGEST_OFFSET_MS: Final = 32_000
_MAX_CUES: Final = 20_000


def encode_id(number: int) -> bytes:
    """Return an element's ID as its bytes."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode_size(size: int, length: int = 0) -> bytes:
    """Return `size` as an EBML number of `length` bytes, or as few as do."""
    length = length or next(n for n in range(1, 9) if size < (1 << 7 * n) - 1)
    return (size | 1 << 7 * length).to_bytes(length, "big")


def encode_element(number: int, *contents: bytes) -> bytes:
    """Return an element that holds `contents`."""
    data = b"".join(contents)
    return encode_id(number) + encode_size(len(data)) + data


def encode_int(number: int, value: int) -> bytes:
    """Return an element that holds an unsigned int."""
    return encode_element(number, value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big"))


def encode_float(number: int, value: float) -> bytes:
    """Return an element that holds a number of 8 bytes."""
    return encode_element(number, struct.pack(">d", value))


def encode_text(number: int, text: str) -> bytes:
    """Return an element that holds text."""
    return encode_element(number, text.encode())


def encode_void(size: int) -> bytes:
    """Return `size` bytes (2 to 128) that a player passes over."""
    return encode_id(_VOID) + encode_size(size - 2) + bytes(size - 2)


class MatroskaWriter:
    """Writes to a file that can seek and takes all it is given. One thread. OSError passes."""

    def __init__(self, file: IO[bytes], uuid: bytes, program: str, tracks: Sequence[bytes]) -> None:
        """Write all that comes before the packets. `tracks` are whole TrackEntry elements."""
        self._file = file
        header = encode_element(
            _EBML,
            encode_int(0x4286, 1), encode_int(0x42F7, 1), encode_int(0x42F2, 4),
            encode_int(0x42F3, 8), encode_text(0x4282, "matroska"), encode_int(0x4287, 4),
            encode_int(0x4285, 2),
        )  # fmt: skip
        info = encode_element(
            _INFO,
            encode_void(_DURATION_BYTES),
            encode_int(_SCALE, _NS_PER_MS),
            encode_element(_UUID, uuid),
            encode_text(_MUXER, program),
            encode_text(_WRITER, program),
        )
        self._segment_size = len(header) + len(encode_id(_SEGMENT))
        self._origin = self._segment_size + _SIZE_BYTES
        self._info = self._origin + _SEEK_SPACE
        self._tracks = self._info + len(info)
        start = header + encode_id(_SEGMENT) + _UNKNOWN + encode_void(_SEEK_SPACE) + info
        start += encode_element(_TRACKS, *tracks) if tracks else b""
        self._end = 0
        self._append(start)
        self._cluster_size = self._cluster_ms = 0
        self._last_ms = 0
        self._cues: list[tuple[int, int]] = []
        self._cue_every = 1
        self._clusters = 0

    def write_block(
        self, track: int, time_ms: int, data: bytes, *, prefix: bytes = b"", is_keyframe: bool
    ) -> int:
        """Write a packet, `prefix` before it; return where in the file `data` begins."""
        self._choose_cluster(time_ms, begins=is_keyframe and track == 1)
        head = struct.pack(
            ">BhB", 0x80 | track, time_ms - self._cluster_ms, _KEYFRAME if is_keyframe else 0
        )
        begin = encode_id(_SIMPLE_BLOCK) + encode_size(len(head) + len(prefix) + len(data))
        self._append(b"".join((begin, head, prefix, data)))
        self._last_ms = max(self._last_ms, time_ms)
        return self._end - len(data)

    def write_aside(self, time_ms: int, data: bytes) -> int:
        """Write what no player is to see; return where in the file `data` begins."""
        self._choose_cluster(time_ms, begins=False)
        self._append(encode_element(_VOID, data))
        return self._end - len(data)

    def close(self) -> None:
        """Write index, sizes and duration; the file itself stays open."""
        self._close_cluster()
        cues = self._end
        if self._cues:
            self._append(encode_element(_CUES, *(self._encode_cue(*cue) for cue in self._cues)))
        places = ((_INFO, self._info), (_TRACKS, self._tracks), (_CUES, cues))
        seek = encode_element(
            _SEEK_HEAD,
            *(
                encode_element(
                    _SEEK,
                    encode_element(_SEEK_ID, encode_id(number)),
                    encode_int(_SEEK_POSITION, place - self._origin),
                )
                for number, place in places[: 3 if self._cues else 2]
            ),
        )
        self._overwrite(self._origin, seek + encode_void(_SEEK_SPACE - len(seek)))
        info_head = len(encode_id(_INFO)) + 1
        self._overwrite(self._info + info_head, encode_float(_DURATION, float(self._last_ms)))
        self._overwrite(self._segment_size, encode_size(self._end - self._origin, _SIZE_BYTES))

    def _choose_cluster(self, time_ms: int, *, begins: bool) -> None:
        offset = time_ms - self._cluster_ms
        if (
            self._cluster_size
            and abs(offset) < _LARGEST_OFFSET_MS
            and offset < _LONGEST_CLUSTER_MS
            and not (begins and offset >= _SHORTEST_CLUSTER_MS)
        ):
            return
        self._close_cluster()
        if self._clusters % self._cue_every == 0:
            self._cues.append((time_ms, self._end))
        self._clusters += 1
        if len(self._cues) > _MAX_CUES:
            del self._cues[1::2]
            self._cue_every *= 2
        self._cluster_size, self._cluster_ms = self._end + len(encode_id(_CLUSTER)), time_ms
        self._append(encode_id(_CLUSTER) + _UNKNOWN + encode_int(_TIMESTAMP, time_ms))

    def _close_cluster(self) -> None:
        if self._cluster_size:
            size = self._end - self._cluster_size - _SIZE_BYTES
            self._overwrite(self._cluster_size, encode_size(size, _SIZE_BYTES))

    def _encode_cue(self, time_ms: int, place: int) -> bytes:
        places = encode_element(
            _CUE_TRACK_PLACES,
            encode_int(_CUE_TRACK, 1),
            encode_int(_CUE_PLACE, place - self._origin),
        )
        return encode_element(_CUE, encode_int(_CUE_TIME, time_ms), places)

    def _append(self, data: bytes) -> None:
        self._file.write(data)
        self._end += len(data)

    def _overwrite(self, place: int, data: bytes) -> None:
        self._file.seek(place)
        self._file.write(data)
        self._file.seek(self._end)
