"""The operation `swap`: another face in place of the chosen ones, by the configured family.

A chosen face is never bare: where it cannot be replaced it is covered as `blur` does. A swap
begins out of that cover within three frames, mixed with it; when it had to give way to the cover,
the cover stays for a second at least, so that nothing flickers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import cv2

from livefuse.errors import ConfigError
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.portrait import analyse_portrait
from livefuse.pipeline.effects.avatar import AvatarSwapper, is_avatar
from livefuse.pipeline.effects.blur import FaceBlur
from livefuse.pipeline.effects.mesh_swap import MeshSwapper
from livefuse.pipeline.effects.occlusion import create_occlusion
from livefuse.pipeline.effects.swap_network import FAMILIES, create_network_swapper
from livefuse.pipeline.source_keeper import SourceKeeper

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.face import Face, Track
    from livefuse.frame import Frame
    from livefuse.pipeline.effects.families import Swapper
    from livefuse.pipeline.effects.occlusion import Occlusion
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

    FindMesh = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    Create = Callable[[StepContext, FindMesh], Swapper]

_FADE_FRAMES: Final = 3
_MIN_COVER_S: Final = 1.0
_MOST_OCCLUDED: Final = 0.75  # of a face: with less of it to be seen a swap makes no sense


class _Shown:
    """How much of its swap a track shows (0: the cover, 1: the swap), and how long it must not."""

    def __init__(self) -> None:
        self.share = 0.0
        self.wait_s = 0.0


class _Fade:
    """Copies of a picture with a face under its cover, to be mixed with the swapped one."""

    def __init__(self, cover: FaceBlur) -> None:
        self._cover = cover
        self._frame: Frame | None = None

    def copy(self, frame: Frame, track: Track) -> NDArray[np.uint8]:
        """Return the planes of `frame`, `track` covered in them; kept until the next call."""
        kept = self._frame
        if kept is None or kept.buffer.shape != frame.buffer.shape:
            kept = self._frame = create_frame(frame.width, frame.height)
        kept.buffer[:] = frame.buffer
        kept.colour = frame.colour
        self._cover.cover(kept, [track])
        return kept.buffer


class SwapStep:
    """Each chosen face replaced, or covered. See `state.Step`."""

    def __init__(
        self, keeper: SourceKeeper[Swapper], cover: FaceBlur, occlusion: Occlusion | None = None
    ) -> None:
        self._keeper = keeper
        self._cover = cover
        self._fade = _Fade(cover)
        self._occlusion = occlusion
        self._shown: dict[int, _Shown] = {}
        self._is_first = True

    def prepare(self, token: Token) -> None:
        """See `Step.prepare`."""
        self._keeper.set_source(token.source_face)
        if self._occlusion is not None:
            self._occlusion.prepare()

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        self._keeper.follow(state.token.source_face)
        state.source_shown = self._keeper.shown
        if state.cover_reason:
            state.did = "left to the whole cover"
            return
        if not state.token.parameters.shows_source:
            state.did = "off"
            return
        if state.is_cut:
            self.reset()
        chosen = state.chosen
        ids = {face.track.track_id for face in chosen}
        self._shown = {key: shown for key, shown in self._shown.items() if key in ids}
        for face in chosen:
            self._replace(state, face)
        unknown = [face.track for face in state.faces if face.is_doubtful and not face.chosen]
        state.covers = (*state.covers, *self._cover.cover(state.frame, unknown))
        self._is_first = False
        done = sum(face.is_replaced for face in chosen)
        state.did = f"swapped {done}" + (
            f", covered {len(chosen) - done}" if done < len(chosen) else ""
        )
        if self._keeper.problem:
            state.did += f"; {self._keeper.problem}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._shown.clear()
        self._is_first = True
        if self._keeper.made is not None:
            self._keeper.made.reset()

    def _replace(self, state: FrameState, face: Face) -> None:
        track_id = face.track.track_id
        shown = self._shown.setdefault(track_id, _Shown())
        shown.wait_s -= state.dt_s
        # With a new scene the swap is there at once; a face that walks in fades in.
        share = 1.0 if self._is_first else min(1.0, shown.share + 1.0 / _FADE_FRAMES)
        is_waiting = shown.wait_s > 0.0
        covered = None if is_waiting or share >= 1.0 else self._fade.copy(state.frame, face.track)
        if is_waiting or not self._swap(state, face):
            if shown.share > 0.0:
                shown.share, shown.wait_s = 0.0, _MIN_COVER_S
            state.covers = (*state.covers, *self._cover.cover(state.frame, [face.track]))
            return
        face.is_replaced = True
        shown.share = share
        if covered is not None:
            # Between the cover and the swapped face: the wearer's own is in neither.
            cv2.addWeighted(
                state.frame.buffer, share, covered, 1.0 - share, 0.0, dst=state.frame.buffer
            )

    def _swap(self, state: FrameState, face: Face) -> bool:
        swapper = self._keeper.made
        if swapper is None:
            return False
        if self._occlusion is not None and self._occlusion.find(state.frame, face) > _MOST_OCCLUDED:
            return False
        return swapper.swap(state, face)


def _create_mesh_swapper(context: StepContext, find_mesh: FindMesh) -> Swapper:
    return MeshSwapper(find_mesh, context.aside, grain=context.config.swap.grain)


# A swapper that no network of the user's makes, by the name in swap.model.
SWAPPERS: Final[dict[str, Create]] = {"mesh": _create_mesh_swapper}


def create_swap_step(context: StepContext) -> SwapStep:
    """Return the step; its networks are loaded.

    Raises:
        ModelError: a network cannot be had.
        ConfigError: it is not a swapper, or the cover's picture is missing.
    """

    def find_mesh(picture_rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        return analyse_portrait(picture_rgb, context.sessions, context.config).mesh

    create = partial(_choose_family(context), context, find_mesh)
    keeper = SourceKeeper(context.aside, partial(build_swapper, context, create))
    return SwapStep(keeper, FaceBlur(context.config.blur), create_occlusion(context))


def build_swapper(context: StepContext, create: Callable[[], Swapper], face_id: str) -> Swapper:
    """Return a swapper that shows the face `face_id`, by `create` unless it is an avatar.

    Raises:
        LivefuseError: the source cannot be used.
    """
    if not face_id:
        raise ConfigError(
            "a swap needs a source face", hint="set source_face to an enrolled face or avatar"
        )
    if is_avatar(face_id):
        avatar = AvatarSwapper()
        avatar.prepare_by_id(face_id)
        return avatar
    source = context.services.load_source(face_id)
    swapper = create()
    swapper.prepare(source)
    return swapper


def _choose_family(context: StepContext) -> Create:
    name = context.config.swap.model
    if name in SWAPPERS:
        return SWAPPERS[name]
    network = context.sessions.get(name, context.config.swap.threads)
    if network.model.family not in FAMILIES:
        raise ConfigError(
            f"the model {name} does not swap faces",
            hint=f"set swap.model to {', '.join(SWAPPERS)} or to a network of one of the families "
            f"{', '.join(FAMILIES)}",
        )
    return create_network_swapper
