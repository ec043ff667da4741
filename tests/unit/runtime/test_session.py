import shutil
import threading

import numpy as np
import pytest

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime import binding, environment, network, providers, session
from livefuse.runtime.providers import describe_runtime
from livefuse.runtime.registry import find_models_folder
from livefuse.runtime.session import SessionCache


@pytest.fixture
def without_nvidia(monkeypatch):
    """A machine that shows no NVIDIA device, whatever this one has."""
    monkeypatch.setattr(providers, "has_nvidia_device", lambda: False)


def test_each_model_is_loaded_once_for_all_threads(without_nvidia):
    cache = SessionCache(ModelsConfig())
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.get("blazeface_full_192")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 4
    assert len({id(one) for one in found}) == 1
    assert cache.created == 1
    cache.get("blazeface_full_192", threads=2)
    assert cache.created == 2


def test_a_network_that_is_there_is_had_while_another_is_being_built(without_nvidia, monkeypatch):
    cache = SessionCache(ModelsConfig())
    there = cache.get("blazeface_full_192")
    is_building, may_end = threading.Event(), threading.Event()
    real = environment.create_session

    def build(path, plan, config):
        is_building.set()
        assert may_end.wait(20)
        return real(path, plan, config)

    monkeypatch.setattr(session, "create_session", build)
    builder = threading.Thread(target=cache.get, args=("facemesh_468",), daemon=True)
    builder.start()
    assert is_building.wait(20)
    assert cache.get("blazeface_full_192") is there
    may_end.set()
    builder.join(20)
    assert cache.created == 2


def test_a_network_runs_and_names_its_ends(without_nvidia):
    made = SessionCache(ModelsConfig()).get("centerface")
    outputs = made.run({made.input_names[0]: np.zeros((1, 3, 64, 96), np.float32)})
    assert [output.shape for output in outputs] == [
        (1, 1, 16, 24),
        (1, 2, 16, 24),
        (1, 2, 16, 24),
        (1, 10, 16, 24),
    ]
    assert len(made.output_names) == 4


def test_a_wrong_input_is_a_model_error(without_nvidia):
    made = SessionCache(ModelsConfig()).get("centerface")
    with pytest.raises(ModelError, match="inference of centerface failed"):
        made.run({"no such input": np.zeros((1, 3, 64, 96), np.float32)})


def test_auto_takes_the_processor_and_says_so(without_nvidia):
    cache = SessionCache(ModelsConfig())
    assert cache.get("blazeface_full_192").provider == "cpu"
    choice = cache.choice
    assert choice is not None
    assert choice.fell_back
    statistics = cache.statistics()
    assert (statistics.provider, statistics.wanted) == ("cpu", "auto")
    assert statistics.notes == ("networks run on the CPU: no usable NVIDIA device",)


def test_a_device_that_does_not_work_is_told_otherwise_than_none(monkeypatch):
    monkeypatch.setattr(providers, "has_nvidia_device", lambda: True)
    choice = providers.explain_choice("auto", "cpu")
    assert choice.fell_back
    assert "cannot be used" in choice.note
    assert not providers.explain_choice("auto", "cuda").fell_back
    assert not providers.explain_choice("cpu", "cpu").fell_back


def test_the_processor_by_request_is_no_fallback(without_nvidia):
    cache = SessionCache(ModelsConfig(providers="cpu"))
    assert cache.statistics().provider == ""
    cache.get("blazeface_full_192")
    assert not cache.statistics().fell_back
    assert cache.statistics().notes == ()


@pytest.mark.parametrize("wish", ["auto", "cpu", "cuda", "tensorrt"])
def test_a_device_is_refused_before_anything_is_loaded(without_nvidia, wish):
    """(C19)"""
    cache = SessionCache(ModelsConfig(providers=wish, folder="/nowhere"))
    if wish in ("auto", "cpu"):
        cache.check_device()
    else:
        with pytest.raises(ModelError, match=f"{wish} was asked for, but this machine shows no"):
            cache.check_device()


@pytest.mark.parametrize("wish", ["cuda", "tensorrt"])
def test_a_device_that_is_not_there_is_refused_with_cause_and_cure(without_nvidia, wish):
    with pytest.raises(ModelError, match="was asked for, but") as caught:
        SessionCache(ModelsConfig(providers=wish)).get("centerface")
    assert "install" in caught.value.hint


def test_a_device_whose_libraries_do_not_load_is_refused_or_passed_over(monkeypatch):
    monkeypatch.setattr(session, "list_usable_providers", lambda: ("cuda", "cpu"))
    real = environment.create_session
    monkeypatch.setattr(
        session,
        "create_session",
        lambda path, plan, config: real(path, plan, config) if plan.provider == "cpu" else None,
    )
    assert SessionCache(ModelsConfig()).get("blazeface_full_192").provider == "cpu"
    with pytest.raises(ModelError, match="cuda was asked for"):
        SessionCache(ModelsConfig(providers="cuda")).get("blazeface_full_192")


def test_on_a_card_networks_of_one_size_have_run_when_they_are_returned(monkeypatch):
    """(C14) the first run is the long one; a processor has nothing to build."""
    monkeypatch.setattr(session, "list_usable_providers", lambda: ("cuda", "cpu"))
    real = environment.create_session
    monkeypatch.setattr(
        session,
        "create_session",
        lambda path, plan, config: real(path, plan._replace(provider="cpu"), config),
    )
    monkeypatch.setattr(network, "BoundRunner", lambda made, *_: binding.BoundRunner(made, "cpu"))
    cache = SessionCache(ModelsConfig(max_batch=4))
    assert cache.get("facemesh_468").shapes == {((1, 192, 192, 3),)}
    assert cache.get("dlib_resnet_128").shapes == {((1, 3, 150, 150),), ((4, 3, 150, 150),)}
    assert cache.get("centerface").shapes == set()
    assert SessionCache(ModelsConfig(providers="cpu")).get("facemesh_468").shapes == set()


def test_asking_for_a_missing_device_prints_nothing(capfd, without_nvidia):
    with pytest.raises(ModelError):
        SessionCache(ModelsConfig(providers="cuda")).get("centerface")
    SessionCache(ModelsConfig()).get("centerface")
    assert capfd.readouterr() == ("", "")


def test_a_file_is_verified_before_it_is_loaded(tmp_path, without_nvidia):
    folder = tmp_path / "models"
    shutil.copytree(find_models_folder(ModelsConfig()), folder)
    (folder / "centerface.onnx").write_bytes(b"short")
    cache = SessionCache(ModelsConfig(folder=str(folder)))
    with pytest.raises(ModelError, match="5 bytes, expected"):
        cache.get("centerface")
    assert cache.created == 0


def test_the_runtime_describes_itself(without_nvidia):
    report = describe_runtime()
    assert report.usable_providers == ("cpu",)
    assert "CPUExecutionProvider" in report.compiled_providers
    assert report.onnxruntime
    assert report.opencv
