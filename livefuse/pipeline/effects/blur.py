"""Covering faces: gaussian, mosaic, solid colour or a picture, under a soft ellipse.

Worked in the Y, U and V planes of the face's region only; no pixel outside the mask changes.
What is below the cover cannot be won back: gaussian and mosaic keep a handful of cells across the
face (6 at the default strength; recognition needs some 16), picture lies on gaussian.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import cv2

from livefuse.geometry import get_bounds, scale_ellipse
from livefuse.pipeline.effects.mask import SoftMask, create_cover, halve_ellipse
from livefuse.pipeline.effects.picture import PictureStyle
from livefuse.pipeline.planes import Scratch, blend_plane, convert_colour
from livefuse.token import GENERATING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.config import BlurConfig
    from livefuse.face import Face, Track
    from livefuse.frame import Colour, Frame
    from livefuse.geometry import Ellipse
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

# Cells across the face at strength 0 and 1.
_MOST_CELLS: Final = 14.0
_FEWEST_CELLS: Final = 4.0
_SOFTEN_SIGMA: Final = 0.7  # of a cell
_FINER: Final = 6


class Grid(NamedTuple):
    """Square cells of `cell` luma px (even) around a face, and the part inside the picture."""

    x: int
    y: int
    columns: int
    rows: int
    cell: int
    x0: int
    y0: int
    x1: int
    y1: int

    def halve(self) -> Grid:
        """Return the grid in px of the chroma planes."""
        x, y, columns, rows, *rest = self
        return Grid(x // 2, y // 2, columns, rows, *(value // 2 for value in rest))


class Style(Protocol):
    """Paints what is shown instead of a face."""

    def paint(
        self, plane: NDArray[np.uint8], grid: Grid, index: int, colour: Colour
    ) -> NDArray[np.uint8]:
        """Return the cover of the grid's inside, (y1 - y0, x1 - x0); `index` 0, 1, 2: Y, U, V."""
        ...


class CellStyle:
    """Keeps one value a cell: shown as it is (mosaic) or as a smooth surface (gaussian)."""

    def __init__(self, scratch: Scratch, *, smooth: bool) -> None:
        self._scratch = scratch
        self._smooth = smooth

    def paint(
        self,
        plane: NDArray[np.uint8],
        grid: Grid,
        index: int,  # noqa: ARG002 - all planes are alike
        colour: Colour,  # noqa: ARG002 - values are the picture's own
    ) -> NDArray[np.uint8]:
        """See `Style.paint`."""
        width, height = grid.columns * grid.cell, grid.rows * grid.cell
        part = plane[grid.y0 : grid.y1, grid.x0 : grid.x1]
        left, top = grid.x0 - grid.x, grid.y0 - grid.y
        if part.shape != (height, width):
            right, bottom = width - left - part.shape[1], height - top - part.shape[0]
            full = self._scratch.get("grid", height, width)
            cv2.copyMakeBorder(part, top, bottom, left, right, cv2.BORDER_REPLICATE, dst=full)
        else:
            full = part
        small = self._scratch.get("cells", grid.rows, grid.columns)
        cv2.resize(full, (grid.columns, grid.rows), dst=small, interpolation=cv2.INTER_AREA)
        way = cv2.INTER_NEAREST
        if self._smooth:
            small = self._smoothen(small)
            way = cv2.INTER_LINEAR
        painted = self._scratch.get("painted", height, width)
        cv2.resize(small, (width, height), dst=painted, interpolation=way)
        return painted[top : top + part.shape[0], left : left + part.shape[1]]

    def _smoothen(self, cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a finer, smooth surface: cubic while it is small, as cubic is dear."""
        rows, columns = cells.shape
        cv2.GaussianBlur(cells, (0, 0), _SOFTEN_SIGMA, dst=cells, borderType=cv2.BORDER_REPLICATE)
        surface = self._scratch.get("surface", rows * _FINER, columns * _FINER)
        cv2.resize(
            cells, (columns * _FINER, rows * _FINER), dst=surface, interpolation=cv2.INTER_CUBIC
        )
        return surface


class SolidStyle:
    """One colour."""

    def __init__(self, rgb: tuple[int, int, int], scratch: Scratch) -> None:
        self._rgb = rgb
        self._scratch = scratch

    def paint(
        self, plane: NDArray[np.uint8], grid: Grid, index: int, colour: Colour
    ) -> NDArray[np.uint8]:
        """See `Style.paint`."""
        del plane
        painted = self._scratch.get("painted", grid.y1 - grid.y0, grid.x1 - grid.x0)
        painted.fill(convert_colour(self._rgb, colour)[index])
        return painted


class FaceBlur:
    """Covers faces in place. One instance for one thread."""

    def __init__(self, config: BlurConfig) -> None:
        """Make the style ready.

        Raises:
            ConfigError: style is picture, and its file is missing or not a picture.
        """
        self._size = config.size
        self._scratch = Scratch()
        self._mask = SoftMask(config.feather)
        share = (_FEWEST_CELLS / _MOST_CELLS) ** config.strength
        self._cells_across = _MOST_CELLS * share
        self._picture = PictureStyle(config.picture) if config.style == "picture" else None
        self._style: Style = CellStyle(self._scratch, smooth=config.style != "mosaic")
        if config.style == "solid":
            red, green, blue = bytes.fromhex(config.colour[1:])
            self._style = SolidStyle((red, green, blue), self._scratch)

    def cover(
        self, frame: Frame, tracks: Iterable[Track], opacity: float = 1.0
    ) -> tuple[Ellipse, ...]:
        """Hide each face; return the ellipses within which nothing of the frame is left.

        With an `opacity` below 1 the frame shines through, for a cross-fade with what was already
        put in a face's place, and the ellipses hide nothing.
        """
        covers = tuple(create_cover(track, self._size) for track in tracks)
        for ellipse in covers:
            grid = self._create_grid(ellipse, frame)
            if grid is None:
                continue
            self._cover_planes(frame, grid, ellipse, opacity)
            if self._picture is not None and opacity >= 1.0:
                self._picture.lay(frame, ellipse, self._scratch)
        return covers

    def _cover_planes(self, frame: Frame, grid: Grid, ellipse: Ellipse, opacity: float) -> None:
        half = grid.halve()
        chroma = self._scratch.get("chroma_mask", half.y1 - half.y0, half.x1 - half.x0)
        self._mask.draw(halve_ellipse(ellipse), (half.x0, half.y0), chroma)
        if opacity < 1.0:
            cv2.convertScaleAbs(chroma, dst=chroma, alpha=opacity)
        # A soft mask loses nothing when it is drawn at half size, and warping is the dear part.
        luma = self._scratch.get("luma_mask", grid.y1 - grid.y0, grid.x1 - grid.x0)
        size = (luma.shape[1], luma.shape[0])
        cv2.resize(chroma, size, dst=luma, interpolation=cv2.INTER_LINEAR)
        self._cover_plane(frame.y, 0, grid, luma, frame.colour)
        self._cover_plane(frame.u, 1, half, chroma, frame.colour)
        self._cover_plane(frame.v, 2, half, chroma, frame.colour)

    def _cover_plane(
        self,
        plane: NDArray[np.uint8],
        index: int,
        grid: Grid,
        mask: NDArray[np.uint8],
        colour: Colour,
    ) -> None:
        painted = self._style.paint(plane, grid, index, colour)
        part = plane[grid.y0 : grid.y1, grid.x0 : grid.x1]
        blend_plane(part, painted, mask, self._scratch)

    def _create_grid(self, ellipse: Ellipse, frame: Frame) -> Grid | None:
        """Lay whole cells around the cover, from its centre outwards, so that they go with it."""
        bounds = get_bounds(scale_ellipse(ellipse, self._mask.reach, self._mask.reach))
        across = 2 * ellipse.half_width / self._size / self._cells_across
        cell = 2 * max(1, round(across / 2))
        left, right = (math.ceil(bounds.width / 2 / cell + 0.1),) * 2
        up, down = (math.ceil(bounds.height / 2 / cell + 0.1),) * 2
        x = 2 * round(ellipse.x / 2) - left * cell
        y = 2 * round(ellipse.y / 2) - up * cell
        x0, y0 = max(x, 0), max(y, 0)
        x1 = min(x + (left + right) * cell, frame.width)
        y1 = min(y + (up + down) * cell, frame.height)
        if x1 <= x0 or y1 <= y0:
            return None
        return Grid(x, y, left + right, up + down, cell, x0, y0, x1, y1)


class BlurStep:
    """Each face covered that the token wants covered. See `state.Step`."""

    def __init__(self, blur: FaceBlur) -> None:
        self._blur = blur

    def prepare(self, token: Token) -> None:
        """See `Step.prepare`; the style is ready since the step was made."""

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.cover_reason:
            state.did = "left to the whole cover"
            return
        faces = [face.track for face in state.faces if must_blur(face, state.token)]
        state.covers = (*state.covers, *self._blur.cover(state.frame, faces))
        state.did = f"covered {len(faces)}"

    def reset(self) -> None:
        """See `Step.reset`; it keeps nothing from frame to frame."""


def must_blur(face: Face, token: Token) -> bool:
    """Say whether `face` is to be covered: `auto` leaves to a swap what the swap has.

    Who is not known yet is covered until it is.
    """
    if face.is_doubtful:
        return True
    whom = token.parameters.blur_whom
    if whom == "auto":
        whom = "others" if not GENERATING.isdisjoint(token.operations) else "chosen"
    return whom == "all" or (whom == "chosen") == face.chosen


def create_blur_step(context: StepContext) -> BlurStep:
    """Return the step.

    Raises:
        ConfigError: style is picture, and its file is missing or not a picture.
    """
    return BlurStep(FaceBlur(context.config.blur))
