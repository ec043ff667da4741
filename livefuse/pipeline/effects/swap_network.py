"""Swapper networks that people bring: an aligned crop and a source in, the other face out.

A family says what a network is told of the source and what its output's numbers mean; the rest
(size, template, mean, deviation, needs) is the manifest's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.errors import ModelError, RefusedError
from livefuse.frame import create_frame
from livefuse.geometry import Similarity
from livefuse.pipeline.effects.colour_match import ColourMatch, add_difference, take_samples
from livefuse.pipeline.effects.crop_mask import CropMask
from livefuse.pipeline.effects.paste import SHARES, SIGNED, Paster, Units
from livefuse.pipeline.effects.swap_source import SourcePicture, SourceReader, normalise
from livefuse.pipeline.effects.warp import CropBlob, get_points
from livefuse.pipeline.landmarks import convert_mesh_to_5
from livefuse.pipeline.templates import fit_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.face import Face, SourceFace
    from livefuse.frame import Frame
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.runtime.session import Network

    Floats = NDArray[np.float32]
    ReadSource = Callable[[SourceReader, SourcePicture], Floats]
    FindMesh = Callable[[NDArray[np.uint8]], Floats]

_WARM_UP_SIDE: Final = 64
_LEAST_MASK: Final = 0.02  # of the crop: with less painted the face would be as good as bare


class SwapFamily(NamedTuple):
    """How the source is told, and what the output's numbers are."""

    read_source: ReadSource
    units: Units = SHARES


def _read_normalised(reader: SourceReader, source: SourcePicture) -> Floats:
    return normalise(reader.read_embedding(source))


def _read_converted(reader: SourceReader, source: SourcePicture) -> Floats:
    return normalise(reader.read_converted(source))


def _read_picture(template: str, size: int) -> ReadSource:
    def read(reader: SourceReader, source: SourcePicture) -> Floats:
        del reader
        rgb = source.crop(template, size).transpose(2, 0, 1)[None]
        return np.ascontiguousarray(rgb, np.float32) / np.float32(255)

    return read


FAMILIES: Final[dict[str, SwapFamily]] = {
    "inswapper": SwapFamily(SourceReader.read_mapped),
    "simswap": SwapFamily(_read_converted),
    "ghost": SwapFamily(SourceReader.read_converted, SIGNED),
    "hififace": SwapFamily(_read_converted, SIGNED),
    "hyperswap": SwapFamily(_read_normalised, SIGNED),
    "blendswap": SwapFamily(_read_picture("arcface_112_v2", 112)),
    "uniface": SwapFamily(_read_picture("ffhq_512", 256), SIGNED),
}


class NetworkSwapper:
    """One source's face by one network. See `families.Swapper`."""

    def __init__(self, network: Network, context: StepContext, find_mesh: FindMesh) -> None:
        """Take a network of one of `FAMILIES`; `find_mesh` gives the mesh (px) of an RGB picture.

        Raises:
            ModelError: its inputs are not a swapper's.
        """
        model = network.model
        self._network = network
        self._find_mesh = find_mesh
        self._family = FAMILIES[model.family]
        self._reader = SourceReader(model, context.sessions, context.config)
        self._target, self._source = _find_inputs(network)
        shape = network.input_shapes[self._target]
        self._size = shape[2] if shape[2] > 0 else model.size
        self._template = model.template
        self._blob = CropBlob(self._size, model.mean, model.std)
        self._mask = CropMask(context.config.mask.shape, model.template, self._size)
        self._paster = Paster()
        self._match = ColourMatch() if context.config.swap.match_colour else None
        self._mean = np.array(model.mean, np.float32).reshape(3, 1, 1)
        self._std = np.array(model.std, np.float32).reshape(3, 1, 1)
        self._told: Floats | None = None

    def prepare(self, source: SourceFace) -> None:
        """See `Swapper.prepare`."""
        if source.kind == "drawing":
            raise RefusedError(
                f"{self._network.model.name} takes photos only, not the drawing {source.face_id}",
                hint='set swap.model = "mesh" for drawn avatars',
            )
        mesh = self._find_mesh(source.picture_rgb)
        picture = SourcePicture(source.picture_rgb, convert_mesh_to_5(mesh))
        told = self._family.read_source(self._reader, picture)
        self._told = told.astype(self._network.input_types[self._source])
        side = _WARM_UP_SIDE
        self._forward(self._blob.read(_create_ramp(side), Similarity(self._size / side)))

    def swap(self, state: FrameState, face: Face) -> bool:
        """See `Swapper.swap`."""
        points = get_points(face)
        if points is None:
            return False
        to_crop = fit_template(points, self._template, self._size)
        mask = self._mask.draw(state, face, to_crop, state.token.parameters.blend_ratio)
        if cv2.countNonZero(mask) < _LEAST_MASK * mask.size:
            return False
        blob = self._blob.read(state.frame, to_crop)
        face_rgb = self._forward(blob)
        self._match_colour(face.track.track_id, blob[0], face_rgb, mask)
        self._paster.paste(state.frame, face_rgb, to_crop, mask, self._family.units)
        return True

    def reset(self) -> None:
        """See `Swapper.reset`."""
        if self._match is not None:
            self._match.reset()

    def _match_colour(
        self, track_id: int, wearer: Floats, face_rgb: Floats, mask: NDArray[np.uint8]
    ) -> None:
        """Give `face_rgb` the tone that `wearer` (as the network is fed) has along the rim."""
        if self._match is None:
            return
        units = self._family.units
        difference = self._match.get(track_id)
        if difference is None:
            before = take_samples(wearer, self._std, self._mean)
            after = take_samples(face_rgb, units.scale, units.offset)
            difference = self._match.follow(track_id, before, after, mask)
        if difference is not None:
            add_difference(face_rgb, difference, units.scale)

    def _forward(self, blob: Floats) -> Floats:
        """Return R, G, B, (3, size, size) in the family's units, of the face that is made."""
        if self._told is None:
            raise ModelError("the swapper has no source yet", hint="wait until the job is ready")
        names, types = self._network.input_names, self._network.input_types
        feeds = {
            names[self._target]: blob.astype(types[self._target], copy=False),
            names[self._source]: self._told,
        }
        return take_picture(self._network.run(feeds))


def take_picture(outputs: list[Floats]) -> Floats:
    """Return the first picture (3, height, width) of the first output, writable float32."""
    picture = np.asarray(outputs[0][0], np.float32)
    return picture if picture.flags.writeable else picture.copy()


def _find_inputs(network: Network) -> tuple[int, int]:
    """Return the places of `target` and `source` among the inputs: by name, else as insightface."""
    names = [name.lower() for name in network.input_names]
    if len(names) != 2:  # noqa: PLR2004 - a target and a source
        raise ModelError(
            f"{network.model.name} takes {len(names)} inputs, a swapper takes two",
            hint="set swap.model to a swapper of  livefuse models list",
        )
    target = next((i for i, name in enumerate(names) if "target" in name), None)
    source = next((i for i, name in enumerate(names) if "source" in name), None)
    if target is None or source is None:
        return 0, 1
    return target, source


def _create_ramp(side: int) -> Frame:
    """Return a picture that is not of one colour: a flat answer to it is a fault."""
    frame = create_frame(side, side)
    frame.y[:] = np.linspace(32, 220, side).astype(np.uint8)
    return frame


def create_network_swapper(context: StepContext, find_mesh: FindMesh) -> NetworkSwapper:
    """Return a swapper by the network `swap.model`; it is loaded.

    Raises:
        ModelError: the network cannot be had.
    """
    network = context.sessions.get(context.config.swap.model, context.config.swap.threads)
    return NetworkSwapper(network, context, find_mesh)
