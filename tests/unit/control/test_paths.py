"""Nothing is written over what is read, however it is called."""

import os
from pathlib import Path

import pytest

from livefuse.control.paths import check_distinct, is_same_file
from livefuse.errors import ConfigError


@pytest.fixture
def clip(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in.mp4"
    path.write_bytes(b"film")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.mp4").symlink_to(path)
    os.link(path, tmp_path / "hard.mp4")
    return path


@pytest.mark.parametrize(
    "target",
    ["in.mp4", "./folder/../in.mp4", "link.mp4", "hard.mp4", "file:in.mp4", "{0}", "file://{0}"],
)
@pytest.mark.parametrize("source", ["in.mp4", "file://{0}"])
def test_an_input_is_never_written_over(clip, source, target):
    with pytest.raises(ConfigError, match="while it is read"):
        check_distinct(source.format(clip), [target.format(clip)], None, also_read=())


@pytest.mark.parametrize("stats", ["in.mp4", "link.mp4"])
def test_figures_are_never_written_over_the_input(clip, stats):
    with pytest.raises(ConfigError, match="while it is read"):
        check_distinct("in.mp4", ["out.mp4"], Path(stats), also_read=())


@pytest.mark.parametrize("report", ["in.mkv", "in.mkv.jsonl"])
def test_a_report_is_never_written_over_the_recording(clip, report):
    for name in ("in.mkv", "in.mkv.jsonl"):
        (clip.parent / name).write_bytes(b"film")
    with pytest.raises(ConfigError, match="while it is read"):
        check_distinct("replay:in.mkv", [], Path(report), also_read=())


def test_a_picture_that_is_read_is_no_target(clip):
    with pytest.raises(ConfigError, match="while it is read"):
        check_distinct("test:", ["hard.mp4"], None, also_read=[clip])


@pytest.mark.parametrize(
    ("targets", "stats"),
    [
        (["out.mp4", "./out.mp4"], None),
        (["out.mp4", "folder/../out.mp4"], None),
        (["rtmp://h/a/k", "out.mp4"], "out.mp4"),
    ],
)
def test_no_file_is_written_twice(clip, targets, stats):
    with pytest.raises(ConfigError, match="twice"):
        check_distinct("in.mp4", targets, Path(stats) if stats else None, also_read=())


def test_different_files_and_remote_targets_pass(clip):
    targets = ["out.mp4", "out.mkv", "rtmp://h/a/k", "rtmp://h/a/k2", "virtualcam:"]
    check_distinct("in.mp4", targets, Path("figures.json"), also_read=())
    check_distinct("rtsp://h/in.mp4", ["in.mp4"], None, also_read=())
    assert not is_same_file(Path("no/a.mp4"), Path("no/b.mp4"))


def test_a_target_named_twice_is_refused_without_its_key():
    with pytest.raises(ConfigError, match="twice") as caught:
        check_distinct("test:", ["rtmp://h/app/secretkey"] * 2, None, also_read=())
    assert "secretkey" not in str(caught.value)
