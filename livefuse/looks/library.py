"""Finds and reads looks: `name`, `chinese`, `text`, and a table `beautify` of parameters."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from livefuse.beauty import check_beautify
from livefuse.errors import ConfigError, TokenError

_NAME: Final = re.compile(r"[\w-]{1,64}")
_MAX_BYTES: Final = 65_536
_PACKED: Final = Path(__file__).parent / "data"
_CHECKOUT: Final = Path(__file__).parents[2] / "configs" / "looks"


@dataclass(frozen=True, slots=True)
class Look:
    """A named set of parameters. `title` and `chinese` are its names for people, `text` says more.

    `parameters` are amounts and "#rrggbb" colours by parameter name, checked.
    """

    name: str
    title: str
    chinese: str
    text: str
    parameters: dict[str, float | str]
    path: Path


def load_look(name: str, folder: str | Path = "") -> dict[str, float | str]:
    """Return the parameters of the look called `name`; `folder` (if any) is searched first.

    Raises:
        ConfigError: there is no such look (with the nearest right name), or it cannot be used.
    """
    return read_look(_find(name, folder)).parameters


def list_looks(folder: str | Path = "") -> list[Look]:
    """Return all looks by name; one in `folder` hides the one of the same name that comes along.

    Raises:
        ConfigError: one of them cannot be used.
    """
    return [read_look(path) for _, path in sorted(_list_paths(folder).items())]


def find_look(name: str, folder: str | Path = "") -> Look:
    """Return the look called `name`, whole.

    Raises:
        ConfigError: there is no such look, or it cannot be used.
    """
    return read_look(_find(name, folder))


def read_look(path: Path) -> Look:
    """Return the look that the file `path` describes.

    Raises:
        ConfigError: it is not TOML, or not a look.
    """
    try:
        data = path.read_bytes()[: _MAX_BYTES + 1]
        if len(data) > _MAX_BYTES:
            raise ConfigError(f"the look {path} is too large", hint="a look has about 30 lines")
        tree = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"the look {path} cannot be read ({error.strerror})", hint="check beautify.looks"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the look {path} is not TOML ({error})", hint=_hint()) from None
    return _build(path, tree)


def _build(path: Path, tree: dict[str, Any]) -> Look:
    unknown = set(tree) - {"name", "chinese", "text", "beautify"}
    table = tree.get("beautify", {})
    if unknown or not isinstance(table, dict):
        what = f"an unknown key {min(unknown)!r}" if unknown else "no table [beautify]"
        raise ConfigError(f"the look {path} has {what}", hint=_hint())
    try:
        parameters = check_beautify(table)
    except TokenError as error:
        raise ConfigError(f"the look {path}: {error.message}", hint=error.hint) from None
    title, chinese, text = (str(tree.get(key, "")) for key in ("name", "chinese", "text"))
    return Look(path.stem, title or path.stem, chinese, text, parameters, path)


def _hint() -> str:
    return "`livefuse looks show natural` prints one to start from"


def _find(name: str, folder: str | Path) -> Path:
    paths = _list_paths(folder)
    if name in paths:
        return paths[name]
    near = difflib.get_close_matches(name[:64], paths, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        f"there is no look {name[:64]!r}", hint=f"{guess}choose from {', '.join(sorted(paths))}"
    )


def _list_paths(folder: str | Path) -> dict[str, Path]:
    """Return the files by name of look, the user's own in place of ours."""
    folders = [_PACKED if _PACKED.is_dir() else _CHECKOUT]
    if folder:
        own = Path(folder).expanduser()
        if not own.is_dir():
            raise ConfigError(f"there is no folder {own}", hint="set beautify.looks to a folder")
        folders.append(own)
    return {
        path.stem: path
        for place in folders
        for path in sorted(place.glob("*.toml"))
        if _NAME.fullmatch(path.stem)
    }
