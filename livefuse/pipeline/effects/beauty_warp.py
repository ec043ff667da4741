"""Moving the pixels: one field for all that changes the face's shape, one remap a plane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_shape import compute_field, create_basis

if TYPE_CHECKING:
    import numpy.typing as npt

    from livefuse.pipeline.effects.beauty_amounts import Amounts
    from livefuse.pipeline.effects.beauty_canvas import Buffers, Floats
    from livefuse.pipeline.effects.beauty_geometry import FaceGeometry

_STILL_PX: Final = 1 / 64
_RIM_MM: Final = 6.0


class Warp(NamedTuple):
    """Where each node's px comes from: float32 (rows, columns, 2), px of the region.

    Nodes are the centres of the coarse grid's cells, one cell more than `rows` and `columns` on
    each side; `strength_px` is the longest way.
    """

    sources: Floats
    x: int
    y: int
    columns: int
    rows: int
    strength_px: float


def plan_warp(
    geometry: FaceGeometry, amounts: Amounts, fade: Floats, size: tuple[int, int]
) -> Warp | None:
    """Return the warp that `amounts` ask for; None when nothing moves.

    `fade` (coarse, 0..1) lets it end around the face; it ends at the rim of a frame of `size` px.
    """
    basis = create_basis(geometry, amounts)
    if basis is None:
        return None
    grid = geometry.grid
    columns, rows = grid.coarse
    cell = 2 * grid.k
    field = compute_field(
        basis, np.arange(columns, dtype=np.float64), np.arange(rows, dtype=np.float64)
    )
    field *= (fade * _ramp_at_rim(geometry, size))[..., None]
    field *= np.float32(cell)
    moves = field[..., 0] ** 2
    moves += field[..., 1] ** 2
    moving = (moves > np.float32(_STILL_PX**2)).view(np.uint8)
    x, y, width, height = cv2.boundingRect(moving)
    if not width or not height:
        return None
    inner = field[y : y + height, x : x + width]
    wider = np.empty((height + 2, width + 2, 2), np.float32)
    cv2.copyMakeBorder(inner, 1, 1, 1, 1, cv2.BORDER_REPLICATE, dst=wider)
    nodes_x = (np.arange(x - 1, x + width + 1, dtype=np.float32) + 0.5) * cell - 0.5
    nodes_y = (np.arange(y - 1, y + height + 1, dtype=np.float32) + 0.5) * cell - 0.5
    sources = np.empty_like(wider)
    np.subtract(nodes_x[None, :], wider[..., 0], out=sources[..., 0])
    np.subtract(nodes_y[:, None], wider[..., 1], out=sources[..., 1])
    return Warp(sources, x, y, width, height, math.sqrt(float(moves.max())))


def _ramp_at_rim(geometry: FaceGeometry, size: tuple[int, int]) -> Floats:
    """Return 1 inside, 0 at the region's and the frame's rim, over some millimetres."""
    grid = geometry.grid
    reach = _RIM_MM * geometry.mm
    ramps = []
    for start, length, end in ((grid.x, grid.width, size[0]), (grid.y, grid.height, size[1])):
        places = (np.arange(length // (2 * grid.k), dtype=np.float32) + 0.5) * (2 * grid.k)
        last = min(length, end - start)
        ramps.append(np.clip(np.minimum(places - grid.k, last - grid.k - places) / reach, 0.0, 1.0))
    ramp: Floats = ramps[1][:, None] * ramps[0][None, :]
    return ramp


def warp_planes(planes: list[npt.NDArray[np.uint8]], warp: Warp, k: int, buffers: Buffers) -> None:
    """Move the px of Y, U, V (the region's planes) in place."""
    _warp_plane(planes[0], warp.sources, warp, 2 * k, buffers)
    chroma = (warp.sources - np.float32(0.5)) * np.float32(0.5)
    shared = _enlarge_map(chroma, warp, k, buffers)
    for plane in planes[1:]:
        _move(plane, shared, warp, k, buffers)


def _warp_plane(
    plane: npt.NDArray[np.uint8], sources: Floats, warp: Warp, cell: int, buffers: Buffers
) -> None:
    _move(plane, _enlarge_map(sources, warp, cell, buffers), warp, cell, buffers)


def _enlarge_map(sources: Floats, warp: Warp, cell: int, buffers: Buffers) -> Floats:
    """Return the map of each px: nodes are px centres of a grid `cell` times coarser."""
    height, width = sources.shape[0] * cell, sources.shape[1] * cell
    large = buffers.get_floats("map", height, width, 2)
    cv2.resize(sources, (width, height), dst=large, interpolation=cv2.INTER_LINEAR)
    return large[cell : cell + warp.rows * cell, cell : cell + warp.columns * cell]


def _move(
    plane: npt.NDArray[np.uint8], sources: Floats, warp: Warp, cell: int, buffers: Buffers
) -> None:
    height, width = sources.shape[:2]
    moved = buffers.get_bytes("moved", height, width)
    cv2.remap(  # type: ignore[call-overload] # the stubs ask for a second map, which there is none of
        plane, sources, None, cv2.INTER_LINEAR, dst=moved, borderMode=cv2.BORDER_REPLICATE
    )
    top, left = warp.y * cell, warp.x * cell
    plane[top : top + height, left : left + width] = moved
