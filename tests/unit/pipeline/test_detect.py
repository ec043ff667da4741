import numpy as np
import pytest

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.frame import create_frame
from livefuse.geometry import compute_iou
from livefuse.pipeline.analysis.blazeface import BlazeFaceDetector, decode_blazeface
from livefuse.pipeline.analysis.centerface import CenterFaceDetector, decode_centerface
from livefuse.pipeline.analysis.detect import Decoded, select_detections
from livefuse.runtime.session import SessionCache
from tests.unit.pipeline.scenes import FakeNetwork, draw_head, draw_noise


@pytest.fixture(scope="module")
def sessions():
    return SessionCache(ModelsConfig(providers="cpu"))


@pytest.fixture(params=["centerface", "blazeface_full_192"])
def detector(request, sessions):
    kind = {"centerface": CenterFaceDetector, "blazeface_full_192": BlazeFaceDetector}
    return kind[request.param](sessions.get(request.param), 384, 192, 0.5)


@pytest.mark.parametrize("roll", [0.0, 0.5, -0.5])
@pytest.mark.parametrize("size", [(640, 360), (1280, 720), (360, 640), (854, 480)])
def test_a_head_is_found_where_it_is(detector, size, roll):
    width, height = size
    scale = 0.45 * min(width, height) / 360
    frame, truth = draw_head(width, height, x=width / 2, y=height / 2, scale=scale, roll=roll)
    found = detector.detect(frame)
    assert len(found) == 1
    assert compute_iou(found[0].box, truth.box) > 0.5
    assert np.abs(found[0].landmarks5 - truth.landmarks5).max() < 0.2 * truth.box.width


def test_nothing_is_found_in_noise_and_black(detector):
    assert detector.detect(draw_noise(640, 360)) == []
    assert detector.detect(create_frame(320, 240)) == []


def test_detecting_changes_no_pixel(detector):
    frame, _ = draw_head()
    before = frame.buffer.copy()
    detector.detect(frame)
    assert np.array_equal(frame.buffer, before)


def test_a_light_look_is_smaller(sessions):
    network = FakeNetwork(*create_maps(8, 8))
    detector = CenterFaceDetector(network, 384, 192, 0.5)
    frame, _ = draw_head(1280, 720)
    detector.detect(frame)
    detector.detect(frame, light=True)
    shapes = [feed["input"].shape for feed in network.feeds]
    assert shapes == [(1, 3, 224, 384), (1, 3, 128, 192)]


def test_the_input_is_rgb_and_keeps_the_aspect():
    network = FakeNetwork(*create_maps(8, 8))
    frame = create_frame(640, 360)
    frame.y[:], frame.u[:], frame.v[:] = 81, 90, 240  # red in BT.601
    CenterFaceDetector(network, 320, 160, 0.5).detect(frame)
    red, green, blue = network.feeds[0]["input"][0]
    assert red.shape == (192, 320)
    assert red[:180].min() > 245
    assert max(green[:180].max(), blue[:180].max()) < 10
    assert red[180:].max() == 0


def create_maps(rows, columns):
    return (
        np.zeros((1, 1, rows, columns), np.float32),
        np.zeros((1, 2, rows, columns), np.float32),
        np.zeros((1, 2, rows, columns), np.float32),
        np.zeros((1, 10, rows, columns), np.float32),
    )


def test_centerface_numbers_become_boxes():
    heat, sizes, offsets, marks = (array[0] for array in create_maps(10, 20))
    heat[0, 4, 6] = 0.8
    heat[0, 4, 7] = 0.7  # beside the peak: the same face
    sizes[:, 4, 6] = np.log([6.0, 4.0])  # height 24, width 16
    offsets[:, 4, 6] = [0.25, -0.25]
    marks[:, 4, 6] = 0.5
    decoded = decode_centerface(heat[0], sizes, offsets, marks, min_score=0.5)
    x, y = (6 - 0.25 + 0.5) * 4, (4 + 0.25 + 0.5) * 4
    assert decoded.scores == pytest.approx([0.8])
    assert np.allclose(decoded.boxes, [[x - 8, y - 12, x + 8, y + 12]])
    assert np.allclose(decoded.landmarks5, [x, y])


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_an_error_not_an_empty_picture(which, bad):
    maps = create_maps(10, 20)
    maps[0][0, 0, 4, 6] = 0.9
    maps[which][0, :, 4, 6] = bad
    detector = CenterFaceDetector(FakeNetwork(*maps), 320, 160, 0.5)
    with pytest.raises(ModelError, match="not finite"):
        detector.detect(create_frame(320, 240))


def test_blazeface_refuses_numbers_that_are_none():
    values, logits = np.zeros((2304, 16), np.float32), np.full(2304, -9, np.float32)
    logits[7] = np.nan
    with pytest.raises(ModelError, match="not finite"):
        decode_blazeface(values, logits, min_score=0.5)
    logits[7] = 9
    values[7] = np.nan
    with pytest.raises(ModelError, match="not finite"):
        decode_blazeface(values, logits, min_score=0.5)


def test_each_face_is_named_once_the_surest_first():
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [50, 0, 60, 10]], np.float32)
    decoded = Decoded(boxes, np.array([0.6, 0.9, 0.7], np.float32), np.zeros((3, 5, 2), np.float32))
    found = select_detections(decoded, (2.0, 1.0))
    assert [round(item.score, 1) for item in found] == [0.9, 0.7]
    assert found[0].box == (2, 0, 22, 10)


def test_many_faces_are_all_named():
    boxes = np.array([[i * 20, 0, i * 20 + 10, 10] for i in range(8)], np.float32)
    decoded = Decoded(boxes, np.full(8, 0.9, np.float32), np.zeros((8, 5, 2), np.float32))
    assert len(select_detections(decoded, (1.0, 1.0))) == 8
