"""H.264 access units -> RTP payloads (RFC 6184, packetization-mode 1). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_PAYLOAD_BYTES: Final = 1200
"""Leaves room for RTP, SRTP, UDP and a tunnel within the 1500 bytes of an Ethernet frame."""
_STAP_A: Final = 24
_FU_A: Final = 28
_TYPE, _REFERENCE, _FORBIDDEN = 0x1F, 0x60, 0x80
_FIRST, _LAST = 0x80, 0x40


class Payloads(NamedTuple):
    """One coded unit, ready for RTP; `timestamp` counts in the codec's rate.

    `pts` is the same instant on the job's line, in 1/90000 s.
    """

    payloads: Sequence[bytes]
    timestamp: int
    pts: int


def packetize_h264(nals: Iterable[bytes], limit_bytes: int = MAX_PAYLOAD_BYTES) -> list[bytes]:
    """Return the RTP payloads of one access unit, given as NAL units without start codes.

    Small units that follow one another share a payload (STAP-A), large ones are cut (FU-A).
    """
    payloads: list[bytes] = []
    small: list[bytes] = []
    for nal in nals:
        if small and 1 + sum(len(unit) + 2 for unit in (*small, nal)) > limit_bytes:
            payloads.append(_join(small))
            small = []
        if len(nal) > limit_bytes:
            payloads += _cut(nal, limit_bytes)
        elif nal:
            small.append(nal)
    return [*payloads, _join(small)] if small else payloads


def _join(nals: list[bytes]) -> bytes:
    """Return one payload: the unit as it is, or several with the most important one's header."""
    if len(nals) == 1:
        return nals[0]
    forbidden = max(nal[0] & _FORBIDDEN for nal in nals)
    reference = max(nal[0] & _REFERENCE for nal in nals)
    parts = [bytes((forbidden | reference | _STAP_A,))]
    for nal in nals:
        parts += (len(nal).to_bytes(2, "big"), nal)
    return b"".join(parts)


def _cut(nal: bytes, limit_bytes: int) -> list[bytes]:
    """Return pieces of nearly one size, so that none is a straggler of a few bytes."""
    size = len(nal) - 1
    count = -(-size // (limit_bytes - 2))
    edges = [1 + size * index // count for index in range(count + 1)]
    indicator = nal[0] & ~_TYPE & 0xFF | _FU_A
    pieces = []
    for index in range(count):
        header = nal[0] & _TYPE
        header |= _FIRST if index == 0 else 0
        header |= _LAST if index == count - 1 else 0
        pieces.append(bytes((indicator, header)) + nal[edges[index] : edges[index + 1]])
    return pieces
