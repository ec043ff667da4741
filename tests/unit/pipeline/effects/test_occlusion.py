"""What stands before a face stays as it was: occluder and parser, on stand-ins that take blue for
a hand or for hair."""

from __future__ import annotations

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError
from livefuse.face import SourceFace
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.crop_mask import CropMask
from livefuse.pipeline.effects.occlusion import create_occlusion
from livefuse.pipeline.effects.warp import get_points
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.pipeline.swap_step import create_swap_step
from livefuse.pipeline.templates import fit_template
from livefuse.runtime.session import SessionCache
from livefuse.token import Parameters, create_token
from tests.faces import (
    analyse,
    create_face_frame,
    create_frame_by_bgr,
    create_services,
    read_bgr,
    read_picture,
)
from tests.standins import install_standins

BLUE_BGR = (255, 60, 40)
MODELS = ("xseg_1", "bisenet_resnet_18", "hyperswap_1a_256", "w600k_r50")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    return SessionCache(install_standins(tmp_path_factory.mktemp("models"), *MODELS))


@pytest.fixture(scope="module")
def face():
    return analyse(create_face_frame(250)).faces[0]


def create_context(sessions, model="mesh", **mask):
    config = Config()
    config = msgspec.structs.replace(
        config,
        swap=msgspec.structs.replace(config.swap, model=model),
        mask=msgspec.structs.replace(config.mask, **mask),
        models=sessions._config,
    )
    source = np.ascontiguousarray(read_picture()[:300, 60:400][:, ::-1])
    services = create_services({"me": source})
    return StepContext(config, sessions, True, InlineExecutor(), services)


def draw_hand(face, *, whole=False):
    """Return a frame with a blue bar over the mouth and chin, or over all of the face; its px."""
    bgr = read_bgr(create_face_frame(250))
    hand = np.zeros(bgr.shape[:2], np.uint8)
    x0, y0 = face.mesh[:, :2].min(axis=0)
    x1, y1 = face.mesh[:, :2].max(axis=0)
    top = y0 if whole else y0 + 0.62 * (y1 - y0)
    bottom = y1 if whole else y0 + 0.85 * (y1 - y0)
    cv2.rectangle(hand, (int(x0) - 8, int(top)), (int(x1) + 8, int(bottom)), 255, -1)
    bgr[hand > 0] = BLUE_BGR
    return create_frame_by_bgr(bgr), hand > 0


def clear(face):
    """Return the face without what a test found before it."""
    return type(face)(face.track, mesh=face.mesh)


@pytest.mark.parametrize("mask", [{"occluder": "xseg_1"}, {"parser": "bisenet_resnet_18"}])
def test_the_hand_is_found_and_nothing_else(sessions, face, mask):
    occlusion = create_occlusion(create_context(sessions, **mask))
    face = clear(face)
    frame, hand = draw_hand(face)
    assert occlusion is not None
    share = occlusion.find(frame, face)
    box = face.occlusion_box
    found = np.zeros(hand.shape, np.uint8)
    found[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)] = face.occlusion
    assert face.occlusion.shape == (box.height, box.width)
    inside = np.zeros(hand.shape, bool)
    inside[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)] = True
    rim = cv2.dilate(hand.astype(np.uint8), np.ones((61, 61), np.uint8)) > 0
    assert found[hand & inside].min() > 180  # at its rim
    assert (found[hand & inside] > 240).mean() > 0.9
    assert found[inside & ~rim].max() < 10
    assert 0.1 < share < 0.5


@pytest.mark.parametrize("mask", [{"occluder": "xseg_1"}, {"parser": "bisenet_resnet_18"}])
@pytest.mark.parametrize("model", ["hyperswap_1a_256", "mesh"])
def test_a_hand_before_the_face_stays_a_hand(sessions, face, model, mask):
    """C64: its px are as they were, the face around it is swapped."""
    step = create_swap_step(create_context(sessions, model, **mask))
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    parameters = Parameters(blend_ratio=1.0)
    token = msgspec.structs.replace(token, source_face="me", parameters=parameters)
    step.prepare(token)
    frame, hand = draw_hand(face)
    before = frame.y.copy()
    state = FrameState(frame, token, faces=[clear(face)])
    step.run(state)
    assert state.did == "swapped 1"
    difference = np.abs(frame.y.astype(np.int16) - before)
    inner = cv2.erode(hand.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    assert difference[inner].max() <= 3
    assert (difference[hand] <= 2).mean() > 0.95
    eyes = face.mesh[[33, 133, 362, 263, 168], :2]
    x0, y0 = eyes.min(axis=0).astype(int)
    x1, y1 = eyes.max(axis=0).astype(int)
    assert difference[y0 - 20 : y1 + 20, x0:x1].mean() > 3


def test_a_face_that_is_hidden_is_covered(sessions, face):
    step = create_swap_step(create_context(sessions, "hyperswap_1a_256", occluder="xseg_1"))
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, source_face="me")
    step.prepare(token)
    frame, _ = draw_hand(face, whole=True)
    state = FrameState(frame, token, faces=[clear(face)])
    step.run(state)
    assert state.did == "swapped 0, covered 1"
    assert len(state.covers) == 1


def test_a_person_mask_keeps_the_paint_on_the_person(face):
    face = clear(face)
    frame = create_face_frame(250)
    state = FrameState(frame, create_token(("detect",), now_epoch_s=0.0), faces=[face])
    points = get_points(face)
    assert points is not None
    to_crop = fit_template(points, "ffhq_512", 256)
    whole = CropMask("hull", "ffhq_512", 256).draw(state, face, to_crop, 1.0).copy()
    state.person_mask = np.zeros((180, 320), np.uint8)
    middle = float(points[:, 0].mean()) / 4
    state.person_mask[:, : round(middle)] = 255
    half = CropMask("hull", "ffhq_512", 256).draw(state, face, to_crop, 1.0)
    assert (half[:, 75:] == 0).all()
    assert (half[:, :50] == whole[:, :50]).all()
    assert whole[:, 75:].any()


def test_masks_are_nought_along_their_rim(face):
    state = FrameState(create_face_frame(250), create_token(("detect",), now_epoch_s=0.0))
    points = get_points(face)
    assert points is not None
    for shape in ("ellipse", "hull"):
        for template in ("arcface_112_v1", "arcface_128", "ffhq_512", "mtcnn_512"):
            to_crop = fit_template(points, template, 256)
            mask = CropMask(shape, template, 256).draw(state, clear(face), to_crop, 1.0)
            assert mask[0].max() == mask[-1].max() == mask[:, 0].max() == mask[:, -1].max() == 0
            assert mask.max() == 255


def test_nothing_is_loaded_when_nothing_is_named(sessions):
    assert create_occlusion(create_context(sessions)) is None


@pytest.mark.parametrize("key", ["occluder", "parser"])
def test_a_model_of_another_kind_is_refused_in_words(sessions, key):
    with pytest.raises(ConfigError, match=f"mask.{key}"):
        create_occlusion(create_context(sessions, **{key: "w600k_r50"}))


def test_a_swapped_face_keeps_its_occlusion_for_those_who_come_after(sessions, face):
    step = create_swap_step(create_context(sessions, "hyperswap_1a_256", occluder="xseg_1"))
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, source_face="me")
    step.prepare(token)
    source = SourceFace("me", np.zeros((4, 4, 3), np.uint8), "0" * 64)
    assert source.kind == "photo"
    frame, _ = draw_hand(face)
    state = FrameState(frame, token, faces=[clear(face)])
    step.run(state)
    assert state.faces[0].occlusion is not None
