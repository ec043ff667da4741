"""A puppet's mouth and lids: what of them the portrait does not have.

The inside of an open mouth is the wearer's, cut out before the picture is replaced and brought
into the portrait's lips; where lids meet, lashes are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.geometry import fit_similarity
from livefuse.pipeline.effects.mesh_regions import SIDES
from livefuse.pipeline.planes import blend_plane
from livefuse.pipeline.topology import LIPS_INNER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.pipeline.planes import Scratch

    Values = NDArray[np.float32]
    Plane = NDArray[np.uint8]

_MOUTH_BLUR: Final = 0.006
_DIMMEST, _BRIGHTEST = 0.6, 1.6  # the mouth's luma against the wearer's
_CHEEKS: Final = (50, 280)
_STIFF: Final = 20.0
_LASHES_FROM: Final = 0.6  # closed so far, lashes show as a line
_LASH_WIDTH: Final = 0.07  # eye widths
_LASH_DARK: Final = 0.7


class Mouth(NamedTuple):
    """The wearer's mouth, cut out before the picture is replaced."""

    x: int
    y: int
    planes: tuple[Plane, Plane, Plane]
    skin: float


def cut_mouth(frame: Frame, wearer: Values) -> Mouth | None:
    """Return the wearer's mouth, (468 or 478, 3) px, or None when there is nothing of it."""
    box = _find_part(wearer[LIPS_INNER, :2], 8.0, frame)
    if box is None:
        return None
    x0, y0, x1, y1 = box
    half = (slice(y0 // 2, y1 // 2), slice(x0 // 2, x1 // 2))
    planes = frame.y[y0:y1, x0:x1].copy(), frame.u[half].copy(), frame.v[half].copy()
    return Mouth(x0, y0, planes, _measure_skin(frame, wearer))


def _find_part(points: Values, pad: float, frame: Frame) -> tuple[int, int, int, int] | None:
    """Return the even box around `points` within the frame, or None when there is nothing."""
    if not np.isfinite(points).all():
        return None
    low, high = points.min(axis=0) - pad, points.max(axis=0) + pad
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1 = min(int(high[0]) // 2 * 2 + 2, frame.width)
    y1 = min(int(high[1]) // 2 * 2 + 2, frame.height)
    if x1 - x0 < 4 or y1 - y0 < 4:  # noqa: PLR2004 - px: nothing to see
        return None
    return x0, y0, x1, y1


def _measure_skin(frame: Frame, mesh: Values) -> float:
    """Return the luma of both cheeks."""
    found = []
    for index in _CHEEKS:
        x, y = mesh[index, :2].tolist()
        row, column = min(max(int(y), 4), frame.height - 5), min(max(int(x), 4), frame.width - 5)
        found.append(float(frame.y[row - 4 : row + 5, column - 4 : column + 5].mean()))
    return sum(found) / len(found)


def lay_mouth(frame: Frame, mouth: Mouth, wearer: Values, face: Values, scratch: Scratch) -> None:
    """Bring the inside of the wearer's mouth into the portrait's, in that one's light."""
    lips = wearer[LIPS_INNER, :2] - (mouth.x, mouth.y)
    to = face[LIPS_INNER, :2]
    face_px = float(np.linalg.norm(face[SIDES[1]] - face[SIDES[0]]))
    blur_px = _MOUTH_BLUR * face_px + 0.4
    box = _find_part(to, 3 * blur_px + 2, frame)
    if box is None:
        return
    x0, y0, x1, y1 = box
    to = np.asarray(to - (x0, y0), np.float32)
    move = _fit_affine(lips, to)
    mask = _draw_inner(to, (y1 - y0, x1 - x0), blur_px)
    # What is outside the wearer's own inner lips is his lips, which must not come along.
    own = _draw_inner(lips, mouth.planes[0].shape, 0.0)
    own = np.asarray(cv2.warpAffine(own, move, (x1 - x0, y1 - y0)), np.uint8)
    cv2.min(mask, cv2.GaussianBlur(own, (0, 0), blur_px), dst=mask)
    light = _measure_skin(frame, face), mouth.skin
    for index, plane in enumerate((frame.y, frame.u, frame.v)):
        step = 2 if index else 1
        part = plane[y0 // step : y1 // step, x0 // step : x1 // step]
        cover = _warp_mouth(mouth.planes[index], move, step, part.shape)
        if index:
            share = np.asarray(cv2.resize(mask, part.shape[::-1], interpolation=cv2.INTER_AREA))
        else:
            share = mask
            gain = min(max((light[0] - 16) / max(light[1] - 16, 1.0), _DIMMEST), _BRIGHTEST)
            lit = cv2.convertScaleAbs(cover, alpha=gain, beta=16 * (1 - gain))
            cover = np.asarray(lit, np.uint8)
        blend_plane(part, cover, np.asarray(share, np.uint8), scratch)


def draw_lashes(frame: Frame, lid: Values, closed: float) -> None:
    """Darken the line on which closed lids meet; the eye's white would glitter through there."""
    share = (closed - _LASHES_FROM) / (1 - _LASHES_FROM)
    width_px = float(np.hypot(*(lid[-1] - lid[0])))
    thick = max(1.0, _LASH_WIDTH * width_px)
    box = _find_part(lid, 3 * thick + 2, frame) if share > 0.0 else None
    if box is None:
        return
    x0, y0, x1, y1 = box
    line = np.zeros((y1 - y0, x1 - x0), np.uint8)
    fixed = np.rint((lid - (x0, y0)) * 16).astype(np.int32)
    cv2.polylines(
        line, [fixed], isClosed=False, color=255, thickness=max(1, round(thick)),
        lineType=cv2.LINE_AA, shift=4,
    )  # fmt: skip
    line = np.asarray(cv2.GaussianBlur(line, (0, 0), max(0.6, 0.4 * thick)), np.uint8)
    part = frame.y[y0:y1, x0:x1]
    dark = cv2.convertScaleAbs(line, alpha=min(share, 1.0) * _LASH_DARK)
    cv2.multiply(part, cv2.bitwise_not(dark), dst=part, scale=1 / 255)


def _fit_affine(source: Values, target: Values) -> NDArray[np.float64]:
    """Return the (2, 3) matrix with the least squares error from (n, 2) to (n, 2) points.

    A mouth that is hardly open lies nearly on a line: then lengths across it are not stretched.
    """
    middle = source.mean(axis=0)
    known = np.column_stack([source - middle, np.ones(len(source))]).astype(np.float64)
    even = fit_similarity(source, target)
    guess = np.column_stack([[even.a, even.b], [-even.b, even.a]])
    # Tikhonov's pull towards the similarity, in squared px.
    pull = np.diag([_STIFF, _STIFF, 0.0])
    wanted = known.T @ target + pull[:, :2] @ guess.T
    found = np.linalg.solve(known.T @ known + pull, wanted)
    shift = found[2] - middle @ found[:2]
    return np.column_stack([found[:2].T, shift])


def _draw_inner(lips: Values, shape: tuple[int, ...], blur_px: float) -> Plane:
    mask = np.zeros(shape[:2], np.uint8)
    cv2.fillPoly(mask, [np.rint(lips * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    if blur_px > 0.0:
        mask = np.asarray(cv2.GaussianBlur(mask, (0, 0), blur_px), np.uint8)
    return mask


def _warp_mouth(
    plane: Plane, move: NDArray[np.float64], step: int, shape: tuple[int, ...]
) -> Plane:
    middle = (step - 1) / 2  # a chroma px lies between two luma px
    turn = move[:, :2]
    shift = (turn @ [middle, middle] + move[:, 2] - middle) / step
    return np.asarray(
        cv2.warpAffine(
            plane,
            np.column_stack([turn, shift]),
            (shape[1], shape[0]),
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        ),
        np.uint8,
    )
