"""Restorers: each row is fed and read as the table of facts has it, on stand-ins; what was gained
is used again; tiles leave no joint."""

from __future__ import annotations

from dataclasses import replace

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError
from livefuse.frame import create_frame
from livefuse.geometry import create_matrix
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.enhance_network import create_network_enhancer
from livefuse.pipeline.effects.tiles import run_tiles
from livefuse.pipeline.enhance_step import create_enhance_step
from livefuse.pipeline.landmarks import get_landmarks
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.pipeline.templates import fit_template
from livefuse.runtime.session import SessionCache
from livefuse.token import Parameters, create_token
from tests.faces import analyse, create_face_frame, create_services, read_bgr
from tests.standins import install_standins
from tests.standins.enhancers import RESTORERS, TILE_GAINS, WEIGHT_GAIN
from tests.standins.swappers import GAINS, draw_dots

UPSCALERS = ("real_esrgan_x2", "real_esrgan_x4")
# Retyped from the table of facts.
SIZES = {
    "codeformer": (512, "ffhq_512"),
    "gfpgan_1.2": (512, "ffhq_512"),
    "gfpgan_1.3": (512, "ffhq_512"),
    "gfpgan_1.4": (512, "ffhq_512"),
    "restoreformer_plus_plus": (512, "ffhq_512"),
    "gpen_bfr_256": (256, "arcface_128"),
    "gpen_bfr_512": (512, "ffhq_512"),
    "gpen_bfr_1024": (1024, "ffhq_512"),
    "gpen_bfr_2048": (2048, "ffhq_512"),
}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return SessionCache(install_standins(folder, *RESTORERS, *UPSCALERS, "w600k_r50"))


def create_context(sessions, **enhance):
    config = Config()
    config = msgspec.structs.replace(
        config,
        enhance=msgspec.structs.replace(config.enhance, **enhance),
        models=sessions._config,
    )
    return StepContext(config, sessions, True, InlineExecutor(), create_services())


@pytest.fixture(scope="module")
def scene():
    frame = create_face_frame(250)
    return frame, analyse(frame).faces[0]


def create_state(face, frame=None, **parameters):
    token = create_token(("detect", "align", "enhance"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, parameters=Parameters(**parameters))
    return FrameState(frame or create_face_frame(250), token, faces=[face])


def crop_rgb(frame, face, template, size):
    points = get_landmarks(face, 5)
    assert points is not None
    matrix = create_matrix(fit_template(points, template, size))
    crop = cv2.warpAffine(read_bgr(frame), matrix, (size, size))
    return crop[..., ::-1].transpose(2, 0, 1).astype(np.float32) / 255


def compare(seen, wanted, size):
    """Return mean and largest difference inside the face, both a little softened."""
    core = np.s_[:, round(0.45 * size) : round(0.7 * size), round(0.4 * size) : round(0.6 * size)]
    error = (seen - wanted)[core].transpose(1, 2, 0)
    error = np.abs(cv2.GaussianBlur(error, (0, 0), size / 100))
    return float(error.mean()), float(error.max())


def test_the_table_has_every_restorer():
    assert set(SIZES) == set(RESTORERS)


@pytest.mark.parametrize("name", SIZES)
def test_a_restorer_is_fed_and_read_as_the_table_has_it(sessions, scene, name):
    """R20."""
    frame, face = scene
    size, template = SIZES[name]
    state = create_state(face)
    enhancer = create_network_enhancer(create_context(sessions, model=name, fidelity=0.6))
    enhancer.prepare()
    assert enhancer.enhance(state, face, 1.0)
    crop = crop_rgb(frame, face, template, size)
    gains = np.array(GAINS, np.float32).reshape(3, 1, 1)
    output = (crop * 2 - 1) * gains
    dots = draw_dots(template, size, scale=2.0)
    output[2] += cv2.resize(dots, (size, size), interpolation=cv2.INTER_LINEAR)
    if name == "codeformer":
        output[0] += 0.6 * WEIGHT_GAIN
    wanted = np.clip(output / 2 + 0.5, 0.0, 1.0)
    mean, largest = compare(crop_rgb(state.frame, face, template, size), wanted, size)
    assert mean < 0.012
    assert largest < 0.05
    assert compare(crop, wanted, size)[0] > 0.03


@pytest.mark.parametrize("name", UPSCALERS)
@pytest.mark.parametrize("face_px", [90, 250])
def test_an_upscaler_is_fed_tiles_and_read_back(sessions, name, face_px):
    frame = create_face_frame(face_px)
    face = analyse(frame).faces[0]
    enhancer = create_network_enhancer(create_context(sessions, model=name))
    state = create_state(face, create_face_frame(face_px))
    assert enhancer.enhance(state, face, 1.0)
    wanted = crop_rgb(frame, face, "ffhq_512", 256)
    wanted *= np.array(TILE_GAINS, np.float32).reshape(3, 1, 1)
    mean, largest = compare(crop_rgb(state.frame, face, "ffhq_512", 256), wanted, 256)
    assert mean < 0.012
    assert largest < 0.05


@pytest.mark.parametrize("size", [256, 300, 496, 700])
def test_tiles_leave_no_joint(size):
    rng = np.random.default_rng(2)
    picture = rng.random((1, 3, size, size), np.float32)
    shapes = []

    def run(tile):
        shapes.append(tile.shape)
        return tile.repeat(2, axis=2).repeat(2, axis=3) * 0.5

    large = run_tiles(run, picture, 256, 16)
    expected = picture[0].repeat(2, axis=1).repeat(2, axis=2) * 0.5
    np.testing.assert_allclose(large, expected, atol=1e-6)
    assert set(shapes) == {(1, 3, 256, 256)}


def test_a_gain_is_used_again_without_a_run(sessions, scene, monkeypatch):
    _, face = scene
    enhancer = create_network_enhancer(create_context(sessions, model="gfpgan_1.4", every_n=2))
    calls = []
    run = enhancer._run

    def count(blob):
        calls.append(blob.shape)
        return run(blob)

    monkeypatch.setattr(enhancer, "_run", count)
    first = create_state(face)
    enhancer.enhance(first, face, 1.0, reuse=True)  # nothing is kept yet: it runs
    again = create_state(face)
    enhancer.enhance(again, face, 1.0, reuse=True)
    assert len(calls) == 1
    difference = np.abs(again.frame.buffer.astype(np.int16) - first.frame.buffer)
    assert difference.max() <= 1
    enhancer.reset()
    enhancer.enhance(create_state(face), face, 1.0, reuse=True)
    assert len(calls) == 2


def test_half_an_amount_is_half_way_and_nought_is_the_input(sessions, scene):
    frame, face = scene
    enhancer = create_network_enhancer(create_context(sessions, model="gfpgan_1.4"))
    whole, half, nought = (create_state(face) for _ in range(3))
    enhancer.enhance(whole, face, 1.0)
    enhancer.enhance(half, face, 0.5)
    assert not enhancer.enhance(nought, face, 0.0)
    middle = (whole.frame.y.astype(np.float32) + frame.y) / 2
    assert np.abs(half.frame.y - middle).max() <= 2.0
    assert (nought.frame.buffer == frame.buffer).all()


def test_enable_gfpgan_switches_a_restorer_off(sessions, scene):
    """R20."""
    frame, face = scene
    step = create_enhance_step(create_context(sessions, model="gfpgan_1.4"))
    state = create_state(face, enable_gfpgan=False)
    step.prepare(state.token)
    step.run(state)
    assert state.did == "off"
    assert (state.frame.buffer == frame.buffer).all()
    state = create_state(face)
    step.run(state)
    assert state.did == "enhanced 1"
    assert not (state.frame.buffer == frame.buffer).all()


def test_it_fades_in_over_three_frames(sessions, scene):
    """C62."""
    frame, face = scene
    step = create_enhance_step(create_context(sessions, model="gfpgan_1.4", amount=1.0))
    changes = []
    for _ in range(4):
        state = create_state(face)
        step.run(state)
        changes.append(float(np.abs(state.frame.y.astype(np.int16) - frame.y).mean()))
    assert changes[0] < changes[1] < changes[2]
    assert changes[2] == pytest.approx(changes[3], rel=0.02)
    assert changes[0] == pytest.approx(changes[2] / 3, rel=0.1)


def test_every_other_frame_lays_on_what_the_one_before_gained(sessions, scene):
    _, face = scene
    step = create_enhance_step(create_context(sessions, model="gfpgan_1.4", every_n=2))
    did = []
    for _ in range(4):
        state = create_state(face)
        step.run(state)
        did.append(state.did)
    assert did == ["enhanced 1", "enhanced 1 as before"] * 2


def test_a_covered_face_is_left_alone(sessions, scene):
    from livefuse.pipeline.effects.mask import create_cover

    frame, face = scene
    step = create_enhance_step(create_context(sessions, model="gfpgan_1.4"))
    state = create_state(face)
    state.covers = (create_cover(face.track, 1.35),)
    step.run(state)
    assert state.did == "enhanced 0"
    assert (state.frame.buffer == frame.buffer).all()


def test_a_face_that_is_only_held_is_left_alone(sessions, scene):
    _, face = scene
    held = type(face)(replace(face.track, missed=3))
    enhancer = create_network_enhancer(create_context(sessions, model="gfpgan_1.4"))
    state = FrameState(create_frame(640, 480), create_state(face).token, faces=[held])
    assert not enhancer.enhance(state, held, 1.0)


def test_what_does_not_enhance_is_refused_in_words(sessions):
    with pytest.raises(ConfigError, match="does not enhance"):
        create_enhance_step(create_context(sessions, model="w600k_r50"))
