"""What the command line asks for is checked before anything starts."""

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from livefuse.config import Config
from livefuse.control.figures import check_writable, write_atomically
from livefuse.control.requests import Wish, create_request, parse_operations, resolve_url
from livefuse.errors import ConfigError, ConsentError, TokenError

PLAIN: dict[str, Any] = {
    "wish": Wish(),
    "config": None,
    "settings": (),
    "mode": None,
    "for_s": None,
    "stats": None,
    "quiet": False,
}


def test_a_plain_request_has_the_defaults():
    request = create_request("in.mp4", ["out.mp4"], **PLAIN)
    assert request.operations == ("detect", "blur")
    assert request.config == Config()
    assert request.mode == "auto"


def test_the_mode_of_the_command_line_wins():
    options = {**PLAIN, "settings": ["ring.mode=live"]}
    assert create_request("a", ["b"], **options).mode == "live"
    assert create_request("a", ["b"], **{**options, "mode": "every_frame"}).mode == "every_frame"


def test_a_secret_can_stay_in_the_environment(monkeypatch):
    monkeypatch.setenv("MY_TARGET", "rtmp://h/app/key")
    assert resolve_url("env:MY_TARGET") == "rtmp://h/app/key"


@pytest.mark.parametrize("text", ["env:NOT_THERE_AT_ALL", "env:", "", "  "])
def test_no_url_is_said(text):
    with pytest.raises(ConfigError):
        resolve_url(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [("detect,blur", ("detect", "blur")), (" detect , blur ", ("detect", "blur")), ("none", ())],
)
def test_operations_are_read(text, names):
    assert parse_operations(text) == names


@pytest.mark.parametrize("text", ["", ",", "blur", "blur,detect", "none,blur", "detect,detect"])
def test_an_empty_or_wrong_list_never_means_no_cover(text):
    with pytest.raises(TokenError):
        parse_operations(text)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_length_of_nothing_is_refused(seconds):
    with pytest.raises(ConfigError, match="--for"):
        create_request("a", ["b"], **{**PLAIN, "for_s": seconds})


def test_a_stream_to_nowhere_is_refused():
    with pytest.raises(ConfigError, match="nowhere"):
        create_request("a", [], **{**PLAIN, "settings": ["http.enabled=false"]})
    assert create_request("a", [], **PLAIN).targets == ()


def test_figures_need_a_place(tmp_path):
    check_writable(tmp_path / "figures.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="folder"):
        check_writable(tmp_path)
    with pytest.raises(ConfigError, match="cannot write"):
        check_writable(tmp_path / "no" / "figures.json")


def test_figures_are_written_whole(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text("old")
    write_atomically(path, msgspec.json.encode({"a": 1}))
    assert msgspec.json.decode(path.read_bytes()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["figures.json"]


def test_figures_go_through_links_and_into_devices(tmp_path):
    path, link = tmp_path / "figures.json", tmp_path / "link.json"
    link.symlink_to(path)
    check_writable(link)
    write_atomically(link, b"1")
    assert (link.is_symlink(), path.read_bytes()) == (True, b"1")
    check_writable(Path(os.devnull))
    write_atomically(Path(os.devnull), b"1")
    assert Path(os.devnull).is_char_device()


def test_figures_that_cannot_be_written_leave_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ConfigError, match="No space left"):
        write_atomically(tmp_path / "figures.json", b"1")
    assert list(tmp_path.iterdir()) == []


def test_quiet_hides_what_is_not_wrong_unless_debug_is_asked_for():
    assert create_request("a", ["b"], **PLAIN).config.log.level == "info"
    quiet = {**PLAIN, "quiet": True}
    assert create_request("a", ["b"], **quiet).config.log.level == "warning"
    quiet["settings"] = ["log.level=debug"]
    assert create_request("a", ["b"], **quiet).config.log.level == "debug"


def test_the_input_is_not_an_output(tmp_path):
    path = tmp_path / "a.mp4"
    path.touch()
    options = {**PLAIN, "settings": ["record.overwrite=true"]}
    with pytest.raises(ConfigError, match="while it is read"):
        create_request(str(path), [str(path)], **options)


def create(wish, settings=(), **changes):
    return create_request("a", ["b"], **{**PLAIN, "wish": wish, "settings": settings, **changes})


def test_what_is_not_said_follows_from_face_and_look():
    assert create(Wish()).operations == ("detect", "blur")
    assert create(Wish(source_face="avatar:robot")).operations == ("detect", "align", "swap")
    assert create(Wish(look="natural")).operations == ("detect", "align", "beautify")
    both = create(Wish(source_face="avatar:robot", look="natural"))
    assert both.operations == ("detect", "align", "swap", "beautify")
    assert both.source_face == "avatar:robot"


def test_what_is_said_goes_before_it():
    wish = Wish("detect,align,puppet", source_face="avatar:robot")
    assert create(wish).operations == ("detect", "align", "puppet")


def test_parameters_are_the_tokens_and_beautifys():
    wish = Wish(parameters=("select=largest", "blend_ratio=0.5", "slim=0.3", "lip_color=#AA0000"))
    parameters = create(wish).parameters
    assert (parameters.select, parameters.blend_ratio) == ("largest", 0.5)
    assert parameters.beautify == {"slim": 0.3, "lip_color": "#aa0000"}


def test_a_parameter_changes_what_the_look_says():
    plain = create(Wish(look="natural")).parameters.beautify
    changed = create(Wish(look="natural", parameters=("smooth=0.9",))).parameters.beautify
    assert plain["smooth"] != changed["smooth"] == 0.9
    assert {k: v for k, v in changed.items() if k != "smooth"} == {
        k: v for k, v in plain.items() if k != "smooth"
    }


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("slimm=0.3", "did you mean slim"),
        ("select=bigest", "choose from all, largest"),
        ("blend_ratio=2", "blend_ratio does not fit"),
        ("slim=7", "0 to 1"),
        ("lips=red", "not a number"),
        ("slim", "NAME=VALUE"),
        ("enable_gfpgan=perhaps", "enable_gfpgan does not fit"),
    ],
)
def test_a_wrong_parameter_is_told_with_what_fits(setting, text):
    with pytest.raises(TokenError, match=text):
        create(Wish(parameters=(setting,)))


def test_an_unknown_face_is_told(tmp_path):
    with pytest.raises(ConsentError, match="livefuse faces"):
        create(Wish(source_face="nobody"), settings=(f"safety.folder={tmp_path}",))


@pytest.mark.parametrize(("mode", "provider"), [("cpu", "cpu"), ("auto", "auto")])
def test_device_mode_chooses_the_device(mode, provider):
    assert create(Wish(parameters=(f"device_mode={mode}",))).config.models.providers == provider


def test_the_light_mode_takes_lighter_networks():
    """R44"""
    light = create(Wish(parameters=("device_mode=light",))).config
    assert light.align.model == "facemesh_468"
    assert light.detect.every_n > create(Wish()).config.detect.every_n


def test_what_a_parameter_needs_is_done():
    assert create(Wish(parameters=("smile=0.3",))).operations == ("detect", "align", "beautify")
    wish = Wish(look="natural", parameters=("select=largest", "blur_whom=others"))
    assert create(wish).operations == ("detect", "align", "beautify", "blur")


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        (Wish("detect,blur", source_face="avatar:fox"), "swap or puppet"),
        (Wish("detect,blur", look="natural"), "--look natural has no effect"),
        (Wish("detect,blur", parameters=("smile=1",)), "smile has no effect"),
    ],
)
def test_what_would_be_without_effect_is_refused(wish, text):
    with pytest.raises(TokenError, match=text):
        create(wish)
