"""The stage of a puppet: the portrait fitted to the frame, as planes, still.

The portrait covers the frame where that does not blow the face up; else it stands in the middle,
and its own blurred picture fills the sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.background import create_planes, fill_frame
from livefuse.pipeline.effects.mesh_regions import SIDES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour, Frame

    Values = NDArray[np.float32]
    Plane = NDArray[np.uint8]

_MAX_FACE: Final = 0.42  # of the frame's height: wider faces are only fitted, not covered with
_FACE_Y: Final = 0.46  # of the frame's height: where the face's middle goes
_SEAM: Final = 0.03  # of the frame's width: how softly a fitted portrait ends
_SIDE_BLUR: Final = 0.03
_SIDE_DARK: Final = 0.6


class Fit(NamedTuple):
    """frame px = scale * portrait px + (x, y)."""

    scale: float
    x: float
    y: float


@dataclass(slots=True, frozen=True, eq=False)
class Stage:
    """The still picture for frames of one size and colour. `mesh` is the portrait's, frame px."""

    size: tuple[int, int]
    colour: Colour
    planes: tuple[Plane, Plane, Plane]
    mesh: Values

    def fits(self, frame: Frame) -> bool:
        """Say whether it was made for frames like this."""
        return self.size == (frame.width, frame.height) and self.colour == frame.colour

    def lay(self, frame: Frame) -> None:
        """Make the frame show the portrait at rest: no px of it stays what it was."""
        for plane, still in zip((frame.y, frame.u, frame.v), self.planes, strict=True):
            np.copyto(plane, still)


def create_stage(
    picture_rgb: Plane, mesh: Values, width: int, height: int, colour: Colour
) -> Stage:
    """Return the stage of a portrait, uint8 (rows, columns, 3), whose face has this `mesh`."""
    fit = fit_portrait((picture_rgb.shape[1], picture_rgb.shape[0]), mesh, width, height)
    bgr = np.ascontiguousarray(picture_rgb[:, :, ::-1])
    shown = _place(bgr, fit, width, height)
    placed = np.asarray(mesh, np.float32) * np.float32(fit.scale)
    placed[:, :2] += np.array([fit.x, fit.y], np.float32)
    return Stage((width, height), colour, create_planes(shown, colour), placed)


def fit_portrait(size: tuple[int, int], mesh: Values, width: int, height: int) -> Fit:
    """Return where a portrait of `size` goes in a frame: covering it, or standing in it."""
    columns, rows = size
    face_px = float(np.linalg.norm(mesh[SIDES[1]] - mesh[SIDES[0]]))
    middle = mesh[:468, :2].mean(axis=0)
    whole, cover = min(width / columns, height / rows), max(width / columns, height / rows)
    scale = max(whole, min(cover, _MAX_FACE * height / max(face_px, 1.0)))
    x = _settle(width / 2 - scale * float(middle[0]), scale * columns, width)
    y = _settle(_FACE_Y * height - scale * float(middle[1]), scale * rows, height)
    return Fit(scale, x, y)


def _settle(wanted: float, length: float, room: float) -> float:
    """Return the place nearest to `wanted` that leaves no gap; the middle when one must be."""
    if length <= room:
        return (room - length) / 2
    return min(max(wanted, room - length), 0.0)


def _place(bgr: Plane, fit: Fit, width: int, height: int) -> Plane:
    rows, columns = bgr.shape[:2]
    if fit.scale < 1.0:
        # By area first, then exactly: a bilinear warp alone would skip px.
        size = (max(1, round(columns * fit.scale)), max(1, round(rows * fit.scale)))
        bgr = np.asarray(cv2.resize(bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
    sx, sy = fit.scale * columns / bgr.shape[1], fit.scale * rows / bgr.shape[0]
    matrix = np.array([[sx, 0, fit.x + (sx - 1) / 2], [0, sy, fit.y + (sy - 1) / 2]])
    shown = cv2.warpAffine(
        bgr, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    if fit.scale * columns >= width - 1 and fit.scale * rows >= height - 1:
        return np.asarray(shown, np.uint8)
    sides = cv2.resize(fill_frame(bgr, width // 4 * 2, height // 4 * 2), (width // 4, height // 4))
    sides = cv2.GaussianBlur(sides, (0, 0), _SIDE_BLUR * width / 4)
    sides = cv2.convertScaleAbs(cv2.resize(sides, (width, height)), alpha=_SIDE_DARK)
    share = _draw_seam(fit, (columns, rows), width, height)[..., None]
    return np.rint(shown * share + sides * (1 - share)).astype(np.uint8)


def _draw_seam(fit: Fit, size: tuple[int, int], width: int, height: int) -> Values:
    """Return 1 where the portrait is, falling softly to 0 at those of its edges that show."""
    share = np.ones((height, width), np.float32)
    soft = max(_SEAM * width, 1.0)
    for axis, (start, length, room) in enumerate(
        ((fit.x, fit.scale * size[0], width), (fit.y, fit.scale * size[1], height))
    ):
        if length >= room - 1:
            continue
        at = np.arange(room, dtype=np.float32)
        inside = np.minimum(at - start, start + length - 1 - at) / soft
        rise = np.clip(inside, 0, 1)
        rise = rise * rise * (3 - 2 * rise)
        share *= rise[None, :] if axis == 0 else rise[:, None]
    return share
