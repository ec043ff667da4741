"""Face restorers that people bring: an aligned crop in, a clearer one out.

What a restorer gained (its output less its input) is kept in the crop's own space, so that a frame
may be made clearer by the gain of the frame before, without running the network.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.crop_mask import CropMask
from livefuse.pipeline.effects.paste import SHARES, SIGNED, Paster, Units
from livefuse.pipeline.effects.swap_network import take_picture
from livefuse.pipeline.effects.tiles import run_tiles
from livefuse.pipeline.effects.warp import CropBlob, get_points
from livefuse.pipeline.templates import fit_template

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.runtime.session import Network

    Floats = NDArray[np.float32]

_TEMPLATE: Final = "ffhq_512"
_KEPT_TRACKS: Final = 16
_TILE: Final = 256
_OVERLAP: Final = 16
_TILED_SIDES: Final = (_TILE, 2 * _TILE - _OVERLAP)


class EnhanceFamily(NamedTuple):
    """What is true of all networks of a family; what goes in and what comes out have its units.

    `weighted`: it has a second input that sets how true to its input it stays, 0..1. `tiled`: it
    takes pictures of any size in tiles, and answers with larger ones.
    """

    units: Units = SIGNED
    weighted: bool = False
    tiled: bool = False


FAMILIES: Final[dict[str, EnhanceFamily]] = {
    "gfpgan": EnhanceFamily(),
    "codeformer": EnhanceFamily(weighted=True),
    "restoreformer": EnhanceFamily(),
    "gpen": EnhanceFamily(),
    "real_esrgan": EnhanceFamily(SHARES, tiled=True),
}


class _Gain:
    """What a track's last run made of its crop; its gain is worked out when it is asked for.

    Its own input is kept with it: another face's crop is read in between.
    """

    def __init__(self, size: int) -> None:
        self.blob: Floats = np.empty((1, 3, size, size), np.float32)
        self._made: Floats | None = None
        self._is_difference = False

    def note(self, made: Floats) -> None:
        """Remember what the network made of `blob`, (3, size, size)."""
        self._made, self._is_difference = made, False

    def add_to(self, blob: Floats) -> Floats | None:
        """Add what was gained to another crop, in place, and return it; None when nothing was."""
        if self._made is None:
            return None
        if not self._is_difference:
            self._made -= self.blob[0]
            self._is_difference = True
        picture: Floats = blob[0]
        picture += self._made
        return picture


class _Crop:
    """What one size of crop needs."""

    def __init__(self, size: int, template: str, network: Network, context: StepContext) -> None:
        self.size = size
        self.blob = CropBlob(size, network.model.mean, network.model.std)
        self.mask = CropMask(context.config.mask.shape, template, size)


class NetworkEnhancer:
    """One restorer. See `families.Enhancer`."""

    def __init__(self, network: Network, context: StepContext) -> None:
        """Take a network of one of `FAMILIES`."""
        model = network.model
        self._network = network
        self._family = FAMILIES[model.family]
        self._template = model.template or _TEMPLATE
        self._fidelity = context.config.enhance.fidelity
        side = network.input_shapes[self._find_picture()][2]
        fixed = side if side > 0 else model.size
        sides = _TILED_SIDES if self._family.tiled else (fixed,)
        self._crops = [_Crop(size, self._template, network, context) for size in sides]
        self._paster = Paster()
        self._gains: OrderedDict[tuple[int, int], _Gain] = OrderedDict()
        # Any live frame may be followed by one that has no time.
        self._keeps_gains = not context.every_frame or context.config.enhance.every_n > 1

    def prepare(self) -> None:
        """See `Enhancer.prepare`."""
        self._network.warm_up()

    def enhance(self, state: FrameState, face: Face, amount: float, *, reuse: bool = False) -> bool:
        """See `Enhancer.enhance`."""
        points = get_points(face)
        if points is None or amount <= 0.0:
            return False
        crop = self._choose_crop(points)
        to_crop = fit_template(points, self._template, crop.size)
        mask = crop.mask.draw(state, face, to_crop, amount)
        gain = self._get_gain((face.track.track_id, crop.size))
        rgb = None
        if reuse and gain is not None:
            rgb = gain.add_to(crop.blob.read(state.frame, to_crop))
        if rgb is None:
            blob = crop.blob.read(state.frame, to_crop, None if gain is None else gain.blob)
            rgb = self._forward(blob)
            if gain is not None:
                gain.note(rgb)
        self._paster.paste(state.frame, rgb, to_crop, mask, self._family.units)
        return True

    def reset(self) -> None:
        """See `Enhancer.reset`."""
        self._gains.clear()

    def _choose_crop(self, points: Floats) -> _Crop:
        """Return the smallest crop that shows the face in its own size."""
        for crop in self._crops:
            if fit_template(points, self._template, crop.size).scale >= 1.0:
                return crop
        return self._crops[-1]

    def _get_gain(self, key: tuple[int, int]) -> _Gain | None:
        """Return what is kept of a track's crops of one size, None when none is to be kept."""
        if not self._keeps_gains:
            return None
        if key not in self._gains:
            self._gains[key] = _Gain(key[1])
        self._gains.move_to_end(key)
        if len(self._gains) > _KEPT_TRACKS:
            self._gains.popitem(last=False)
        return self._gains[key]

    def _forward(self, blob: Floats) -> Floats:
        """Return the clearer crop, R, G, B, (3, size, size)."""
        if self._family.tiled:
            large = run_tiles(lambda tile: self._run(tile)[0], blob, _TILE, _OVERLAP)
            size = blob.shape[2:]
            planes = [cv2.resize(p, size, interpolation=cv2.INTER_AREA) for p in large]
            return np.stack(planes)
        return take_picture(self._run(blob))

    def _run(self, blob: Floats) -> list[Floats]:
        names, types = self._network.input_names, self._network.input_types
        picture = self._find_picture()
        feeds: dict[str, NDArray[Any]] = {names[picture]: blob.astype(types[picture], copy=False)}
        if self._family.weighted:
            for name, kind in zip(names, types, strict=True):
                if name != names[picture]:
                    feeds[name] = np.array([self._fidelity], kind)
        return self._network.run(feeds)

    def _find_picture(self) -> int:
        """Return the place of the input that takes the crop: the one with four dimensions."""
        shapes = self._network.input_shapes
        return next((i for i, shape in enumerate(shapes) if len(shape) == 4), 0)  # noqa: PLR2004 - n, c, h, w


def create_network_enhancer(context: StepContext) -> NetworkEnhancer:
    """Return a restorer by the network `enhance.model`; it is loaded.

    Raises:
        ModelError: the network cannot be had.
    """
    network = context.sessions.get(context.config.enhance.model, context.config.enhance.threads)
    return NetworkEnhancer(network, context)
