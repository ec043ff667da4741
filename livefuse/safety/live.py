"""A live match: the person before a camera is the one in the picture, and does what is asked.

Pure: facts of frames go in, what to ask for next comes out. First the person looks straight at
the camera; then turns left and right, nods up or down, and opens the mouth or smiles, in an order
that nobody knows beforehand. A pose counts once it was held for 5 frames of which 3 match the
picture's face, and only if it was not there when it was asked for. A head that turns is solid: its
points move past one another. The best affine map of the straight face onto the turned one leaves
a rest of 2 to 5 % of the face's width; of a flat photograph, turned up to 50 degrees or bent
towards a near camera, 0.4 to 2.4 %, and the pose read from it changes by 6 degrees at most (8 when
it nods): measured with tests/turned_heads.py. Frames that do not differ do not count.

What this shows: somebody with this face, or with something that moves like this face, was there
and did what was asked. It does not prove more. A face that is generated while it happens (a deep
fake fed into a virtual camera), a good mask, a twin, or a film cut to the order that is asked for
pass; and it says nothing of whether the person was free to refuse. It is evidence beside the words
of the consent, not in their place.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
import numpy as np

from livefuse.safety.evidence import Evidence

if TYPE_CHECKING:
    from random import Random

    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

Pose = Literal["straight", "left", "right", "up", "down", "open_mouth", "smile"]
Phase = Literal["asking", "passed", "failed"]

_HOLD, _MATCHES = 5, 3  # a pose is held so many frames, of which so many match
_STRANGER: Final = 12  # frames of a pose without a match: this is somebody else
_STILL: Final = 0.0004  # of the face's width: a frame that differs by less is the one before
_STRAIGHT_DEG, _STRAIGHT_PITCH_DEG = 9.0, 25.0
_TURN_DEG, _NOD_DEG = 12.0, 10.0
_TURN_REST, _NOD_REST = 0.025, 0.017  # of the width: what no flat picture does
_OPEN, _SMILE = 0.05, 1.12  # of the width more; times as wide
_MAX_ASIDE_DEG: Final = 12.0  # while the mouth does something

SENTENCES: Final[dict[Pose, str]] = {
    "straight": "look straight at the camera, mouth closed  请正对镜头，闭上嘴",
    "left": "turn your head to your left  请向您的左边转头",
    "right": "turn your head to your right  请向您的右边转头",
    "up": "lift your chin  请抬头",
    "down": "lower your chin  请低头",
    "open_mouth": "open your mouth  请张开嘴",
    "smile": "smile broadly  请笑一笑",
}


class Head(NamedTuple):
    """A face as it is seen in a frame.

    `points` float32 (n, 3), px; `width_px` is the face's. Angles in radians: yaw > 0 turns the nose
    to the picture's right, pitch > 0 lifts it. `mouth_open` and `smile` (how wide the mouth is) are
    shares of the width. `embedding` (d,) is L2-normalised.
    """

    points: NDArray[np.float32]
    width_px: float
    yaw_rad: float
    pitch_rad: float
    mouth_open: float
    smile: float
    embedding: Vector


class Seen(NamedTuple):
    """What is known of a frame: when it was, how many faces it shows, and the face if just one."""

    time_s: float
    faces: int
    head: Head | None = None


class State(NamedTuple):
    """Where the match stands; `sentence` is for the person before the camera."""

    phase: Phase
    sentence: str
    done: int
    poses: int


class _Held(NamedTuple):
    """A frame in which a pose was held."""

    time_s: float
    head: Head
    is_match: bool


class _Proof(NamedTuple):
    """A pose that was done: when, and what the face looked like."""

    pose: Pose
    times_ms: list[int]
    embeddings: list[bytes]


def choose_poses(rng: Random) -> tuple[Pose, ...]:
    """Return the poses to ask for: straight, then four in an order of `rng`'s."""
    nod: Pose = rng.choice(("up", "down"))
    mouth: Pose = rng.choice(("open_mouth", "smile"))
    rest: list[Pose] = ["left", "right", nod, mouth]
    rng.shuffle(rest)
    return ("straight", *rest)


class LiveMatch:
    """One person's match. One thread."""

    def __init__(
        self,
        poses: tuple[Pose, ...],
        looks: Vector,
        *,
        same: float,
        keep: float,
        limit_s: float = 60.0,
        mirrored: bool = False,
    ) -> None:
        """Take the picture's face: `looks`, (n, d).

        From the cosine `same` on a straight face matches, from `keep` on one in another pose.
        `mirrored`: the camera shows what a mirror would.
        """
        self._poses = poses
        self._looks = looks
        self._same, self._keep = same, keep
        self._limit_s = limit_s
        self._sign = -1.0 if mirrored else 1.0
        self._begun_s: float | None = None
        self._before: Head | None = None
        self._base: Head | None = None
        self._held: deque[_Held] = deque(maxlen=_HOLD)
        self._strange = 0
        self._is_ready = True  # the first pose may be there already
        self._proofs: list[_Proof] = []
        self._failure = ""

    @property
    def evidence(self) -> Evidence:
        """What is kept of a match that was passed: a hash of the poses' times and embeddings."""
        data = msgspec.msgpack.encode(self._proofs)
        names = ",".join(proof.pose for proof in self._proofs)
        return Evidence(
            kind="live", sha256=hashlib.sha256(data).hexdigest(), name=names, size_bytes=len(data)
        )

    def note(self, seen: Seen) -> State:
        """Take a frame into account; return where things stand."""
        if self._begun_s is None:
            self._begun_s = seen.time_s
        if self._failure or len(self._proofs) == len(self._poses):
            return self._tell("")
        if seen.time_s - self._begun_s > self._limit_s:
            done = f"{len(self._proofs)} of {len(self._poses)} poses were done"
            self._failure = f"the time of {self._limit_s:.0f} s is up, {done}"
            return self._tell("")
        if seen.head is None or seen.faces != 1:
            self._before = None
            self._held.clear()
            what = "nobody is seen" if seen.faces == 0 else f"{seen.faces} faces are seen"
            return self._tell(f"{what}: one face, near, in good light  请保证画面里只有一张脸")
        before, self._before = self._before, seen.head
        if before is not None and measure_motion(before, seen.head) < _STILL:
            return self._tell("the picture stands still: move a little  画面静止，请动一动")
        self._look(seen.time_s, seen.head)
        return self._tell("")

    def _look(self, time_s: float, head: Head) -> None:
        pose = self._poses[len(self._proofs)]
        if not self._is_in(pose, head):
            self._is_ready = self._is_ready or self._is_away(pose, head)
            self._held.clear()
            return
        if not self._is_ready:
            return
        least = self._same if pose == "straight" else self._keep
        likeness = float(np.median(self._looks @ head.embedding))
        self._held.append(_Held(time_s, head, likeness >= least))
        matches = sum(held.is_match for held in self._held)
        if len(self._held) == _HOLD and matches >= _MATCHES:
            self._prove(pose)
            return
        self._strange = 0 if likeness >= least else self._strange + 1
        if self._strange >= _STRANGER:
            self._failure = "the face before the camera is not the one in the picture"

    def _prove(self, pose: Pose) -> None:
        times_ms = [round(held.time_s * 1000) for held in self._held]
        embeddings = [held.head.embedding.astype("<f4").tobytes() for held in self._held]
        self._proofs.append(_Proof(pose, times_ms, embeddings))
        if pose == "straight":
            self._base = self._held[-1].head
        self._held.clear()
        self._strange = 0
        self._is_ready = False

    def _is_in(self, pose: Pose, head: Head) -> bool:
        base = self._base
        if pose == "straight" or base is None:
            yaw, pitch = math.degrees(head.yaw_rad), math.degrees(head.pitch_rad)
            return abs(yaw) <= _STRAIGHT_DEG and abs(pitch) <= _STRAIGHT_PITCH_DEG
        yaw = math.degrees(head.yaw_rad - base.yaw_rad) * self._sign
        pitch = math.degrees(head.pitch_rad - base.pitch_rad)
        if pose in ("left", "right"):
            turned = yaw if pose == "left" else -yaw  # one's own left is the picture's right
            return turned >= _TURN_DEG and measure_rest(base, head) >= _TURN_REST
        if pose in ("up", "down"):
            nodded = pitch if pose == "up" else -pitch
            return nodded >= _NOD_DEG and measure_rest(base, head) >= _NOD_REST
        if abs(yaw) > _MAX_ASIDE_DEG:
            return False
        if pose == "open_mouth":
            return head.mouth_open - base.mouth_open >= _OPEN
        return head.smile >= _SMILE * base.smile

    def _is_away(self, pose: Pose, head: Head) -> bool:
        """Say whether a pose that is not held is not merely hidden: a mouth by a turned head."""
        base = self._base
        if base is None or pose not in ("open_mouth", "smile"):
            return True
        if pose == "open_mouth":
            return head.mouth_open - base.mouth_open < _OPEN
        return head.smile < _SMILE * base.smile

    def _tell(self, trouble: str) -> State:
        done, poses = len(self._proofs), len(self._poses)
        if self._failure:
            return State("failed", self._failure, done, poses)
        if done == poses:
            return State("passed", "done, thank you  完成，谢谢", done, poses)
        pose = self._poses[done]
        return State("asking", trouble or f"{done + 1} of {poses}: {SENTENCES[pose]}", done, poses)


def measure_motion(before: Head, head: Head) -> float:
    """Return how far the points have moved on average, as a share of the face's width."""
    if before.points.shape != head.points.shape:
        return 1.0
    return float(np.abs(head.points - before.points).mean()) / max(head.width_px, 1.0)


def measure_rest(base: Head, head: Head) -> float:
    """Return what the best affine map of `base`'s points leaves of `head`'s.

    The root of the mean square of the distances (least squares in the plane), as a share of the
    face's width; 0 when they cannot be compared.
    """
    if base.points.shape != head.points.shape:
        return 0.0
    plane = np.column_stack([base.points[:, :2], np.ones(len(base.points), np.float32)])
    target = head.points[:, :2]
    mapped = plane @ np.linalg.lstsq(plane, target, rcond=None)[0]
    return float(np.sqrt(((mapped - target) ** 2).sum(axis=1).mean())) / max(head.width_px, 1.0)
