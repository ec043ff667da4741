"""`models reduce`: samples from the demo's moving head, a copy, and how far it is."""

import msgspec
import numpy as np
import pytest

from livefuse.config import Config, IngestConfig, ModelsConfig, load_config
from livefuse.control.commands.reduce import reduce_model
from livefuse.control.samples import record_samples
from livefuse.errors import ModelError
from livefuse.runtime.registry import load_registry
from livefuse.runtime.session import SessionCache

SMALL = Config(ingest=IngestConfig(camera_size="640x360"))


def test_samples_are_what_the_step_feeds():
    model = load_registry(ModelsConfig()).get_model("facemesh_468")
    samples = record_samples(SMALL, model, 3)
    assert len(samples) == 3
    (values,) = samples[0].values()
    assert values.shape == (1, 192, 192, 3)
    assert 0.2 < values.mean() < 0.8
    assert not np.array_equal(values, next(iter(samples[1].values())))


def test_a_network_without_a_step_of_its_own_says_so():
    model = load_registry(ModelsConfig()).get_model("facemesh_468")
    odd = msgspec.structs.replace(model, task="convert")
    with pytest.raises(ModelError, match="ranges cannot be measured") as caught:
        record_samples(SMALL, odd)
    assert "fp16" in caught.value.hint


def test_a_reduced_network_is_used_from_then_on(tmp_path, capsys):
    settings = [f"models.cache_folder={tmp_path}", "models.providers=cpu"]
    reduce_model(
        "facemesh_468", precision="int8", settings=[*settings, "ingest.camera_size=640x360"]
    )
    said = capsys.readouterr().out
    assert "facemesh_468 in int8: 2.4 MB -> 0.8 MB" in said
    assert "dB from full precision" in said
    config = load_config(None, (*settings, "models.precision=int8"))
    sessions = SessionCache(config.models)
    assert sessions.get("facemesh_468").precision == "int8"
    assert sessions.statistics().notes == ()
