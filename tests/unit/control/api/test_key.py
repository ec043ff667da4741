"""The key: made once, private, and asked for wherever others could come in."""

import stat

import pytest

from livefuse.config import load_config
from livefuse.control.api.key import is_loopback, is_same_key, load_key
from livefuse.errors import ConfigError


def load(folder, *settings):
    return load_key(load_config(None, (f"safety.folder={folder / 'safety'}", *settings)))


def test_it_is_made_once_and_is_for_this_user_alone(tmp_path):
    key = load(tmp_path)
    assert len(key) >= 32
    assert load(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "safety" / "api.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.5.5.5"])
def test_without_a_key_this_machine_comes_in(host, tmp_path):
    assert is_loopback(host)
    assert load(tmp_path, "http.require_key=false", f"http.host={host}") == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.example", ""])
def test_without_a_key_nobody_else_does(host, tmp_path):
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match="anybody could come in"):
        load(tmp_path, "http.require_key=false", f"http.host={host}")
    assert load(tmp_path, f"http.host={host}")


@pytest.mark.parametrize("held", ["short", "with a space in it, sadly", "", "\x00" * 20])
def test_a_file_that_holds_no_key_is_refused(held, tmp_path):
    place = tmp_path / "key"
    place.write_text(held)
    with pytest.raises(ConfigError, match="holds no key"):
        load(tmp_path, f"http.key_file={place}")


def test_any_bytes_may_be_given():
    assert is_same_key("a-key-of-letters", "a-key-of-letters")
    for given in ("", "\udcff\udcfe", "a-key-of-letter", "中文", "\x00"):
        assert not is_same_key(given, "a-key-of-letters")
