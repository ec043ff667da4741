"""Whether a face is seen that should be covered, in every picture of a recording.

Two judges, neither of them the job's own settings:
    likeness   each picture is compared with the camera's own of that moment, around the face: its
               fine structure must not be the wearer's. The counter says which picture that is.
    detector   CenterFace at 640 px looks at every tenth picture and at the first ones after each
               change. With blur it must find nobody; where it does, likeness has the last word.

With an avatar faces are to be seen; there the detector judges only pictures without a counter,
which are covered whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import av
import cv2
import msgspec
import numpy as np

from livefuse.config import Config
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.detect_step import create_detector
from livefuse.runtime.session import SessionCache
from tests.measure import get_luma

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.chaos.judge import Seen

SAME = 0.5
"""From this correlation of fine structure on it is the wearer's face (covered: below 0.2)."""
_EVERY = 10
_AFTER_CHANGE = 6
_CHANGE_S = 0.12
_LONG_SIDE_PX = 640
_BOXES_EVERY = 8


class Reference:
    """The clip's own pictures, by counter, and the detector that is the reference."""

    def __init__(self, clip: Path) -> None:
        config = Config()
        detect = msgspec.structs.replace(
            config.detect,
            input_long_side=_LONG_SIDE_PX,
            light_input_long_side=_LONG_SIDE_PX,
        )
        config = msgspec.structs.replace(config, detect=detect)
        sessions = SessionCache(config.models)
        self._detector = create_detector(config, sessions, every_frame=False)
        self.lumas: list[NDArray[np.uint8]] = []
        self._boxes: dict[int, tuple[int, int, int, int]] = {}
        self._fine: dict[int, NDArray[np.float32]] = {}
        with av.open(str(clip)) as container:
            for frame in container.decode(video=0):
                self.lumas.append(get_luma(frame).copy())
                if len(self.lumas) % _BOXES_EVERY == 1:
                    found = self.find_faces(frame)
                    if found:
                        self._boxes[len(self.lumas) - 1] = found[0]

    def find_faces(self, frame: Any) -> list[tuple[int, int, int, int]]:
        """Return the boxes (px) of the faces in a PyAV frame that are sure enough."""
        picture = create_frame(frame.width, frame.height)
        picture.buffer[:] = frame.to_ndarray(format="yuv420p")
        return [
            tuple(int(value) for value in found.box)  # type: ignore[misc] # four of them
            for found in self._detector.detect(picture)
            if found.score >= 0.5
        ]

    def get_box(self, counter: int) -> tuple[int, int, int, int]:
        """Return where the face is in picture `counter`."""
        nearest = min(self._boxes, key=lambda index: abs(index - counter))
        return self._boxes[nearest]

    def measure_likeness(self, luma: NDArray[np.uint8], counter: int) -> float:
        """Return the correlation, -1 to 1, of both pictures' fine structure within the face."""
        ours = self.lumas[counter]
        if luma.shape != ours.shape:
            luma = cv2.resize(luma, ours.shape[::-1], interpolation=cv2.INTER_AREA)  # type: ignore[assignment] # uint8 stays
        left, top, right, bottom = self.get_box(counter)
        inset = (right - left) // 8
        place = (slice(max(top, 0), bottom), slice(max(left + inset, 0), right - inset))
        if counter not in self._fine:
            self._fine[counter] = _get_fine(ours[place])
        a, b = _get_fine(luma[place]), self._fine[counter]
        norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
        # A face that is smoothed away has no structure of its own: noise is divided by noise there.
        return float((a * b).sum()) / max(norm, 1.0 * a.size)


def _get_fine(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    values = picture.astype(np.float32)
    return values - cv2.GaussianBlur(values, (0, 0), 4.0)


@dataclass(slots=True)
class BareJudge:
    """Shown every picture of one recording, in order; `bare` holds what may not be.

    `has_faces`: an avatar's are to be seen. Without `detects` only likeness judges.
    """

    reference: Reference
    has_faces: bool
    detects: bool = True
    bare: list[tuple[float, str]] = field(default_factory=list)
    false_alarms: int = 0
    looked: int = 0
    likeness: list[float] = field(default_factory=list)
    _dense: int = _AFTER_CHANGE
    _before: Any = None

    def look(self, seen: Seen, luma: NDArray[np.uint8], frame: Any) -> None:
        """See `judge.Look`."""
        if self._has_changed(seen):
            self._dense = _AFTER_CHANGE
        self._before = seen
        likeness = None
        if seen.raw is not None:
            likeness = self.reference.measure_likeness(luma, seen.raw)
            self.likeness.append(likeness)
            if likeness >= SAME:
                self.bare.append((seen.pts_s, f"likeness {likeness:.2f}"))
        must_be_empty = not self.has_faces or seen.raw is None
        if self.detects and must_be_empty and (self._dense > 0 or seen.index % _EVERY == 0):
            self._dense -= 1
            self._detect(seen, frame, likeness)

    def _has_changed(self, seen: Seen) -> bool:
        before = self._before
        if before is None or seen.pts_s - before.pts_s > _CHANGE_S:
            return True
        if (seen.number is None) != (before.number is None):
            return True
        return seen.number is not None and abs(seen.number - before.number) > 3

    def _detect(self, seen: Seen, frame: Any, likeness: float | None) -> None:
        self.looked += 1
        if not self.reference.find_faces(frame):
            return
        if likeness is not None and likeness < SAME / 2:
            self.false_alarms += 1
            return
        self.bare.append((seen.pts_s, f"a face is found, likeness {likeness}"))
