import shutil

import msgspec
import pytest

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime.registry import ModelRegistry, find_models_folder, load_registry


@pytest.fixture
def own_folder(tmp_path):
    """A models folder that a test may damage."""
    folder = tmp_path / "models"
    shutil.copytree(find_models_folder(ModelsConfig()), folder)
    return folder


def test_the_embedded_models_are_whole_and_freely_licensed():
    registry = load_registry(ModelsConfig())
    models = [model for model in registry.list_models() if model.embedded]
    assert {"centerface", "blazeface_full_192"} <= {model.name for model in models}
    for model in models:
        assert registry.verify_model(model.name).stat().st_size == model.bytes
        assert model.licence in {"MIT", "Apache-2.0", "CC0-1.0"}
        assert model.sha256
        assert not model.restricted


def test_the_notice_names_every_file():
    registry = load_registry(ModelsConfig())
    notice = (registry.folder / "NOTICE").read_text("utf-8")
    embedded = [model.file for model in registry.list_models() if model.embedded]
    assert [file for file in embedded if file not in notice] == []
    licences = [word for word in notice.split() if word.startswith("licences/")]
    named = [word.strip("().,") for word in licences]
    assert named
    assert [name for name in named if not (registry.folder / name).is_file()] == []


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(ModelError, match=r"did you mean centerface\?"):
        load_registry(ModelsConfig()).get_model("centrface")


def test_a_truncated_file_is_refused_with_both_sizes(own_folder):
    path = own_folder / "centerface.onnx"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelError, match=r"1000 bytes, expected 7297151.*restore") as caught:
        ModelRegistry(own_folder).verify_model("centerface")
    assert "git checkout" in caught.value.hint


def test_an_altered_file_is_refused_with_both_digests(own_folder):
    path = own_folder / "centerface.onnx"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    registry = ModelRegistry(own_folder)
    with pytest.raises(ModelError, match=registry.get_model("centerface").sha256) as caught:
        registry.verify_model("centerface")
    assert caught.value.message.count("SHA-256") == 1
    assert path.is_file()


def test_a_missing_file_and_a_missing_folder_are_told(own_folder, tmp_path):
    (own_folder / "centerface.onnx").unlink()
    with pytest.raises(ModelError, match="No such file"):
        ModelRegistry(own_folder).verify_model("centerface")
    with pytest.raises(ModelError, match=r"models\.folder"):
        load_registry(ModelsConfig(folder=str(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    "text", ["models = 3", "not toml", '[[models]]\nname = "x"\n', "[[models]]\nwrong = 1\n"]
)
def test_a_manifest_that_cannot_be_understood_is_told(tmp_path, text):
    (tmp_path / "manifest.toml").write_text(text, "utf-8")
    with pytest.raises(ModelError, match="cannot be used"):
        ModelRegistry(tmp_path)


def test_a_configured_folder_wins(own_folder):
    config = msgspec.structs.replace(ModelsConfig(), folder=str(own_folder))
    assert load_registry(config).folder == own_folder
