"""Faces of still pictures, by the pipeline's own analysis: is there just one, and whose is it?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import cv2

from livefuse.errors import ConsentError, ModelError, RefusedError
from livefuse.frame import create_frame
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.safety.cover import cover_frame
from livefuse.safety.embeddings import FaceEmbedder
from livefuse.token import create_token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.face import Face, SourceFace
    from livefuse.frame import Frame
    from livefuse.runtime.session import SessionCache

MIN_FACE_PX: Final = 64
_CROP_HINT: Final = "crop the picture so that it shows one face from the front"


class FaceReader:
    """Looks at pictures (RGB uint8, height x width x 3). Safe from any thread, one at a time."""

    def __init__(self, config: Config, sessions: SessionCache, clock: Clock) -> None:
        """Take what networks are made from; none is loaded yet."""
        self._config = config
        self._sessions = sessions
        self._clock = clock
        self._lock = threading.Lock()
        self.embedder = FaceEmbedder(config.identify.model, self.embed)

    def check(self, picture_rgb: NDArray[np.uint8]) -> None:
        """Refuse a picture that does not show exactly one face that can be made out (C68).

        Raises:
            RefusedError: none, several, too small, or too much turned away.
            ModelError: a network cannot be had or failed.
        """
        faces = self._find(picture_rgb, ("detect", "align"))
        if not faces:
            raise RefusedError("there is no face in the picture", hint=_CROP_HINT)
        if len(faces) > 1:
            raise RefusedError(f"there are {len(faces)} faces in the picture", hint=_CROP_HINT)
        width_px = faces[0].track.box.width
        if width_px < MIN_FACE_PX:
            raise RefusedError(
                f"the face in the picture is {width_px:.0f} px wide, {MIN_FACE_PX} are needed",
                hint="take a larger picture",
            )
        if faces[0].mesh is None:
            raise RefusedError("the face in the picture cannot be made out", hint=_CROP_HINT)

    def embed(self, picture_rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the embedding (d,), L2-normalised, of the one face in the picture.

        Raises:
            RefusedError: there is not exactly one face.
            ModelError: a network cannot be had or failed.
        """
        faces = self._find(picture_rgb, ("detect", "align", "identify"))
        if len(faces) != 1 or faces[0].embedding is None:
            raise RefusedError("there is not exactly one face in the picture", hint=_CROP_HINT)
        return faces[0].embedding

    def _find(self, picture_rgb: NDArray[np.uint8], operations: tuple[str, ...]) -> list[Face]:
        services = Services(
            cover=cover_frame,
            cover_loading=cover_frame,
            load_source=_give_no_source,
            list_gallery=tuple,
            is_allowed=lambda _face_id: False,
        )
        token = create_token(operations, now_epoch_s=self._clock.epoch_s())
        with self._lock:
            pipeline = Pipeline(
                self._config, self._sessions, self._clock, services, every_frame=True
            )
            pipeline.prepare(token)
            state = pipeline.begin(_create_frame(picture_rgb), token)
            for name in operations:
                pipeline.run_step(state, name)
            pipeline.close()
        if state.error:
            raise ModelError(
                f"the picture cannot be looked at ({state.error})", hint="run  livefuse doctor"
            )
        return state.faces


def _create_frame(picture_rgb: NDArray[np.uint8]) -> Frame:
    """Return a frame (BT.601, limited range) with the picture, cut to even sides."""
    height, width = picture_rgb.shape[0] // 2 * 2, picture_rgb.shape[1] // 2 * 2
    frame = create_frame(width, height)
    frame.buffer[:] = cv2.cvtColor(picture_rgb[:height, :width], cv2.COLOR_RGB2YUV_I420)
    return frame


def _give_no_source(face_id: str) -> SourceFace:
    raise ConsentError(f"no face {face_id!r} here", hint="a picture is only looked at")
