"""Pictures of any size, format and colour end on the job's one canvas."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from livefuse.frame import Colour, create_frame
from livefuse.ingest.canvas import Canvas, choose_colour
from livefuse.ingest.hdr import create_tables

BT709, BT601, BT2020 = 1, 5, 9
LIMITED, FULL = 1, 2
PQ, HLG = 16, 18


def view(plane: Any, kind: Any = np.uint8):
    return np.frombuffer(plane, kind)


def make_picture(width, height, *, pixel_format="yuv420p", matrix=BT709, span=LIMITED, values=None):
    """A picture whose luma rises from left to right, or of one colour; chroma (90, 200)."""
    frame = av.VideoFrame(width, height, pixel_format)
    deep = "10" in pixel_format
    for i, plane in enumerate(frame.planes):
        lines = view(plane, np.uint16 if deep else np.uint8)
        lines = lines.reshape(-1, plane.line_size // (2 if deep else 1))
        if values is not None:
            lines[:] = values[i] * (4 if deep else 1)
        elif i == 0:
            lines[:] = np.linspace(16, 235, lines.shape[1]).astype(int) * (4 if deep else 1)
        else:
            lines[:] = (90, 200)[i - 1] * (4 if deep else 1)
    frame.colorspace, frame.color_range = matrix, span
    return frame


def fill(canvas, picture):
    target = create_frame(canvas.width, canvas.height)
    target.buffer[:] = 77
    canvas.fill(picture, target)
    target.fill_planes()
    return target


def get_luma(picture):
    plane = picture.planes[0]
    lines = view(plane).reshape(-1, plane.line_size)
    return lines[:, : picture.width]


def test_picture_that_fits_is_copied_bit_for_bit():
    picture = make_picture(646, 360)
    canvas = Canvas(picture)
    target = fill(canvas, picture)
    assert np.array_equal(target.y, get_luma(picture))
    assert (target.u == 90).all()
    assert (target.v == 200).all()
    assert target.colour == Colour("bt709", full_range=False)
    assert canvas.notes == ()


@pytest.mark.parametrize(("width", "height"), [(1919, 975), (853, 480), (641, 361)])
def test_odd_sides_are_cropped_to_even_ones_and_it_is_said(width, height):
    """C47."""
    picture = make_picture(width, height)
    canvas = Canvas(picture)
    target = fill(canvas, picture)
    assert (canvas.width, canvas.height) == (width & ~1, height & ~1)
    assert np.array_equal(target.y, get_luma(picture)[: canvas.height, : canvas.width])
    assert f"cropped from {width}x{height}" in canvas.notes[0]


@pytest.mark.parametrize(
    ("first", "later"), [((640, 360), (1920, 1080)), ((1920, 1080), (640, 360))]
)
def test_size_that_jumps_is_scaled_into_the_first_ones_canvas(first, later):
    """C45."""
    canvas = Canvas(make_picture(*first))
    big = make_picture(*later)
    target = fill(canvas, big)
    assert (target.width, target.height) == first
    ramp = target.y[first[1] // 2].astype(int)
    assert abs(ramp[0] - 16) <= 2
    assert abs(ramp[-1] - 235) <= 2
    assert np.abs(ramp - np.linspace(16, 235, first[0])).max() <= 3
    assert (target.u == 90).all()
    back = make_picture(*first)
    assert np.array_equal(fill(canvas, back).y, get_luma(back))


def test_other_shape_is_letterboxed_with_black_margins():
    """C45."""
    canvas = Canvas(make_picture(640, 360))
    target = fill(canvas, make_picture(480, 480, values=(200, 90, 200)))
    assert (target.y[:, :140] == 16).all()
    assert (target.y[:, 500:] == 16).all()
    assert (target.y[:, 142:498] == 200).all()
    assert (target.u[:, :70] == 128).all()
    assert (target.u[:, 71:249] == 90).all()


def test_canvas_may_be_asked_for_by_size():
    picture = make_picture(640, 360)
    canvas = Canvas(picture, size="320x241")
    assert (canvas.width, canvas.height) == (320, 240)
    assert "fitted into 320x240" in canvas.notes[0]
    target = fill(canvas, picture)
    assert (target.y[:28] == 16).all()


@pytest.mark.parametrize(("matrix", "name"), [(BT709, "bt709"), (BT601, "bt601")])
@pytest.mark.parametrize(
    ("pixel_format", "span"),
    [
        *itertools.product(("yuv420p", "yuv422p", "yuv444p", "nv12"), (LIMITED, FULL)),
        ("yuvj420p", FULL),
        ("yuvj422p", FULL),
    ],
)
def test_bars_keep_their_values_and_their_tags(pixel_format, matrix, name, span):
    """C48."""
    for values in ((81, 90, 240), (145, 54, 34), (41, 240, 110), (235, 128, 128)):
        picture = make_picture(128, 96, pixel_format=pixel_format, matrix=matrix, span=span)
        for plane, value in zip(picture.planes, values, strict=False):
            view(plane)[:] = value
        if pixel_format == "nv12":
            pairs = view(picture.planes[1])
            pairs[0::2], pairs[1::2] = values[1], values[2]
        target = fill(Canvas(picture), picture)
        assert target.colour == Colour(name, full_range=span == FULL)
        for plane, value in zip((target.y, target.u, target.v), values, strict=True):
            assert np.abs(plane.astype(int) - value).max() <= 2


def test_later_pictures_of_another_matrix_are_converted_to_the_jobs():
    """C48."""
    canvas = Canvas(make_picture(128, 96, matrix=BT709))
    red_601 = make_picture(128, 96, matrix=BT601, values=(81, 90, 240))
    target = fill(canvas, red_601)
    assert target.colour.matrix == "bt709"
    for plane, value in zip((target.y, target.u, target.v), (63, 102, 240), strict=True):
        assert np.abs(plane.astype(int) - value).max() <= 2


def test_later_pictures_of_full_range_are_converted_to_the_jobs():
    """C48."""
    canvas = Canvas(make_picture(128, 96))
    target = fill(canvas, make_picture(128, 96, span=FULL, values=(255, 128, 128)))
    assert not target.colour.full_range
    assert np.abs(target.y.astype(int) - 235).max() <= 2


@pytest.mark.parametrize(("height", "matrix"), [(480, "bt601"), (720, "bt709")])
def test_untagged_colour_follows_the_height(height, matrix):
    assert choose_colour(make_picture(640, height, matrix=2, span=0)) == Colour(
        matrix, full_range=False
    )


def test_rgb_becomes_limited_range():
    rgb = np.zeros((64, 64, 3), np.uint8)
    rgb[..., 0] = 255
    picture = av.VideoFrame.from_ndarray(rgb, "rgb24")
    target = fill(Canvas(picture), picture)
    assert target.colour == Colour("bt601", full_range=False)
    for plane, value in zip((target.y, target.u, target.v), (81, 90, 240), strict=True):
        assert np.abs(plane.astype(int) - value).max() <= 2


def test_ten_bits_become_eight_and_it_is_said():
    """C49."""
    picture = make_picture(128, 96, pixel_format="yuv420p10le")
    canvas = Canvas(picture)
    target = fill(canvas, picture)
    assert "8 bits" in canvas.notes[0]
    assert np.abs(target.y[0].astype(int) - np.linspace(16, 235, 128)).max() <= 2
    assert np.abs(target.u.astype(int) - 90).max() <= 1


@pytest.mark.parametrize(("transfer", "white"), [(PQ, 148), (HLG, 180)])
def test_hdr_is_tone_mapped_and_it_is_said(transfer, white):
    """C49: diffuse white (203 cd/m2, 58 % PQ or 75 % HLG) is bright, black stays black."""
    picture = make_picture(
        128, 96, pixel_format="yuv420p10le", matrix=BT2020, values=(white, 128, 128)
    )
    picture.color_trc = transfer
    canvas = Canvas(picture)
    target = fill(canvas, picture)
    assert "tone-mapped" in canvas.notes[0]
    assert canvas.colour == Colour("bt709", full_range=False)
    assert 200 <= target.y.mean() <= 232
    assert np.abs(target.u.astype(int) - 128).max() <= 1


@pytest.mark.parametrize("transfer", ["pq", "hlg"])
def test_tone_curve_rises_from_black_to_white(transfer):
    table, gains = create_tables(transfer, full_range=False)
    assert table[16] == 16
    assert table[235] >= 230
    assert (np.diff(table.astype(int)) >= 0).all()
    assert gains.max() <= 3


@pytest.mark.parametrize(("width", "shown"), [(720, (768, 576)), (352, (374, 288))])
def test_pixels_that_are_not_square_are_made_square(width, shown):
    picture = make_picture(width, shown[1])
    canvas = Canvas(picture, aspect=Fraction(16, 15))
    assert (canvas.width, canvas.height) == shown
    target = fill(canvas, picture)
    assert np.abs(target.y[5].astype(int) - np.linspace(16, 235, canvas.width)).max() <= 3
    assert any("16:15" in note for note in canvas.notes)
