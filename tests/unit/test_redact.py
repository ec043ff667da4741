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
    ],
)
def test_urls_are_shown_without_their_secrets(url, shown):
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "url", ["rtsp://user:p%40ss@cam/1", "rtmp://h/live/streamkey", "http://h/a?k=hidden"]
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


def test_a_path_holds_no_secret():
    assert find_secrets("folder/figures.json") == ()
    text = "cannot write folder/figures.json"
    assert redact_text(text, ("folder/figures.json",)) == text


def test_punctuation_behind_a_url_is_the_text_s():
    text = "cannot publish to rtmp://h/live/geheim: refused (see http://h/x)."
    assert redact_text(text) == "cannot publish to rtmp://h/live/***: refused (see http://h/x)."
