"""Names in texts, however they are written: "D o n a l d  Trump", "Тrump", "唐納德．特朗普". Pure.

A text is folded (confusables.py) and cut into words; each Chinese, Japanese or Korean character is
a word of its own. A name is found where words in a row, put together, spell it: so signs and
spaces within it do not hide it, and it must begin and end with a word, so "delete me" holds no
Adele. A name of 8 letters or more is found within a word too ("lookslikedonaldtrump").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.safety.confusables import fold_text, list_readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_TEXT: Final = 4096
"""Longer texts are cut: no prompt is as long."""

_EACH: Final = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"(?=[^\W\d_])[{_EACH}]|[^\W\d_{_EACH}]+|\d+")
_GLUED: Final = 8  # letters from which a name is no part of another word by chance


class Found(NamedTuple):
    """A name in a text: whose it is, and what of the name was found."""

    person: str
    alias: str


@dataclass(frozen=True, slots=True)
class NameList:
    """People by the forms of their names, and what holds such a form by chance.

    `forms`: a name put together, folded, and whose name it is, as it is written. `innocent`: the
    words of phrases, folded. `simplified`: simplified characters by their traditional ones.
    """

    forms: Mapping[str, Found]
    innocent: frozenset[tuple[str, ...]]
    simplified: Mapping[int, str]

    def find(self, text: str) -> Found | None:
        """Return the first name in `text`, in the list's order; None: there is none."""
        folded = _fold(text[:MAX_TEXT], self.simplified)
        for reading in list_readings(folded):
            found = self._find(reading)
            if found is not None:
                return found
        return None

    def _find(self, text: str) -> Found | None:
        line = _Line.cut(text)
        excused = [span for words in self.innocent for span in line.find_words(words)]
        for form, found in self.forms.items():
            for at in line.find(form, glued=len(form) >= _GLUED):
                if not any(low <= at and at + len(form) <= high for low, high in excused):
                    return found
        return None


class _Line(NamedTuple):
    """A text's words put together; where words begin and end in it, and where spaces were."""

    text: str
    begins: frozenset[int]
    ends: frozenset[int]
    gaps: frozenset[int]

    @classmethod
    def cut(cls, text: str) -> _Line:
        words: list[str] = []
        begins, ends, gaps = set(), set(), set()
        at = 0
        for chunk in text.split():
            gaps.add(at)
            for word in _WORD.findall(chunk):
                begins.add(at)
                words.append(word)
                at += len(word)
                ends.add(at)
        return cls("".join(words), frozenset(begins), frozenset(ends), frozenset(gaps))

    def find(self, form: str, *, glued: bool) -> Iterable[int]:
        """Yield where `form` stands between whole words; `glued`: or within one chunk."""
        at = self.text.find(form)
        while at >= 0:
            end = at + len(form)
            if (at in self.begins and end in self.ends) or (
                glued and not any(at < gap < end for gap in self.gaps)
            ):
                yield at
            at = self.text.find(form, at + 1)

    def find_words(self, words: tuple[str, ...]) -> Iterable[tuple[int, int]]:
        """Yield from where to where just these words stand in a row."""
        form = "".join(words)
        bounds = {len("".join(words[:i])) for i in range(len(words))}
        for at in self.find(form, glued=False):
            inside = {begin - at for begin in self.begins if at <= begin < at + len(form)}
            if inside == bounds:
                yield at, at + len(form)


def build_names(lines: Iterable[str]) -> NameList:
    """Return the list that `lines` write down (safety/data/public_figures.txt tells the form).

    A person who stands there twice has the names of both lines. A name of one letter is left out.
    """
    pairs = [line.split("#", 1)[0].strip() for line in lines]
    simplified: dict[int, str] = {}
    for line in pairs:
        if line.startswith("="):
            for pair in line[1:].split():
                simplified.setdefault(ord(pair[1]), pair[0])
    forms: dict[str, Found] = {}
    innocent: set[tuple[str, ...]] = set()
    for line in pairs:
        if line.startswith("!"):
            innocent.add(tuple(_WORD.findall(_fold(line[1:], simplified))))
        elif line and not line.startswith("="):
            names = [name.strip() for name in line.split("|") if name.strip()]
            for name in names:
                form = "".join(_WORD.findall(_fold(name, simplified)))
                forms.setdefault(form, Found(names[0], name))
    kept = {form: found for form, found in forms.items() if len(form) > 1}
    return NameList(kept, frozenset(innocent - {()}), simplified)


def _fold(text: str, simplified: Mapping[int, str]) -> str:
    return fold_text(text).translate(dict(simplified))
