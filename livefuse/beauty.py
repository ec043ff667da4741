"""What beautify can do: its parameters as data, and a check of what somebody asks for.

`PARAMETERS` are amounts, 0..1 or -1..1; `COLOURS` are "#rrggbb". `kind` names the master that
scales a parameter: `skin` (with tone), `shape` or `makeup`; `strength` scales all three.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from livefuse.errors import TokenError

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["skin", "tone", "shape", "makeup", "master"]

_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")


class BeautyParameter(NamedTuple):
    """An amount: its Chinese name, range, value when nothing is said, kind, what it does."""

    chinese: str
    low: float
    high: float
    default: float
    kind: Kind
    text: str


class BeautyColour(NamedTuple):
    """A colour: its Chinese name, value when nothing is said, what takes it."""

    chinese: str
    default: str
    text: str


def _list_one_way(kind: Kind, rows: tuple[tuple[str, str, str], ...]) -> dict[str, BeautyParameter]:
    return {name: BeautyParameter(zh, 0.0, 1.0, 0.0, kind, text) for name, zh, text in rows}


def _list_two_way(kind: Kind, rows: tuple[tuple[str, str, str], ...]) -> dict[str, BeautyParameter]:
    return {name: BeautyParameter(zh, -1.0, 1.0, 0.0, kind, text) for name, zh, text in rows}


PARAMETERS: Final[dict[str, BeautyParameter]] = {
    **_list_one_way(
        "skin",
        (
            ("smooth", "磨皮", "removes blotches and spots of half a mm to 6 mm"),
            ("even", "匀肤", "evens the skin's colour: redness, spots"),
            ("dark_circles", "祛黑眼圈", "lifts the shade under the eyes"),
            ("folds", "祛法令纹", "fills the folds beside nose and mouth"),
            ("eye_bright", "亮眼", "clears the white of the eyes"),
            ("teeth", "白牙", "takes the yellow from teeth that show"),
            ("denoise", "降噪", "takes the camera's grain, before all else"),
        ),
    ),
    "texture": BeautyParameter(
        "肤质保留", 0.0, 1.0, 1.0, "skin", "1 keeps pores when smoothing, 0 smooths them too"
    ),
    **_list_one_way(
        "tone",
        (
            ("brighten", "提亮", "lifts the exposure of skin: the one for dark scenes"),
            (
                "whiten",
                "美白",
                "lighter, fairer skin; less on dark skin, which keeps its hue",
            ),
            ("rosy", "红润", "adds red"),
            ("clarity", "清晰", "contrast of features, mostly off the skin"),
            ("sharpen", "锐化", "fine sharpening, a quarter of it on skin"),
        ),
    ),
    **_list_two_way(
        "tone",
        (
            ("warm", "冷暖", "a warmer or (below 0) cooler skin tone"),
            ("shine", "水光", "stronger or (below 0) tamer highlights"),
            ("contrast", "对比度", "contrast of the skin's light and shade"),
            ("saturation", "饱和度", "strength of the skin's colour"),
        ),
    ),
    **_list_one_way(
        "shape",
        (
            ("slim", "瘦脸", "jaw and lower cheeks inward"),
            ("narrow", "窄脸", "the whole contour inward"),
            ("small", "小脸", "the lower face up"),
            ("cheekbone", "瘦颧骨", "cheekbones inward"),
            ("eyes", "大眼", "larger eyes"),
            ("nose", "瘦鼻", "nostrils inward"),
            ("smile", "微笑", "corners of the mouth up and out"),
            ("plump", "丰唇", "thicker lips"),
        ),
    ),
    **_list_two_way(
        "shape",
        (
            ("chin", "下巴", "a longer or (below 0) shorter chin"),
            ("forehead", "额头", "a higher or (below 0) lower hairline"),
            ("eye_tilt", "眼角", "outer corners of the eyes up or (below 0) down"),
            ("nose_len", "长鼻", "a longer or (below 0) shorter nose"),
            ("mouth", "嘴型", "a larger or (below 0) smaller mouth"),
        ),
    ),
    **_list_one_way(
        "makeup",
        (
            ("lips", "口红", "tints the lips with lip_color"),
            ("gloss", "水润", "brightens the lips' highlights"),
            ("blush", "腮红", "blush_color from the apple of the cheek to the temple"),
            ("contour", "修容", "shades cheek hollows, jaw, temples and sides of the nose"),
            ("highlight", "高光", "lights nose bridge, cheek tops, brow bone and chin"),
            ("brows", "眉毛", "deepens the brows that are there"),
            ("liner", "眼线", "a line on the upper lids with a small wing"),
            ("shadow", "眼影", "shadow_color on the lids"),
        ),
    ),
    "skin": BeautyParameter("美肤强度", 0.0, 1.0, 1.0, "master", "scales all of skin and tone"),
    "shape": BeautyParameter("塑形强度", 0.0, 1.0, 1.0, "master", "scales all of shape"),
    "makeup": BeautyParameter("美妆强度", 0.0, 1.0, 1.0, "master", "scales all of make-up"),
    "strength": BeautyParameter("总强度", 0.0, 1.0, 1.0, "master", "scales everything"),
}

COLOURS: Final[dict[str, BeautyColour]] = {
    "lip_color": BeautyColour("唇色", "#c8505a", "of lips"),
    "blush_color": BeautyColour("腮红颜色", "#f08a90", "of blush"),
    "shadow_color": BeautyColour("眼影颜色", "#9a6b56", "of shadow"),
}


def check_beautify(values: Mapping[str, object]) -> dict[str, float | str]:
    """Return `values` as amounts and colours by parameter name, or say what is wrong with them.

    Raises:
        TokenError: an unknown name (with the nearest right one), a number out of its range, not a
            number, or not a colour.
    """
    checked: dict[str, float | str] = {}
    for name, value in values.items():
        if name in COLOURS:
            checked[name] = _check_colour(name, value)
        elif name in PARAMETERS:
            checked[name] = _check_amount(name, value)
        else:
            _refuse_name(name)
    return checked


def _check_amount(name: str, value: object) -> float:
    row = PARAMETERS[name]
    hint = f"{name} ({row.chinese}) takes {row.low:g} to {row.high:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError(f"beautify.{name} is not a number: {str(value)[:40]!r}", hint=hint)
    if not math.isfinite(value) or not row.low <= value <= row.high:
        raise TokenError(f"beautify.{name} is out of range: {value:g}", hint=hint)
    return float(value)


def _check_colour(name: str, value: object) -> str:
    if not isinstance(value, str) or not _COLOUR.fullmatch(value):
        raise TokenError(
            f"beautify.{name} is not a colour: {str(value)[:40]!r}",
            hint=f'write it as "#rrggbb", for instance "{COLOURS[name].default}"',
        )
    return value.lower()


def _refuse_name(name: object) -> None:
    known = (*PARAMETERS, *COLOURS)
    near = difflib.get_close_matches(str(name)[:40], known, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise TokenError(
        f"beautify has no parameter {str(name)[:40]!r}",
        hint=f"{guess}`livefuse looks parameters` lists them",
    )
