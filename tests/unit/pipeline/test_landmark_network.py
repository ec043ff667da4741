"""Landmark networks that people bring, on stand-ins with the real names and shapes (R16)."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError, ModelError
from livefuse.geometry import apply_similarity, invert_similarity
from livefuse.pipeline.analysis.landmark_network import (
    FAMILIES,
    LandmarkNetwork,
    _place_by_points,
    create_landmark_network,
)
from livefuse.pipeline.landmarks import get_landmarks5
from livefuse.pipeline.templates import fit_template
from livefuse.runtime.session import SessionCache
from tests.faces import analyse, create_face_frame, read_bgr
from tests.standins import install_standins
from tests.standins.landmarks import MODELS, build_insightface, draw_ring

COUNTS = {
    "2dfan4": 68,
    "peppa_wutz": 68,
    "fan_68_5": 68,
    "2d106det": 106,
    "1k3d68": 68,
    "liveportrait_203": 203,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return install_standins(tmp_path_factory.mktemp("models"), *MODELS)


@pytest.fixture(scope="module")
def sessions(models):
    return SessionCache(models)


@pytest.fixture(scope="module")
def config(models):
    return msgspec.structs.replace(Config(), models=models)


@pytest.fixture(scope="module")
def seen():
    frame = create_face_frame(120, (640, 480))
    return frame, analyse(frame).faces[0]


@pytest.fixture(scope="module")
def crowd():
    """A frame and three faces that are said to be in it, the head of one turned."""
    frame = create_face_frame(120, (640, 480))
    face = analyse(frame).faces[0]
    moved = []
    for shift, roll in ((0.0, 0.0), (40.0, 0.0), (-60.0, 0.5)):
        box = face.track.box
        track = replace(
            face.track,
            box=box._replace(x0=box.x0 + shift, x1=box.x1 + shift),
            landmarks5=face.track.landmarks5 + np.array([shift, 0], np.float32),
            roll_rad=roll,
        )
        mesh = face.mesh + np.array([shift, 0, 0], np.float32)
        moved.append(replace(face, track=track, mesh=mesh, landmarks={}))
    return frame, moved


@pytest.mark.parametrize("name", MODELS)
def test_each_family_gives_its_count_of_points_on_the_face(sessions, config, seen, name):
    frame, face = seen
    before = frame.buffer.copy()
    (points,) = create_landmark_network(name, config, sessions).find(frame, [face])
    assert points.shape == (COUNTS[name], 2)
    assert points.dtype == np.float32
    middle = face.mesh[:468, :2].mean(axis=0)
    # The stand-ins say a ring in the middle of what they see.
    assert np.abs(points.mean(axis=0) - middle).max() < 0.3 * face.track.box.width
    assert 0.4 < np.ptp(points[:, 0]) / face.track.box.width < 1.2
    assert np.array_equal(frame.buffer, before)


@pytest.mark.parametrize(("name", "kind"), [("2d106det", "106"), ("1k3d68", "68")])
@pytest.mark.parametrize("is_raw", [False, True])
def test_points_are_as_insightface_has_them(tmp_path, seen, name, kind, is_raw):
    """Same stand-in, same picture: within a fifth of a px, whoever scales the px."""
    landmark = pytest.importorskip("insightface.model_zoo.landmark")
    import onnxruntime

    models = install_standins(tmp_path, name)
    count, width = (106, 2) if kind == "106" else (1103, 3)
    path = tmp_path / f"{name}.onnx"
    if is_raw:
        path.write_bytes(build_insightface(name, count, width, is_raw=True).SerializeToString())
        note_digest(tmp_path, name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    theirs = landmark.Landmark(str(path), session)
    theirs.require_pose = False
    frame, face = seen
    track = replace(face.track, roll_rad=0.0)  # insightface does not level the eyes
    answer = Answer(bbox=np.array(track.box))
    known = theirs.get(read_bgr(frame), answer)[:, :2]

    config = msgspec.structs.replace(Config(), models=models)
    ours = create_landmark_network(name, config, SessionCache(models))
    (points,) = ours.find(frame, [replace(face, track=track)])
    assert points.shape == known.shape
    assert np.abs(points - known).max() < 0.2


class Answer(dict[str, object]):
    """insightface's Face, as far as its landmarks need one."""

    def __getattr__(self, name):
        return self[name]


def note_digest(folder, name):
    from livefuse.runtime.installed import Installed, write_installed
    from livefuse.runtime.registry import compute_sha256

    path = folder / f"{name}.onnx"
    row = Installed(
        name=name,
        file=path.name,
        sha256=compute_sha256(path),
        bytes=path.stat().st_size,
        licence="",
        accepted_by="a test",
        accepted_at="2026-11-30",
    )
    write_installed(folder, row)


@pytest.mark.parametrize("name", ["2dfan4", "peppa_wutz"])
def test_fan_sees_the_box_at_195_of_256_px_level(sessions, config, crowd, name):
    frame, faces = crowd
    network = create_landmark_network(name, config, sessions)
    fed = spy(network)
    network.find(frame, faces)
    for face in faces:
        transform = find_square(name, face).to_crop(256)
        box = face.track.box
        assert transform.scale * max(box.width, box.height) == pytest.approx(195.0)
        assert transform.angle_rad == pytest.approx(-face.track.roll_rad)
    assert len(fed) == 3
    assert 0.0 <= fed[0].min() < fed[0].max() <= 1.0
    assert fed[0][0, 0].mean() > fed[0][0, 2].mean()  # RGB: skin is red


def find_square(name, face):
    place = FAMILIES["fan" if name == "2dfan4" else name].place
    assert place is not None
    return place(face)


def test_liveportraits_square_is_a_tenth_higher_and_one_and_a_half_times_as_large(seen):
    face = seen[1]
    square = _place_by_points(face)
    five = get_landmarks5(face)
    upright = apply_similarity(square.to_crop(224), five)
    down = (upright[3] + upright[4] - upright[0] - upright[1]) / 2
    assert abs(down[0]) < 0.01
    assert down[1] > 0
    assert 0.5 < 224 / square.side * face.track.box.width / 224 / (1 / 1.5) < 1.3
    # Its points lie below the middle, since the square was moved up.
    assert upright.mean(axis=0)[1] > 112


def test_five_points_are_fed_in_the_templates_unit_crop(sessions, config, seen):
    frame, face = seen
    network = create_landmark_network("fan_68_5", config, sessions)
    fed = spy(network)
    network.find(frame, [face])
    five = get_landmarks5(face)
    assert np.allclose(
        fed[0][0], apply_similarity(fit_template(five, "ffhq_512", 1), five), atol=1e-5
    )


def spy(network):
    """Return the list into which what `network` is fed is copied."""
    real, fed = network._network, []

    def run(feeds):
        fed.append(next(iter(feeds.values())).copy())
        return real.run(feeds)

    network._network = SimpleNamespace(
        run=run, input_names=real.input_names, input_shapes=real.input_shapes, model=real.model
    )
    return fed


@pytest.mark.parametrize("name", MODELS)
def test_many_faces_are_as_one_by_one(sessions, config, crowd, name):
    """(R34) in one run where the network takes any batch."""
    frame, faces = crowd
    network = create_landmark_network(name, config, sessions)
    fed = spy(network)
    together = network.find(frame, faces)
    assert len(fed) == (1 if network._can_batch else 3)
    for face, points in zip(faces, together, strict=True):
        assert np.abs(network.find(frame, [face])[0] - points).max() < 0.01
    assert network.find(frame, []) == []


def test_there_and_back_is_within_a_px(crowd):
    """(R16) what a square shows is put back where it was."""
    for face in crowd[1]:
        for family in FAMILIES.values():
            if family.place is None:
                continue  # fed with points, not with a crop
            transform = family.place(face).to_crop(192)
            ring = draw_ring(50) * 192
            back = apply_similarity(invert_similarity(transform), ring)
            assert np.abs(apply_similarity(transform, back) - ring).max() < 1.0


def test_align_puts_the_points_into_the_face(models):
    align = msgspec.structs.replace(
        Config().align, extra=("2dfan4", "2d106det", "liveportrait_203")
    )
    config = msgspec.structs.replace(Config(), models=models, align=align)
    from livefuse.token import create_token
    from tests.faces import create_pipeline

    token = create_token(("detect", "align"), now_epoch_s=0.0)
    pipeline = create_pipeline(config, sessions=SessionCache(models))
    pipeline.prepare(token)
    state = pipeline.begin(create_face_frame(120, (640, 480)), token)
    for name in token.operations:
        pipeline.run_step(state, name)
    assert not state.error
    assert sorted(state.faces[0].landmarks) == [5, 68, 106, 203]


def test_a_network_of_another_kind_is_refused_in_words(sessions, config):
    with pytest.raises(ConfigError, match="centerface finds no landmarks"):
        create_landmark_network("centerface", config, sessions)


def test_useless_numbers_are_refused(sessions, config, seen):
    frame, face = seen
    network: Any = create_landmark_network("2d106det", config, sessions)
    real = network._network
    network._network = SimpleNamespace(
        run=lambda feeds: [np.full((1, 212), np.nan, np.float32)],
        input_names=real.input_names,
        model=real.model,
    )
    with pytest.raises(ModelError, match="2d106det"):
        network.find(frame, [face])
    assert isinstance(network, LandmarkNetwork)
