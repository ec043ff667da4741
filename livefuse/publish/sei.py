"""The record on each keyframe of generated pictures: signed, and bound to that keyframe.

It is an SEI message of type user_data_unregistered (ITU-T H.264 annex D.2.7). It survives every
remuxing, but not encoding again. What is signed (Ed25519, RFC 8032) are UUID and body, in which is
the hash of the keyframe's own slices: on another picture it does not fit. What stands between two
keyframes is not covered.

    UUID 16 | "LF" | version 1 | flags 1 | job 4 | epoch us 8 | sequence 4 | "AI-modified" |
    SHA-256 of the slices, first 16 | key id 8 | signature 64          numbers are big-endian
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from livefuse.mark_ids import KEY_ID_BYTES, identify_key
from livefuse.publish.h264 import get_nal_type, split_access_unit, split_nals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from livefuse.packet import Packet

UUID: Final = bytes.fromhex("6f1c0b6ad3c54f5e9a7c4c6976656675")
SIGNED: Final = 0x32
"""The version that is written. 0x31 had neither key nor signature."""
_MAGIC: Final = b"LF"
_TEXT: Final = b"AI-modified"
_BODY: Final = struct.Struct(">2sBBIQI11s16s")
_SIGNATURE_BYTES: Final = 64
_SEI, _USER_DATA, _IDR = 6, 5, 5
_SLICES: Final = range(1, 6)
_STOP: Final = 0x80

Verdict = Literal["valid", "pasted", "altered", "other_install", "unsigned", "missing"]


class MarkRecord(NamedTuple):
    """What a record says: which job (CRC-32 of its id), when (epoch us), which keyframe.

    `slices` are the first 16 bytes of the SHA-256 of the keyframe's slices, `key_id` names the
    install's key; it and the signature are empty in a record that is not signed.
    """

    job: int
    epoch_us: int
    sequence: int
    slices: bytes
    key_id: bytes = b""
    signature: bytes = b""


class SeiMark(NamedTuple):
    """What became of one keyframe's record.

    valid           signed by a key that was given, on this very keyframe
    pasted          signed so, but for another keyframe, or the pictures were changed
    altered         what it says is not what was signed
    other_install   signed with a key that was not given; whether rightly cannot be told
    unsigned        of a livefuse that did not sign yet, or made up
    missing         there is none

    `record` is None when there is none that can be read.
    """

    verdict: Verdict
    record: MarkRecord | None = None

    @property
    def install_id(self) -> str:
        """Whose key it names, "" when none."""
        return self.record.key_id.hex() if self.record is not None else ""


class SeiStamp:
    """Puts a record on each keyframe of one job. One thread.

    Args:
        job: the number by which marks name it.
        key_id: of the key that `sign` signs with.
        sign: returns the 64 bytes of a signature; asked once for each keyframe (40 us).
    """

    def __init__(self, job: int, key_id: bytes, sign: Callable[[bytes], bytes]) -> None:
        self._job = job
        self._key_id = key_id
        self._sign = sign
        self._sequence = 0

    def stamp(self, packet: Packet, epoch_s: float) -> Packet:
        """Return `packet` (Annex B) with the record before its first slice, if a keyframe."""
        if packet.kind != "video" or not packet.is_keyframe:
            return packet
        slices = hash_slices(split_nals(packet.data))
        record = MarkRecord(self._job, int(epoch_s * 1e6), self._sequence, slices, self._key_id)
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        signed = record._replace(signature=self._sign(UUID + _pack_body(record)))
        return replace(packet, data=insert_nal(packet.data, build_sei(signed)))


def read_sei_marks(units: Iterable[bytes], public_keys: Iterable[bytes] = ()) -> list[SeiMark]:
    """Return what became of the record of each keyframe among `units`, in their order.

    Args:
        units: access units of H.264 as a demuxer gives them, Annex B or with lengths.
        public_keys: those whose records are to be told as valid, 32 bytes each.
    """
    keys = {identify_key(key): key for key in public_keys}
    marks = (_judge_unit(split_access_unit(unit), keys) for unit in units)
    return [mark for mark in marks if mark is not None]


def verify_record(unit: bytes, public_keys: Iterable[bytes]) -> SeiMark:
    """Return what became of the record of one access unit, as `read_sei_marks` does."""
    return next(iter(read_sei_marks([unit], public_keys)), SeiMark("missing"))


def read_record(unit: bytes) -> MarkRecord | None:
    """Return the record of an access unit, unverified; None when it carries none."""
    if UUID not in unit:  # no zeros in it, so it stands there as it is
        return None
    return next(filter(None, _find_records(split_access_unit(unit))), None)


def build_sei(record: MarkRecord) -> bytes:
    """Return the SEI NAL unit of a record, without a start code."""
    payload = UUID + _pack_body(record) + record.signature
    raw = bytes((_USER_DATA, len(payload))) + payload + bytes((_STOP,))
    return bytes((_SEI,)) + _prevent_emulation(raw)


def is_record(nal: bytes) -> bool:
    """Return whether a NAL unit is the SEI of a record."""
    return get_nal_type(nal) == _SEI and UUID in nal


def hash_slices(nals: Iterable[bytes]) -> bytes:
    """Return the 16 bytes that bind a record to the slices of an access unit."""
    digest = hashlib.sha256()
    for nal in nals:
        if get_nal_type(nal) in _SLICES:
            digest.update(nal)
    return digest.digest()[:16]


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


def _judge_unit(nals: list[bytes], keys: dict[bytes, bytes]) -> SeiMark | None:
    """Return the best that can be said of an access unit; None when it is no keyframe."""
    slices = hash_slices(nals)
    marks = [_judge(record, slices, keys) for record in _find_records(nals)]
    if marks:
        return next((mark for mark in marks if mark.verdict == "valid"), marks[0])
    is_keyframe = any(get_nal_type(nal) == _IDR for nal in nals)
    return SeiMark("missing") if is_keyframe else None


def _judge(record: MarkRecord | None, slices: bytes, keys: dict[bytes, bytes]) -> SeiMark:
    if record is None:
        return SeiMark("altered")
    if not record.key_id:
        return SeiMark("unsigned", record)
    if record.key_id not in keys:
        # Of ours, but for the name of its key?
        renamed = any(_is_signed(record._replace(key_id=name), key) for name, key in keys.items())
        return SeiMark("altered" if renamed else "other_install", record)
    if not _is_signed(record, keys[record.key_id]):
        return SeiMark("altered", record)
    return SeiMark("valid" if record.slices == slices else "pasted", record)


def _is_signed(record: MarkRecord, public_key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(
            record.signature, UUID + _pack_body(record)
        )
    except InvalidSignature:
        return False
    return True


def _find_records(nals: Iterable[bytes]) -> Iterator[MarkRecord | None]:
    """Yield the records of an access unit; None for one that is damaged."""
    for nal in nals:
        if is_record(nal):
            raw = nal[1:].replace(b"\x00\x00\x03", b"\x00\x00")
            payloads = [payload for kind, payload in _split_messages(raw) if kind == _USER_DATA]
            ours = [payload for payload in payloads if payload.startswith(UUID)]
            yield from (_unpack(payload[len(UUID) :]) for payload in ours or [b""])


def _split_messages(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and payload of the messages of an SEI (H.264 section 7.3.2.3.1)."""
    place = 0
    while place < len(raw) and raw[place:] != bytes((_STOP,)):
        numbers = [0, 0]
        for which in range(2):
            while raw[place : place + 1] == b"\xff":
                numbers[which] += 255
                place += 1
            numbers[which] += raw[place] if place < len(raw) else 0
            place += 1
        yield numbers[0], raw[place : place + numbers[1]]
        place += numbers[1]


def _pack_body(record: MarkRecord) -> bytes:
    version = SIGNED if record.key_id else SIGNED - 1
    body = (_MAGIC, version, 0, record.job, record.epoch_us, record.sequence, _TEXT, record.slices)
    return _BODY.pack(*body) + record.key_id


def _unpack(body: bytes) -> MarkRecord | None:
    if len(body) < _BODY.size:
        return None
    magic, version, flags, job, epoch_us, sequence, text, slices = _BODY.unpack_from(body)
    rest = body[_BODY.size :]
    size = {SIGNED: KEY_ID_BYTES + _SIGNATURE_BYTES, SIGNED - 1: 0}.get(version)
    if (magic, flags, text, size) != (_MAGIC, 0, _TEXT, len(rest)):
        return None
    key_id, signature = rest[:KEY_ID_BYTES], rest[KEY_ID_BYTES:]
    return MarkRecord(job, epoch_us, sequence, slices, key_id, signature)


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
