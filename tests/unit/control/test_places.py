"""Where files lie that are asked for over HTTP."""

import pytest

from livefuse.config import RecordConfig
from livefuse.control.places import place_target
from livefuse.errors import ConfigError, RefusedError


@pytest.fixture
def record(tmp_path):
    return RecordConfig(folder=str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("asked", "lies"),
    [
        ("show.mp4", "out/show.mp4"),
        ("out/show.mp4", "out/show.mp4"),
        ("out/deep/show.mp4", "out/deep/show.mp4"),
        ("deep/out/show.mp4", "out/deep/out/show.mp4"),
        ("outside/show.mp4", "out/outside/show.mp4"),
    ],
)
def test_a_path_with_the_folders_own_name_is_in_it(record, tmp_path, asked, lies):
    assert place_target(asked, record) == str(tmp_path / lies)


def test_a_whole_path_within_the_folder_is_taken(record, tmp_path):
    path = str(tmp_path / "out" / "show.mp4")
    assert place_target(path, record) == path


@pytest.mark.parametrize("asked", ["../show.mp4", "out/../../show.mp4", "/etc/show.mp4", "out/.."])
def test_nothing_lies_elsewhere(record, asked):
    with pytest.raises(RefusedError):
        place_target(asked, record)


def test_what_is_no_file_is_left_alone(record, tmp_path):
    assert place_target("rtmp://host/out/key", record) == "rtmp://host/out/key"
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_too_long_is_told(tmp_path):
    with pytest.raises(ConfigError, match="too long"):
        place_target("A" * 300 + ".mp4", RecordConfig(folder=str(tmp_path)))
