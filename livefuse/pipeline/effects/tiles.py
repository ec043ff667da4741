"""A picture through a network that takes tiles: overlapping, so that no joint is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


def run_tiles(run: Callable[[Floats], Floats], picture: Floats, tile: int, overlap: int) -> Floats:
    """Return (3, height * k, width * k) of a (1, 3, height, width) `picture`.

    `run` takes (1, 3, tile, tile) and gives k times the size. Sides are not below `tile`; where
    tiles overlap, by `overlap` px or more, they fade into one another.
    """
    height, width = picture.shape[2:]
    places = [
        (y, x)
        for y in _place_tiles(height, tile, overlap)
        for x in _place_tiles(width, tile, overlap)
    ]
    parts = [
        run(np.ascontiguousarray(picture[:, :, y : y + tile, x : x + tile]))[0] for y, x in places
    ]
    factor = parts[0].shape[1] // tile
    total = np.zeros((3, height * factor, width * factor), np.float32)
    weights = np.zeros(total.shape[1:], np.float32)
    share = _create_share(tile * factor, overlap * factor)
    for (y, x), part in zip(places, parts, strict=True):
        rows = slice(y * factor, (y + tile) * factor)
        columns = slice(x * factor, (x + tile) * factor)
        total[:, rows, columns] += part * share
        weights[rows, columns] += share
    total /= weights
    return total


def _place_tiles(side: int, tile: int, overlap: int) -> list[int]:
    """Return where tiles begin: evenly, with at least `overlap` px between neighbours."""
    if side <= tile:
        return [0]
    count = -(-(side - overlap) // (tile - overlap))
    return [round(i * (side - tile) / (count - 1)) for i in range(count)]


def _create_share(side: int, overlap: int) -> Floats:
    """Return (side, side) weights that fall towards the rim over `overlap` px, never to 0."""
    ramp = np.minimum(np.arange(side), np.arange(side)[::-1]).astype(np.float32)
    ramp = np.clip((ramp + 1) / overlap, 0.0, 1.0)
    return np.outer(ramp, ramp).astype(np.float32)
