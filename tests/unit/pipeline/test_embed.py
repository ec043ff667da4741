"""Identity networks: the embedded one, and those that people bring (R17)."""

from types import SimpleNamespace

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError, ModelError
from livefuse.pipeline.analysis.embed import Embedder, create_embedder, measure_sharpness
from livefuse.pipeline.landmarks import get_landmarks5
from livefuse.runtime.session import SessionCache
from tests.faces import analyse, create_face_frame, create_frame_by_bgr, read_bgr, share_sessions
from tests.standins import install_standins

NAMES = ("w600k_r50", "w600k_mbf", "glintr100")


@pytest.fixture(scope="module")
def models_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def models(models_folder):
    return install_standins(models_folder, *NAMES)


@pytest.fixture(scope="module")
def sessions(models):
    return SessionCache(models)


@pytest.fixture(scope="module")
def seen():
    frame = create_face_frame(150, (640, 480))
    return frame, get_landmarks5(analyse(frame).faces[0])


@pytest.fixture(scope="module")
def embedder():
    return create_embedder(Config(), share_sessions())


def create(models, sessions, name):
    identify = msgspec.structs.replace(Config().identify, model=name)
    return create_embedder(
        msgspec.structs.replace(Config(), models=models, identify=identify), sessions
    )


def test_one_person_is_one_in_any_size_light_and_turn(embedder, seen):
    """R17: L2-normalised; the same face is above the bound, however it is shown."""
    vectors = [embedder.embed(seen[0], [seen[1]])[0]]
    for face_px, roll, light in ((80, 0.0, 1.0), (200, 0.5, 1.0), (200, 0.0, 0.5)):
        frame = create_face_frame(face_px, (640, 480), roll=roll)
        points = get_landmarks5(analyse(frame).faces[0])
        frame.y[:] = ((frame.y.astype(np.float32) - 16) * light + 16).astype(np.uint8)
        vectors.append(embedder.embed(frame, [points])[0])
    assert embedder.length == 128
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert (np.array(vectors) @ vectors[0]).min() > 0.96
    assert embedder.same == pytest.approx(1 - 0.56**2 / (2 * 1.44**2), abs=0.005)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_as_insightface_has_them(models, models_folder, sessions, seen, name):
    """Same stand-in, same picture: cosine 0.999, also where the graph scales px by itself."""
    arcface = pytest.importorskip("insightface.model_zoo.arcface_onnx")
    import onnxruntime

    path = models_folder / f"{name}.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    theirs = arcface.ArcFaceONNX(str(path), session)
    frame, points = seen
    face = SimpleNamespace(kps=points)
    with pytest.warns(FutureWarning):
        known = theirs.get(read_bgr(frame), face)
    ours = create(models, sessions, name).embed(frame, [points])[0]
    assert ours.shape == (512,)
    assert np.linalg.norm(ours) == pytest.approx(1.0, abs=1e-5)
    assert float(ours @ known / np.linalg.norm(known)) > 0.999


@pytest.mark.parametrize("name", NAMES)
def test_many_faces_are_as_one_by_one(models, sessions, seen, name):
    """(R34) in one run where the network takes any batch."""
    frame, points = seen
    many = [
        points,
        points + np.array([30, 0], np.float32),
        points + np.array([-20, 15], np.float32),
    ]
    embedder = create(models, sessions, name)
    assert embedder._can_batch == (name != "w600k_r50")
    together = embedder.embed(frame, many)
    assert together.shape == (3, 512)
    assert len(embedder.sharpness) == 3
    alone = np.concatenate([embedder.embed(frame, [one]) for one in many])
    assert np.abs(together - alone).max() < 1e-4
    assert np.abs(together[0] - together[1]).max() > 1e-3


def test_the_embedded_network_batches_too(embedder, seen):
    frame, points = seen
    many = [points, points + np.array([15, 0], np.float32)]
    alone = np.concatenate([embedder.embed(frame, [one]) for one in many])
    assert np.abs(embedder.embed(frame, many) - alone).max() < 1e-4
    assert embedder.embed(frame, []).shape == (0, 0)


def test_a_smeared_face_is_less_sharp(seen):
    bgr = read_bgr(seen[0])
    values = []
    for sigma in (0.0, 2.0, 5.0):
        smeared = cv2.GaussianBlur(bgr, (0, 0), sigma) if sigma else bgr
        values.append(measure_sharpness(create_frame_by_bgr(smeared).y))
    assert values[0] > values[1] > values[2] > 0.0
    assert measure_sharpness(np.full((32, 32), 90, np.uint8)) == 0.0


def test_a_network_of_another_kind_is_refused_in_words():
    with pytest.raises(ConfigError, match="centerface does not tell people apart"):
        Embedder(share_sessions().get("centerface"))


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_vector_of_no_use_is_refused(models, sessions, seen, value):
    embedder = create(models, sessions, "w600k_mbf")
    real = embedder._network
    embedder._network = SimpleNamespace(
        run=lambda feeds: [np.full((1, 512), value, np.float32)],
        input_names=real.input_names,
        model=real.model,
    )
    with pytest.raises(ModelError, match="w600k_mbf"):
        embedder.embed(seen[0], [seen[1]])
