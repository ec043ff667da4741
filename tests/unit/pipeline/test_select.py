"""The selector: who is meant, and that it does not flap (C60)."""

import numpy as np
import pytest

from livefuse.face import Box, Face, Track
from livefuse.pipeline.analysis.select import FaceSelector, choose_known
from livefuse.token import Parameters

DT_S = 1 / 30


def create_face(track_id, x=100.0, width=100.0, person=""):
    points = np.zeros((5, 2), np.float32)
    track = Track(track_id, Box(x, 50, x + width, 50 + 1.3 * width), points, 0.9, 0.0)
    return Face(track, person=person)


def choose(selector, faces, **parameters):
    selector.choose(faces, Parameters(**parameters), DT_S)
    return [face.track.track_id for face in faces if face.chosen]


def test_the_first_frame_chooses_plainly():
    faces = [create_face(1, 300, 90), create_face(2, 100, 60), create_face(3, 500, 120, "anna")]
    for parameters, expected in (
        ({}, [1, 2, 3]),
        ({"select": "largest"}, [3]),
        ({"select": "left-most"}, [2]),
        ({"select": "id", "people": ("1", "3")}, [1, 3]),
        ({"select": "reference", "people": ("anna",)}, [3]),
        ({"select": "reference", "people": ("bob",)}, []),
    ):
        FaceSelector().choose(faces, Parameters(**parameters), 0.0)
        assert [face.track.track_id for face in faces if face.chosen] == expected


def test_two_faces_of_nearly_one_size_do_not_take_turns():
    selector = FaceSelector()
    rng = np.random.default_rng(1)
    chosen = {
        tuple(
            choose(
                selector,
                [
                    create_face(1, 100, 100 + rng.normal(0, 3)),
                    create_face(2, 400, 101 + rng.normal(0, 3)),
                ],
                select="largest",
            )
        )
        for _ in range(300)
    }
    assert len(chosen) == 1


@pytest.mark.parametrize(
    ("select", "rival"),
    [("largest", create_face(2, 400, 160)), ("left-most", create_face(2, 10, 100))],
)
def test_a_portrait_on_the_wall_takes_over_only_after_half_a_second(select, rival):
    """(C60) the wearer stays chosen for 0.5 s, however clear the portrait's lead."""
    selector = FaceSelector()
    wearer = create_face(1, 200, 100)
    assert choose(selector, [wearer], select=select) == [1]
    frames = 0
    while choose(selector, [wearer, rival], select=select) == [1]:
        frames += 1
        assert frames < 60
    assert frames * DT_S >= 0.5 - DT_S
    assert choose(selector, [wearer, rival], select=select) == [2]


def test_a_portrait_that_comes_and_goes_never_takes_over():
    selector = FaceSelector()
    wearer, rival = create_face(1, 200, 100), create_face(2, 400, 160)
    for frame in range(120):
        faces = [wearer, rival] if 0 < frame % 12 < 11 else [wearer]
        assert choose(selector, faces, select="largest") == [1]


def test_when_the_chosen_one_leaves_another_is_chosen_at_once():
    selector = FaceSelector()
    assert choose(selector, [create_face(1), create_face(2, 400, 90)], select="largest") == [1]
    assert choose(selector, [create_face(2, 400, 90)], select="largest") == [2]
    assert choose(selector, [], select="largest") == []


def test_another_selector_and_a_reset_begin_anew():
    selector = FaceSelector()
    faces = [create_face(1, 100, 100), create_face(2, 400, 130)]
    assert choose(selector, faces[:1], select="largest") == [1]
    assert choose(selector, faces, select="largest") == [1]
    assert choose(selector, faces, select="left-most") == [1]
    assert choose(selector, faces, select="largest") == [2]
    selector.reset()
    assert choose(selector, faces[:1], select="largest") == [1]


def test_names_leave_a_choice_by_size_alone():
    face = create_face(1)
    face.chosen = False
    choose_known([face], Parameters(select="largest"))
    assert not face.chosen
    choose_known([face], Parameters(select="all"))
    assert face.chosen
