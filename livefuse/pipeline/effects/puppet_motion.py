"""What a wearer's face does, carried over to a portrait: expression, turn, place.

All is told against the wearer's own face at rest, which is learnt while he is watched: the best
frame (mouth closed, eyes open, looking ahead) of a running window.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.canonical import Pose, fit_head
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

_POINTS: Final = 468
_MAX_TURN_RAD: Final = math.radians(18.0)
_SHIFT: Final = 0.35  # of the wearer's movement across the picture
_MAX_SHIFT: Final = 0.16  # face widths
_GROWTH: Final = 0.35  # of his coming nearer
_MAX_GROWTH: Final = 0.08
_PIVOT: Final = (0.0, 0.25, 0.35)  # face widths below and behind the face's middle: the neck
_FORGET: Final = 0.06  # by so much a second does the best score grow worse, so that it is replaced
_ADAPT: Final = 0.12  # a frame: the rest face moves to a better one, it does not jump
_STILL: Final = 0.15  # of an eye's height: what closes less than this is noise or a squint
_CLOSING: Final = 0.5  # of an eye's height more, and it is closed
_LEAST_OPEN: Final = 0.22  # of an eye's width: the narrowest of open eyes
_RELAX: Final = 0.82  # a frame without a face
_LIP_TOP, _LIP_LOW = 13, 14
_CORNERS: Final = (0, 8)


class Motion(NamedTuple):
    """What a face does. `expression` float32 (468, 3): face widths off the face at rest, upright.

    `turn` is a rotation vector (radians), `shift` x, y in face widths, `growth` a share, `closed`
    how far the left and the right eye are closed 0..1, `gap` how far the mouth is open, in face
    widths.
    """

    expression: Values
    turn: Values
    shift: Values
    growth: float
    closed: tuple[float, float]
    gap: float

    def fade(self, share: float) -> Motion:
        """Return `share` of it."""
        return Motion(
            self.expression * np.float32(share),
            self.turn * np.float32(share),
            self.shift * np.float32(share),
            self.growth * share,
            (self.closed[0] * share, self.closed[1] * share),
            self.gap * share,
        )


def create_rest() -> Motion:
    """Return no motion at all."""
    return Motion(
        np.zeros((_POINTS, 3), np.float32),
        np.zeros(3, np.float32),
        np.zeros(2, np.float32),
        0.0,
        (0.0, 0.0),
        0.0,
    )


class MotionReader:
    """Learns one wearer's face at rest and reads his motion against it. One thread."""

    def __init__(self) -> None:
        self._rest: Values | None = None
        self._pose: Pose | None = None
        self._best: Values | None = None
        self._best_pose: Pose | None = None
        self._best_score = math.inf
        self._last = create_rest()

    def read(self, mesh: Values, dt_s: float) -> Motion:
        """Return the motion of a face's `mesh` (468 or 478, 3) px."""
        points = np.asarray(mesh[:_POINTS], np.float32)
        pose = fit_head(points)
        upright = pose.undo(points)
        self._learn(upright, pose, dt_s)
        if self._rest is None or self._pose is None:
            return create_rest()
        turned = pose.rotation @ self._pose.rotation.T
        turn, _ = cv2.Rodrigues(turned.astype(np.float64))
        moved = (pose.shift - self._pose.shift)[:2] / np.float32(self._pose.scale)
        self._last = Motion(
            np.asarray(upright - self._rest, np.float32),
            np.asarray(turn, np.float32).reshape(3),
            np.asarray(moved, np.float32),
            pose.scale / self._pose.scale - 1,
            (self._measure_closed(upright, EYE_LEFT), self._measure_closed(upright, EYE_RIGHT)),
            measure_gap(upright),
        )
        return self._last

    def relax(self) -> Motion:
        """Return the motion of a face that is not to be seen: back to rest, smoothly."""
        self._last = self._last.fade(_RELAX)
        return self._last

    def reset(self) -> None:
        """Forget the wearer."""
        self.__init__()  # type: ignore[misc] # all of it is what __init__ sets

    def _learn(self, upright: Values, pose: Pose, dt_s: float) -> None:
        score = score_rest(upright, pose)
        self._best_score += _FORGET * dt_s
        if score <= self._best_score:
            self._best, self._best_pose, self._best_score = upright, pose, score
        if self._rest is None or self._pose is None:
            self._rest, self._pose = upright, pose
            return
        if self._best is None or self._best_pose is None:
            return
        self._rest = self._rest + np.float32(_ADAPT) * (self._best - self._rest)
        self._pose = _blend_pose(self._pose, self._best_pose, _ADAPT)

    def _measure_closed(self, upright: Values, eye: NDArray[np.int32]) -> float:
        assert self._rest is not None  # noqa: S101 - read() has set it
        # Who begins with closed eyes has not yet shown how wide they open.
        open_at_rest = max(measure_opening(self._rest, eye), _LEAST_OPEN)
        share = 1 - measure_opening(upright, eye) / open_at_rest
        return min(max((share - _STILL) / _CLOSING, 0.0), 1.0)


def measure_opening(upright: Values, eye: NDArray[np.int32]) -> float:
    """Return an eye's height by its width."""
    lids = upright[eye]
    corners = lids[list(_CORNERS)]
    width = float(np.linalg.norm(corners[1] - corners[0]))
    height = float(np.linalg.norm(lids[3:6, :2] - lids[13:10:-1, :2], axis=1).mean())
    return height / max(width, 1e-3)


def measure_gap(upright: Values) -> float:
    """Return how far the lips are apart, in the units of `upright`."""
    return float(np.linalg.norm(upright[_LIP_TOP] - upright[_LIP_LOW]))


def score_rest(upright: Values, pose: Pose) -> float:
    """Return how far a face is from rest: 0 is mouth closed, eyes wide open, straight ahead."""
    opening = measure_opening(upright, EYE_LEFT) + measure_opening(upright, EYE_RIGHT)
    ahead = float(pose.rotation[2, 2])
    return 4 * measure_gap(upright) + max(0.0, 0.75 - opening) + 2 * (1 - ahead)


def move_portrait(
    portrait: Values, pose: Pose, motion: Motion, *, expression: float, turn: float
) -> tuple[Values, Pose]:
    """Return the portrait's mesh (468, 3) px as the wearer moves, and the move of its head.

    `pose` is the portrait's own (`fit_head`); the move, applied to any px of the portrait's space
    (n, 3), takes it along with the head.
    """
    scale = np.float32(pose.scale)
    offset = motion.expression @ pose.rotation.T * scale * np.float32(expression)
    for eye, closed in zip((EYE_LEFT, EYE_RIGHT), motion.closed, strict=True):
        # Lids close as far as the wearer's, whatever the portrait's eyes measure.
        offset[eye] = _close_lids(portrait[eye], closed)
    moved = portrait + offset
    head = create_head_move(pose, motion, turn)
    return head.apply(np.asarray(moved, np.float32)), head


def create_head_move(pose: Pose, motion: Motion, turn: float) -> Pose:
    """Return how the portrait's head moves: about the neck, within 18 degrees."""
    vector = motion.turn * np.float32(turn)
    angle = float(np.linalg.norm(vector))
    if angle > _MAX_TURN_RAD:
        vector = vector * np.float32(_MAX_TURN_RAD / angle)
    rotation = np.asarray(cv2.Rodrigues(vector.astype(np.float64))[0], np.float32)
    pivot = pose.apply(np.array([_PIVOT], np.float32))[0]
    shift = np.zeros(3, np.float32)
    shift[:2] = np.clip(motion.shift * np.float32(_SHIFT * turn), -_MAX_SHIFT, _MAX_SHIFT)
    growth = 1 + min(max(motion.growth * _GROWTH * turn, -_MAX_GROWTH), _MAX_GROWTH)
    place = pivot + shift * np.float32(pose.scale)
    return Pose(growth, rotation, place - np.float32(growth) * (rotation @ pivot))


def _close_lids(eye: Values, closed: float) -> Values:
    """Return the offsets of an eye's outline (16, 3): both lids to a line near the lower one."""
    offset = np.zeros_like(eye)
    upper, lower = eye[1:8], eye[:8:-1]
    line = upper * np.float32(0.25) + lower * np.float32(0.75)
    offset[1:8] = (line - upper) * np.float32(closed)
    offset[:8:-1] = (line - lower) * np.float32(closed)
    return offset


def _blend_pose(pose: Pose, other: Pose, share: float) -> Pose:
    rotation = pose.rotation + np.float32(share) * (other.rotation - pose.rotation)
    left, _, right = np.linalg.svd(rotation.astype(np.float64))
    return Pose(
        pose.scale + share * (other.scale - pose.scale),
        (left @ right).astype(np.float32),
        np.asarray(pose.shift + np.float32(share) * (other.shift - pose.shift), np.float32),
    )
