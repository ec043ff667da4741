"""The embedded swap: another person's features on the wearer's head, in the wearer's own light.

    source photo -> UV -> divided by its light = detail (mesh_texture), made to suit (mesh_variant)
    frame -> mesh_raster: which px of the texture is where
          -> mesh_light: the wearer's low band, and what stays in front
          -> mesh_render: warp, times the low band, blend

No network of its own: the mesh that align found is all it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import ConfigError
from livefuse.pipeline.effects.mesh_glasses import GlassesWatch, keep_frames
from livefuse.pipeline.effects.mesh_lids import draw_closed_lids
from livefuse.pipeline.effects.mesh_light import LightMeter, get_black
from livefuse.pipeline.effects.mesh_match import (
    EVERY_N,
    FaceMatch,
    compare,
    measure_source_contrast,
)
from livefuse.pipeline.effects.mesh_mend import LUMA_RGB
from livefuse.pipeline.effects.mesh_occlusion import place_occlusion
from livefuse.pipeline.effects.mesh_raster import create_view
from livefuse.pipeline.effects.mesh_relight import Relighter
from livefuse.pipeline.effects.mesh_render import MeshRenderer, compute_rim
from livefuse.pipeline.effects.mesh_texture import build_texture
from livefuse.pipeline.effects.mesh_variant import LUMA_ONE, VariantStore
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from livefuse.face import Face, SourceFace
    from livefuse.frame import Colour, Frame
    from livefuse.pipeline.effects.mesh_light import Light
    from livefuse.pipeline.effects.mesh_raster import MeshView
    from livefuse.pipeline.effects.mesh_render import Layers
    from livefuse.pipeline.state import FrameState

MAX_YAW_RAD: Final = 1.05
MIN_FACE_PX: Final = 48.0
_HOLES: Final = (EYE_LEFT, EYE_RIGHT, LIPS_INNER)


class _Source:
    """A source that is ready: its texture, the first variants, its luma for comparisons."""

    def __init__(self, store: VariantStore) -> None:
        self.store = store
        luma = store.texture.detail @ LUMA_RGB * LUMA_ONE
        self.luma = np.clip(np.rint(luma), 0, 255).astype(np.uint8)


@dataclass(slots=True, eq=False)
class _Worn:
    """What is kept of one track: all of it goes with the track."""

    source: _Source
    match: FaceMatch
    colour: Colour
    shown: NDArray[np.uint8]
    meter: LightMeter = field(default_factory=LightMeter)
    glasses: GlassesWatch = field(default_factory=GlassesWatch)
    frames: int = 0


class MeshSwapper:
    """Swaps faces by their meshes. `prepare` from any thread; `swap` belongs to one."""

    def __init__(
        self,
        find_mesh: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
        aside: Executor,
        *,
        grain: bool = True,
    ) -> None:
        """`find_mesh` gives the mesh (px) of the one face in an RGB picture, or raises.

        `aside` builds textures; `grain` gives the source the noise of the wearer's camera.
        """
        self._find_mesh = find_mesh
        self._aside = aside
        self._grain = grain
        self._source: _Source | None = None
        self._worn: dict[int, _Worn] = {}
        self._renderer = MeshRenderer()
        self._relighter = Relighter()

    def prepare(self, source: SourceFace) -> None:
        """Find the face of `source` and build its texture; 0.5 s.

        Raises:
            ConfigError: the picture holds no face that can be used.
            LivefuseError: `find_mesh` found none, or several.
        """
        texture = build_texture(source.picture_rgb, self._find_mesh(source.picture_rgb))
        if texture is None:
            raise ConfigError(
                "the source picture's face is too small, too dark or cut off",
                hint="take a photo from the front, in even light, the face at least 250 px wide",
            )
        self._source = _Source(VariantStore(texture, self._aside))

    def swap(self, state: FrameState, face: Face) -> bool:
        """Put the source's face over `face` in place; False when it cannot be shown well enough.

        Then nothing was painted, and the face must be hidden by other means. Never raises for
        what a mesh or a picture may be.
        """
        source = self._source
        amount = state.token.parameters.blend_ratio
        if amount <= 0.0:
            return True
        if source is None or face.mesh is None:
            return False
        view = create_view(face.mesh, state.frame.width, state.frame.height)
        if view is None or view.face_px < MIN_FACE_PX or abs(view.yaw_rad) > MAX_YAW_RAD:
            return False
        worn = self._get_worn(state, face, source, view)
        hidden = place_occlusion(face, view)
        light = worn.meter.measure(view, state.frame, hidden)
        variant = worn.source.store.get(worn.match.key)
        worn.shown = worn.shown if variant is None else variant
        if light is None:
            return False
        weights = _weigh(view, light, worn.source)
        if hidden is not None:
            weights = np.asarray(weights * (1 - hidden), np.uint8)
        layers = self._render(view, light, worn, state.frame, weights)
        self._renderer.lay(view, layers, state.frame, amount)
        return True

    def reset(self) -> None:
        """Forget the faces so far."""
        self._worn.clear()

    def _get_worn(self, state: FrameState, face: Face, source: _Source, view: MeshView) -> _Worn:
        ids = {other.track.track_id for other in state.faces}
        if len(self._worn) > len(ids) or not self._worn.keys() <= ids:
            self._worn = {key: worn for key, worn in self._worn.items() if key in ids}
        worn = self._worn.get(face.track.track_id)
        colour = state.frame.colour
        if worn is None or worn.source is not source or worn.colour != colour:
            shown = source.store.get_first(colour)
            worn = _Worn(source, FaceMatch(view.face_px, colour), colour, shown)
            self._worn[face.track.track_id] = worn
        return worn

    def _render(
        self,
        view: MeshView,
        light: Light,
        worn: _Worn,
        frame: Frame,
        weights: NDArray[np.uint8],
    ) -> Layers:
        layers = self._renderer.warp(view, worn.shown)
        self._renderer.fade(view, layers, weights)
        self._renderer.open_holes(view, layers, _HOLES)
        worn.frames += 1
        must_measure = worn.frames % EVERY_N == 1
        wearer = frame.y[view.box.y0 : view.box.y1, view.box.x0 : view.box.x1]
        if worn.glasses.share > 0.0:
            planes = (wearer, layers.alpha)
            keep_frames(view, light, planes, worn.glasses.share, get_black(frame))
        grain = worn.match.grain if self._grain and not must_measure else 0.0
        self._relighter.light(view, layers, light, frame, grain)
        if must_measure:
            self._measure(view, light, worn, layers, wearer)
            worn.glasses.look(view, wearer, get_black(frame))
        return layers

    def _measure(
        self,
        view: MeshView,
        light: Light,
        worn: _Worn,
        layers: Layers,
        wearer: NDArray[np.uint8],
    ) -> None:
        found = compare(view, layers.luma, layers.alpha, wearer)
        contrast = measure_source_contrast(worn.source.luma, light)
        worn.match.follow(view, light, (contrast, worn.source.store.texture.saturation), found)


def _weigh(view: MeshView, light: Light, source: _Source) -> NDArray[np.uint8]:
    """Return what speaks for showing the source, uint8 on the view's grid."""
    keep = cv2.resize(light.keep, view.visible.shape[::-1], interpolation=cv2.INTER_LINEAR)
    weights = compute_rim(view) * view.visible * (1 - np.asarray(keep))
    lids = draw_closed_lids(view, source.store.texture.eyes_open)
    if lids is not None:
        weights *= 1 - lids
    return np.asarray(np.clip(weights * 255, 0, 255), np.uint8)
