"""Looks: the eight that come along, the user's own beside them, and files that cannot be used."""

import tomllib

import pytest

from livefuse.errors import ConfigError
from livefuse.looks import find_look, list_looks, load_look
from tests.contract.repo import ROOT

NAMES = [
    "confident_pro",
    "korean_dewy",
    "low_light_rescue",
    "natural",
    "none",
    "sculpted_western",
    "soft_japanese",
    "warm_evening",
]


def test_eight_looks_come_along():
    looks = list_looks()
    assert [look.name for look in looks] == NAMES
    for look in looks:
        assert look.title
        assert look.text
        assert look.chinese
        assert bool(look.parameters) == (look.name != "none")


def test_none_asks_for_nothing_and_natural_for_a_little():
    assert load_look("none") == {}
    natural = load_look("natural")
    assert natural["smooth"] == 0.45
    assert natural["slim"] == 0.15
    assert not {"lips", "blush", "liner"} & set(natural)
    assert load_look("warm_evening")["lip_color"] == "#b03040"


def test_no_look_bends_what_is_behind_the_face():
    """Slim above 0.4 shows on straight lines in the background."""
    assert max(float(look.parameters.get("slim", 0.0)) for look in list_looks()) <= 0.4


def test_a_look_is_read_again_each_time_and_given_away():
    load_look("natural")["smooth"] = 1.0
    assert load_look("natural")["smooth"] == 0.45


def test_the_users_own_folder_comes_first(tmp_path):
    (tmp_path / "natural.toml").write_text("[beautify]\nsmooth = 0.1\n")
    (tmp_path / "mine.toml").write_text(
        'name = "Mine"\nchinese = "我的"\n[beautify]\nchin = -0.2\n'
    )
    assert load_look("natural", tmp_path) == {"smooth": 0.1}
    assert load_look("korean_dewy", str(tmp_path))["whiten"] == 0.55
    mine = find_look("mine", tmp_path)
    assert (mine.title, mine.chinese, mine.path) == ("Mine", "我的", tmp_path / "mine.toml")
    assert [look.name for look in list_looks(tmp_path)] == sorted([*NAMES, "mine"])


def test_a_wrong_name_gets_a_guess():
    with pytest.raises(ConfigError) as caught:
        load_look("naturel")
    assert "did you mean natural?" in caught.value.hint
    assert "korean_dewy" in caught.value.hint


@pytest.mark.parametrize("name", ["../natural", "/etc/passwd", "", "natural.toml", "a" * 300])
def test_a_name_is_not_a_path(name):
    with pytest.raises(ConfigError, match="there is no look"):
        load_look(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smooth = ", "not TOML"),
        ("[beautify]\nsmooth = 2\n", "smooth is out of range"),
        ("[beautify]\nsmoth = 0.2\n", "no parameter 'smoth'"),
        ("smooth = 0.2\n", "unknown key 'smooth'"),
        ("beautify = 3\n", r"no table \[beautify\]"),
        ("#" * 70_000, "too large"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_look("bad", tmp_path)
    assert str(path) in caught.value.message


def test_a_file_that_is_not_text_or_not_readable_is_named(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.toml").mkdir()
    for name, message in (("bytes", "not TOML"), ("folder", "cannot be read")):
        with pytest.raises(ConfigError, match=message):
            load_look(name, tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no folder"):
        load_look("natural", tmp_path / "none")


def test_the_files_lie_where_the_wheel_takes_them_from():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    forced = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert forced["configs/looks"] == "livefuse/looks/data"
    assert sorted(p.stem for p in (ROOT / "configs/looks").glob("*.toml")) == NAMES
