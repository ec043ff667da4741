import numpy as np
import pytest

from livefuse.config import TrackConfig
from livefuse.errors import ModelError
from livefuse.frame import create_frame
from livefuse.geometry import compute_iou
from livefuse.pipeline.analysis.track import FaceTracker
from tests.unit.pipeline.scenes import (
    FRAME_TICKS,
    FakeDetector,
    create_detection,
    draw_head,
    draw_noise,
)


def create_tracker(detector, *, every_n=3, light_on_change=False, full_every_n=0, **config):
    return FaceTracker(
        detector,
        TrackConfig(**config),
        every_n=every_n,
        min_score=0.5,
        light_on_change=light_on_change,
        full_every_n=full_every_n,
    )


def run_still(tracker, frames):
    """Show the same head for `frames` frames; return what the tracker said."""
    frame, _ = draw_head()
    answers = []
    for index in range(frames):
        frame.pts = index * FRAME_TICKS
        answers.append(tracker.update(frame))
    return answers


def test_the_detector_is_asked_every_n_frames_only():
    _, truth = draw_head()
    detector = FakeDetector([truth])
    answers = run_still(create_tracker(detector, every_n=4), 9)
    assert [answer.detected for answer in answers] == [True, *[False] * 3] * 2 + [True]
    assert detector.calls == 3
    assert {track.track_id for answer in answers for track in answer.tracks} == {1}
    assert [answer.tracks[0].age_frames for answer in answers] == list(range(1, 10))


def test_flow_carries_a_moving_head_between_detections():
    detector = FakeDetector([draw_head(x=200)[1]])
    tracker = create_tracker(detector, every_n=100, change_level=1000.0)
    roll = 0.0
    for index in range(15):
        frame, truth = draw_head(x=200 + 6 * index, roll=0.02 * index, pts=index * FRAME_TICKS)
        answer = tracker.update(frame)
        assert compute_iou(answer.tracks[0].box, truth.box) > 0.75
        roll = answer.tracks[0].roll_rad
    assert detector.calls == 1
    assert roll == pytest.approx(0.28, abs=0.08)


def test_a_scene_cut_forces_a_detection_and_drops_who_is_gone():
    _, truth = draw_head()
    detector = FakeDetector([truth], [])
    tracker = create_tracker(detector, every_n=100)
    run_still(tracker, 5)
    answer = tracker.update(draw_noise(640, 360, seed=99, sigma=20.0))
    assert answer.detected
    assert answer.tracks == ()
    assert not answer.lost


def test_who_steps_in_between_two_detections_is_seen_at_once():
    _, first = draw_head(x=180, scale=0.3)
    second = create_detection(480, 160, 0.3)
    detector = FakeDetector([first], [first, second])
    tracker = create_tracker(detector, every_n=100)
    alone, _ = draw_head(x=180, scale=0.3)
    for _ in range(3):
        assert len(tracker.update(alone).tracks) == 1
    both, _ = draw_head(x=480, scale=0.3)
    both.y[:, :330] = alone.y[:, :330]
    answer = tracker.update(both)
    assert answer.detected
    assert len(answer.tracks) == 2


def test_two_heads_that_move_keep_their_ids():
    def truth(index):
        return [
            create_detection(150 + 5 * index, 170, 0.25),
            create_detection(480 - 5 * index, 190, 0.25),
        ]

    detector = FakeDetector(*[truth(index) for index in range(30)])
    tracker = create_tracker(detector, every_n=1)
    for index in range(30):
        left, _ = draw_head(x=150 + 5 * index, y=170, scale=0.25)
        right, _ = draw_head(x=480 - 5 * index, y=190, scale=0.25)
        middle = 320
        right.y[:, :middle] = left.y[:, :middle]
        tracks = {track.track_id: track for track in tracker.update(right).tracks}
        assert set(tracks) == {1, 2}
        assert compute_iou(tracks[1].box, truth(index)[0].box) > 0.5
        assert compute_iou(tracks[2].box, truth(index)[1].box) > 0.5


def test_a_blind_detector_does_not_unveil_a_face_that_is_still_there():
    _, truth = draw_head()
    detector = FakeDetector(*[[truth]] * 4, [])
    answers = run_still(create_tracker(detector, every_n=1, hold_frames=3), 60)
    assert all(len(answer.tracks) == 1 for answer in answers)
    assert not any(answer.lost for answer in answers)
    assert answers[-1].tracks[0].missed > 0


def test_a_lost_face_is_held_then_the_whole_picture_is_wanted_covered():
    _, truth = draw_head()
    detector = FakeDetector(*[[truth]] * 4, [])
    tracker = create_tracker(detector, every_n=1, hold_frames=5, change_level=1000.0)
    run_still(tracker, 4)
    answers = []
    for index in range(14):
        # The background stays, so that it is no cut; where the head was, something ever new.
        frame, _ = draw_head()
        noise = draw_noise(640, 360, seed=index + 50, sigma=3.0)
        frame.y[60:270, 230:410] = noise.y[60:270, 230:410]
        answers.append(tracker.update(frame))
    assert [answer.lost for answer in answers] == [False] * 5 + [True] * 5 + [False] * 4
    held = [len(answer.tracks) for answer in answers]
    assert held == [1] * 10 + [0] * 4
    assert all(answer.detected for answer in answers[:10])
    widths = [answer.tracks[0].box.width for answer in answers[:5]]
    assert widths == sorted(widths)
    assert widths[-1] > truth.box.width


def test_a_doubtful_hit_is_held_but_never_covers_the_whole_picture():
    detector = FakeDetector([create_detection(320, 160)], [])
    tracker = create_tracker(detector, every_n=1, hold_frames=5)
    answers = [tracker.update(draw_noise(640, 360)) for _ in range(12)]
    assert not any(answer.lost for answer in answers)
    assert len(answers[4].tracks) == 1
    assert answers[-1].tracks == ()


def test_who_leaves_over_the_edge_takes_the_cover_along():
    steps = [60 - 12 * index for index in range(14)]
    seen = [[create_detection(x, 160)] for x in steps[:4]]
    tracker = create_tracker(FakeDetector(*seen, []), every_n=1, hold_frames=4)
    answers = []
    for index, x in enumerate(steps):
        frame, _ = draw_head(x=x, pts=index * FRAME_TICKS)
        answers.append(tracker.update(frame))
    assert not any(answer.lost for answer in answers)
    assert answers[-1].tracks == ()


def test_a_noisy_score_does_not_flicker():
    scores = [0.9, 0.4, 0.35, 0.6, 0.32, 0.45]
    detector = FakeDetector(*[[create_detection(320, 160, score=score)] for score in scores])
    answers = run_still(create_tracker(detector, every_n=1), 6)
    assert [len(answer.tracks) for answer in answers] == [1] * 6
    assert all(answer.tracks[0].missed == 0 for answer in answers)


def test_a_weak_hit_alone_is_no_face():
    detector = FakeDetector([create_detection(320, 160, score=0.45)])
    assert run_still(create_tracker(detector, every_n=1), 3)[-1].tracks == ()


def test_a_detector_that_fails_is_asked_again_at_once():
    _, truth = draw_head()
    detector = FakeDetector([truth], ModelError("no"), [truth])
    tracker = create_tracker(detector, every_n=2)
    frame, _ = draw_head()
    tracker.update(frame)
    tracker.update(frame)
    with pytest.raises(ModelError):
        tracker.update(frame)
    assert tracker.update(frame).detected
    assert detector.calls == 3


def test_a_change_may_be_met_with_a_light_look_that_counts_against_nobody():
    head, truth = draw_head(x=180, scale=0.3)
    detector = FakeDetector([truth], [])
    tracker = create_tracker(detector, every_n=3, light_on_change=True)
    tracker.update(head)
    changed, _ = draw_head(x=180, scale=0.3)
    changed.y[100:220, 480:600] //= 2
    answer = tracker.update(changed)
    assert detector.lights == [False, True]
    assert answer.tracks[0].missed == 0


def test_a_still_head_is_still_although_detector_and_camera_are_not():
    rng = np.random.default_rng(3)
    frame, truth = draw_head()
    clean = frame.y.astype(np.float32)
    noisy = [
        [create_detection(320 + rng.normal(), 160 + rng.normal(), 0.4 + rng.normal(0, 0.004))]
        for _ in range(40)
    ]
    tracker = create_tracker(FakeDetector(*noisy), every_n=3)
    marks = []
    for index in range(120):
        frame.y[:] = np.clip(clean + rng.normal(0, 2.0, clean.shape), 0, 255)
        frame.pts = index * FRAME_TICKS
        marks.append(tracker.update(frame).tracks[0].landmarks5)
    assert np.stack(marks[30:]).std(axis=0).max() < 0.5
    assert np.abs(np.mean(marks[30:], axis=0) - truth.landmarks5).max() < 1.0


def test_another_size_of_picture_begins_anew():
    _, truth = draw_head()
    detector = FakeDetector([truth], [])
    tracker = create_tracker(detector)
    run_still(tracker, 2)
    assert tracker.update(draw_noise(320, 240)).tracks == ()
    assert detector.calls == 2


def test_live_looks_are_light_but_for_one_in_so_many():
    head, truth = draw_head(x=180, scale=0.3)
    detector = FakeDetector([truth])
    tracker = create_tracker(detector, every_n=2, full_every_n=6)
    for _ in range(13):
        tracker.update(head)
    assert detector.lights == [False, True, True, False, True, True, False]


def test_a_lost_face_is_looked_for_at_the_full_size():
    head, truth = draw_head(x=180, scale=0.3)
    detector = FakeDetector([truth], [])
    tracker = create_tracker(detector, every_n=3, full_every_n=30)
    tracker.update(head)
    empty = create_frame(head.width, head.height)
    empty.y[:] = np.random.default_rng(5).integers(100, 140, empty.y.shape, np.uint8)
    tracker.update(empty)
    assert detector.lights == [False, False]


class Blind:
    """A detector that finds nobody for some looks, then the face."""

    def __init__(self, looks):
        self.looks_left = looks
        self.looks = 0

    def detect(self, frame, *, light=False):
        self.looks += 1
        self.looks_left -= 1
        return [] if self.looks_left >= 0 else [create_detection(140, 90)]


def test_a_look_that_found_nobody_is_not_believed_at_a_start():
    """(C61) The first look of a stream, or after a pause, may miss the face that is there."""
    detector = Blind(2)
    tracker = FaceTracker(detector, TrackConfig(), every_n=30, min_score=0.5)
    frame = create_frame(320, 180)
    found = []
    for number in range(8):
        frame.pts = number * 3000
        found.append(len(tracker.update(frame).tracks))
    assert found == [0, 0, 1, 1, 1, 1, 1, 1]
    detector.looks_left = 10
    before = detector.looks
    for number in range(8, 12):
        frame.pts = number * 3000 + 90_000
        tracker.update(frame)
    assert detector.looks > before, "after a pause it is looked at anew"
