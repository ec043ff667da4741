"""The wearer's light on warped detail, in the planes: luma at full size, colour at half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_light import get_black
from livefuse.pipeline.effects.mesh_variant import LUMA_ONE, TINT_ONE
from livefuse.pipeline.planes import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.pipeline.effects.mesh_light import Light
    from livefuse.pipeline.effects.mesh_raster import MeshView
    from livefuse.pipeline.effects.mesh_render import Layers

_TILE: Final = 1024
_NOISE_SD: Final = 24.0
_SEED: Final = 20261130


class Relighter:
    """Multiplies layers by a wearer's low band and adds grain. One instance for one thread."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._random = np.random.default_rng(_SEED)
        noise = self._random.normal(128.0, _NOISE_SD, (_TILE, _TILE))
        self._noise = np.clip(np.rint(noise), 0, 255).astype(np.uint8)

    def light(
        self, view: MeshView, layers: Layers, light: Light, frame: Frame, grain: float
    ) -> None:
        """Turn detail (see mesh_variant) into planes of `frame`'s kind, in place.

        `grain` is the standard deviation, in levels, of noise added to luma.
        """
        self._light_chroma(view, layers, light)
        box = view.box
        low = np.clip(np.rint(light.low[:, :, 0]), 0, 255).astype(np.uint8)
        full = self._scratch.get("low", box.height, box.width)
        cv2.resize(low, (box.width, box.height), dst=full, interpolation=cv2.INTER_LINEAR)
        cv2.multiply(layers.luma, full, dst=layers.luma, scale=1 / LUMA_ONE)
        self._add_grain(layers.luma, get_black(frame), grain)

    def _add_grain(self, luma: NDArray[np.uint8], black: float, grain: float) -> None:
        height, width = luma.shape
        if grain <= 0 or height > _TILE or width > _TILE:
            cv2.convertScaleAbs(luma, dst=luma, alpha=1.0, beta=black)
            return
        x = int(self._random.integers(_TILE - width + 1))
        y = int(self._random.integers(_TILE - height + 1))
        tile = self._noise[y : y + height, x : x + width]
        share = grain / _NOISE_SD
        cv2.addWeighted(luma, 1.0, tile, share, black - 128 * share, dst=luma)

    def _light_chroma(self, view: MeshView, layers: Layers, light: Light) -> None:
        """U = D_y T_u + T_y p_u and V alike, less 128."""
        box = view.box
        size = (box.width // 2, box.height // 2)
        detail = self._get("detail", size)
        cv2.resize(layers.luma, size, dst=layers.half_alpha, interpolation=cv2.INTER_AREA)
        np.multiply(layers.half_alpha, np.float32(1 / LUMA_ONE), out=detail)
        low = cv2.resize(light.low, size, interpolation=cv2.INTER_LINEAR)
        luma, low_u, low_v = (np.asarray(plane, np.float32) for plane in cv2.split(low))
        tint = self._get("tint", size)
        for plane, own in ((layers.u, low_u), (layers.v, low_v)):
            np.multiply(plane, np.float32(1 / TINT_ONE), out=tint)
            tint -= np.float32(128 / TINT_ONE)
            tint *= luma
            tint += np.multiply(detail, own, out=own)
            cv2.convertScaleAbs(tint, dst=plane, alpha=1.0, beta=128.0)

    def _get(self, name: str, size: tuple[int, int]) -> NDArray[np.float32]:
        flat = self._scratch.get(name, size[1], size[0] * 4)
        return flat.view(np.float32).reshape(size[1], size[0])
