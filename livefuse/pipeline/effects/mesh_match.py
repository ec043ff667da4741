"""How a source is made to suit one wearer's picture: contrast, colour, sharpness, grain.

Measured every few frames, followed slowly, and turned into a variant's key that changes only when
it has stayed changed: a texture that flips between two steps would be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_regions import EYE_RINGS
from livefuse.pipeline.effects.mesh_variant import LUMA_ONE, create_key
from livefuse.pipeline.topology import BROW_LEFT, BROW_RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour
    from livefuse.pipeline.effects.mesh_light import Light
    from livefuse.pipeline.effects.mesh_raster import MeshView
    from livefuse.pipeline.effects.mesh_variant import VariantKey

    Values = NDArray[np.float32]

EVERY_N: Final = 6
_BOX_POINTS: Final = np.concatenate([BROW_LEFT, BROW_RIGHT, *map(np.array, EYE_RINGS)])
_TEXELS_ACROSS: Final = 410.0  # of the texture per face width
_CONTRAST_RANGE: Final = (0.55, 1.10)
_CONTRAST_SLOW, _CHROMA_SLOW = 0.15, 0.1
_MIN_PX: Final = 60
_AT_ONCE: Final = 4  # measurements at a face's start that need no confirmation
_CONFIRMED: Final = 3
_GRAIN_GAIN, _MOST_GRAIN = 1.6, 6.0
_GRAIN_FROM_PX, _GRAIN_OVER_PX = 70.0, 60.0  # on smaller faces pores and lashes count as noise
_CELL_PX: Final = 8
_MEAN_TO_SD: Final = 1.42  # mean |x| of a normal distribution to its sd, less the 3 x 3 mean
_SHOWN: Final = 200  # of 255: px that are the source's


class Comparison(NamedTuple):
    """Of warp and wearer: fine over coarser detail, and the noise's standard deviation."""

    sharpness: tuple[float, float]
    noise: tuple[float, float]


class FaceMatch:
    """What is followed of one face. One thread."""

    def __init__(self, face_px: float, colour: Colour) -> None:
        self._contrast: float | None = None
        self._chroma = 1.0
        self._colour = colour
        self._sigma = 0.45 * _TEXELS_ACROSS / max(face_px, 1.0)
        self._count = 0
        self._waiting: list[VariantKey] = []
        self.grain = 0.0
        self.key = create_key(self._sigma, 1.0, 1.0, colour)

    def follow(
        self, view: MeshView, light: Light, shares: tuple[float, float], found: Comparison
    ) -> None:
        """Take in a measurement. `shares`: the source's contrast and saturation."""
        contrast = _measure_contrast(light.luma, light.low[:, :, 0], light.weight)
        ratio = min(max(contrast / max(shares[0], 1e-3), _CONTRAST_RANGE[0]), _CONTRAST_RANGE[1])
        aim = 0.35 + 0.65 * ratio
        if self._contrast is None:
            self._contrast = aim
        self._contrast += _CONTRAST_SLOW * (aim - self._contrast)
        chroma = min(1.0, _measure_saturation(light) / max(shares[1], 1e-3))
        slow = _CHROMA_SLOW if self._count else 1.0
        self._chroma += slow * (chroma - self._chroma)
        self._follow_sharpness(view.face_px, found)
        noise = max(found.noise[1] ** 2 - found.noise[0] ** 2, 0.0) ** 0.5
        small = min(max((view.face_px - _GRAIN_FROM_PX) / _GRAIN_OVER_PX, 0.0), 1.0)
        aim = min(_GRAIN_GAIN * noise, _MOST_GRAIN) * small
        self.grain += (0.3 if self._count else 1.0) * (aim - self.grain)
        self._choose(create_key(self._sigma, self._contrast, self._chroma, self._colour))
        self._count += 1

    def _follow_sharpness(self, face_px: float, found: Comparison) -> None:
        """Move the blur from the one that is shown towards the wearer's sharpness."""
        per_px = _TEXELS_ACROSS / face_px
        warp, wearer = found.sharpness
        step = 0.0
        if warp > 0 and wearer > 0:
            step = 0.9 * per_px * min(max(warp / wearer - 1.02, -0.25), 0.5)
        least = 0.42 * per_px if per_px > 1.2 else 0.0  # noqa: PLR2004 - below, nothing aliases
        shown = self.key.sigma * 0.5
        # A small face is all detail, to the eye of this measure: it must not become a smear.
        most = min(max(0.8 + (face_px - 60.0) / 30.0, 0.8), 5.0) * per_px
        self._sigma = min(max(shown + step, least, 0.0), most)

    def _choose(self, key: VariantKey) -> None:
        """Change the key once it has been another one for some measurements in a row."""
        if key == self.key:
            self._waiting.clear()
            return
        self._waiting.append(key)
        if self._count < _AT_ONCE or len(self._waiting) >= _CONFIRMED:
            self.key = key
            self._waiting.clear()


def compare(
    view: MeshView,
    warp: NDArray[np.uint8],
    alpha: NDArray[np.uint8],
    wearer: NDArray[np.uint8],
) -> Comparison:
    """Return how warp and wearer differ, uint8 luma of the box: sharpness around the eyes, noise.

    Noise is read where the face is smoothest: elsewhere pores and lashes would count as noise, and
    come back as grain that flickers.
    """
    points = view.points[_BOX_POINTS, :2]
    x0, y0 = np.maximum(np.floor(points.min(axis=0)).astype(int), 0).tolist()
    x1, y1 = np.ceil(points.max(axis=0)).astype(int).tolist()
    cut = np.s_[y0 : max(y1, 0), x0 : max(x1, 0)]
    mask = alpha[cut] > _SHOWN
    if int(mask.sum()) < _MIN_PX:
        return Comparison((0.0, 0.0), (0.0, 0.0))
    return Comparison(
        (_measure_sharpness(warp[cut], mask), _measure_sharpness(wearer[cut], mask)),
        (_measure_noise(warp, alpha), _measure_noise(wearer, alpha)),
    )


def _measure_sharpness(luma: NDArray[np.uint8], mask: NDArray[np.bool_]) -> float:
    """Return |G.8 - G1.6| / |G1.6 - G3.2|, means over the mask."""
    picture = np.asarray(luma, np.float32)
    fine, middle, coarse = (
        np.asarray(cv2.GaussianBlur(picture, (0, 0), sigma)) for sigma in (0.8, 1.6, 3.2)
    )
    above = float(np.abs(fine - middle)[mask].mean())
    below = float(np.abs(middle - coarse)[mask].mean())
    return above / max(below, 1e-3)


def _measure_noise(luma: NDArray[np.uint8], alpha: NDArray[np.uint8]) -> float:
    """Return the noise's standard deviation, from the smoothest quarter of the face's cells."""
    residue = cv2.absdiff(luma, cv2.blur(luma, (3, 3)))
    size = (max(luma.shape[1] // _CELL_PX, 1), max(luma.shape[0] // _CELL_PX, 1))
    cells = cv2.resize(np.asarray(residue, np.float32), size, interpolation=cv2.INTER_AREA)
    shown = cv2.resize(alpha, size, interpolation=cv2.INTER_AREA)
    inside = np.asarray(cells)[np.asarray(shown) > _SHOWN]
    return float(np.percentile(inside, 25)) * _MEAN_TO_SD if inside.size else 0.0


def measure_source_contrast(luma: NDArray[np.uint8], light: Light) -> float:
    """Return the contrast of a detail luma plane, uint8 (512, 512), as this wearer shows it."""
    warped = cv2.remap(luma, light.uv, None, cv2.INTER_LINEAR)  # type: ignore[call-overload]  # as in mesh_render
    return _measure_contrast(np.asarray(warped, np.float32), np.float32(LUMA_ONE), light.weight)


def _measure_contrast(luma: Values, low: Values | np.float32, weight: Values) -> float:
    total = max(float(weight.sum()), 1e-3)
    log = np.log(np.maximum(luma, 4.0) / np.maximum(low, 4.0))
    mean = float((log * weight).sum()) / total
    return float(np.sqrt(((log - mean) ** 2 * weight).sum() / total))


def _measure_saturation(light: Light) -> float:
    """Return the skin's (max - min) / max of R, G, B, from luma and BT.601's differences."""
    weight = light.weight / max(float(light.weight.sum()), 1e-3)
    y, u, v = (float((light.low[:, :, i] * weight).sum()) for i in range(3))
    rgb = (y + 1.402 * v, y - 0.344 * u - 0.714 * v, y + 1.772 * u)
    return (max(rgb) - max(min(rgb), 0.0)) / max(*rgb, 1.0)
