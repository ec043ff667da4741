"""The detectors people bring, on stand-ins with the real names and shapes (R15)."""

from types import SimpleNamespace

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError, ModelError
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.detect import select_detections
from livefuse.pipeline.analysis.detect_step import DETECTORS, create_detector
from livefuse.pipeline.analysis.planar import create_tables, fit_within
from livefuse.pipeline.analysis.retinaface import decode_priors
from livefuse.pipeline.analysis.scrfd import ScrfdDetector, arrange_levels, decode_scrfd
from livefuse.pipeline.analysis.yoloface import decode_yoloface
from livefuse.pipeline.analysis.yunet import decode_yunet
from livefuse.runtime.session import SessionCache
from tests.faces import create_frame_by_bgr, read_bgr
from tests.standins import install_standins
from tests.standins.detectors import MODELS, build_scrfd

RED_AT = ((150, 100), (420, 250))  # px of a 640x360 picture


@pytest.fixture(scope="module")
def models_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def sessions(models_folder):
    return SessionCache(install_standins(models_folder, *MODELS))


def draw_red(size=(640, 360), points=RED_AT, half=20, colour=(30, 40, 200)):
    """Return a frame of dull noise with a red square at each of `points`."""
    width, height = size
    cells = np.random.default_rng(5).integers(70, 130, (height // 20, width // 20, 3), np.uint8)
    bgr = cv2.resize(cells, (width, height), interpolation=cv2.INTER_CUBIC)
    for x, y in points:
        bgr[y - half : y + half, x - half : x + half] = colour
    return create_frame_by_bgr(bgr)


def make(sessions, name, long_side=640, min_score=0.5):
    network = sessions.get(name)
    return DETECTORS[network.model.family](network, long_side, 320, min_score)


@pytest.mark.parametrize("name", MODELS)
def test_each_family_finds_what_its_network_says_and_nothing_else(sessions, name):
    frame = draw_red()
    before = frame.buffer.copy()
    found = make(sessions, name).detect(frame)
    assert found
    centres = np.array(RED_AT)
    for item in found:
        middle = np.array([item.box.x0 + item.box.x1, item.box.y0 + item.box.y1]) / 2
        assert np.abs(centres - middle).max(axis=1).min() < 40
        left, right, nose, mouth_left, mouth_right = item.landmarks5
        assert left[0] < nose[0] < right[0]
        assert mouth_left[0] < mouth_right[0]
        assert max(left[1], right[1]) < nose[1] < min(mouth_left[1], mouth_right[1])
        assert 0.5 < item.score <= 1.0
    assert np.array_equal(frame.buffer, before)
    assert make(sessions, name).detect(draw_red(colour=(200, 40, 30))) == []


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [(1280, 720), (360, 640), (852, 480)])
def test_results_are_px_of_the_frame(sessions, name, size):
    width, height = size
    at, half = (width // 3, height // 2), min(size) // 12
    found = make(sessions, name).detect(draw_red(size, (at,), half))
    assert found
    for item in found:
        inside = item.landmarks5[2]
        assert abs(inside[0] - at[0]) < 3 * half
        assert abs(inside[1] - at[1]) < 3 * half


def test_a_free_network_gets_the_pictures_shape_and_a_fixed_one_its_own(sessions):
    seen = []
    for name in ("det_10g", "retinaface_10g", "yoloface_8n"):
        detector = make(sessions, name)
        real = detector._network

        def run(feeds, real=real):
            seen.append(next(iter(feeds.values())).shape)
            return real.run(feeds)

        detector._network = SimpleNamespace(run=run, input_names=real.input_names)
        detector.detect(draw_red((1280, 720)))
        detector.detect(draw_red((1280, 720)), light=True)
    free, light, *fixed = seen
    assert free == (1, 3, 384, 640)
    assert light == (1, 3, 192, 320)
    assert fixed == [(1, 3, 640, 640)] * 4


@pytest.mark.parametrize(("outputs", "batched"), [(6, False), (9, True), (10, False), (15, True)])
def test_scrfd_in_all_its_shapes_is_as_insightface_has_it(
    tmp_path, sessions, insightface_scrfd, outputs, batched
):
    path = tmp_path / "det.onnx"
    path.write_bytes(build_scrfd("det", outputs=outputs, batched=batched).SerializeToString())
    theirs = insightface_scrfd(path)
    network = load_network(path, sessions.get("det_10g").model)
    frame = draw_red((640, 384), half=36)
    compare_scrfd(ScrfdDetector(network, 640, 320, 0.5), theirs, frame, (640, 384))


@pytest.mark.parametrize("name", ["scrfd_500m", "scrfd_2.5g", "det_10g", "retinaface_10g"])
def test_boxes_points_and_scores_are_as_insightface_has_them(
    sessions, models_folder, insightface_scrfd, name
):
    theirs = insightface_scrfd(models_folder / f"{name}.onnx")
    size = (640, 640) if name == "retinaface_10g" else (640, 384)
    compare_scrfd(make(sessions, name), theirs, draw_red(half=28), size)


def test_a_scaled_picture_differs_from_insightface_by_the_scaling_only(
    sessions, models_folder, insightface_scrfd
):
    theirs = insightface_scrfd(models_folder / "det_10g.onnx")
    frame = draw_red((1280, 720), ((300, 300), (900, 420)), half=60)
    compare_scrfd(make(sessions, "det_10g"), theirs, frame, (640, 384), px=1.5, score=0.02)


def load_network(path, model):
    import onnxruntime

    from livefuse.runtime.session import Network

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return Network(session, model, "cpu")


def compare_scrfd(ours, theirs, frame, size, px=0.02, score=1e-4):
    """Assert that both have the same candidates, and name the same faces of them."""
    theirs.prepare(-1, det_thresh=0.5, nms_thresh=0.3, input_size=size)
    candidates, candidate_points = theirs._detect_candidates(read_bgr(frame), size, 0.5)
    kept = ours._shelf.get(frame, light=False)
    outputs = ours._network.run({ours._network.input_names[0]: kept.fill(frame)})
    decoded = decode_scrfd(arrange_levels(outputs, size), size[0], 0.5)
    assert len(candidates) >= 10
    assert len(decoded.scores) == len(candidates)
    scale = kept.get_scale(frame)
    order = np.lexsort((*decoded.boxes.T, -decoded.scores))
    theirs_order = np.lexsort((*candidates.T[:4], -candidates[:, 4]))
    mine, other = decoded.boxes[order] * (scale * 2), candidates[theirs_order, :4]
    if px < 0.1:
        assert np.abs(mine - other).max() < px
        assert np.abs(decoded.scores[order] - candidates[theirs_order, 4]).max() < score
        if candidate_points is not None:
            marks = decoded.landmarks5[order] * scale
            assert np.abs(marks - candidate_points[theirs_order]).max() < px
    boxes, points = theirs.detect(read_bgr(frame), input_size=size)
    found = ours.detect(frame)
    # They count a px more to a side when they compare boxes: near the limit one may stay.
    assert abs(len(found) - len(boxes)) <= 0.25 * len(boxes)
    assert np.abs(np.array(found[0].box) - boxes[0, :4]).max() < px
    assert abs(found[0].score - boxes[0, 4]) < score
    if points is not None:
        assert np.abs(found[0].landmarks5 - points[0]).max() < px


@pytest.fixture(scope="module")
def insightface_scrfd():
    pytest.importorskip("insightface")
    import onnxruntime
    from insightface.model_zoo.scrfd import SCRFD

    def load(path):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        return SCRFD(str(path), session, static_shape_sessions=False)

    return load


def test_yunet_is_as_opencv_has_it(sessions, models_folder):
    frame = draw_red((640, 640), ((160, 120), (420, 480)), half=30)
    theirs = cv2.FaceDetectorYN.create(
        str(models_folder / "yunet_2023_mar.onnx"), "", (640, 640), 0.5**0.5, 0.3
    )
    _, rows = theirs.detect(read_bgr(frame))
    detector = make(sessions, "yunet_2023_mar")
    blob = detector._shelf.get(frame, light=False).fill(frame)
    decoded = decode_yunet(detector._network.run({"input": blob}), 640, 0.5)
    assert len(rows) >= 2
    for row in rows:
        x, y, width, height = row[:4]
        away = np.abs(decoded.boxes - (x, y, x + width, y + height)).max(axis=1)
        index = int(np.argmin(away))
        assert away[index] < 0.1
        assert np.abs(decoded.landmarks5[index] - row[4:14].reshape(5, 2)).max() < 0.1
        assert decoded.scores[index] == pytest.approx(row[14] ** 2, abs=0.001)
    best = detector.detect(frame)[0]
    assert best.score == pytest.approx(rows[:, 14].max() ** 2, abs=0.001)


def test_the_tables_are_what_the_networks_were_trained_on():
    ends = [0, 127, 255]
    cases = [
        ((0.5,) * 3, (128 / 255,) * 3, lambda x: (x - 127.5) / 128),
        ((0.0,) * 3, (1.0,) * 3, lambda x: x / 255),
        ((104 / 255,) * 3, (1 / 255,) * 3, lambda x: x - 104.0),
    ]
    for mean, std, formula in cases:
        table = create_tables(mean, std)
        assert table.shape == (3, 256)
        assert np.allclose(table[1, ends], [formula(x) for x in ends], atol=1e-4)


def test_rows_say_how_each_detector_is_fed(sessions):
    formulas = {
        "det_10g": lambda x: (x - 127.5) / 128,
        "retinaface_10g": lambda x: (x - 127.5) / 128,
        "yoloface_8n": lambda x: x / 255,
        "yunet_2023_mar": lambda x: x,
    }
    for name, formula in formulas.items():
        model = sessions.get(name).model
        table = create_tables(model.mean, model.std)
        assert np.allclose(table[:, 200], formula(200.0), rtol=1e-5), name


@pytest.mark.parametrize(
    ("size", "canvas", "expected"),
    [
        ((1280, 720), (640, 640), (640, 360)),
        ((720, 1280), (640, 640), (360, 640)),
        ((320, 240), (640, 640), (320, 240)),
        ((1279, 719), (640, 640), (640, 358)),
    ],
)
def test_a_picture_keeps_its_aspect_within_the_canvas(size, canvas, expected):
    width, height = size
    assert fit_within(width, height, canvas) == expected


def create_levels(size=(64, 64)):
    width, height = size
    outputs = []
    for width_of_kind in (1, 4, 10):
        for stride in (8, 16, 32):
            count = 2 * (width // stride) * (height // stride)
            outputs.append(np.zeros((count, width_of_kind), np.float32))
    return outputs


def test_scrfd_distances_become_boxes_whatever_the_order_of_outputs():
    outputs = create_levels()
    anchor = 2 * (1 * 4 + 2) + 1  # stride 16: row 1, column 2, second anchor
    outputs[1][anchor] = 0.9
    outputs[4][anchor] = [1, 0.5, 2, 3]
    outputs[7][anchor] = [-0.5, 0, 0.5, 0, 0, 0.5, -0.5, 1, 0.5, 1]
    for order in (range(9), reversed(range(9))):
        levels = arrange_levels([outputs[i] for i in order], (64, 64))
        decoded = decode_scrfd(levels, 64, 0.5)
        assert np.allclose(decoded.boxes, [[16, 8, 64, 64]])
        assert np.allclose(
            decoded.landmarks5[0], [[24, 16], [40, 16], [32, 24], [24, 32], [40, 32]]
        )


@pytest.mark.parametrize("size", [(64, 64), (70, 40)])
def test_retinaface_offsets_are_from_the_priors(size):
    """By hand: stride 16, row 1, column 2, the second prior, 128 px wide, about (40, 24)."""
    per_stride = [2 * -(-size[0] // s) * -(-size[1] // s) for s in (8, 16, 32)]
    index = per_stride[0] + 2 * (1 * -(-size[0] // 16) + 2) + 1
    offsets, classes, points = (np.zeros((1, sum(per_stride), n), np.float32) for n in (4, 2, 10))
    classes[0, index] = [0.1, 0.9]
    offsets[0, index] = [1.0, -0.5, 5 * np.log(0.5), 5 * np.log(0.25)]
    points[0, index] = [-1, -1, 1, -1, 0, 0, -1, 1, 1, 1]
    decoded = decode_priors([points, offsets, classes], size, 0.5)
    assert decoded.scores == pytest.approx([0.9])
    centre_x, centre_y = 40 + 12.8, 24 - 6.4
    box = [centre_x - 32, centre_y - 16, centre_x + 32, centre_y + 16]
    assert np.allclose(decoded.boxes, [box], atol=1e-3)
    marks = np.array([[27.2, 11.2], [52.8, 11.2], [40, 24], [27.2, 36.8], [52.8, 36.8]])
    assert np.allclose(decoded.landmarks5[0], marks, atol=1e-3)


def test_yoloface_columns_are_px_whichever_way_they_lie():
    table = np.zeros((1, 20, 8), np.float32)
    table[0, :, 3] = [50, 40, 20, 30, 0.8, *(v for i in range(5) for v in (i, 2 * i, 0.9))]
    for output in (table, table.transpose(0, 2, 1)):
        decoded = decode_yoloface(output, 0.5)
        assert np.allclose(decoded.boxes, [[40, 25, 60, 55]])
        assert np.allclose(decoded.landmarks5[0], [[i, 2 * i] for i in range(5)])


@pytest.mark.parametrize("which", range(3))
def test_numbers_that_are_none_are_an_error_not_an_empty_picture(which):
    outputs = create_levels()
    outputs[0][3] = 0.9
    outputs[3 * which][3] = np.nan
    with pytest.raises(ModelError, match="not finite"):
        decode_scrfd(arrange_levels(outputs, (64, 64)), 64, 0.5)
    rows = np.zeros((1, 20, 9), np.float32)
    rows[0, 4, 2] = 0.9
    rows[0, (4, 0, 7)[which], 2] = np.nan
    with pytest.raises(ModelError, match="not finite"):
        decode_yoloface(rows, 0.5)
    priors = [np.zeros((1, 168, side), np.float32) for side in (4, 2, 10)]
    priors[1][0, 5, 1] = 0.9
    priors[(1, 0, 2)[which]][0, 5] = np.nan
    with pytest.raises(ModelError, match="not finite"):
        decode_priors(priors, (64, 64), 0.5)
    yunet = [np.ones((1, n, k), np.float32) for k in (1, 1, 4, 10) for n in (64, 16, 4)]
    yunet[(0, 6, 9)[which]][0, 3] = np.nan
    with pytest.raises(ModelError, match="not finite"):
        decode_yunet(yunet, 64, 0.5)


@pytest.mark.parametrize(
    "decode",
    [
        lambda outputs: arrange_levels(outputs, (64, 64)),
        lambda outputs: decode_priors(outputs, (64, 64), 0.5),
        lambda outputs: decode_yoloface(outputs[0], 0.5),
        lambda outputs: decode_yunet(outputs, 64, 0.5),
    ],
)
def test_a_network_of_another_family_is_refused_in_words(decode):
    with pytest.raises(ModelError, match="not those of its family"):
        decode([np.zeros((1, 7, 3), np.float32)])


def test_scrfd_of_another_size_is_refused():
    with pytest.raises(ModelError, match="scores for"):
        arrange_levels(create_levels(), (128, 64))


def test_boxes_without_points_get_usual_ones(tmp_path, sessions):
    path = tmp_path / "det.onnx"
    path.write_bytes(build_scrfd("det", outputs=6).SerializeToString())
    network = load_network(path, sessions.get("det_10g").model)
    item = ScrfdDetector(network, 640, 320, 0.5).detect(draw_red())[0]
    shares = (item.landmarks5 - (item.box.x0, item.box.y0)) / (item.box.width, item.box.height)
    assert np.all((shares > 0.2) & (shares < 0.9))


def test_a_detector_is_chosen_by_its_name_and_anything_else_refused(models_folder):
    config = Config(models=install_standins(models_folder, "det_10g"))
    sessions = SessionCache(config.models)

    def choose(name):
        tree = {"detect": {"model": name}}
        return create_detector(
            msgspec.structs.replace(config, detect=msgspec.convert(tree, Config).detect),
            sessions,
            every_frame=False,
        )

    assert choose("det_10g").detect(draw_red())
    with pytest.raises(ConfigError, match="does not find faces"):
        choose("facemesh_468")
    with pytest.raises(ModelError, match="livefuse models import"):
        choose("glintr100")


def test_nothing_found_is_an_empty_list(sessions):
    decoded = decode_scrfd(arrange_levels(create_levels(), (64, 64)), 64, 0.5)
    assert select_detections(decoded, (1.0, 1.0)) == []
    assert make(sessions, "scrfd_2.5g").detect(create_frame(320, 240)) == []
