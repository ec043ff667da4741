"""Warp and paste back: there and back again is the same picture, and nothing else changes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.frame import Colour, create_frame
from livefuse.geometry import create_similarity, invert_similarity
from livefuse.pipeline.effects.paste import Paster
from livefuse.pipeline.effects.warp import CropBlob, create_conversion

COLOURS = [Colour(m, r) for m in ("bt601", "bt709") for r in (False, True)]


def create_smooth_frame(width=320, height=240, colour=COLOURS[0]):
    """Return a frame without fine detail, which a warp would soften; every colour is legal."""
    frame = create_frame(width, height)
    frame.colour = colour
    rng = np.random.default_rng(5)
    for plane, low, high in ((frame.y, 90, 160), (frame.u, 110, 146), (frame.v, 110, 146)):
        coarse = rng.integers(low, high, (6, 8)).astype(np.uint8)
        plane[:] = cv2.resize(coarse, plane.shape[::-1], interpolation=cv2.INTER_LINEAR)
    return frame


def create_box_mask(size, margin=0.12):
    mask = np.zeros((size, size), np.uint8)
    rim = round(margin * size)
    mask[rim:-rim, rim:-rim] = 255
    mask = cv2.blur(mask, (rim | 1, rim | 1))
    mask[[0, -1]] = 0
    mask[:, [0, -1]] = 0
    return mask


def place_crop(size, side_px, x, y, angle=0.0):
    """Return the way from the frame to a crop whose middle is (x, y) and which shows `side_px`."""
    middle = (size - 1) / 2
    turn = create_similarity(side_px / size, angle, 0.0, 0.0)
    back = turn._replace(
        tx=x - turn.a * middle + turn.b * middle, ty=y - turn.b * middle - turn.a * middle
    )
    return invert_similarity(back)


def solve_colour(colour, rgb):
    """Return Y, U, V of an RGB triple in 0..1, from the Recommendations' own formulas."""
    kr, kb = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}[colour.matrix]
    r, g, b = rgb
    y = kr * r + (1 - kr - kb) * g + kb * b
    u, v = (b - y) / (2 * (1 - kb)), (r - y) / (2 * (1 - kr))
    if colour.full_range:
        return 255 * y, 255 * u + 128, 255 * v + 128
    return 219 * y + 16, 224 * u + 128, 224 * v + 128


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(
    "rgb", [(0.9, 0.6, 0.5), (0.2, 0.3, 0.8), (1.0, 1.0, 1.0), (0.0, 0.4, 0.1)]
)
def test_a_colour_is_painted_and_read_by_the_frames_own_matrix(colour, rgb):
    frame = create_frame(64, 64)
    frame.colour = colour
    size, to_crop = 32, place_crop(32, 48, 31.5, 31.5)
    crop = np.broadcast_to(np.array(rgb, np.float32).reshape(3, 1, 1), (3, size, size)).copy()
    Paster().paste(frame, crop, to_crop, create_box_mask(size))
    painted = [float(p[s, s]) for p, s in ((frame.y, 32), (frame.u, 16), (frame.v, 16))]
    assert painted == pytest.approx(solve_colour(colour, rgb), abs=1.0)
    seen = CropBlob(size).read(frame, to_crop)[0, :, 16, 16]
    assert seen.tolist() == pytest.approx(rgb, abs=0.012)


def test_a_blob_has_its_mean_and_deviation():
    frame = create_smooth_frame()
    to_crop = place_crop(64, 120, 150, 120, 0.3)
    plain = CropBlob(64).read(frame, to_crop)[0].copy()
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    blob = CropBlob(64, mean, std).read(frame, to_crop)[0]
    for index in range(3):
        expected = (plain[index] - mean[index]) / std[index]
        np.testing.assert_allclose(blob[index], expected, atol=2e-5)


@pytest.mark.parametrize("size", [64, 128, 256, 512])
@pytest.mark.parametrize("colour", COLOURS)
def test_there_and_back_is_the_same_picture(size, colour):
    """R16, R19: a crop that is pasted as it was read changes nothing by more than rounding."""
    frame = create_smooth_frame(colour=colour)
    before = frame.buffer.copy()
    to_crop = place_crop(size, 130, 163.2, 118.7, 0.4)
    crop = CropBlob(size).read(frame, to_crop)[0].copy()
    Paster().paste(frame, crop, to_crop, create_box_mask(size))
    difference = np.abs(frame.buffer.astype(np.int16) - before)
    # A crop smaller than what it shows softens where the coarse picture bends.
    assert difference.max() <= (2 if size >= 128 else 3)


@settings(max_examples=40, deadline=None)
@given(
    x=st.floats(-40, 360),
    y=st.floats(-40, 280),
    side=st.floats(6, 400),
    angle=st.floats(-3.1, 3.1),
    size=st.sampled_from([32, 64]),
)
def test_what_the_mask_does_not_reach_keeps_its_values(x, y, side, angle, size):
    """R39, C48: outside the mask the frame is the input bit for bit, wherever the crop lies."""
    frame = create_smooth_frame()
    before = [plane.copy() for plane in (frame.y, frame.u, frame.v)]
    to_crop = place_crop(size, side, x, y, angle)
    crop = np.zeros((3, size, size), np.float32)
    crop[0] = 1.0
    mask = create_box_mask(size)
    Paster().paste(frame, crop, to_crop, mask)
    reach = mask.copy()
    reach[reach > 0] = 255
    matrix = np.array([[to_crop.a, -to_crop.b, to_crop.tx], [to_crop.b, to_crop.a, to_crop.ty]])
    reached = cv2.warpAffine(
        cv2.dilate(reach, np.ones((3, 3), np.uint8)),
        matrix,
        (320, 240),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
    )
    near = cv2.dilate(reached, np.ones((5, 5), np.uint8)) > 0
    changed = frame.y != before[0]
    assert not changed[~near].any()
    half = near.reshape(120, 2, 160, 2).any(axis=(1, 3))
    for plane, was in zip((frame.u, frame.v), before[1:], strict=True):
        assert not (plane != was)[~half].any()


def test_a_mask_of_nought_changes_nothing():
    frame = create_smooth_frame()
    before = frame.buffer.copy()
    Paster().paste(
        frame,
        np.ones((3, 64, 64), np.float32),
        place_crop(64, 100, 160, 120),
        np.zeros((64, 64), np.uint8),
    )
    assert (frame.buffer == before).all()


@pytest.mark.parametrize("ratio", [2, 4])
def test_a_smaller_mask_is_the_same_mask_softer(ratio):
    size, to_crop = 128, place_crop(128, 150, 160, 120, 0.2)
    mask = create_box_mask(size, 0.2)
    small = cv2.resize(mask, (size // ratio,) * 2, interpolation=cv2.INTER_AREA)
    frames = []
    for one in (mask, small):
        frame = create_smooth_frame()
        Paster().paste(frame, np.ones((3, size, size), np.float32), to_crop, one)
        frames.append(frame.buffer.astype(np.int16))
    assert np.abs(frames[0] - frames[1]).max() <= 4 * ratio


def test_a_large_crop_is_not_aliased():
    """A 1024 px crop on 100 px of frame: a fine chequer becomes grey, not moire."""
    frame = create_frame(200, 200)
    size = 1024
    chequer = (np.indices((size, size)).sum(axis=0) // 4 % 2).astype(np.float32)
    crop = np.broadcast_to(chequer, (3, size, size)).copy()
    Paster().paste(frame, crop, place_crop(size, 100, 100, 100), create_box_mask(size))
    core = frame.y[80:120, 80:120].astype(np.float32)
    assert abs(core.mean() - (16 + 219 / 2)) < 3
    assert core.std() < 6


def test_a_conversion_and_its_way_back_agree():
    for colour in COLOURS:
        way = create_conversion(colour)
        rng = np.random.default_rng(1)
        for rgb in rng.random((20, 3)):
            y, u, v = (
                float(np.dot(row, rgb)) + offset
                for row, offset in zip(way.back, way.back_offsets, strict=True)
            )
            red = way.luma * y + way.red_by_v * v + way.offsets[0]
            green = way.luma * y + way.green_by_u * u + way.green_by_v * v + way.offsets[1]
            blue = way.luma * y + way.blue_by_u * u + way.offsets[2]
            assert (red, green, blue) == pytest.approx(tuple(rgb), abs=1e-9)
