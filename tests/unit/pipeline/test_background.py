import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import BackgroundConfig, Config
from livefuse.errors import ConfigError, ModelError
from livefuse.frame import Colour, create_frame
from livefuse.pipeline.analysis.person import SIDE, PersonMask, calm_mask, read_probability
from livefuse.pipeline.background_step import BackgroundStep
from livefuse.pipeline.effects.background import (
    Background,
    create_planes,
    fill_frame,
    load_background,
)
from livefuse.pipeline.planes import convert_colour
from livefuse.pipeline.state import FrameState
from livefuse.token import create_token
from tests.faces import create_face_frame, create_pipeline
from tests.unit.pipeline.scenes import FakeNetwork, draw_noise

SIZE = (640, 360)


def create_mask(left, right):
    """A network's answer: a person between two columns (of 256)."""
    mask = np.zeros((1, SIDE, SIDE, 1), np.float32)
    mask[:, :, left:right] = 1.0
    return mask


def create_step(*outputs, **config):
    return BackgroundStep(FakeNetwork(*outputs), BackgroundConfig(**config))


def run_step(step, frame, *, is_cut=False):
    state = FrameState(frame, create_token(["background"], now_epoch_s=0.0), is_cut=is_cut)
    step.run(state)
    return state


def copy_planes(frame):
    return frame.y.copy(), frame.u.copy(), frame.v.copy()


def measure_detail(plane):
    return float(cv2.Laplacian(np.ascontiguousarray(plane), cv2.CV_32F).std())


@pytest.fixture
def striped(tmp_path):
    """A wide PNG: red, green, blue from left to right."""
    picture = np.zeros((90, 320, 3), np.uint8)
    picture[:, :107, 2] = picture[:, 107:213, 1] = picture[:, 213:, 0] = 255
    path = tmp_path / "stripes.png"
    assert cv2.imwrite(str(path), picture)
    return str(path)


def test_strength_0_is_the_input_bit_for_bit():
    frame = draw_noise(*SIZE)
    before = frame.buffer.copy()
    network = FakeNetwork(create_mask(0, 0))
    state = run_step(BackgroundStep(network, BackgroundConfig(strength=0.0)), frame)
    assert state.did == "off"
    assert network.feeds == []
    np.testing.assert_array_equal(frame.buffer, before)


def test_the_person_stays_bit_for_bit_and_the_rest_is_blurred():
    frame = draw_noise(*SIZE, sigma=1.5)
    y, u, v = copy_planes(frame)
    state = run_step(create_step(create_mask(96, 160)), frame)
    inner = slice(290, 350)  # the middle of 240..400
    np.testing.assert_array_equal(frame.y[:, inner], y[:, inner])
    half = slice(145, 175)
    np.testing.assert_array_equal(frame.u[:, half], u[:, half])
    np.testing.assert_array_equal(frame.v[:, half], v[:, half])
    assert measure_detail(frame.y[:, :180]) < measure_detail(y[:, :180]) / 10
    assert measure_detail(frame.y[:, 460:]) < measure_detail(y[:, 460:]) / 10
    assert state.person_mask is not None
    assert state.person_mask[:, state.person_mask.shape[1] // 2].min() == 255
    assert state.person_mask[:, 0].max() == 0


def test_nobody_glows_into_the_wall():
    """A white person before a black wall: the blur counts the wall only."""
    frame = create_frame(*SIZE)
    frame.y[:, 240:400] = 235
    run_step(create_step(create_mask(96, 160), strength=1.0), frame)
    assert frame.y[:, 180:225].max() <= 24
    assert frame.y[:, 300:340].min() == 235


@pytest.mark.parametrize(
    "output",
    [
        np.zeros((1, SIDE, SIDE, 1), np.float32),
        np.ones((1, SIDE, SIDE, 1), np.float32),
        np.full((1, SIDE, SIDE, 1), np.nan, np.float32),
        np.full((1, SIDE, SIDE, 1), 0.5, np.float32),
    ],
    ids=["nobody", "all", "nan", "flat"],
)
def test_a_room_is_hidden_when_nobody_can_be_made_out(output):
    frame = draw_noise(*SIZE, sigma=1.5)
    y = frame.y.copy()
    state = run_step(create_step(output), frame)
    assert state.person_mask is not None
    assert state.person_mask.max() == 0
    assert measure_detail(frame.y) < measure_detail(y) / 10


def test_a_room_is_hidden_when_the_network_fails():
    class Broken(FakeNetwork):
        def run(self, feeds, *, expect=None):
            raise ModelError("inference failed")

    frame = draw_noise(*SIZE, sigma=1.5)
    y = frame.y.copy()
    state = run_step(BackgroundStep(Broken(), BackgroundConfig()), frame)
    assert "inference failed" in state.did
    assert measure_detail(frame.y) < measure_detail(y) / 10


def test_another_network_is_refused_before_the_first_frame():
    step = create_step(np.zeros((1, 5), np.float32))
    with pytest.raises(ModelError, match="not a person network"):
        step.prepare(create_token(["background"], now_epoch_s=0.0))


def test_the_network_looks_at_every_second_frame_and_at_new_scenes():
    network = FakeNetwork(create_mask(96, 160))
    step = BackgroundStep(network, BackgroundConfig(every_n=2))
    counts = []
    for seed, is_cut in ((1, False), (1, False), (1, False), (1, True), (1, False), (9, False)):
        run_step(step, draw_noise(*SIZE, seed=seed, sigma=20.0), is_cut=is_cut)
        counts.append(len(network.feeds))
    assert counts == [1, 1, 2, 3, 3, 4]
    assert network.feeds[0]["input"].shape == (1, SIDE, SIDE, 3)
    assert 0.0 <= network.feeds[0]["input"].min() <= network.feeds[0]["input"].max() <= 1.0


def test_a_new_size_is_no_hindrance():
    step = create_step(create_mask(96, 160))
    for size in ((640, 360), (320, 240), (1280, 720), (2, 2), (18, 600)):
        frame = draw_noise(*size)
        state = run_step(step, frame)
        assert not state.error


def test_small_changes_are_calmed_and_large_ones_believed_at_once():
    calm = np.full((SIDE, SIDE), 0.5, np.float32)
    raw = calm.copy()
    raw[0, 0], raw[0, 1] = 0.52, 1.0
    moved = calm_mask(calm, raw)
    assert moved[0, 0] == pytest.approx(0.5 + 0.02 * 0.3, abs=1e-6)
    assert moved[0, 1] == pytest.approx(1.0)
    assert moved[1, 1] == 0.5


def test_noise_of_the_network_hardly_reaches_the_mask():
    rng = np.random.default_rng(3)
    base = cv2.GaussianBlur(create_mask(96, 160)[0, :, :, 0], (0, 0), 12)
    calm, raw_changes, changes = base, [], []
    last = base
    for _ in range(12):
        raw = np.clip(base + rng.normal(0, 0.03, base.shape), 0, 1).astype(np.float32)
        new = calm_mask(calm, raw)
        raw_changes.append(np.abs(raw - last).mean())
        changes.append(np.abs(new - calm).mean())
        calm, last = new, raw
    assert np.mean(changes[3:]) < 0.5 * np.mean(raw_changes[3:])


def test_numbers_outside_0_to_1_are_clipped():
    output = create_mask(96, 160) * 7 - 2
    probability = read_probability(output)
    assert probability is not None
    assert (probability.min(), probability.max()) == (0.0, 1.0)


def test_the_border_follows_the_picture():
    """The network is a few px off; the mask's border goes to the edge that is in the picture."""
    small = create_frame(320, 180)
    small.y[:, :] = 60
    small.y[:, 160:] = 200
    raw = np.zeros((1, SIDE, SIDE, 1), np.float32)
    raw[:, :, 126:] = 1.0  # column 157.5 of 320, where the edge is at 160
    mask = PersonMask(FakeNetwork(raw), 2).find(small)
    row = mask[90].astype(int)
    assert row[:158].max() < 100
    assert row[162:].min() > 200


@pytest.mark.parametrize("size", [(1280, 720), (360, 640), (100, 100)])
def test_a_picture_fills_the_frame_without_bars(size, striped):
    picture = load_background(striped)
    filled = fill_frame(picture, *size)
    assert filled.shape == (size[1], size[0], 3)
    assert filled.max(axis=2).min() > 100  # no black anywhere
    assert filled[size[1] // 2, size[0] // 2].argmax() == 1  # its middle is the middle


@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
def test_the_picture_stands_behind_the_person(matrix, striped):
    frame = draw_noise(*SIZE)
    frame.colour = Colour(matrix=matrix)
    y, u, _ = copy_planes(frame)
    run_step(create_step(create_mask(96, 160), style="picture", picture=striped), frame)
    green = [int(value) for value in convert_colour((0, 255, 0), frame.colour)]
    # 640 x 360 shows the middle 160 of its 320 columns: 80..240, so red ends at 108, blue from 532.
    assert abs(int(frame.y[180, 200]) - green[0]) <= 1
    assert abs(int(frame.u[90, 100]) - green[1]) <= 1
    assert frame.v[90, 20] > 200
    np.testing.assert_array_equal(frame.y[:, 290:350], y[:, 290:350])
    np.testing.assert_array_equal(frame.u[:, 145:175], u[:, 145:175])


def test_planes_of_a_picture_have_its_colours():
    bgr = np.full((4, 6, 3), (10, 200, 30), np.uint8)
    y, u, v = create_planes(bgr, Colour())
    expected = convert_colour((30, 200, 10), Colour())
    assert (y.shape, u.shape, v.shape) == ((4, 6), (2, 3), (2, 3))
    assert (int(y[0, 0]), int(u[0, 0]), int(v[0, 0])) == tuple(int(value) for value in expected)


@pytest.mark.parametrize("content", [None, b"", b"no picture"])
def test_a_picture_that_cannot_be_had_is_told_at_the_start(content, tmp_path):
    path = ""
    if content is not None:
        path = str(tmp_path / "some.png")
        (tmp_path / "some.png").write_bytes(content)
    with pytest.raises(ConfigError, match="picture"):
        Background(BackgroundConfig(style="picture", picture=path))
    with pytest.raises(ConfigError, match="cannot read"):
        load_background(str(tmp_path / "missing.png"))


def test_a_real_person_is_kept_and_the_flag_behind_her_is_not():
    config = msgspec.structs.replace(Config(), background=BackgroundConfig(strength=0.8))
    pipeline = create_pipeline(config, every_frame=True)
    token = create_token(["background"], now_epoch_s=0.0)
    pipeline.prepare(token)
    frame = create_face_frame(120, (640, 360))
    y = frame.y.copy()
    outcome = pipeline.process(frame, token)
    assert outcome.vouched
    assert np.mean(frame.y[150:200, 290:350] != y[150:200, 290:350]) < 0.02
    assert measure_detail(frame.y[:200, :120]) < measure_detail(y[:200, :120]) / 4
