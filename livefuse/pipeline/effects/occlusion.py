"""What stands before a face: by an occluder network (XSeg), a parser (BiSeNet), or both.

Fills `face.occlusion` and `face.occlusion_box`, which whoever paints on faces leaves out: a hand
before the face stays a hand.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import ConfigError
from livefuse.face import Box
from livefuse.geometry import (
    Similarity,
    clip_box,
    create_matrix,
    invert_similarity,
)
from livefuse.pipeline.effects.warp import CropBlob, get_points
from livefuse.pipeline.planes import Scratch
from livefuse.pipeline.templates import fit_template
from livefuse.pipeline.topology import OVAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.config import MaskConfig
    from livefuse.face import Face
    from livefuse.frame import Frame
    from livefuse.pipeline.state import StepContext
    from livefuse.runtime.session import Network

    Floats = NDArray[np.float32]

_TEMPLATE: Final = "ffhq_512"
_SOFT_SIGMA: Final = 5.0 / 256  # of the crop's side
_OPAQUE: Final = 255
# Of BiSeNet's 19 classes: skin, brows, eyes, nose, mouth, lips; glasses are a matter of taste.
_FACE_CLASSES: Final = (1, 2, 3, 4, 5, 10, 11, 12, 13)
_GLASSES: Final = 6
_CLASSES: Final = 19
_LOOK: Final = 48
_CORE: Final = 0.8  # of the half of the box: the ellipse that counts as the face


def _read_xseg(network: Network, blob: Floats) -> Floats:
    """Return the share 0..1 of each px that is bare face, (size, size); B, G, R in rows go in."""
    bgr = np.ascontiguousarray(blob[:, ::-1].transpose(0, 2, 3, 1))
    visible = network.run({network.input_names[0]: bgr})[0]
    return np.clip(visible.reshape(visible.shape[1:3]), 0.0, 1.0)


def _create_parser_reader(face_classes: tuple[int, ...]) -> Callable[[Network, Floats], Floats]:
    others = [index for index in range(_CLASSES) if index not in face_classes]

    def read(network: Network, blob: Floats) -> Floats:
        # Every other px is enough for a mask that is softened over 10, at a quarter of the cost.
        scores = network.run({network.input_names[0]: blob})[0][0, :, ::2, ::2]
        is_face = scores[list(face_classes)].max(axis=0) > scores[others].max(axis=0)
        return np.asarray(is_face, np.float32)

    return read


class _Reader:
    """One network on a face's crop."""

    def __init__(self, network: Network, read: Callable[[Network, Floats], Floats]) -> None:
        model = network.model
        self._network = network
        self._read = read
        self._size = model.size
        self._template = model.template or _TEMPLATE
        self._blob = CropBlob(self._size, model.mean, model.std)

    def prepare(self) -> None:
        self._network.warm_up()

    def find(
        self, frame: Frame, points: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint8], Similarity]:
        """Return what is not bare face, uint8 square, and the way from its px to the frame's."""
        to_crop = fit_template(points, self._template, self._size)
        visible = self._read(self._network, self._blob.read(frame, to_crop))
        ratio = visible.shape[0] / self._size
        visible = np.asarray(cv2.GaussianBlur(visible, (0, 0), _SOFT_SIGMA * len(visible)))
        hidden = np.rint(2 * _OPAQUE * (1.0 - np.clip(visible, 0.5, 1.0))).astype(np.uint8)
        a, b, tx, ty = to_crop
        shift = (ratio - 1.0) / 2
        small = Similarity(a * ratio, b * ratio, tx * ratio + shift, ty * ratio + shift)
        return hidden, invert_similarity(small)


class Occlusion:
    """Finds what stands before faces. One instance for one thread."""

    def __init__(
        self, occluder: Network | None, parser: Network | None, *, keeps_glasses: bool
    ) -> None:
        """Take one network or two; with `keeps_glasses` the wearer's stay, as a hand does."""
        classes = _FACE_CLASSES if keeps_glasses else (*_FACE_CLASSES, _GLASSES)
        self._readers = []
        if occluder is not None:
            self._readers.append(_Reader(occluder, _read_xseg))
        if parser is not None:
            self._readers.append(_Reader(parser, _create_parser_reader(classes)))
        self._scratch = Scratch()
        self._core = np.zeros((_LOOK, _LOOK), np.uint8)
        middle, half = _LOOK // 2, round(_CORE * _LOOK / 2)
        cv2.ellipse(self._core, ((middle, middle), (2 * half, 2 * half), 0), _OPAQUE, -1)

    def prepare(self) -> None:
        """Run each network once.

        Raises:
            ModelError: a network failed.
        """
        for reader in self._readers:
            reader.prepare()

    def find(self, frame: Frame, face: Face) -> float:
        """Fill the face's `occlusion`; return the share 0..1 of its middle that is hidden.

        Raises:
            ModelError: a network failed.
        """
        points = get_points(face)
        box = _find_box(face, frame)
        if points is None or box.width < 2.0 or box.height < 2.0:  # noqa: PLR2004 - nothing to see
            return 0.0
        height, width = int(box.height), int(box.width)
        occlusion = np.zeros((height, width), np.uint8)
        laid = self._scratch.get("laid", height, width)
        for reader in self._readers:
            hidden, to_frame = reader.find(frame, points)
            moved = to_frame._replace(tx=to_frame.tx - box.x0, ty=to_frame.ty - box.y0)
            matrix = create_matrix(moved)
            cv2.warpAffine(hidden, matrix, (width, height), dst=laid, flags=cv2.INTER_LINEAR)
            cv2.max(occlusion, laid, dst=occlusion)
        face.occlusion, face.occlusion_box = occlusion, box
        look = cv2.resize(occlusion, (_LOOK, _LOOK), interpolation=cv2.INTER_AREA)
        return float(cv2.mean(look, mask=self._core)[0]) / _OPAQUE


def _find_box(face: Face, frame: Frame) -> Box:
    """Return the face's bounds in whole px of the frame: the mesh's oval, else the track's box."""
    box = face.track.box
    if face.mesh is not None:
        low, high = face.mesh[OVAL, :2].min(axis=0), face.mesh[OVAL, :2].max(axis=0)
        box = Box(float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    whole = Box(math.floor(box.x0), math.floor(box.y0), math.ceil(box.x1), math.ceil(box.y1))
    return clip_box(whole, frame.width, frame.height)


def create_occlusion(context: StepContext) -> Occlusion | None:
    """Return what finds occluders as `mask.occluder` and `mask.parser` say, None when neither does.

    Raises:
        ModelError: a network cannot be had.
        ConfigError: it is neither.
    """
    config = context.config.mask
    occluder = _get_network(context, config, config.occluder, "xseg", "mask.occluder")
    parser = _get_network(context, config, config.parser, "bisenet", "mask.parser")
    if occluder is None and parser is None:
        return None
    # A network makes a face with glasses on; a mesh's texture has none to give.
    return Occlusion(occluder, parser, keeps_glasses=context.config.swap.model == "mesh")


def _get_network(
    context: StepContext, config: MaskConfig, name: str, family: str, key: str
) -> Network | None:
    if not name:
        return None
    network = context.sessions.get(name, config.threads)
    if network.model.family != family:
        raise ConfigError(
            f"the model {name} cannot be {key}", hint=f"it takes a model of the family {family}"
        )
    return network
