"""What a swapper and an enhancer are, whatever family they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from livefuse.face import Face, SourceFace
    from livefuse.pipeline.state import FrameState


class Swapper(Protocol):
    """Puts one source's face over others. Prepared in any thread, then used by one."""

    def prepare(self, source: SourceFace) -> None:
        """Build what `source` asks for and run each network once; may take its time.

        Called once, before the first `swap`: another source gets another swapper.

        Raises:
            LivefuseError: the source cannot be used (no face in it, two), a network failed.
        """
        ...

    def swap(self, state: FrameState, face: Face) -> bool:
        """Replace `face` in `state.frame` by `parameters.blend_ratio`; True when that was done.

        False leaves the frame as it was: the face cannot be replaced (no mesh, hidden), and the
        caller covers it by other means.

        Raises:
            ModelError: a network's result cannot be used; the frame must not be shown.
        """
        ...

    def reset(self) -> None:
        """Forget the frames so far, not the source."""
        ...


class Enhancer(Protocol):
    """Makes faces clearer. One instance for one thread."""

    def prepare(self) -> None:
        """Run each network once; may take its time.

        Raises:
            ModelError: a network failed.
        """
        ...

    def enhance(self, state: FrameState, face: Face, amount: float, *, reuse: bool = False) -> bool:
        """Make `face` clearer by `amount` 0..1 (0: not at all); True when that was done.

        `reuse` lays on what the last frame gained, in the face's own crop, without running a
        network: half the frames then cost a fraction and the picture does not flicker.

        Raises:
            ModelError: a network's result cannot be used; the frame is as it was.
        """
        ...

    def reset(self) -> None:
        """Forget the frames so far."""
        ...
