"""Public figures are found in prompts however their names are written, and nobody else is (R53)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import ManualClock
from livefuse.config import RefuseConfig
from livefuse.errors import AuditError, ConfigError, RefusedError
from livefuse.safety.actor import act_as
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_records import parse_line
from livefuse.safety.confusables import fold_text
from livefuse.safety.names import MAX_TEXT, build_names
from livefuse.safety.refusals import Refusals, list_texts
from tests.unit.safety.prompts import INNOCENT


@pytest.fixture(scope="module")
def refusals():
    return Refusals(RefuseConfig())


@pytest.fixture
def audit(tmp_path):
    return AuditLog(tmp_path, ManualClock())


def find(refusals, text):
    """Return who is refused in `text`, or nothing."""
    try:
        refusals.check_text(text, "the prompt")
    except RefusedError as error:
        assert error.hint
        return error.message.partition(": ")[2]
    return ""


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("make me look like Donald Trump", "Donald Trump"),
        ("TRUMP, but friendly", "Donald Trump"),
        ("Trump's hair", "Donald Trump"),
        ("让我看起来像特朗普", "Donald Trump"),
        ("唐纳德・特朗普的脸", "Donald Trump"),
        ("唐納德·川普", "Donald Trump"),
        ("习近平那样的微笑", "Xi Jinping"),
        ("習近平", "Xi Jinping"),
        ("Xi Jinping, smiling", "Xi Jinping"),
        ("鄧麗君的妝容", "Teresa Teng"),
        ("像劉德華一樣", "Andy Lau"),
        ("成龙的鼻子", "Jackie Chan"),
        ("a face like Taylor Swift", "Taylor Swift"),
        ("Beyoncé glow", "Beyonce"),
        ("beyonce glow", "Beyonce"),
        ("the skin of Путин", "Vladimir Putin"),
        ("Adele eyeliner", "Adele Adkins"),
        ("윤석열 스타일", "Yoon Suk Yeol"),
    ],
)
def test_a_public_figure_is_named(refusals, text, person):
    """R53"""
    assert find(refusals, text) == person


@pytest.mark.parametrize(
    "text",
    [
        "D o n a l d  T r u m p",
        "D.o.n.a.l.d_T-r-u-m-p",
        "donaldtrump",
        "lookslikedonaldtrumpplease",
        "Do\u200bnald Tr\u00adump",
        "Don\u0301ald Tru\u0308mp",
        "Dоnаld Тrumр",  # Cyrillic o, a, T and p
        "Dοnald Τrumρ",  # Greek o, T and rho
        "ＤＯＮＡＬＤ　ＴＲＵＭＰ",
        "𝕯𝖔𝖓𝖆𝖑𝖉 𝕿𝖗𝖚𝖒𝖕",
        "🅓🅞🅝🅐🅛🅓 🅣🅡🅤🅜🅟",
        "🇩🇴🇳🇦🇱🇩 🇹🇷🇺🇲🇵",
        "D0n4ld Trump",
        "Donald\nTrump",
        "donald/trump",
        "Donald…Trump",
    ],
)
def test_a_name_cannot_be_hidden(refusals, text):
    """R53: NFKC, case, look-alikes, signs and spaces within."""
    assert find(refusals, text) == "Donald Trump"


@pytest.mark.parametrize("text", ["习 近 平", "习-近-平", "习\u200b近。平", "習·近·平", "⺀习近平"])
def test_a_chinese_name_cannot_be_hidden(refusals, text):
    assert find(refusals, text) == "Xi Jinping"


@pytest.mark.parametrize(
    "text",
    [
        "delete me", "put in some blush", "put in: blush", "a trumpet player", "my trump card",
        "bottom hanks", "king charles spaniel ears", "望子成龙", "天马云集的感觉", "雷声",
        "model elegance", "an adeleine dress", "macron on the vowel", "jacket, large", "女王菲薄",
        "", " ", "!!!", "0", "·",
    ],
)  # fmt: skip
def test_what_holds_a_name_by_chance_passes(refusals, text):
    assert find(refusals, text) == ""


def test_innocent_prompts_pass(refusals):
    """Of some hundred prompts for looks, Chinese and English, none is refused."""
    assert len(INNOCENT) >= 300
    assert {text: who for text in INNOCENT if (who := find(refusals, text))} == {}


def test_every_name_of_the_list_is_found_and_excused_phrases_are_not(refusals):
    lists = refusals._get_lists().names
    assert len({found.person for found in lists.forms.values()}) >= 150
    for found in lists.forms.values():
        assert lists.find(f"a look of {found.alias}, please"), found
    for words in lists.innocent:
        assert lists.find(" ".join(words)) is None, words


def test_names_of_the_list_are_found_in_traditional_characters(refusals):
    lists = refusals._get_lists().names
    traditional: dict[str, str] = {}
    for old, new in lists.simplified.items():
        traditional.setdefault(new, chr(old))
    written = {
        found.alias: "".join(traditional.get(c, c) for c in found.alias)
        for found in lists.forms.values()
    }
    other = {alias: text for alias, text in written.items() if text != alias}
    assert len(other) > 70
    assert other["李显龙"] == "李顯龍"
    assert [alias for alias, text in other.items() if lists.find(f"像{text}一樣") is None] == []


@given(st.text(max_size=200))
def test_any_text_has_an_answer(text):
    names = build_names(["Anna Berger | 王小明"])
    assert names.find(text) is None or "a" in fold_text(text) or "小" in text
    assert names.find(f"{text} Anna Berger") is not None
    assert names.find(f"{text[:50]} 王小明") is not None


def test_a_long_text_is_cut_and_quick(refusals):
    assert find(refusals, "a " * MAX_TEXT + "trump") == ""
    assert find(refusals, "trump " * MAX_TEXT) == "Donald Trump"


# The operator's own lists.


def test_operators_add_and_except_names_while_it_runs(tmp_path):
    deny, allow = tmp_path / "deny.txt", tmp_path / "allow.txt"
    deny.write_text("# ours\nAnna Berger | Annie B. | 安娜·伯格\n", "utf-8")
    allow.write_text("Biden\nDonald Trump\n! like putin on the ritz\n", "utf-8")
    refusals = Refusals(RefuseConfig(deny_names=str(deny), allow_names=str(allow)))
    assert find(refusals, "anna-berger") == find(refusals, "安娜伯格") == "Anna Berger"
    assert find(refusals, "Annie B") == "Anna Berger"
    assert find(refusals, "biden") == find(refusals, "putting") == ""
    assert find(refusals, "Joe Biden") == "Joe Biden", "only the one form is excepted"
    assert find(refusals, "trump") == find(refusals, "特朗普") == "", "the first name excepts all"
    assert find(refusals, "like putin on the ritz") == ""
    assert find(refusals, "like putin") == "Vladimir Putin"
    deny.write_text("Bert Berger\n", "utf-8")
    assert find(refusals, "Anna Berger") == ""
    assert find(refusals, "bert berger") == "Bert Berger"


def test_lists_that_cannot_be_read_refuse_everything(tmp_path):
    """Whoever meant to deny somebody must not find out later that nobody was."""
    refusals = Refusals(RefuseConfig(deny_names=str(tmp_path / "none.txt")))
    with pytest.raises(ConfigError, match=r"none\.txt.*No such file"):
        refusals.check_text("natural", "the look")
    (tmp_path / "none.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="not UTF-8"):
        refusals.check_text("natural", "the look")


# What is left of a refusal.


def test_every_refusal_is_logged(audit):
    """R53"""
    refusals = Refusals(RefuseConfig(), audit)
    refusals.check_text("soft light", "the look", job="show")
    with (
        act_as("anna"),
        pytest.raises(RefusedError, match="the look names a public figure: Elon Musk"),
    ):
        refusals.check_text("el0n musk in a good mood", "the look", job="show")
    (line,) = (audit.folder / "audit.jsonl").read_bytes().splitlines()
    record = parse_line(line)
    assert record is not None
    assert (record.event, record.who, record.job) == ("refusal.prompt", "anna", "show")
    assert record.facts == {
        "what": "the look",
        "text": "el0n musk in a good mood",
        "person": "Elon Musk",
        "name": "Elon Musk",
        "list": "built in",
    }


def test_text_that_is_none_is_logged_as_far_as_it_goes(audit):
    """A command line may hold bytes that are no UTF-8."""
    with pytest.raises(RefusedError, match="Donald Trump"):
        Refusals(RefuseConfig(), audit).check_text("trump \udcff", "the look")
    assert b"trump ?" in (audit.folder / "audit.jsonl").read_bytes()


def test_a_refusal_that_cannot_be_logged_is_one_all_the_same(audit, monkeypatch):
    def fail(*_arguments, **_facts):
        raise AuditError("the disc is full")

    monkeypatch.setattr(audit, "append", fail)
    with pytest.raises(AuditError, match="full"):
        Refusals(RefuseConfig(), audit).check_text("trump", "the look")


def test_texts_are_found_wherever_they_lie_in_a_value():
    values = {"x-prompt": {"text": "a", "more": ["b", {"deep": ("c",)}]}, "audio": 1}
    assert list_texts(values) == ["a", "b", "c"]
