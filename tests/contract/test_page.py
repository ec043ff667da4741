"""The page's files: every word in both languages, none unused, no address of anybody else."""

import re

import pytest

from tests.contract.repo import ROOT, read_text

WEB = ROOT / "livefuse" / "control" / "web"
LANGUAGES = ("english.js", "chinese.js")
_ENTRY = re.compile(r"""(?:"([\w-]+)"|(\b\w[\w]*)): ("(?:[^"\\]|\\.)*")""")
_SAY = re.compile(r"""\bsay\(([^,)]*)""")
_SAY_OF = re.compile(r"""\bsayOf\(([^,)]*)""")
_DATA = re.compile(r"""data-word="(\w+)\"""")
_LITERAL = re.compile(r'"(\w+)"')


def read_words(name):
    """Return the keys and texts of a language, in their order."""
    found = _ENTRY.findall(read_text(WEB / name))
    return [(quoted or bare, text[1:-1]) for quoted, bare, text in found]


def list_scripts():
    return [p for p in sorted(WEB.glob("*.js")) if p.name not in {*LANGUAGES, "words.js"}]


def collect(pattern):
    """Return what stands where a key is asked for, over all scripts."""
    return [
        (path.name, match) for path in list_scripts() for match in pattern.findall(read_text(path))
    ]


def list_used():
    """Return the keys that are named, and the families whose keys are put together."""
    keys = {key for _, match in collect(_SAY) for key in _LITERAL.findall(match)}
    keys |= set(_DATA.findall(read_text(WEB / "index.html")))
    families = {key for _, match in collect(_SAY_OF) for key in _LITERAL.findall(match)}
    return keys, families


def test_both_languages_have_the_same_keys_in_the_same_order():
    english, chinese = ([key for key, _ in read_words(name)] for name in LANGUAGES)
    assert english == chinese
    assert len(english) == len(set(english)) > 100


def test_words_have_the_same_gaps():
    chinese = dict(read_words("chinese.js"))
    for key, text in read_words("english.js"):
        assert text
        assert sorted(re.findall(r"{\w+}", text)) == sorted(re.findall(r"{\w+}", chinese[key])), key


def test_reasons_are_those_that_livefuse_gives():
    """A sentence that is changed in the code has to be changed in the page's table too."""
    pairs = re.findall(r'\["([^"]+)", "([^"]+)"\]', read_text(WEB / "reasons.js"))
    assert len(pairs) >= 20
    sources = (read_text(path) for path in (ROOT / "livefuse").rglob("*.py"))
    said = re.sub(r'"\s+f?"', "", "\n".join(sources))
    for reason, chinese in pairs:
        assert sorted(re.findall(r"{\w+}", reason)) == sorted(re.findall(r"{\w+}", chinese))
        head, _, tail = reason.rpartition(": ")
        is_joined = is_said(head, said) and f'}}: {tail}"' in said  # by whoever passes it on
        assert is_said(reason, said) or is_joined, reason


def is_said(reason, said):
    parts = (re.escape(part) for part in re.split(r"{\w+}", reason))
    return re.search('f?"' + r"\{[^}\n]+\}".join(parts) + '"', said) is not None


def test_keys_are_named_where_they_are_used():
    """A key that is put together could not be looked for: `sayOf` has that trade alone."""
    built = [(f, m) for f, m in [*collect(_SAY), *collect(_SAY_OF)] if not _LITERAL.search(m)]
    assert built == []


def test_no_word_is_missing_and_none_is_too_many():
    known = {key for key, _ in read_words("english.js")}
    keys, families = list_used()
    assert keys - known == set()
    family_keys = {key for key in known if key.partition("_")[0] in families and "_" in key}
    assert {key.partition("_")[0] for key in family_keys} == families
    assert known - keys - family_keys == set()


@pytest.mark.parametrize("path", sorted(WEB.iterdir()), ids=lambda path: path.name)
def test_no_address_of_anybody_else(path):
    found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", read_text(path))
    own = re.compile(r"//(?:127\.0\.0\.1|localhost|www\.w3\.org/2000/svg|192\.168\.1\.20)")
    assert [address for address in found if not own.search(address)] == []


def test_texts_of_the_page_itself_are_those_of_the_words():
    """Before the scripts run the page speaks English, with the same words."""
    english = dict(read_words("english.js"))
    shown = re.findall(r'data-word="(\w+)"[^>]*>([^<]+)<', read_text(WEB / "index.html"))
    assert len(shown) >= 6
    assert [(key, text) for key, text in shown if english[key] != text] == []
