"""Templates: aligning and back again (R16)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.geometry import apply_similarity, create_similarity, invert_similarity
from livefuse.pipeline.templates import TEMPLATES, fit_template, get_template

SIZES = (112, 128, 150, 192, 256, 512, 1024)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_five_points_of_a_face_within_the_crop(name):
    left, right, nose, mouth_left, mouth_right = get_template(name)
    assert left[0] < nose[0] < right[0]
    assert mouth_left[0] < nose[0] < mouth_right[0]
    assert max(left[1], right[1]) < nose[1] < min(mouth_left[1], mouth_right[1])
    assert abs(left[1] - right[1]) < 0.01
    assert get_template(name).min() > 0.1
    assert get_template(name).max() < 0.9
    assert not get_template(name).flags.writeable


def test_an_unknown_template_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="ffhq_512"):
        get_template("ffhq")


@given(
    name=st.sampled_from(sorted(TEMPLATES)),
    size=st.sampled_from(SIZES),
    scale=st.floats(10, 2000),
    angle=st.floats(-3.1, 3.1),
    place=st.tuples(st.floats(-500, 4000), st.floats(-500, 3000)),
    noise=st.integers(0, 2**32 - 1),
)
def test_align_and_its_inverse_agree_within_a_px(name, size, scale, angle, place, noise):
    """Any face, anywhere, any template and size: there and back is the same place (R16)."""
    rng = np.random.default_rng(noise)
    points = get_template(name) + rng.normal(0, 0.02, (5, 2))
    face = apply_similarity(create_similarity(scale, angle, *place), points)
    to_crop = fit_template(face, name, size)
    back = invert_similarity(to_crop)
    inside = rng.uniform(0, size, (50, 2)).astype(np.float32)
    # The tolerance is a px of the crop, or of the frame where that is the coarser.
    there = apply_similarity(to_crop, apply_similarity(back, inside))
    assert np.abs(there - inside).max() < 1.0
    assert np.abs(apply_similarity(back, apply_similarity(to_crop, face)) - face).max() < 1.0


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("size", SIZES)
def test_a_face_that_is_the_template_lands_on_it(name, size):
    turned = create_similarity(3.0, 0.7, 100.0, 50.0)
    face = apply_similarity(turned, get_template(name) * 80)
    placed = apply_similarity(fit_template(face, name, size), face)
    assert np.abs(placed - get_template(name) * size).max() < 0.01


def test_dlibs_template_is_its_chip_with_a_quarter_around():
    assert get_template("dlib_150")[0] == pytest.approx(
        ((0.2255 + 0.25) / 1.5, (0.2160 + 0.25) / 1.5)
    )
