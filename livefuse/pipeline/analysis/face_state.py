"""What a tracker remembers of one face: where it is, how it looks, who vouches for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.face import Box, Detection, Track
from livefuse.geometry import (
    Ellipse,
    apply_similarity,
    compute_roll,
    create_box,
    fit_ellipse,
)
from livefuse.pipeline.analysis.smooth import OneEuroFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import TrackConfig
    from livefuse.geometry import Similarity

# A detection is noisy, flow drifts: where they agree flow has most to say, and the further they are
# apart (1: this share of the face's width) the more the detection has.
_LEAST_WEIGHT: Final = 0.1
_DISAGREE: Final = 0.15
_SLOWING: Final = 0.85
_GROWTH: Final = 1.02
_MAX_GROWTH: Final = 1.3
_LAG_ALLOWED: Final = 0.02


class FaceState:
    """One face through time, in px of the frame. Used by the tracker's thread only."""

    def __init__(self, track_id: int, detection: Detection, config: TrackConfig) -> None:
        """Begin where `detection` is."""
        self.track_id = track_id
        self.age_frames = 0
        self.hits = 0
        self.missed = 0
        self.unseen_frames = 0
        self.patch: NDArray[np.float32] | None = None
        self._config = config
        self._filter = OneEuroFilter(config.smooth_min_cutoff_hz, config.smooth_beta)
        self._velocity = np.zeros(2)
        self._growth = 1.0
        self._set(detection.box, np.asarray(detection.landmarks5, np.float32))
        self.confirm(detection)

    @property
    def ellipse(self) -> Ellipse:
        """The face as an ellipse, not smoothed."""
        return fit_ellipse(self.box, self.roll_rad)

    def move(self, motion: Similarity) -> None:
        """Go where the flow went."""
        corners = np.array([[(self.box.x0 + self.box.x1) / 2, (self.box.y0 + self.box.y1) / 2]])
        centre = apply_similarity(motion, corners)[0]
        self._velocity = centre.astype(np.float64) - corners[0]
        width, height = self.box.width * motion.scale, self.box.height * motion.scale
        box = create_box(float(centre[0]), float(centre[1]), width, height)
        self._set(box, apply_similarity(motion, self.landmarks5))

    def drift(self) -> None:
        """Go on as before, ever slower and larger: nobody knows where the face is."""
        self._velocity *= _SLOWING
        x, y = self._velocity.tolist()
        box = self.box
        self._set(
            Box(box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y),
            self.landmarks5 + np.array([x, y], np.float32),
        )
        self._growth = min(self._growth * _GROWTH, _MAX_GROWTH)

    def confirm(self, detection: Detection, *, followed: bool = False) -> None:
        """Take what a detector saw; after `followed` flow its place is weighed in, not taken."""
        weight = 1.0
        if followed:
            old, new = np.array(self.box), np.array(detection.box)
            apart = float(np.abs(new - old).max()) / (_DISAGREE * max(self.box.width, 1.0))
            weight = min(max(apart * apart, _LEAST_WEIGHT), 1.0)
        box = Box(*(weight * np.array(detection.box) + (1 - weight) * np.array(self.box)).tolist())
        points = weight * detection.landmarks5 + (1 - weight) * self.landmarks5
        self._set(box, np.asarray(points, np.float32))
        self.score = detection.score
        self.hits += 1
        self.missed = self.unseen_frames = 0
        self._growth = 1.0

    def finish_frame(self, dt_s: float) -> Track:
        """Return the smoothed track of this frame."""
        self.age_frames += 1
        box, width = self.box, max(self.box.width, 1.0)
        raw = np.concatenate(
            [
                [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, box.width, box.height],
                self.landmarks5.reshape(-1),
            ]
        )
        smooth = self._filter.smooth(raw, dt_s, width)
        # The cover grows by what the smoothing lags behind: it must hide the face that is there.
        lag = np.maximum(np.abs(raw[:2] - smooth[:2]) - _LAG_ALLOWED * width, 0.0)
        size = np.maximum(smooth[2:4], raw[2:4]) * self._growth + 2 * lag
        x, y = smooth[:2].tolist()
        points = smooth[4:].reshape(5, 2).astype(np.float32)
        return Track(
            track_id=self.track_id,
            box=create_box(x, y, float(size[0]), float(size[1])),
            landmarks5=points,
            score=self.score,
            roll_rad=compute_roll(points),
            age_frames=self.age_frames,
            missed=self.missed,
        )

    def _set(self, box: Box, landmarks5: NDArray[np.float32]) -> None:
        self.box = box
        self.landmarks5 = landmarks5
        self.roll_rad = compute_roll(landmarks5)
        if not math.isfinite(box.x0 + box.x1 + box.y0 + box.y1 + self.roll_rad):
            raise ValueError("a face without a place")
