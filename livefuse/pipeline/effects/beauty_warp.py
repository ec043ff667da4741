"""Moving the pixels: one field for all that changes the face's shape, one remap a plane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_shape import Axis, compute_field, create_basis

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
    cell = 2 * grid.k
    field = compute_field(
        basis,
        _lay_axis(geometry, (grid.x, grid.width, size[0])),
        _lay_axis(geometry, (grid.y, grid.height, size[1])),
    )
    field *= fade * np.float32(cell)
    moves = field[0] * field[0]
    moves += field[1] * field[1]
    moving = (moves > np.float32(_STILL_PX**2)).view(np.uint8)
    x, y, width, height = cv2.boundingRect(moving)
    if not width or not height:
        return None
    nodes_x = (np.arange(x, x + width, dtype=np.float32) + 0.5) * cell - 0.5
    nodes_y = (np.arange(y, y + height, dtype=np.float32) + 0.5) * cell - 0.5
    # What moves less than this is still, so the cell around it may stand for its neighbours.
    ways = [
        cv2.copyMakeBorder(way[y : y + height, x : x + width], 1, 1, 1, 1, cv2.BORDER_REPLICATE)
        for way in field
    ]
    sources = np.empty((height + 2, width + 2, 2), np.float32)
    np.subtract(_widen(nodes_x, cell), ways[0], out=sources[..., 0])
    np.subtract(_widen(nodes_y, cell)[:, None], ways[1], out=sources[..., 1])
    return Warp(sources, x, y, width, height, math.sqrt(float(moves.max())))


def _widen(nodes: Floats, cell: int) -> Floats:
    """Return evenly spaced `nodes` with one more at either end."""
    return np.concatenate([nodes[:1] - cell, nodes, nodes[-1:] + cell])


def _lay_axis(geometry: FaceGeometry, span: tuple[int, int, int]) -> Axis:
    """Return the coarse nodes of a span (start, length, the frame's end), px.

    Movement falls to 0 over some millimetres at the region's and the frame's rim.
    """
    start, length, end = span
    cell = 2 * geometry.grid.k
    nodes = np.arange(length // cell, dtype=np.float32)
    places = nodes * cell
    last = min(length, end - start) - cell
    reach = np.float32(1 / (_RIM_MM * geometry.mm))
    weights = np.minimum(places, last - places) * reach
    return Axis(nodes, np.minimum(np.maximum(weights, 0.0), 1.0))


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
