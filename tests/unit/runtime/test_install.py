"""Models that people bring: import, licences, packs (C69, C70)."""

import zipfile

import pytest

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime.install import accept_model, import_path
from livefuse.runtime.installed import INSTALLED, read_installed
from livefuse.runtime.registry import ModelRegistry, compute_sha256, load_registry
from livefuse.runtime.session import SessionCache
from tests.standins import install_standins, save_standin
from tests.unit.runtime.test_recognise import KNOWN, build


@pytest.fixture
def registry(tmp_path):
    install_standins(tmp_path / "models")
    return ModelRegistry(tmp_path / "models")


def bring(registry, path, accept=lambda _model: True, **options):
    return list(import_path(registry, path, accept, **options))


def refuse(_model):
    return False


def test_a_free_model_is_copied_noted_and_loads(registry, tmp_path):
    path = save_standin("yunet_2023_mar", tmp_path, "my download.onnx")
    (brought,) = bring(registry, path, refuse)
    assert brought.model.name == "yunet_2023_mar"
    copy = registry.folder / "yunet_2023_mar.onnx"
    assert copy.read_bytes() == path.read_bytes()
    row = read_installed(registry.folder)["yunet_2023_mar"]
    assert row.bytes == copy.stat().st_size
    assert row.origin == str(path)
    assert not row.accepted
    sessions = SessionCache(ModelsConfig(folder=str(registry.folder), providers="cpu"))
    assert sessions.get("yunet_2023_mar").input_names == ("input",)
    leftovers = [p.name for p in registry.folder.iterdir() if p.name.startswith(".")]
    assert leftovers == []


def test_a_restricted_licence_is_asked_for_and_its_acceptance_noted(registry, tmp_path):
    """(C70)"""
    path = save_standin("det_10g", tmp_path)
    asked = []

    def answer(model):
        asked.append(model.licence)
        return len(asked) > 1

    with pytest.raises(ModelError, match=r"non-commercial.*not accepted.*--accept-licence"):
        bring(registry, path, answer)
    assert not registry.is_present("det_10g")
    assert not (registry.folder / INSTALLED).exists()
    bring(registry, path, answer)
    row = registry.get_installed("det_10g")
    assert row.accepted_by
    assert row.accepted_at.endswith("+00:00")
    assert row.licence == "non-commercial"
    assert registry.verify_model("det_10g") == registry.folder / "det_10g.onnx"
    bring(registry, path, refuse)  # once is enough
    assert asked == ["non-commercial"] * 2


def test_a_restricted_file_put_there_by_hand_is_refused_until_accepted(registry):
    """(C70)"""
    save_standin("det_10g", registry.folder)
    sessions = SessionCache(ModelsConfig(folder=str(registry.folder), providers="cpu"))
    with pytest.raises(ModelError, match=r"non-commercial.*livefuse models accept det_10g"):
        sessions.get("det_10g")
    row = accept_model(registry, "det_10g")
    assert row.accepted
    assert sessions.get("det_10g").model.name == "det_10g"


def test_an_accepted_file_that_changed_is_told_with_both_digests(registry, tmp_path):
    """(C69)"""
    bring(registry, save_standin("det_10g", tmp_path))
    path = registry.folder / "det_10g.onnx"
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    expected = registry.get_installed("det_10g").sha256
    with pytest.raises(ModelError, match=rf"has SHA-256 (?!{expected}).*expected {expected}"):
        registry.verify_model("det_10g")
    path.write_bytes(data[:500])
    with pytest.raises(ModelError, match=r"500 bytes, expected \d+"):
        registry.verify_model("det_10g")


def test_nothing_restricted_is_in_the_default_set():
    """(C70)"""
    models = load_registry(ModelsConfig()).list_models()
    assert [model.name for model in models if model.embedded and model.restricted] == []
    free = {"MIT", "Apache-2.0", "GPL-3.0", "BSD-3-Clause", "CC0-1.0"}
    assert {model.licence for model in models if not model.restricted} <= free
    assert [model.name for model in models if model.restricted and model.licence in free] == []


def make_pack(folder):
    """Write what buffalo_l holds, as it lies on disk."""
    save_standin("det_10g", folder)
    for name in ("2d106det", "1k3d68", "w600k_r50"):
        model = build(name, *KNOWN[name]).build()
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    age = build("age", {"data": ("None", 3, 96, 96)}, {"fc1": (1, 3)}).build()
    (folder / "genderage.onnx").write_bytes(age.SerializeToString())
    return folder


def test_a_pack_is_imported_from_its_folder_and_from_its_archive(registry, tmp_path):
    pack = make_pack(tmp_path / "buffalo_l")
    archive = tmp_path / "buffalo_l.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in pack.iterdir():
            out.write(path, f"../../buffalo_l/{path.name}")
        out.writestr("buffalo_l/readme.txt", "words")
        out.writestr("buffalo_l/odd.onnx", "no model")
    brought = {}
    for source, count in ((pack, 5), (archive, 6)):
        brought = {item.file: item for item in bring(registry, source)}
        assert len(brought) == count
        assert brought["genderage.onnx"].model is None
        assert not brought["genderage.onnx"].failed
        names = {item.model.name for item in brought.values() if item.model}
        assert names == {"det_10g", "2d106det", "1k3d68", "w600k_r50"}
    assert brought["odd.onnx"].failed
    assert "odd.onnx" in brought["odd.onnx"].words
    assert registry.get_installed("w600k_r50").origin.endswith("buffalo_l.zip!w600k_r50.onnx")
    assert {p.name for p in tmp_path.iterdir()} == {"models", "buffalo_l", "buffalo_l.zip"}


def test_a_pack_is_used_where_it_lies(registry, tmp_path):
    make_pack(tmp_path / "packs" / "buffalo_l")
    config = ModelsConfig(
        folder=str(registry.folder), packs=str(tmp_path / "packs"), providers="cpu"
    )
    found = load_registry(config)
    assert found.find_path("w600k_r50") == tmp_path / "packs" / "buffalo_l" / "w600k_r50.onnx"
    assert not found.is_present("w600k_mbf")
    with pytest.raises(ModelError, match="accept"):
        found.verify_model("det_10g")
    accept_model(found, "det_10g")
    assert SessionCache(config).get("det_10g").model.family == "scrfd"
    assert not (registry.folder / "det_10g.onnx").exists()


def test_a_pack_with_names_of_its_own_is_found(tmp_path, registry):
    save_standin("scrfd_2.5g", tmp_path / "buffalo_m", "det_2.5g.onnx")
    found = ModelRegistry(registry.folder, tmp_path / "buffalo_m")
    assert found.find_path("scrfd_2.5g") == tmp_path / "buffalo_m" / "det_2.5g.onnx"


def test_what_cannot_be_imported_is_told(registry, tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        bring(registry, tmp_path / "nothing.onnx")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"no \.onnx file"):
        bring(registry, tmp_path / "empty")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as out:
        out.writestr("a.txt", "a")
    with pytest.raises(ModelError, match=r"no \.onnx file"):
        bring(registry, tmp_path / "empty.zip")
    with pytest.raises(ModelError, match="comes with livefuse"):
        accept_model(registry, "centerface")
    with pytest.raises(ModelError, match="no file of det_10g"):
        accept_model(registry, "det_10g")


def test_an_embedded_file_is_known_by_its_digest(registry):
    (brought,) = bring(registry, registry.folder / "centerface.onnx", refuse)
    assert "already" in brought.words
    assert registry.get_installed("centerface") is None


def test_a_published_digest_tells_what_a_file_is_whatever_its_name(registry, tmp_path):
    path = save_standin("scrfd_2.5g", tmp_path, "download (3).onnx")
    with pytest.raises(ModelError, match="--name"):
        bring(registry, path)
    manifest = registry.folder / "manifest.toml"
    row = 'name = "scrfd_2.5g"\n'
    known = f'{row}published = ["{compute_sha256(path)}"]\n'
    manifest.write_text(manifest.read_text("utf-8").replace(row, known), "utf-8")
    (brought,) = bring(ModelRegistry(registry.folder), path)
    assert brought.model.name == "scrfd_2.5g"
    assert brought.words == "imported"
    (other,) = bring(registry, save_standin("det_10g", tmp_path))
    assert "is not the published file's" in other.words


def test_another_file_in_its_place_is_said(registry, tmp_path):
    bring(registry, save_standin("yoloface_8n", tmp_path))
    (again,) = bring(registry, tmp_path / "yoloface_8n.onnx")
    assert again.words == "imported"
    other = tmp_path / "other.onnx"
    other.write_bytes(again_with_comment(tmp_path / "yoloface_8n.onnx"))
    (replaced,) = bring(registry, other)
    assert "replaced" in replaced.words
    assert registry.verify_model("yoloface_8n").read_bytes() == other.read_bytes()


def again_with_comment(path):
    import onnx

    model = onnx.load(path)
    model.doc_string = "another"
    return model.SerializeToString()


def test_notes_that_cannot_be_understood_are_told(registry):
    (registry.folder / INSTALLED).write_text("[[installed]]\nname = 3\n", "utf-8")
    with pytest.raises(ModelError, match=r"installed\.toml cannot be used"):
        registry.get_installed("det_10g")


def test_notes_keep_odd_names(registry, tmp_path):
    folder = tmp_path / 'a "quoted" \\ 人 folder'
    bring(registry, save_standin("yoloface_8n", folder))
    row = registry.get_installed("yoloface_8n")
    assert row.origin == str(folder / "yoloface_8n.onnx")
