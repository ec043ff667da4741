"""A detail texture as it suits one wearer: as sharp, as contrasty, as colourful. 8 bits.

Built aside, 20 ms each, and kept in a bounded store; the old one is shown meanwhile.
In planes: with T the wearer's low band and D the detail, out = D T per colour. With t the skin's
colour over its luma (nearly the same on all skins), the luma of that is T_y D_y, with
D_y = sum(w t D), and U = D_y T_u + T_y p_u, with p_u = t_b (D_b - D_y) scaled as U is; V alike.
So luma needs one product at full size, and colour two at half.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.frame import Colour
from livefuse.pipeline.effects.mesh_lowband import blur_by_mask
from livefuse.pipeline.effects.mesh_regions import get_regions
from livefuse.pipeline.planes import LUMA_WEIGHTS

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    from livefuse.frame import Matrix
    from livefuse.pipeline.effects.mesh_texture import DetailTexture

LUMA_ONE: Final = 128
"""What D_y = 1 is in the texture's luma channel."""

TINT_ONE: Final = 512.0
"""What p = 1 adds to 128 in the texture's U and V channels."""

MATRICES: Final[tuple[Matrix, ...]] = ("bt601", "bt709")
_FIRST_SIGMA_PX: Final = 0.75
_CAPACITY: Final = 12
_MAX_PENDING: Final = 2
_SIGMA_STEP, _CONTRAST_STEP, _CHROMA_STEP = 0.5, 0.05, 0.2


class VariantKey(NamedTuple):
    """Which variant, in steps: blur of 0.5 px of the texture, contrast of 0.05, colour of 0.2."""

    sigma: int
    contrast: int
    chroma: int
    colour: Colour


def create_key(sigma_px: float, contrast: float, chroma: float, colour: Colour) -> VariantKey:
    """Return the nearest key."""
    return VariantKey(
        round(sigma_px / _SIGMA_STEP),
        round(contrast / _CONTRAST_STEP),
        round(chroma / _CHROMA_STEP),
        colour,
    )


def build_variant(texture: DetailTexture, key: VariantKey) -> NDArray[np.uint8]:
    """Return uint8 (512, 512, 4): D_y, p_u, p_v and alpha. Pure; any thread."""
    detail = texture.detail
    weights, scales = _get_matrix(key.colour)
    luma = detail @ np.array([0.299, 0.587, 0.114], np.float32)
    shown = luma[:, :, None] + (detail - luma[:, :, None]) * (key.chroma * _CHROMA_STEP)
    shown = np.maximum(shown, 0.02) ** np.float32(key.contrast * _CONTRAST_STEP)
    if key.sigma:
        shown = blur_by_mask(shown, texture.mask, key.sigma * _SIGMA_STEP)
    tint = texture.tint_rgb / float(texture.tint_rgb @ weights)
    d_y = shown @ (weights * tint)
    out = np.empty((*luma.shape, 4), np.uint8)
    out[:, :, 0] = np.clip(np.rint(d_y * LUMA_ONE), 0, 255)
    for channel, colour, scale in ((1, 2, scales[0]), (2, 0, scales[1])):
        chroma = (shown[:, :, colour] - d_y) * (tint[colour] * scale)
        out[:, :, channel] = np.clip(np.rint(128 + TINT_ONE * chroma), 0, 255)
    out[:, :, 3] = np.rint(get_regions().alpha * 255)
    out.setflags(write=False)
    return out


class VariantStore:
    """The variants of one texture, the least used thrown away. `get` belongs to one thread."""

    def __init__(self, texture: DetailTexture, aside: Executor) -> None:
        self.texture = texture
        self._aside = aside
        self._kept: OrderedDict[VariantKey, NDArray[np.uint8]] = OrderedDict()
        # One for each matrix, so that the first frame has something to show; range hardly matters.
        self._first = {
            matrix: build_variant(texture, create_key(_FIRST_SIGMA_PX, 1.0, 1.0, Colour(matrix)))
            for matrix in MATRICES
        }
        self._pending: dict[VariantKey, Future[NDArray[np.uint8]]] = {}

    def get(self, key: VariantKey) -> NDArray[np.uint8] | None:
        """Return the variant, or have it built aside and return None meanwhile."""
        self._collect()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._pending and len(self._pending) < _MAX_PENDING:
            self._pending[key] = self._aside.submit(build_variant, self.texture, key)
            self._collect()
        return self._kept.get(key)

    def get_first(self, colour: Colour) -> NDArray[np.uint8]:
        """Return the variant of this colour that was used last, or the one built beforehand."""
        return next(
            (v for key, v in reversed(self._kept.items()) if key.colour == colour),
            self._first[colour.matrix],
        )

    def _collect(self) -> None:
        for key in [key for key, future in self._pending.items() if future.done()]:
            future = self._pending.pop(key)
            if not future.cancelled() and future.exception() is None:
                self._keep(key, future.result())

    def _keep(self, key: VariantKey, variant: NDArray[np.uint8]) -> None:
        self._kept[key] = variant
        while len(self._kept) > _CAPACITY:
            self._kept.popitem(last=False)


def _get_matrix(colour: Colour) -> tuple[NDArray[np.float32], tuple[float, float]]:
    """Return the weights of R, G, B in luma, and U's and V's scale against that of luma."""
    red, blue = LUMA_WEIGHTS[colour.matrix]
    reach = 1.0 if colour.full_range else 224 / 219
    weights = np.array([red, 1 - red - blue, blue], np.float32)
    return weights, (reach / (2 - 2 * blue), reach / (2 - 2 * red))
