"""Where the person is: a soft mask of the whole picture, calm at rest, sharp along edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

SIDE: Final = 256
# How much of a change is believed: a quarter when small (noise), all of it from .3 on (movement).
_LEAST_GAIN: Final = 0.25
_GAIN_PER_CHANGE: Final = 2.5
_RADIUS_PX: Final = 6
_EPS: Final = 60.0  # in squared grey levels: edges weaker than about 8 levels are not followed
_LOW: Final = 0.25
_STEEP: Final = 2.0
_NEW_SCENE: Final = 12.0  # mean change of brightness from which the picture is looked at at once
_FLAT: Final = 1e-3


class PersonMask:
    """Runs the person network on small pictures. One instance for one thread."""

    def __init__(self, network: Network, every_n: int) -> None:
        """Look at every `every_n`-th picture, and at once when the scene changes."""
        self._network = network
        self._input = network.input_names[0]
        self._every_n = every_n
        self._blob = np.empty((1, SIDE, SIDE, 3), np.float32)
        self._rgb: NDArray[np.uint8] = np.empty((0, 0, 3), np.uint8)
        self._seen: NDArray[np.uint8] | None = None
        self._calm: NDArray[np.float32] | None = None
        self._age = 0

    def find(self, small: Frame, *, is_cut: bool = False) -> NDArray[np.uint8]:
        """Return uint8 (height, width) of `small`: 255 is person; all 0 when there is none.

        A network whose numbers cannot be used has seen nobody: what is hidden by the mask's
        outside must not come to light.

        Raises:
            ModelError: the runtime failed.
        """
        if is_cut or self._must_look(small.y):
            if is_cut or self._is_new_scene(small.y):
                self._calm = None
            self._look(small)
        self._age += 1
        if self._calm is None:
            return np.zeros(small.y.shape, np.uint8)
        return _follow_edges(self._calm, small.y)

    def reset(self) -> None:
        """Forget the pictures so far."""
        self._calm = self._seen = None
        self._age = 0

    def _must_look(self, luma: NDArray[np.uint8]) -> bool:
        return self._seen is None or self._age >= self._every_n or self._is_new_scene(luma)

    def _is_new_scene(self, luma: NDArray[np.uint8]) -> bool:
        if self._seen is None or self._seen.shape != luma.shape:
            return True
        return float(cv2.mean(cv2.absdiff(luma, self._seen))[0]) > _NEW_SCENE

    def _look(self, small: Frame) -> None:
        self._age = 0
        self._seen = small.y.copy()
        if self._rgb.shape[:2] != small.y.shape:
            self._rgb = np.empty((*small.y.shape, 3), np.uint8)
        cv2.cvtColor(small.buffer, cv2.COLOR_YUV2RGB_I420, dst=self._rgb)
        square = cv2.resize(self._rgb, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        np.multiply(square, np.float32(1 / 255), out=self._blob[0])
        raw = read_probability(self._network.run({self._input: self._blob})[0])
        self._calm = raw if raw is None or self._calm is None else calm_mask(self._calm, raw)


def read_probability(output: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return float32 (SIDE, SIDE) in 0..1, or None when the numbers say nothing.

    Raises:
        ModelError: this is not a person network.
    """
    if output.size != SIDE * SIDE:
        raise ModelError(
            "this is not a person network", hint="set background.model to selfie_seg_256"
        )
    probability = np.asarray(output, np.float32).reshape(SIDE, SIDE)
    if not np.isfinite(probability).all():
        return None
    low, high, _, _ = cv2.minMaxLoc(probability)
    if high - low < _FLAT and high > _FLAT:
        return None
    return np.clip(probability, 0.0, 1.0)


def calm_mask(calm: NDArray[np.float32], raw: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `calm` moved towards `raw`: little where they nearly agree, at once where not."""
    change = raw - calm
    gain = np.clip(_LEAST_GAIN + _GAIN_PER_CHANGE * np.abs(change), 0.0, 1.0)
    return np.asarray(calm + gain * change, np.float32)


def _follow_edges(mask: NDArray[np.float32], luma: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return `mask` in luma's size with its border drawn to luma's edges.

    Guided filter (He, Sun, Tang 2013, "Guided Image Filtering", grey guide), then a steeper rise.
    """
    height, width = luma.shape
    side = (2 * _RADIUS_PX + 1,) * 2
    wide = cv2.resize(mask, (width, height), interpolation=cv2.INTER_LINEAR)
    guide = luma.astype(np.float32)
    guide_mean, mask_mean = cv2.blur(guide, side), cv2.blur(wide, side)
    variance = cv2.blur(cv2.multiply(guide, guide), side) - guide_mean * guide_mean
    covariance = cv2.blur(cv2.multiply(guide, wide), side) - guide_mean * mask_mean
    slope = covariance / (variance + np.float32(_EPS))
    offset = mask_mean - slope * guide_mean
    found = cv2.blur(slope, side) * guide + cv2.blur(offset, side)
    return np.asarray(
        cv2.convertScaleAbs(
            np.maximum(found, np.float32(_LOW)), alpha=255 * _STEEP, beta=-255 * _STEEP * _LOW
        ),
        np.uint8,
    )
