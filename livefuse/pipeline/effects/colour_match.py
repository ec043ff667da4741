"""Skin tone: a network's face takes on the wearer's colour along the mask's rim.

There a difference is a seam. It is measured in the band where both are mixed, carried inwards by a
wide blur (a normalised convolution), and added: the rim is the wearer's, the network's own features
stay. It follows slowly, so that a noisy picture does not flicker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_SAMPLES: Final = 32  # across the crop: every n-th px is looked at
_MAX_SHIFT: Final = 0.15  # a larger one is not a tone but another light
_SIGMA: Final = 2.5  # samples: how far along the rim a tone goes
_REACH: Final = 15  # samples: the box whose mean holds far from the rim
_WIDE_SHARE: Final = 0.03
_INSIDE: Final = 0.9  # of the mask: the face itself
_FOLLOW: Final = 0.4
_EVERY_N: Final = 3
_MAX_TRACKS: Final = 16


class _Kept:
    """A track's difference, and how many frames ago it was measured."""

    def __init__(self, difference: Floats) -> None:
        self.difference = difference
        self.age = 0


class ColourMatch:
    """Follows each track's difference. One instance for one thread."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    def reset(self) -> None:
        """Forget all tracks."""
        self._kept.clear()

    def get(self, track_id: int) -> Floats | None:
        """Return the difference if it need not be measured for this frame (two of three)."""
        kept = self._kept.get(track_id)
        if kept is None or kept.age + 1 >= _EVERY_N:
            return None
        kept.age += 1
        return kept.difference

    def follow(
        self, track_id: int, before: Floats, after: Floats, mask: NDArray[np.uint8]
    ) -> Floats | None:
        """Return what is to be added to R, G, B (0..1) of the network's face, small (n, n, 3).

        `before` is the wearer's crop and `after` the network's, both by `take_samples`; `mask` is
        the crop's, as large or a whole number of times smaller. None: nothing is known.
        """
        found = measure_difference(before, after, mask)
        kept = self._kept.pop(track_id, None)
        if found is not None:
            kept = _Kept(found if kept is None else _follow(kept.difference, found))
        if kept is None:
            return None
        self._kept[track_id] = kept  # the last one is the one that was seen last
        if len(self._kept) > _MAX_TRACKS:
            self._kept.pop(next(iter(self._kept)))
        return kept.difference


def _follow(kept: Floats, found: Floats) -> Floats:
    return kept + np.float32(_FOLLOW) * (found - kept)


def take_samples(
    planes: Floats, scale: NDArray[np.float32] | float, offset: NDArray[np.float32] | float
) -> Floats:
    """Return every n-th px of (3, size, size), times `scale` plus `offset`, clipped to 0..1."""
    step = max(1, planes.shape[1] // _SAMPLES)
    samples = planes[:, ::step, ::step] * scale + offset
    return np.asarray(np.clip(samples, 0.0, 1.0), np.float32)


def measure_difference(before: Floats, after: Floats, mask: NDArray[np.uint8]) -> Floats | None:
    """Return before - after as it is along the rim of `mask`, smooth; None without a rim."""
    step = max(1, mask.shape[0] // _SAMPLES)
    small = mask[::step, ::step]
    share = small.astype(np.float32) / np.float32(max(int(small.max()), 1))
    if before.shape[1:] != share.shape or not (share > _INSIDE).any():
        return None
    # Hair and shadow are no skin: what is much darker than the face does not count.
    light = before.sum(axis=0)
    face_light = max(float(np.median(light[share > _INSIDE])), 1e-3)
    weight = share * (1 - share) * np.clip(light / face_light * 4 - 2, 0.0, 1.0)
    if float(weight.sum()) <= 1.0:
        return None
    parts = np.empty((*weight.shape, 4), np.float32)
    parts[..., :3] = ((before - after) * weight).transpose(1, 2, 0)
    parts[..., 3] = weight
    wide = cv2.blur(parts, (_REACH, _REACH), borderType=cv2.BORDER_CONSTANT)
    near = cv2.GaussianBlur(parts, (0, 0), _SIGMA, borderType=cv2.BORDER_CONSTANT)
    total = near + np.float32(_WIDE_SHARE) * wide
    smooth = total[..., :3] / (total[..., 3:] + np.float32(1e-8))
    return np.asarray(np.clip(smooth, -_MAX_SHIFT, _MAX_SHIFT), np.float32)


def add_difference(planes: Floats, difference: Floats, scale: float) -> None:
    """Add `difference` / `scale` to (3, size, size) in place."""
    size = (planes.shape[2], planes.shape[1])
    for plane, part in zip(planes, cv2.split(difference * np.float32(1 / scale)), strict=True):
        cv2.add(plane, cv2.resize(part, size, interpolation=cv2.INTER_LINEAR), dst=plane)
