"""The marks of generated pictures: a label that people see, a record that programs read.

The label is drawn into the planes after all else, just before the one encode, so that every output
has it. The record is an SEI message of type user_data_unregistered (ITU-T H.264 annex D.2.7) on
each keyframe: it survives remuxing, not encoding again.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.publish.h264 import get_nal_type, split_nals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import MarkConfig
    from livefuse.frame import Frame
    from livefuse.packet import Packet

_LABEL: Final = Path(__file__).parent / "data" / "label.png"
_LABEL_LETTER_PX: Final = 96  # the size of the letters in that picture
_MIN_LETTER_PX: Final = 10
_BOX_OPACITY: Final = 0.75  # 0.55 is hard to read on a white page
_BLACK, _WHITE, _GREY = 16, 235, 128

UUID: Final = bytes.fromhex("6f1c0b6ad3c54f5e9a7c4c6976656675")
_MAGIC: Final = b"LF1"
_TEXT: Final = b"AI-modified"
_BODY: Final = struct.Struct(">3sBIQI11s16s")
_SEI, _USER_DATA = 6, 5
_SLICES: Final = range(1, 6)


class MarkRecord(NamedTuple):
    """What the SEI message says: which job (CRC-32 of its id), when (epoch us), which keyframe.

    `slices` are the first 16 bytes of the SHA-256 of the keyframe's slices: a record that was
    pasted onto another picture does not fit it.
    """

    job: int
    epoch_us: int
    sequence: int
    slices: bytes


class Label:
    """The visible label at one frame size. One thread."""

    def __init__(self, config: MarkConfig) -> None:
        self._config = config
        self._size = (0, 0)
        self._planes: list[_PlaneLabel] = []

    def draw(self, frame: Frame) -> None:
        """Lay the label over `frame` in place."""
        frame.fill_planes()
        if self._size != (frame.width, frame.height):
            self._size = (frame.width, frame.height)
            self._planes = _create_planes(self._config, frame.width, frame.height)
        for plane, label in zip((frame.y, frame.u, frame.v), self._planes, strict=True):
            label.lay(plane)


class _PlaneLabel:
    """plane = plane * keep / 255 + add, within a box: 8-bit, so that it costs 15 us."""

    def __init__(self, x: int, y: int, keep: NDArray[np.uint8], add: NDArray[np.uint8]) -> None:
        self._x, self._y = x, y
        self._keep, self._add = keep, add
        self._kept = np.empty_like(keep)

    def lay(self, plane: NDArray[np.uint8]) -> None:
        height, width = self._keep.shape
        part = plane[self._y : self._y + height, self._x : self._x + width]
        cv2.multiply(part, self._keep, dst=self._kept, scale=1 / 255)
        cv2.add(self._kept, self._add, dst=part)


class SeiStamp:
    """Puts a record on each keyframe of one job. One thread."""

    def __init__(self, job_id: str) -> None:
        self._job = zlib.crc32(job_id.encode())
        self._sequence = 0

    def stamp(self, packet: Packet, epoch_s: float) -> Packet:
        """Return `packet` (Annex B) with the record before its first slice, if a keyframe."""
        if packet.kind != "video" or not packet.is_keyframe:
            return packet
        record = MarkRecord(self._job, int(epoch_s * 1e6), self._sequence, hash_slices(packet.data))
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        return replace(packet, data=insert_nal(packet.data, build_sei(record)))


def hash_slices(data: bytes) -> bytes:
    """Return the 16 bytes that bind a record to the slices of an Annex B access unit."""
    digest = hashlib.sha256()
    for nal in split_nals(data):
        if get_nal_type(nal) in _SLICES:
            digest.update(nal)
    return digest.digest()[:16]


def build_sei(record: MarkRecord) -> bytes:
    """Return the SEI NAL unit of `record`, without a start code."""
    body = _BODY.pack(_MAGIC, 0, record.job, record.epoch_us, record.sequence, _TEXT, record.slices)
    payload = UUID + body
    raw = bytes((_USER_DATA, len(payload))) + payload + b"\x80"
    return bytes((_SEI,)) + _prevent_emulation(raw)


def read_record(data: bytes) -> MarkRecord | None:
    """Return the record of an Annex B access unit, or None when it carries none."""
    for nal in split_nals(data):
        if get_nal_type(nal) == _SEI and (record := read_sei(nal)) is not None:
            return record
    return None


def read_sei(nal: bytes) -> MarkRecord | None:
    """Return the record of one SEI NAL unit, or None when it is another message."""
    raw = nal.replace(b"\x00\x00\x03", b"\x00\x00")
    head = bytes((_SEI, _USER_DATA, len(UUID) + _BODY.size))
    if not raw.startswith(head + UUID) or len(raw) < len(head) + len(UUID) + _BODY.size:
        return None
    magic, _, job, epoch_us, sequence, text, slices = _BODY.unpack_from(raw, len(head + UUID))
    return MarkRecord(job, epoch_us, sequence, slices) if (magic, text) == (_MAGIC, _TEXT) else None


def insert_nal(data: bytes, nal: bytes) -> bytes:
    """Return the access unit with `nal` before its first slice: after AUD, SPS and PPS.

    A message before the delimiter breaks WebCodecs.
    """
    place = 0
    while (place := data.find(b"\x00\x00\x01", place)) >= 0:
        if place + 3 < len(data) and get_nal_type(data[place + 3 : place + 4]) in _SLICES:
            start = place - 1 if place and data[place - 1] == 0 else place
            return data[:start] + b"\x00\x00\x00\x01" + nal + data[start:]
        place += 3
    return data


def _prevent_emulation(raw: bytes) -> bytes:
    """Keep start codes out of a payload: 00 00 0x becomes 00 00 03 0x (H.264 section 7.4.1)."""
    out = bytearray()
    zeros = 0
    for byte in raw:
        if zeros >= 2 and byte <= 3:  # noqa: PLR2004 - as in the formula
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(out)


@cache
def _read_label() -> NDArray[np.uint8]:
    data = np.frombuffer(_LABEL.read_bytes(), np.uint8)
    picture = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise RuntimeError(f"{_LABEL} is not a picture: install livefuse again")
    return np.asarray(picture, np.uint8)


def _create_planes(config: MarkConfig, width: int, height: int) -> list[_PlaneLabel]:
    letters = _read_label()
    letter_px = max(config.height * min(width, height), _MIN_LETTER_PX)
    scale = letter_px / _LABEL_LETTER_PX
    scale = min(scale, width / letters.shape[1], height / letters.shape[0])
    w, h = (max(2, int(side * scale) // 2 * 2) for side in letters.shape[::-1])
    alphas = [
        np.asarray(cv2.resize(letters, size, interpolation=cv2.INTER_AREA) / 255, np.float32)
        for size in ((w, h), (w // 2, h // 2))
    ]
    gap = int(0.02 * min(width, height)) // 2 * 2
    right, bottom = "right" in config.corner, "bottom" in config.corner
    x = max(width - w - gap, 0) // 2 * 2 if right else min(gap, width - w)
    y = max(height - h - gap, 0) // 2 * 2 if bottom else min(gap, height - h)
    luma = _create_plane(x, y, alphas[0], _BLACK, _WHITE)
    chroma = [_create_plane(x // 2, y // 2, alphas[1], _GREY, _GREY) for _ in range(2)]
    return [luma, *chroma]


def _create_plane(x: int, y: int, alpha: NDArray[np.float32], box: int, letter: int) -> _PlaneLabel:
    keep = (1 - _BOX_OPACITY) * (1 - alpha)
    add = _BOX_OPACITY * box * (1 - alpha) + letter * alpha
    return _PlaneLabel(x, y, _quantise(255 * keep), _quantise(add))


def _quantise(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(values).astype(np.uint8)
