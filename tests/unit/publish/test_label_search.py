"""The visible label is seen where it is, and nowhere else."""

import numpy as np
import pytest

from livefuse.config import MarkConfig
from livefuse.publish.label_search import MIN_SCORE, find_label
from livefuse.publish.mark import Label
from tests.mark_chains import LIVE, get_luma, send_through
from tests.mark_scenes import SCENES, list_frames

SCENE_NAMES = ("still_face", "text_white", "bars_noise", "portrait_still")


def draw(scene, **config):
    (frame,) = list_frames(SCENES[scene], 1)
    Label(MarkConfig(**config)).draw(frame)
    return frame


@pytest.mark.parametrize("scene", SCENE_NAMES)
def test_it_is_seen_on_any_ground_and_only_where_it_is(scene):
    (bare,) = list_frames(SCENES[scene], 1)
    assert find_label(bare.y).score < 0.55
    found = find_label(draw(scene).y)
    assert found.score > 0.85
    assert found.share == pytest.approx(0.05, rel=0.08)


@pytest.mark.parametrize(
    ("corner", "height"),
    [("top-left", 0.05), ("top-right", 0.08), ("bottom-left", 0.12), ("bottom-right", 0.2)],
)
def test_each_corner_and_height_is_known(corner, height):
    found = find_label(draw("still_face", corner=corner, height=height).y)
    assert found.is_label
    assert found.share == pytest.approx(height, rel=0.15)  # the widest fill the picture


def test_a_mirrored_label_is_one():
    found = find_label(draw("still_face").y[:, ::-1])
    assert found.is_label
    assert found.is_mirrored


def test_it_is_seen_after_an_encode_at_a_low_rate_and_a_crop():
    buffers = send_through([draw("still_face").buffer] * 5, 500, LIVE)
    assert find_label(get_luma(buffers[-1])[70:, 120:]).is_label


@pytest.mark.parametrize("shape", [(4, 4), (10, 2000), (180, 320), (90, 20)])
def test_empty_and_odd_pictures_have_none(shape):
    for luma in (0, 128, 255):
        assert find_label(np.full(shape, luma, np.uint8)).score < MIN_SCORE
