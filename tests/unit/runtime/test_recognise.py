"""A file is known by its graph; its name only decides between graphs that look alike."""

import numpy as np
import pytest
from onnx import TensorProto

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime.recognise import list_fitting, read_facts, recognise
from livefuse.runtime.registry import load_registry
from livefuse.runtime.signatures import SIGNATURES, get_signature
from tests.standins import list_standins, save_standin
from tests.standins.graph import GraphBuilder

MODELS = load_registry(ModelsConfig()).list_models()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("standins")


def save(folder, graph, **options):
    path = folder / f"{graph.name}.onnx"
    path.write_bytes(graph.build(**options).SerializeToString())
    return read_facts(path)


def tell(facts, models, name="", file=""):
    """Return the name of what is recognised."""
    model = recognise(facts, models, name, file)
    assert model is not None
    return model.name


def build(name, inputs, outputs):
    """Return a graph with zeros of these shapes; sides that are words are free."""
    graph = GraphBuilder(name)
    for key, shape in inputs.items():
        graph.add_input(key, shape)
    graph.add_node("Identity", next(iter(inputs)))
    for key, shape in outputs.items():
        zeros = np.zeros([side if isinstance(side, int) else 1 for side in shape], np.float32)
        graph.add_output(graph.add_constant(zeros), key, shape)
    return graph


@pytest.mark.parametrize("name", list_standins())
def test_every_standin_is_recognised_under_its_own_name(folder, name):
    assert name in {model.name for model in MODELS}
    facts = read_facts(save_standin(name, folder))
    assert tell(facts, MODELS, file=f"{name}.onnx") == name


@pytest.mark.parametrize("name", ["yoloface_8n", "yunet_2023_mar", "retinaface_mobile025"])
def test_a_graph_that_is_one_of_its_kind_needs_no_name(folder, name):
    facts = read_facts(save_standin(name, folder))
    assert tell(facts, MODELS, file="download (1).onnx") == name


def test_names_of_other_houses_are_known(folder):
    facts = read_facts(save_standin("scrfd_2.5g", folder))
    assert tell(facts, MODELS, file="det_2.5g.onnx") == "scrfd_2.5g"
    assert tell(facts, MODELS, file="SCRFD_500M_BNKPS.onnx") == "scrfd_500m"


def test_graphs_that_look_alike_are_told_apart_by_the_user(folder):
    facts = read_facts(save_standin("det_10g", folder))
    with pytest.raises(ModelError, match=r"scrfd_2\.5g or det_10g.*--name"):
        recognise(facts, MODELS, file="model.onnx")
    assert tell(facts, MODELS, "det_10g", "model.onnx") == "det_10g"


def test_the_graph_wins_over_the_name(folder):
    facts = read_facts(save_standin("yoloface_8n", folder))
    assert tell(facts, MODELS, file="inswapper_128.onnx") == "yoloface_8n"
    with pytest.raises(ModelError, match=r"is not inswapper_128.*looks like yoloface_8n"):
        recognise(facts, MODELS, "inswapper_128", "x.onnx")


IMAGE = {"input": (1, 3, 512, 512)}
KNOWN = {
    "w600k_r50": ({"input.1": ("None", 3, 112, 112)}, {"683": (1, 512)}),
    "2d106det": ({"data": ("None", 3, 192, 192)}, {"fc1": (1, 212)}),
    "1k3d68": ({"data": ("None", 3, 192, 192)}, {"fc1": (1, 3309)}),
    "2dfan4": (
        {"input": (1, 3, 256, 256)},
        {"landmarks": (1, 68, 3), "heatmaps": (1, 68, 64, 64)},
    ),
    "peppa_wutz": ({"input": (1, 3, 256, 256)}, {"output": (1, 68, 3)}),
    "fan_68_5": ({"input": (1, 5, 2)}, {"output": (1, 68, 2)}),
    "liveportrait_203": (
        {"input": (1, 3, 224, 224)},
        {"a": (1, 214), "b": (1, 262), "c": (1, 406)},
    ),
    "blendswap_256": (
        {"target": (1, 3, 256, 256), "source": (1, 3, 112, 112)},
        {"output": (1, 3, 256, 256)},
    ),
    "uniface_256": (
        {"source": (1, 3, 256, 256), "target": (1, 3, 256, 256)},
        {"output": (1, 3, 256, 256)},
    ),
    "simswap_unofficial_512": (
        {"source": (1, 512), "target": (1, 3, 512, 512)},
        {"output": (1, 3, 512, 512)},
    ),
    "gpen_bfr_1024": ({"input": (1, 3, 1024, 1024)}, {"output": (1, 3, 1024, 1024)}),
    "bisenet_resnet_34": (IMAGE, {"output": (1, 19, 512, 512), "1": (1, 19, 64, 64)}),
    "xseg_2": ({"input": ("batch", 256, 256, 3)}, {"output": ("batch", 256, 256, 1)}),
    "real_esrgan_x4": ({"input": (1, 3, "h", "w")}, {"output": (1, 3, "h4", "w4")}),
    "gfpgan_1.4": (IMAGE, {"output": (1, 3, 512, 512)}),
    "hyperswap_1a_256": (
        {"source": (1, 512), "target": (1, 3, 256, 256)},
        {"output": (1, 3, 256, 256), "mask": (1, 1, 256, 256)},
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_shapes_that_people_have_on_disk(tmp_path, name):
    facts = save(tmp_path, build("graph", *KNOWN[name]))
    fitting = [model.name for model in list_fitting(facts, MODELS)]
    assert name in fitting
    assert tell(facts, MODELS, file=f"{name}.onnx") == name
    families = {model.family for model in list_fitting(facts, MODELS)}
    alike = {"gfpgan", "gpen", "restoreformer"}, {"simswap", "ghost", "hififace", "hyperswap"}
    assert len(families) == 1 or any(families <= group for group in alike)


def test_inswapper_is_known_by_the_map_at_its_end(tmp_path):
    graph = build(
        "swap",
        {"target": (1, 3, 128, 128), "source": (1, 512)},
        {"output": (1, 3, 128, 128)},
    )
    emap = graph.add_constant(np.zeros((512, 512)), "buff2fs")
    facts = save(tmp_path, graph, last_initialiser=emap)
    assert facts.last_initialiser == (512, 512)
    assert tell(facts, MODELS, file="model.onnx") == "inswapper_128"
    half = build("half", {"target": (1, 3, 128, 128), "source": (1, 512)}, {"o": (1, 3, 128, 128)})
    emap = half.add_constant(np.zeros((512, 512)), "buff2fs", np.float16)
    facts = save(tmp_path, half, last_initialiser=emap)
    assert tell(facts, MODELS, file="model.onnx") == "inswapper_128_fp16"


def test_codeformer_is_known_by_its_weight(tmp_path):
    graph = GraphBuilder("restorer")
    graph.add_input("input", (1, 3, 512, 512))
    graph.add_input("weight", (1,), TensorProto.DOUBLE)
    graph.add_output("input", "output", (1, 3, 512, 512))
    assert tell(save(tmp_path, graph), MODELS, file="x.onnx") == "codeformer"


def test_genderage_is_left_out_and_a_stranger_refused(tmp_path):
    facts = save(tmp_path, build("age", {"data": ("None", 3, 96, 96)}, {"fc1": (1, 3)}))
    assert recognise(facts, MODELS, file="genderage.onnx") is None
    facts = save(tmp_path, build("cat", {"data": (1, 3, 33, 77)}, {"cats": (1, 9)}))
    with pytest.raises(ModelError, match=r"no model that livefuse knows.*data 1x3x33x77.*1x9"):
        recognise(facts, MODELS, file="cats.onnx")


def test_initialisers_among_the_inputs_are_no_inputs(tmp_path):
    graph = build("w600k", *KNOWN["w600k_r50"])
    graph.add_input("weights", (4,))
    graph.add_constant(np.zeros(4), "weights")
    facts = save(tmp_path, graph)
    assert list(facts.inputs) == ["input.1"]
    assert facts.inputs["input.1"] == (-1, 3, 112, 112)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(tmp_path, folder, share):
    """(C69)"""
    data = save_standin("yoloface_8n", folder).read_bytes()
    path = tmp_path / "broken.onnx"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ModelError, match=r"broken\.onnx"):
        read_facts(path)


def test_weights_in_another_file_are_told(tmp_path):
    import onnx

    model = build("out", *KNOWN["w600k_r50"]).build()
    onnx.external_data_helper.convert_model_to_external_data(model, size_threshold=0)
    onnx.save(model, tmp_path / "outside.onnx")
    with pytest.raises(ModelError, match="weights lie in another file"):
        read_facts(tmp_path / "outside.onnx")


@pytest.mark.parametrize("data", [b"not a model at all", b"\xff" * 64, b"\x0a\x03abc", b"PK\3\4"])
def test_what_is_no_onnx_file_is_refused(tmp_path, data):
    path = tmp_path / "odd.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"odd\.onnx"):
        read_facts(path)


def test_every_family_has_a_signature_and_every_signature_a_family():
    brought = [model for model in MODELS if not model.embedded]
    assert [m.name for m in brought if get_signature(m.name, m.family) is None] == []
    known = {model.family for model in brought} | {model.name for model in brought}
    assert set(SIGNATURES) - known == set()
