"""A live match: poses asked for in an order nobody knows, each matched; what must not pass."""

import random

import numpy as np
import pytest

from livefuse.safety.live import (
    SENTENCES,
    Head,
    LiveMatch,
    Seen,
    choose_poses,
    measure_rest,
)

POSES = ("straight", "left", "up", "open_mouth", "right")
ME = np.array([1.0, 0.0, 0.0, 0.0], np.float32)
LIKE = np.array([0.95, np.sqrt(1 - 0.95**2), 0.0, 0.0], np.float32)
STRANGER = np.array([0.0, 0.0, 1.0, 0.0], np.float32)
SECOND = 1.0
RNG = np.random.default_rng(0)
POINTS = np.concatenate(
    [RNG.uniform(-50, 50, (60, 2)), RNG.uniform(-25, 25, (60, 1))], axis=1
).astype(np.float32)


def turn(points, yaw, pitch):
    """Turn a head of points, radians; z grows away from the camera."""
    x, y, z = points.T
    x, z = x * np.cos(yaw) - z * np.sin(yaw), z * np.cos(yaw) + x * np.sin(yaw)
    y = y * np.cos(pitch) + z * np.sin(pitch)
    return np.stack([x, y, z], 1).astype(np.float32)


class Person:
    """Somebody, or something, before a camera that gives 10 pictures a second."""

    def __init__(self, poses=POSES, *, embedding=ME, solid=True, limit_s=60.0, mirrored=False):
        self.match = LiveMatch(
            poses, ME[None], same=0.924, keep=0.9, limit_s=limit_s, mirrored=mirrored
        )
        self.embedding, self.solid, self.moves = embedding, solid, True
        self.time_s = 0.0
        self.frame = 0

    def show(self, yaw=0.0, pitch=0.0, mouth=0.05, smile=0.45, *, frames=1, faces=1):
        state = None
        for _ in range(frames):
            self.time_s += 0.1
            self.frame += self.moves
            points = POINTS if not self.solid else turn(POINTS, np.radians(yaw), np.radians(pitch))
            points = points + np.float32(self.frame % 7)  # nobody stands quite still
            head = Head(
                points, 100.0, np.radians(yaw), np.radians(pitch), mouth, smile, self.embedding
            )
            state = self.match.note(Seen(self.time_s, faces, head if faces == 1 else None))
        return state

    def do(self, pose, **more):
        amounts = {
            "straight": {}, "left": {"yaw": 25.0}, "right": {"yaw": -25.0}, "up": {"pitch": 18.0},
            "down": {"pitch": -18.0}, "open_mouth": {"mouth": 0.2}, "smile": {"smile": 0.55},
        }[pose]  # fmt: skip
        return self.show(frames=6, **amounts, **more)

    def go_through(self, poses):
        state = None
        for pose in poses:
            state = self.do(pose)
            if pose != "straight":
                state = self.show(frames=2)
        return state


def test_the_person_passes_who_does_what_is_asked():
    """R54: consent given by oneself, before a camera."""
    person = Person()
    state = person.show()
    assert state.phase == "asking"
    assert SENTENCES["straight"] in state.sentence
    state = person.show(frames=5)
    assert (state.done, state.poses) == (1, 5)
    assert SENTENCES["left"] in state.sentence
    state = person.go_through(POSES[1:])
    assert state.phase == "passed"
    evidence = person.match.evidence
    assert (evidence.kind, evidence.name) == ("live", ",".join(POSES))
    assert len(evidence.sha256) == 64


def test_the_evidence_is_of_these_very_moments():
    one, same, other = Person(), Person(), Person(embedding=LIKE)
    for person in (one, same, other):
        assert person.go_through(POSES).phase == "passed"
    assert one.match.evidence == same.match.evidence
    assert one.match.evidence.sha256 != other.match.evidence.sha256


@pytest.mark.parametrize("nod", ["up", "down"])
@pytest.mark.parametrize("mouth", ["open_mouth", "smile"])
def test_every_pose_can_be_done(nod, mouth):
    poses = ("straight", nod, "right", mouth, "left")
    assert Person(poses).go_through(poses).phase == "passed"


def test_a_mirrored_camera_is_told_apart():
    assert Person(mirrored=True).go_through(POSES).phase == "asking"
    mirrored = ("straight", "right", "up", "open_mouth", "left")
    assert Person(mirrored=True).go_through(mirrored).phase == "passed"


@pytest.mark.parametrize("left_out", range(1, 5))
def test_each_pose_must_be_done(left_out):
    person = Person(limit_s=30.0)
    poses = [pose for i, pose in enumerate(POSES) if i != left_out]
    state = person.go_through(poses)
    assert (state.phase, state.done) == ("asking", left_out)
    state = person.show(yaw=5.0, frames=400)
    assert state.phase == "failed"
    assert f"30 s is up, {left_out} of 5" in state.sentence


def test_another_order_does_not_do():
    """A film of all the poses does not know the order."""
    assert Person().go_through(("straight", "right", "open_mouth", "up", "left")).done == 2


def test_a_photograph_that_is_waved_about_fails():
    """Its points keep their places among one another, however it is held."""
    person = Person(solid=False, limit_s=20.0)
    state = person.go_through(POSES[:4])
    assert (state.phase, state.done) == ("asking", 1)
    assert person.show(yaw=30.0, frames=200).phase == "failed"


def test_a_picture_that_stands_still_fails():
    person = Person()
    person.moves = False
    person.show()
    state = person.show(frames=20)
    assert (state.phase, state.done) == ("asking", 0)
    assert "stands still" in state.sentence


def test_somebody_else_fails_at_once():
    person = Person(embedding=STRANGER)
    state = person.show(frames=15)
    assert state.phase == "failed"
    assert "not the one in the picture" in state.sentence
    person.embedding = ME
    assert person.go_through(POSES).phase == "failed", "it stays so"


def test_somebody_else_for_one_pose_fails():
    person = Person()
    person.go_through(POSES[:2])
    person.embedding = STRANGER
    assert person.show(pitch=18.0, frames=20).phase == "failed"


def test_three_of_five_looks_are_enough():
    person = Person()
    for embedding in (ME, STRANGER, ME, STRANGER):
        person.embedding = embedding
        assert person.show().done == 0
    person.embedding = ME
    assert person.show().done == 1


def test_a_pose_that_was_there_before_it_was_asked_for_does_not_count():
    person = Person(("straight", "left", "smile"))
    person.do("straight")
    person.show(yaw=25.0, smile=0.55, frames=6)
    assert person.show(smile=0.55, frames=1).done == 2
    assert person.show(smile=0.55, frames=10).done == 2, "the smile was there all the time"
    person.show()
    assert person.do("smile").phase == "passed"


@pytest.mark.parametrize(("faces", "words"), [(0, "nobody is seen"), (2, "2 faces")])
def test_one_face_alone_counts(faces, words):
    person = Person()
    person.show(frames=4)
    state = person.show(faces=faces)
    assert (state.done, state.phase) == (0, "asking")
    assert words in state.sentence
    assert person.show(frames=4).done == 0, "the five frames are to be in a row"
    assert person.show(frames=1).done == 1


def test_orders_come_from_the_generator():
    orders = {choose_poses(random.Random(seed)) for seed in range(3000)}
    assert len(orders) == 96  # 2 nods, 2 mouths, 24 orders
    assert choose_poses(random.Random(5)) == choose_poses(random.Random(5))
    for poses in orders:
        assert poses[0] == "straight"
        assert {"left", "right"} < set(poses)
        assert len(set(poses)) == 5


def test_what_an_affine_map_leaves_is_of_solid_heads_only():
    def head(points):
        return Head(points, 100.0, 0.0, 0.0, 0.0, 0.0, ME)

    squeezed = POINTS @ np.diag([0.7, 0.9, 1.0]).astype(np.float32) + np.float32(20)
    assert measure_rest(head(POINTS), head(squeezed)) < 1e-5
    assert measure_rest(head(POINTS), head(turn(POINTS, 0.4, 0.0))) > 0.03
    assert measure_rest(head(POINTS), head(POINTS[:10])) == 0.0
