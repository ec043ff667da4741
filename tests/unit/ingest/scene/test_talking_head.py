"""The talking head: it is a face, it blinks, speaks and moves, whatever the size."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from livefuse.frame import create_frame
from livefuse.ingest.scene import face_phases, speech
from livefuse.ingest.scene.talking_head import (
    TalkingHead,
    compute_base_fields,
    compute_movement,
    load_portrait,
)


@pytest.fixture(scope="module")
def portrait():
    return load_portrait()


def test_closed_mouth_and_open_eyes_are_the_portrait(portrait):
    for change in (face_phases.open_mouth, face_phases.close_eyes):
        difference = np.abs(change(portrait, 0.0).astype(int) - portrait)
        assert difference.mean() < 0.05


@pytest.mark.parametrize(
    ("change", "box"),
    [
        (face_phases.open_mouth, face_phases.MOUTH_BOX),
        (face_phases.close_eyes, face_phases.EYES_BOX),
    ],
)
def test_a_phase_changes_its_box_only_and_leaves_no_seam(portrait, change, box):
    left, top, right, bottom = box
    changed = change(portrait, 1.0).astype(int)
    difference = np.abs(changed - portrait).max(axis=2)
    assert difference[top:bottom, left:right].max() > 60
    for rim in (
        difference[top, left:right],
        difference[bottom - 1, left:right],
        difference[top:bottom, left],
        difference[top:bottom, right - 1],
    ):
        assert rim.max() <= 6
    difference[top:bottom, left:right] = 0
    assert difference.max() == 0


def test_an_open_mouth_is_dark_and_closed_eyes_are_skin(portrait):
    gap = face_phases.open_mouth(portrait, 1.0)[396:404, 620:644]
    assert gap.mean() < 70 < portrait[396:404, 620:644].mean()
    pupil = (slice(261, 268), slice(576, 584))
    closed = face_phases.close_eyes(portrait, 1.0)
    assert closed[pupil].mean() > portrait[pupil].mean() + 20


def test_movement_is_smooth_and_stays_in_bounds():
    times_s = np.arange(0, 60, 1 / 30)
    weights = np.array([compute_movement(time_s) for time_s in times_s])
    assert np.abs(weights[:, 0]).max() <= 33.0
    assert np.abs(weights[:, 2]).max() < np.radians(5)
    assert weights[:, 3].min() >= -1e-6, "it never goes so far that the picture's rim shows"
    assert np.abs(np.diff(weights[:, 0])).max() < 1.5, "px from frame to frame"


def test_the_field_fades_out_at_the_rim_and_never_folds():
    xs = np.arange(336, 945, 8).astype(np.float32)
    ys = np.arange(0, 641, 8).astype(np.float32)
    bases = compute_base_fields(xs, ys)
    for base in bases:
        assert np.abs(base[-1]).max() < 1e-3
        assert np.abs(base[:, 0]).max() < 1e-3
        assert np.abs(base[:, -1]).max() < 1e-3
    for time_s in np.arange(0, 40, 0.7):
        field = np.tensordot(compute_movement(time_s), bases, 1)
        assert (np.diff(field[..., 0], axis=1) > -8).all()
        assert (np.diff(field[..., 1], axis=0) > -8).all()


def test_it_blinks_now_and_then_and_pauses_between_phrases():
    times_s = np.arange(0, 60, 1 / 30)
    closed = np.array([speech.compute_blink(time_s) for time_s in times_s])
    blinks = np.flatnonzero((closed[1:] > 0) & (closed[:-1] == 0))
    assert 15 <= len(blinks) <= 30
    assert 0.9 < closed.max() <= 1.0
    loudness = speech.compute_loudness(times_s)
    assert 0.0 <= loudness.min() < 0.01
    assert 0.8 < loudness.max() <= 1.0
    assert 0.2 < (loudness < 0.02).mean() < 0.6


def test_the_head_is_drawn_whole_and_only_a_little_elsewhere(portrait):
    luma = cv2.cvtColor(portrait, cv2.COLOR_BGR2GRAY)[40:480, 440:840].astype(float)
    frame = create_frame(1280, 720)
    head = TalkingHead(1280, 720)
    for time_s in (0.0, 1.7, 6.1):
        head.draw(frame, time_s)
        shown = cv2.matchTemplate(frame.y, luma.astype(np.uint8), cv2.TM_CCOEFF_NORMED)
        _, likeness, _, place = cv2.minMaxLoc(shown)
        assert likeness > 0.7
        assert abs(place[0] - 440) < 40
        assert abs(place[1] - 40) < 30


@pytest.mark.parametrize("size", [(1280, 720), (320, 180), (640, 480), (480, 640), (1920, 1080)])
def test_any_size_shows_the_head_in_the_middle(size):
    frame = create_frame(*size)
    head = TalkingHead(*size)
    head.draw(frame, 0.0)
    first = frame.y.copy()
    head.draw(frame, 1.7)
    moved = np.abs(first.astype(int) - frame.y) > 12
    assert moved.mean() > 0.01
    columns = np.flatnonzero(moved.any(axis=0))
    middle = size[0] / 2
    assert columns.min() < middle < columns.max()
    # Skin and suit are warm: red over blue on the whole.
    assert frame.v.mean() > frame.u.mean()
