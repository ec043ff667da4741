"""Facts about faces: values that analysis writes and effects read. Coordinates are px of the frame.

Left and right are the picture's: `landmarks5` is image-left eye, image-right eye, nose tip,
image-left mouth corner, image-right mouth corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Box(NamedTuple):
    """x0, y0, x1, y1 in px; x1 and y1 are exclusive."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Width in px."""
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        """Height in px."""
        return self.y1 - self.y0


@dataclass(slots=True, frozen=True, eq=False)
class Detection:
    """What a detector says: a box, a score 0..1, and float32 (5, 2) landmarks."""

    box: Box
    score: float
    landmarks5: NDArray[np.float32]


@dataclass(slots=True, frozen=True, eq=False)
class Track:
    """One person's face through time.

    `missed` counts detections in a row that did not see it: a track with missed > 0 is held, so
    that its cover stays (never bare).
    """

    track_id: int
    box: Box
    landmarks5: NDArray[np.float32]
    score: float
    roll_rad: float
    age_frames: int = 0
    missed: int = 0
