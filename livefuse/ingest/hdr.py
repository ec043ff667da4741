"""HDR pictures (PQ or HLG) for SDR eyes: one table for luma, one gain for chroma. Pure.

An approximation made for speed: it works on 8-bit Y'CbCr, and colours outside BT.709 are not moved
in. Up to 100 cd/m2 light stays as it is; above, a soft knee takes it up to white.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Literal

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Transfer = Literal["pq", "hlg"]

_REFERENCE_WHITE: Final = 203.0  # cd/m2, ITU-R BT.2408
_HLG_PEAK: Final = 1000.0
_KNEE: Final = 0.5
_MAX_GAIN: Final = 3.0


def tone_map(
    y: NDArray[np.uint8],
    u: NDArray[np.uint8],
    v: NDArray[np.uint8],
    transfer: Transfer,
    *,
    full_range: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return SDR planes for HDR ones: `y` (h, w), `u` and `v` (h / 2, w / 2), all uint8."""
    table, gains = create_tables(transfer, full_range=full_range)
    height, width = u.shape
    gain = gains[cv2.resize(y, (width, height), interpolation=cv2.INTER_AREA)]
    chroma = [
        np.clip((plane.astype(np.float32) - 128) * gain + 128.5, 0, 255).astype(np.uint8)
        for plane in (u, v)
    ]
    return np.asarray(cv2.LUT(y, table), np.uint8), chroma[0], chroma[1]


@cache
def create_tables(
    transfer: Transfer, *, full_range: bool
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return (luma code -> SDR luma code, luma code -> chroma gain), each of 256 entries."""
    black, white = (0.0, 255.0) if full_range else (16.0, 235.0)
    signal = np.clip((np.arange(256) - black) / (white - black), 0.0, 1.0)
    nits = _pq_to_nits(signal) if transfer == "pq" else _hlg_to_nits(signal)
    light = nits / _REFERENCE_WHITE
    bent = _KNEE + (1 - _KNEE) * (1 - np.exp(-(light - _KNEE) / (1 - _KNEE)))
    mapped = np.where(light > _KNEE, bent, light) ** (1 / 2.4)
    gains = np.clip(mapped / np.maximum(signal, 1e-3), 0.0, _MAX_GAIN)
    codes = np.round(black + mapped * (white - black))
    return codes.astype(np.uint8), gains.astype(np.float32)


def _pq_to_nits(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """SMPTE ST 2084, inverse: signal 0..1 -> cd/m2."""
    m1, m2 = 2610 / 16384, 2523 / 4096 * 128
    c1, c2, c3 = 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
    root = signal ** (1 / m2)
    light = np.maximum(root - c1, 0.0) / (c2 - c3 * root)
    return np.asarray(10_000.0 * light ** (1 / m1), np.float64)


def _hlg_to_nits(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """ITU-R BT.2100 HLG, inverse OETF and the system gamma of 1.2: signal 0..1 -> cd/m2."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(signal <= 0.5, signal**2 / 3, (np.exp((signal - c) / a) + b) / 12)  # noqa: PLR2004 - the standard's own constant
    return np.asarray(_HLG_PEAK * scene**1.2, np.float64)
