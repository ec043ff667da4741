"""The short numbers that marks carry: of a job, and of the key that signs. Pure."""

from __future__ import annotations

import hashlib
import zlib
from typing import Final

KEY_ID_BYTES: Final = 8


def number_job(job_id: str) -> int:
    """Return the 32-bit number by which marks name a job: the CRC-32 of its id."""
    return zlib.crc32(job_id.encode())


def identify_key(public_key: bytes) -> bytes:
    """Return the 8 bytes by which a mark names its key: the SHA-256's first."""
    return hashlib.sha256(public_key).digest()[:KEY_ID_BYTES]
