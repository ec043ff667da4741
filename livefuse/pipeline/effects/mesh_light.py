"""The wearer's own light, from a copy of the face some 64 px wide.

The low band of the wearer's skin (features and what is not skin left out) carries light, shadows,
skin colour and white balance. What is not skin (a fringe, a hat, a strap) stays in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_lowband import MAD_TO_SD, blur, blur_weighted
from livefuse.pipeline.effects.mesh_regions import (
    EYE_RINGS,
    UV_PX,
    UV_SIDE,
    draw_hair_zone,
    draw_polygons,
    get_regions,
    smooth_step,
)
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.pipeline.effects.mesh_raster import MeshView

    Values = NDArray[np.float32]

GRID_FACE_PX: Final = 64.0
LOW_SIGMA: Final = 0.12  # of the face's width
_WIDE_PX: Final = 31
_WIDE_SHARE: Final = 0.03
_MIN_SKIN: Final = 40.0  # px of the grid: less is no face to light another by
_LEAST_SD_YUV: Final = np.array([16, 4, 4], np.float32)
_LUMA_SHARE, _BRIGHTER_SHARE = 0.6, 0.45
_NOT_SKIN_FROM, _NOT_SKIN_OVER = 2.4, 2.0
_EVERY_N: Final = 3
_THINNED: Final = 4  # one px of so many tells the median as well
_SLOW: Final = 0.27  # of the way to a frame's own value, every third frame
_DARK_EYES: Final = 0.45  # of the skin's luma: sunglasses; bare eyes measured >= 0.58
_DARK_FRAMES: Final = 2  # of those looked at
_RING_GROW: Final = 1.35
_BAND_STEP: Final = 0.34


@dataclass(slots=True, eq=False)
class Light:
    """On a grid (rows, columns) over the view's box, float32.

    `low` is the skin's low band: luma above black, and U, V less 128. `luma` is the wearer's own
    above black. `weight` 0..1 is what was skin; `keep` 0..1 what of the wearer stays in front.
    """

    low: Values
    luma: Values
    weight: Values
    keep: Values
    uv: Values


class LightMeter:
    """Measures one wearer's light, calmly from frame to frame. One face, one thread."""

    def __init__(self) -> None:
        self._median: Values | None = None
        self._sd = _LEAST_SD_YUV
        self._frames = 0
        self._dark_frames = 0
        self._band = 0.0

    def measure(self, view: MeshView, frame: Frame, hidden: Values | None = None) -> Light | None:
        """Return the light of the face in `view`; None when hardly any skin is seen.

        `hidden` 0..1 on the view's grid is what stands before the face.
        """
        box = view.box
        scale = GRID_FACE_PX / view.face_px
        size = (max(round(box.width * scale), 4), max(round(box.height * scale), 4))
        picture = _shrink_planes(frame, view, size)
        uv = np.asarray(cv2.resize(view.uv, size, interpolation=cv2.INTER_LINEAR), np.float32)
        zones = cv2.remap(  # type: ignore[call-overload]  # the stubs forbid the None a joint map needs
            _draw_zones(), uv, None, cv2.INTER_LINEAR
        )
        inside = cv2.resize(view.inside, size, interpolation=cv2.INTER_AREA)
        seen = cv2.resize(view.visible, size, interpolation=cv2.INTER_LINEAR) * (inside / 255)
        if hidden is not None:
            seen = seen * (1 - cv2.resize(hidden, size, interpolation=cv2.INTER_LINEAR))
        skin, hair, left, right = (
            np.multiply(zone, np.float32(1 / 255)) for zone in cv2.split(zones)
        )
        weight = np.asarray(skin * seen, np.float32)
        sure = (weight > 0.5) & (hair < 0.1)  # noqa: PLR2004 - skin, where no hair falls
        if int(sure.sum()) < _MIN_SKIN:
            return None
        keep = self._find_other(picture, sure) * hair
        band = self._find_sunglasses(picture[:, :, 0], sure, (left, right))
        if band > 0:
            dark = band * _find_eye_band(uv)
            keep, weight = np.maximum(keep, dark), weight * (1 - dark)
        weight = weight * (1 - keep) ** 2
        sigma = LOW_SIGMA * GRID_FACE_PX
        low = blur_weighted(picture, weight, sigma, _WIDE_PX, _WIDE_SHARE)
        return Light(low, picture[:, :, 0], weight, blur(keep, 0.8), uv)

    def _find_other(self, picture: Values, sure: NDArray[np.bool_]) -> Values:
        """Return 0..1: how unlike the wearer's skin each px is, by median and MAD."""
        if self._median is None:
            self._median, self._sd = _find_median(picture[sure][::_THINNED])
        elif self._frames % _EVERY_N == 0:
            median, sd = _find_median(picture[sure][::_THINNED])
            self._median = self._median + _SLOW * (median - self._median)
            self._sd = self._sd + _SLOW * (sd - self._sd)
        self._frames += 1
        error = (picture - self._median) / self._sd
        luma = error[:, :, 0] * np.where(error[:, :, 0] > 0, _BRIGHTER_SHARE, 1.0)
        squares = _LUMA_SHARE * luma * luma + error[:, :, 1] ** 2 + error[:, :, 2] ** 2
        other = (np.sqrt(squares) - _NOT_SKIN_FROM) / _NOT_SKIN_OVER
        return np.asarray(np.clip(other, 0, 1), np.float32)

    def _find_sunglasses(
        self, luma: Values, sure: NDArray[np.bool_], rings: tuple[Values, Values]
    ) -> float:
        """Return 0..1, rising while both eyes are dark as glass for some frames in a row."""
        if self._frames % _EVERY_N:
            return self._band
        skin = max(float(np.median(luma[sure])), 1.0)
        around = [luma[ring > 0.5] for ring in rings]  # noqa: PLR2004 - more in than out
        is_dark = all(px.size and float(np.median(px)) < _DARK_EYES * skin for px in around)
        self._dark_frames = (
            min(self._dark_frames + 1, 2 * _DARK_FRAMES)
            if is_dark
            else max(self._dark_frames - 1, 0)
        )
        aim = 1.0 if self._dark_frames >= _DARK_FRAMES else 0.0
        self._band += min(max(aim - self._band, -_BAND_STEP), _BAND_STEP)
        return self._band


def _find_median(samples: Values) -> tuple[Values, Values]:
    """Return the median and the standard deviation by MAD of (n, 3) samples."""
    median = np.median(samples, axis=0)
    spread = MAD_TO_SD * np.median(np.abs(samples - median), axis=0)
    return np.asarray(median, np.float32), np.maximum(spread, _LEAST_SD_YUV)


def get_black(frame: Frame) -> float:
    """Return the luma of black."""
    return 0.0 if frame.colour.full_range else 16.0


def _shrink_planes(frame: Frame, view: MeshView, size: tuple[int, int]) -> Values:
    """Return luma above black and U, V less 128 of the box, (rows, columns, 3), not aliased."""
    box = view.box
    zero = (get_black(frame), 128.0, 128.0)
    layers = []
    for index, plane in enumerate((frame.y, frame.u, frame.v)):
        step = 2 if index else 1
        part = plane[box.y0 // step : box.y1 // step, box.x0 // step : box.x1 // step]
        if part.shape[1] > 2 * size[0]:
            double = (2 * size[0], 2 * size[1])
            part = np.asarray(cv2.resize(part, double, interpolation=cv2.INTER_LINEAR))
        small = cv2.resize(part, size, interpolation=cv2.INTER_AREA)
        layers.append(np.asarray(small, np.float32) - np.float32(zero[index]))
    return np.dstack(layers)


@cache
def _draw_zones() -> NDArray[np.uint8]:
    """Return uint8 (512, 512, 4): skin, where hair may fall, around the left and the right eye."""
    rings = []
    for ring, eye in zip(EYE_RINGS, (EYE_LEFT, EYE_RIGHT), strict=True):
        points = UV_PX[list(ring)]
        centre = points.mean(axis=0)
        grown = np.rint((centre + _RING_GROW * (points - centre)) * 16).astype(np.int32)
        mask = np.zeros((UV_SIDE, UV_SIDE), np.uint8)
        cv2.fillPoly(mask, [grown], 255, cv2.LINE_8, 4)
        rings.append(mask * (1 - draw_polygons(eye)))
    hair = draw_hair_zone((118, 150), (120, 170), (300, 350))
    zones = np.dstack([get_regions().skin * 255, hair * 255, *rings])
    return np.ascontiguousarray(np.rint(zones), np.uint8)


def _find_eye_band(uv: Values) -> Values:
    """Return 1 on the band of the eyes, where the grid shows it."""
    y, aside = uv[:, :, 1], np.abs(uv[:, :, 0] - UV_SIDE / 2)
    inside = smooth_step(138, 148, y) * (1 - smooth_step(232, 240, y))
    return np.asarray(inside * (1 - smooth_step(165, 175, aside)), np.float32)
