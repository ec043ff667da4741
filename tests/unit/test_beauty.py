"""What beautify takes, and how a wrong wish is answered."""

import math

import pytest

from livefuse.beauty import COLOURS, PARAMETERS, check_beautify
from livefuse.errors import TokenError


def test_every_parameter_is_told_in_two_languages():
    for name, row in PARAMETERS.items():
        assert row.low <= row.default <= row.high == 1.0, name
        assert row.low in {0.0, -1.0}, name
        assert row.text, name
        assert any("\u4e00" <= sign <= "\u9fff" for sign in row.chinese), name
    assert len({row.chinese for row in PARAMETERS.values()}) == len(PARAMETERS)


def test_only_the_masters_and_texture_are_on_by_themselves():
    on = {name for name, row in PARAMETERS.items() if row.default}
    assert on == {"skin", "shape", "makeup", "strength", "texture"}


def test_what_is_right_comes_back_as_numbers_and_small_letters():
    checked = check_beautify({"smooth": 1, "chin": -0.5, "lip_color": "#AA43Bc"})
    assert checked == {"smooth": 1.0, "chin": -0.5, "lip_color": "#aa43bc"}
    assert isinstance(checked["smooth"], float)
    assert check_beautify({}) == {}


def test_the_defaults_are_allowed():
    assert check_beautify({name: row.default for name, row in COLOURS.items()})
    assert check_beautify({name: row.default for name, row in PARAMETERS.items()})


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ({"smoth": 0.5}, "no parameter 'smoth'", "did you mean smooth?"),
        ({"lip_colour": "#112233"}, "no parameter", "did you mean lip_color?"),
        ({"zzz": 1}, "no parameter 'zzz'", "looks parameters"),
        ({"smooth": 1.01}, "smooth is out of range: 1.01", "0 to 1"),
        ({"smooth": -0.1}, "out of range", "磨皮"),
        ({"chin": -1.5}, "out of range", "-1 to 1"),
        ({"slim": math.nan}, "out of range", "0 to 1"),
        ({"slim": math.inf}, "out of range", "0 to 1"),
        ({"slim": True}, "not a number", "0 to 1"),
        ({"slim": "0.5"}, "not a number", "0 to 1"),
        ({"slim": None}, "not a number", "0 to 1"),
        ({"blush_color": "red"}, "not a colour", "#f08a90"),
        ({"blush_color": "#12345"}, "not a colour", "#rrggbb"),
        ({"blush_color": "#112233 "}, "not a colour", "#rrggbb"),
        ({"blush_color": 0.5}, "not a colour", "#rrggbb"),
    ],
)
def test_what_is_wrong_is_said(values, message, hint):
    with pytest.raises(TokenError) as caught:
        check_beautify(values)
    assert message in caught.value.message
    assert hint in caught.value.hint
