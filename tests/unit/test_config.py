"""Configuration: one frozen tree, wrong keys answered with the nearest right one."""

import msgspec
import pytest

from livefuse.config import Config, load_config
from livefuse.errors import ConfigError


def test_defaults_need_no_file():
    assert load_config() == Config()


def test_a_file_then_settings_change_the_defaults(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('[blur]\nstyle = "mosaic"\n[ring]\ncapacity = 3\n')
    config = load_config(path, ("ring.capacity=4", "blur.colour=#ff0000", "ingest.audio=false"))
    assert config.blur.style == "mosaic"
    assert config.ring.capacity == 4
    assert config.blur.colour == "#ff0000"
    assert config.ingest.audio is False


def test_the_tree_is_frozen():
    with pytest.raises(AttributeError):
        Config().ring.capacity = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("blur.stile=mosaic", "did you mean style"),
        ("blurr.style=mosaic", "did you mean blur"),
        ("blur.style=oil", "blur.style cannot be 'oil': .*the choices are gaussian, mosaic"),
        ("blur.style=mosiac", "did you mean mosaic"),
        ("ingest.canvas=1x1", "the default is 'source'"),
        ("http.port=many", "expected `int`, got `str`; the default is 8090"),
        ("ring.capacity=0", "ring.capacity"),
        ("ring.capacity=99999999", "ring.capacity cannot be 99999999: expected `int` <= 64"),
        ("encode.threads=5000", "encode.threads"),
        ("encode.bitrate_kbps=999999999", "encode.bitrate_kbps"),
        ("http.port=99999", "http.port"),
        ("audio.offset_ms=99999999", "audio.offset_ms"),
        ("capacity=2", "section.key=value"),
        ("ring.capacity", "section.key=value"),
        ("blur.strength=2", "blur.strength"),
    ],
)
def test_wrong_settings_say_what_is_right(setting, sentence):
    with pytest.raises(ConfigError, match=sentence):
        load_config(None, (setting,))


@pytest.mark.parametrize(
    ("text", "sentence"), [("[blur", "not TOML"), ("\xff", "not TOML"), ("blur = 3", "blur")]
)
def test_a_broken_file_is_named(tmp_path, text, sentence):
    path = tmp_path / "bad.toml"
    path.write_text(text, "latin-1")
    with pytest.raises(ConfigError, match=sentence):
        load_config(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="check the path"):
        load_config(tmp_path / "none.toml")


def test_every_section_refuses_unknown_fields():
    for field in msgspec.structs.fields(Config):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({field.name: {"no_such_key": 1}}, Config)
