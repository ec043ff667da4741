"""The URL's scheme chooses the way in; what can be known to be wrong is said at once."""

from __future__ import annotations

import pytest

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import ConfigError
from livefuse.ingest import check_url, create_ingest, get_file_path, get_kind, is_live_url


def create(url):
    return create_ingest(url, IngestConfig(), SystemClock(), paced=True, every_frame=False)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("rtsp://127.0.0.1/cam", "PullIngest"),
        ("RTMP://127.0.0.1/live/key", "PullIngest"),
        ("hls://127.0.0.1/a.m3u8", "PullIngest"),
        ("udp://@:5000", "PullIngest"),
        ("listen:rtmp://127.0.0.1:1935/live/key", "ListenIngest"),
        ("whip:", "WhipIngest"),
        ("clip.mp4", "FileIngest"),
        ("/tmp/a:b.mp4", "FileIngest"),
        ("file:///tmp/clip.mp4", "FileIngest"),
        ("test:", "SyntheticIngest"),
        ("demo:", "SyntheticIngest"),
        ("camera:0", "CameraIngest"),
    ],
)
def test_scheme_chooses_the_way_in(url, name):
    assert type(create(url)).__name__ == name


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("a:b.mp4", "a:b.mp4"),
        ("per%20cent.mp4", "per%20cent.mp4"),
        ("file:///tmp/sp%20ace.mp4", "/tmp/sp ace.mp4"),
        ("FILE://localhost/tmp/a.mp4", "/tmp/a.mp4"),
        ("file:a.mp4", "a.mp4"),
        ("file://a.mp4", "a.mp4"),
    ],
)
def test_a_file_url_is_unquoted_and_a_path_is_not(url, path):
    assert get_file_path(url) == path


def test_only_files_are_not_live():
    assert not is_live_url("clip.mp4")
    assert not is_live_url("file:///tmp/clip.mp4")
    live = ("rtsp://h/x", "camera:x", "test:", "listen:rtmp://h/a/k", "whip:")
    assert all(map(is_live_url, live))


def test_unknown_scheme_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean rtsp"):
        check_url("rtps://user:secret@host/path")


def test_unknown_scheme_tells_no_secret():
    with pytest.raises(ConfigError) as caught:
        check_url("rtps://user:secret@host/path")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "rtsp://", "rtsp://host:abc/x", "rtmp://host:99999/a/k"])
def test_unusable_address_is_refused(url):
    with pytest.raises(ConfigError):
        create(url)


@pytest.mark.parametrize(
    "url", ["listen:rtmp://127.0.0.1/live", "listen:rtsp://127.0.0.1/a/b", "listen:", "listen:x"]
)
def test_listener_needs_rtmp_app_and_key(url):
    with pytest.raises(ConfigError, match="APP/KEY"):
        create(url)


def test_srt_passphrase_is_refused_as_the_process_list_would_show_it():
    """C76."""
    with pytest.raises(ConfigError, match="passphrase") as caught:
        create("srt://127.0.0.1:9000?passphrase=tops3cret")
    assert "tops3cret" not in str(caught.value)


def test_srt_without_its_program_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="srt-tools"):
        create("srt://127.0.0.1:9000")


def test_kind_of_windows_like_and_odd_paths_is_file():
    assert get_kind("folder/with:colon.mp4") == "file"
    assert get_kind("//host/share") == "file"
