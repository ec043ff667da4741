"""C76: no credential and no stream key in anything a person may see."""

import pytest

from livefuse.redact import find_secrets, redact_text, redact_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtsp://user:pa55@cam:554/ch0", "rtsp://***@cam:554/ch0"),
        ("rtmp://host/live/streamkey", "rtmp://host/live/***"),
        ("rtmps://u:p@host:443/app/inst/key?token=abc", "rtmps://***@host:443/app/inst/***?***"),
        ("http://h/x.m3u8?sig=abc", "http://h/x.m3u8?***"),
        ("srt://h:9000?passphrase=secret", "srt://h:9000?***"),
        ("rtmp://host/live", "rtmp://host/live"),
        ("/tmp/a.mp4", "/tmp/a.mp4"),
        ("camera:C920", "camera:C920"),
        ("rtmp://[broken/live/key", "***"),
        ("rtpm://host/live/streamkey", "rtpm://host/live/***"),
        ("rtsp://u:p@host:8554/app/pathkey", "rtsp://***@host:8554/app/***"),
        ("RTSPS://host/app/pathkey", "rtsps://host/app/***"),
        ("rtsp://host/a/b/main", "rtsp://host/a/b/***"),
        ("srt://h:9000/app/pathkey?streamid=x", "srt://h:9000/app/***?***"),
        ("listen:rtmp://127.0.0.1:1935/live/key", "listen:rtmp://127.0.0.1:1935/live/***"),
        ("rtmp://host/live/streamkey/", "rtmp://host/live/***"),
        ("listen:listen:rtmp://h/live/key", "listen:listen:rtmp://h/live/***"),
        ("listen:rtmp://[broken/live/key", "listen:***"),
        ("/tmp/listen:rtmp://h/live/key", "/tmp/listen:rtmp://h/live/key"),
        ("replay:/media/a.mkv", "replay:/media/a.mkv"),
    ],
)
def test_urls_are_shown_without_their_secrets(url, shown):
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://user:p%40ss@cam/1",
        "rtmp://h/live/streamkey",
        "http://h/a?k=hidden",
        "rtsp://h/app/pathkey7",
        "listen:rtmp://127.0.0.1:1935/live/streamkey",
    ],
)
def test_foreign_text_loses_urls_and_secrets(url):
    secrets = find_secrets(url)
    assert secrets
    text = f"error opening '{url}': key {secrets[-1]} was wrong, {secrets[0]}"
    shown = redact_text(text, (url,))
    assert not [secret for secret in secrets if secret in shown]
    assert "error opening" in shown


def test_a_short_key_does_not_garble_other_words():
    text = "unknown key blur.stile, the keys are 1, 127.0.0.1"
    assert redact_text(text, ("rtmp://127.0.0.1/live/key", "rtmp://h/live/1")) == text


def test_a_name_of_a_stream_does_not_garble_other_words():
    """A camera's `main` is hidden in its address, not in the job that is called so."""
    url = "rtsp://cam/Streaming/main"
    text = f"the job main cannot reach {url}"
    assert redact_text(text, (url,)) == "the job main cannot reach rtsp://cam/Streaming/***"
    assert redact_text("key abcdefghijklmnop", ("rtsp://h/a/abcdefghijklmnop",)) == "key ***"


def test_a_path_holds_no_secret():
    assert find_secrets("folder/figures.json") == ()
    text = "cannot write folder/figures.json"
    assert redact_text(text, ("folder/figures.json",)) == text


def test_punctuation_behind_a_url_is_the_text_s():
    text = "cannot publish to rtmp://h/live/geheim: refused (see http://h/x)."
    assert redact_text(text) == "cannot publish to rtmp://h/live/***: refused (see http://h/x)."
