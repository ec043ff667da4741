"""A line of the doctor's."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "warning", "problem"]


class Check(NamedTuple):
    """One line of the doctor's; `cure` says what to do when all is not well."""

    level: Level
    name: str
    text: str
    cure: str = ""
