"""Swapper networks: each row is fed and read as the table of facts has it, on stand-ins that give
away every number they were told; inswapper as insightface has it."""

from __future__ import annotations

from types import SimpleNamespace

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import ConfigError, ModelError, RefusedError
from livefuse.face import Box, SourceFace
from livefuse.pipeline.analysis.portrait import analyse_portrait
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.swap_network import create_network_swapper
from livefuse.pipeline.landmarks import get_landmarks
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.pipeline.swap_step import create_swap_step
from livefuse.pipeline.topology import OVAL
from livefuse.runtime.session import SessionCache
from livefuse.token import Parameters, create_token
from tests.faces import (
    analyse,
    create_face_frame,
    create_services,
    read_bgr,
    read_picture,
    share_sessions,
)
from tests.standins import install_standins
from tests.standins.swappers import (
    CONVERTERS,
    GAINS,
    PICTURE_SOURCES,
    SWAPPERS,
    draw_dots,
    draw_emap,
    draw_kernel,
    draw_paint,
)

# Retyped from the table of facts, so that neither the manifest nor the code vouches for itself.
V1 = "arcface_112_v1"
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PLAIN, HALF = ((0.0,) * 3, (1.0,) * 3), ((0.5,) * 3, (0.5,) * 3)
ROWS = {
    "inswapper_128": (128, "arcface_128", PLAIN, "map", (1.0, 0.0)),
    "inswapper_128_fp16": (128, "arcface_128", PLAIN, "map", (1.0, 0.0)),
    "simswap_256": (256, V1, IMAGENET, "crossface_simswap L2", (1.0, 0.0)),
    "simswap_unofficial_512": (512, V1, PLAIN, "crossface_simswap L2", (1.0, 0.0)),
    "ghost_1_256": (256, V1, HALF, "crossface_ghost", (0.5, 0.5)),
    "ghost_2_256": (256, V1, HALF, "crossface_ghost", (0.5, 0.5)),
    "ghost_3_256": (256, V1, HALF, "crossface_ghost", (0.5, 0.5)),
    "hififace_unofficial_256": (256, "mtcnn_512", HALF, "crossface_hififace L2", (0.5, 0.5)),
    "hyperswap_1a_256": (256, "arcface_128", HALF, "L2", (0.5, 0.5)),
    "hyperswap_1b_256": (256, "arcface_128", HALF, "L2", (0.5, 0.5)),
    "hyperswap_1c_256": (256, "arcface_128", HALF, "L2", (0.5, 0.5)),
    "blendswap_256": (256, "ffhq_512", PLAIN, "arcface_112_v2 picture", (1.0, 0.0)),
    "uniface_256": (256, "ffhq_512", HALF, "ffhq_512 picture", (0.5, 0.5)),
}
TEMPLATES = {
    V1: ".3547,.4566 .6453,.4566 .5,.6115 .3791,.7769 .6209,.7769",
    "arcface_112_v2": ".3419,.4616 .6565,.4598 .5002,.6405 .3710,.8247 .6315,.8233",
    "arcface_128": ".3617,.4039 .6370,.4024 .5002,.5604 .3871,.7216 .6151,.7203",
    "ffhq_512": ".3769,.4686 .6229,.4691 .5012,.6133 .3931,.7254 .6115,.7249",
    "mtcnn_512": ".3656,.4673 .6331,.4659 .5002,.6194 .3903,.7760 .6118,.7748",
}


def solve_similarity(points, template, size):
    """Return the (2, 3) matrix to the template by ordinary least squares."""
    wanted = np.array([p.split(",") for p in TEMPLATES[template].split()], np.float64) * size
    rows, values = [], []
    for (x, y), (u, v) in zip(np.asarray(points, np.float64), wanted, strict=True):
        rows += [(x, -y, 1, 0), (y, x, 0, 1)]
        values += [u, v]
    a, b, tx, ty = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    return np.array([[a, -b, tx], [b, a, ty]])


def crop_rgb(bgr, points, template, size):
    """Return RGB 0..1 (3, size, size) and the matrix."""
    matrix = solve_similarity(points, template, size)
    crop = cv2.warpAffine(bgr, matrix, (size, size), borderMode=cv2.BORDER_REPLICATE)
    return crop[..., ::-1].transpose(2, 0, 1).astype(np.float32) / 255, matrix


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return SessionCache(install_standins(folder, *SWAPPERS, *CONVERTERS, "w600k_r50"))


def create_config(sessions, **swap):
    config = Config()
    return msgspec.structs.replace(
        config,
        swap=msgspec.structs.replace(config.swap, **swap),
        models=sessions._config,
    )


def create_context(sessions, config, services=None):
    return StepContext(
        config=config,
        sessions=sessions,
        every_frame=True,
        aside=InlineExecutor(),
        services=services or create_services(),
    )


@pytest.fixture(scope="module")
def picture():
    """Return the source's BGR picture: the astronaut, mirrored."""
    return np.ascontiguousarray(read_picture()[:300, 60:400][:, ::-1])


@pytest.fixture(scope="module")
def portrait(picture):
    return analyse_portrait(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), share_sessions(), Config())


@pytest.fixture(scope="module")
def scene():
    frame = create_face_frame(250)
    return frame, analyse(frame).faces[0]


def swap(  # noqa: PLR0913 - four fixtures
    sessions, scene, picture, portrait, name, *, blend_ratio=1.0, match_colour=False
):
    """Return the frame's BGR after the swap, and whether it was done."""
    _, face = scene
    config = create_config(sessions, model=name, match_colour=match_colour)
    context = create_context(sessions, config)
    swapper = create_network_swapper(context, lambda _: portrait.mesh)
    source = SourceFace("me", cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), "0" * 64)
    swapper.prepare(source)
    copy = create_face_frame(250)
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, parameters=Parameters(blend_ratio=blend_ratio))
    assert swapper.swap(FrameState(copy, token, faces=[face]), face)
    return copy


def run_file(sessions, name, array):
    network = sessions.get(name)
    return network.run({network.input_names[0]: array})[0]


def normalise(vector):
    return vector / np.linalg.norm(vector)


def read_source(sessions, name, kind, picture, portrait):
    """Return what the network adds to each channel, by the table."""
    if kind.endswith("picture"):
        side = PICTURE_SOURCES[name]
        crop, _ = crop_rgb(picture, portrait.landmarks5, kind.split()[0], side)
        return np.array([(crop[i] * draw_kernel(name)[i, 0]).sum() for i in range(3)])
    crop, _ = crop_rgb(picture, portrait.landmarks5, "arcface_112_v2", 112)
    vector = run_file(sessions, "w600k_r50", (crop * 2 - 1)[None].astype(np.float32))[0]
    if kind == "map":
        vector = normalise(normalise(vector) @ draw_emap())
    elif kind == "L2":
        vector = normalise(vector)
    else:
        converter, *rest = kind.split()
        vector = run_file(sessions, converter, vector[None])[0]
        vector = normalise(vector) if rest else vector
    return vector @ draw_paint(name)


def compute_expected(sessions, name, scene, picture, portrait):
    """Return the swapped crop, RGB 0..1, and the crop's matrix, by the table alone."""
    frame, face = scene
    size, template, norm, kind, (scale, offset) = ROWS[name]
    crop, matrix = crop_rgb(read_bgr(frame), get_landmarks(face, 5), template, size)
    mean, std, gains = (np.array(v, np.float32).reshape(3, 1, 1) for v in (*norm, GAINS))
    told = read_source(sessions, name, kind, picture, portrait)
    output = (crop - mean) / std * gains + 0.2 * np.tanh(told).reshape(3, 1, 1)
    dots = draw_dots(template, size, scale=2.0 if mean[0] == std[0] == 0.5 else 1.0)
    output[2] += cv2.resize(dots, (size, size), interpolation=cv2.INTER_LINEAR)
    return np.clip(output * scale + offset, 0.0, 1.0), matrix


def test_the_table_has_every_swapper():
    assert set(ROWS) == set(SWAPPERS)


@pytest.mark.parametrize("name", ROWS)
def test_a_swapper_is_fed_and_read_as_the_table_has_it(sessions, scene, picture, portrait, name):
    """R18."""
    swapped = swap(sessions, scene, picture, portrait, name)
    expected, matrix = compute_expected(sessions, name, scene, picture, portrait)
    size = expected.shape[1]
    seen = cv2.warpAffine(read_bgr(swapped), matrix, (size, size)).astype(np.float32) / 255
    before, _ = crop_rgb(read_bgr(scene[0]), get_landmarks(scene[1], 5), ROWS[name][1], size)
    core = np.s_[round(0.42 * size) : round(0.72 * size), round(0.36 * size) : round(0.64 * size)]
    wanted = expected.transpose(1, 2, 0)[core]
    # A crop comes back a little softer: compare what is left after softening both.
    sigma = size / 48
    error = cv2.GaussianBlur(seen[..., ::-1][core] - wanted, (0, 0), sigma)
    was = cv2.GaussianBlur(before.transpose(1, 2, 0)[core] - wanted, (0, 0), sigma)
    assert np.abs(error).mean() < 0.012
    assert np.abs(error).max() < 0.06
    assert np.abs(was).mean() > 0.03  # and there was something to see


@pytest.mark.filterwarnings("ignore:`estimate` is deprecated:FutureWarning")
def test_inswapper_is_as_insightface_has_it(sessions, scene, picture, portrait):
    inswapper = pytest.importorskip("insightface.model_zoo.inswapper")
    import onnxruntime

    frame, face = scene
    path = sessions._registry.find_path("inswapper_128")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    theirs = inswapper.INSwapper(str(path), session)
    crop, _ = crop_rgb(picture, portrait.landmarks5, "arcface_112_v2", 112)
    embedding = run_file(sessions, "w600k_r50", (crop * 2 - 1)[None].astype(np.float32))[0]
    target = SimpleNamespace(kps=get_landmarks(face, 5))
    source = SimpleNamespace(normed_embedding=normalise(embedding))
    wanted, matrix = theirs.get(read_bgr(frame), target, source, paste_back=False)
    swapped = swap(sessions, scene, picture, portrait, "inswapper_128")
    seen = cv2.warpAffine(read_bgr(swapped), matrix, (128, 128))
    core = np.s_[52:94, 44:84]
    error = cv2.GaussianBlur(seen[core].astype(np.float32) - wanted[core], (0, 0), 2.5)
    assert np.abs(error).mean() < 2.5
    assert np.abs(error).max() < 12


@pytest.mark.parametrize("name", ["inswapper_128", "uniface_256"])
def test_nothing_outside_the_mask_changes(sessions, scene, picture, portrait, name):
    swapped = swap(sessions, scene, picture, portrait, name)
    frame, face = scene
    oval = cv2.convexHull(face.mesh[:468, :2].astype(np.float32))
    inside = np.zeros(frame.y.shape, np.uint8)
    cv2.fillConvexPoly(inside, np.rint(oval).astype(np.int32), 1)
    inside = cv2.dilate(inside, np.ones((25, 25), np.uint8))
    changed = swapped.y != frame.y
    assert changed[inside == 1].mean() > 0.3
    assert not changed[inside == 0].any()


def test_half_a_blend_is_half_way(sessions, scene, picture, portrait):
    """R19."""
    whole = swap(sessions, scene, picture, portrait, "hyperswap_1a_256")
    half = swap(sessions, scene, picture, portrait, "hyperswap_1a_256", blend_ratio=0.5)
    frame = scene[0]
    middle = (whole.y.astype(np.float32) + frame.y) / 2
    assert np.abs(half.y - middle).max() <= 2.0


@pytest.mark.parametrize("name", ["hyperswap_1a_256", "ghost_1_256", "hififace_unofficial_256"])
def test_the_skin_along_the_rim_keeps_its_tone(sessions, scene, picture, portrait, name):
    """C65: Lab distance in the band where the swap fades, a strongly tinted network."""
    frame, face = scene
    oval = face.mesh[OVAL, :2]
    middle = oval.mean(axis=0)
    band = np.zeros(frame.y.shape, np.uint8)
    for scale, value in ((0.94, 255), (0.8, 0)):
        points = np.rint(middle + scale * (oval - middle)).astype(np.int32)
        cv2.fillPoly(band, [points], value)
    distance = {}
    for match in (False, True):
        swapped = swap(sessions, scene, picture, portrait, name, match_colour=match)
        distance[match] = measure_lab(read_bgr(swapped), read_bgr(frame), band)
    assert distance[True] < 5.0
    assert distance[True] < 0.6 * distance[False]


def measure_lab(one, other, band):
    """Return the mean Lab distance of two pictures, softened as the eye does, inside `band`."""
    labs = [
        cv2.cvtColor(cv2.GaussianBlur(p, (0, 0), 4).astype(np.float32) / 255, cv2.COLOR_BGR2LAB)
        for p in (one, other)
    ]
    return float(np.linalg.norm(labs[0] - labs[1], axis=2)[band > 0].mean())


def test_a_face_of_which_nothing_may_be_painted_is_not_called_replaced(
    sessions, scene, picture, portrait
):
    """Never bare: the caller covers it."""
    frame, face = scene
    context = create_context(sessions, create_config(sessions, model="hyperswap_1a_256"))
    swapper = create_network_swapper(context, lambda _: portrait.mesh)
    swapper.prepare(SourceFace("me", cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), "0" * 64))
    hidden = type(face)(face.track, mesh=face.mesh)
    hidden.occlusion = np.full((8, 8), 255, np.uint8)
    hidden.occlusion_box = Box(0.0, 0.0, 1280.0, 720.0)
    copy = create_face_frame(250)
    state = FrameState(copy, create_token(("detect",), now_epoch_s=0.0), faces=[hidden])
    assert not swapper.swap(state, hidden)
    assert (copy.buffer == frame.buffer).all()


def test_a_drawing_is_refused_in_words(sessions, portrait):
    context = create_context(sessions, create_config(sessions, model="hyperswap_1a_256"))
    swapper = create_network_swapper(context, lambda _: portrait.mesh)
    drawing = SourceFace("avatar:robot", np.zeros((8, 8, 3), np.uint8), "0" * 64, "drawing")
    with pytest.raises(RefusedError, match="photos only"):
        swapper.prepare(drawing)


def test_a_file_without_its_map_is_refused_in_words(tmp_path, portrait, picture):
    import onnx

    config = install_standins(tmp_path, "inswapper_128", "w600k_r50")
    sessions = SessionCache(config)
    sessions.get("inswapper_128")
    path = tmp_path / "inswapper_128.onnx"
    model = onnx.load(path)
    del model.graph.initializer[-1]
    onnx.save(model, path)
    context = create_context(sessions, create_config(sessions, model="inswapper_128"))
    swapper = create_network_swapper(context, lambda _: portrait.mesh)
    with pytest.raises(ModelError, match="last initialiser"):
        swapper.prepare(SourceFace("me", cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), "0" * 64))


def test_what_does_not_swap_is_refused_in_words(sessions):
    context = create_context(sessions, create_config(sessions, model="w600k_r50"))
    with pytest.raises(ConfigError, match="does not swap"):
        create_swap_step(context)
