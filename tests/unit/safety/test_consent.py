"""Consents are read strictly: who, what for, until when."""

import pytest

from livefuse.errors import ConsentError
from livefuse.safety.consent import parse_consent

NOW = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("Anna Berger, my live streams, 2027-01-31", "2027-01-31T23:59:59+00:00"),
        ("Anna Berger, my live streams, 90d", "2026-12-20T14:13:20+00:00"),
        ("Anna Berger, my live streams, until 2027-01-31", "2027-01-31T23:59:59+00:00"),
        ("Anna Berger, my live streams, 2w", "2026-10-05T14:13:20+00:00"),
        ("Anna Berger, my live streams, 1y", "2027-09-21T14:13:20+00:00"),
        ("Anna Berger, my live streams, 2026-09-21", "2026-09-21T23:59:59+00:00"),
        (" Anna  Berger ,my live streams,  90d ", "2026-12-20T14:13:20+00:00"),
    ],
)
def test_a_whole_consent_is_understood(text, until):
    consent = parse_consent(text, NOW)
    assert (consent.who, consent.scope, consent.until) == ("Anna Berger", "my live streams", until)
    assert consent.until_epoch_s > NOW


def test_the_scope_may_hold_commas_of_either_script():
    consent = parse_consent("王小明，我的直播，测试, 2027-01-01", NOW)
    assert (consent.who, consent.scope) == ("王小明", "我的直播, 测试")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no consent"),
        ("  ", "no consent"),
        ("Anna", "what for and until when"),
        ("90d", "who and what for"),
        ("Anna, streams", "until when.*'streams'"),
        ("Anna, 90d", "does not say what for"),
        (", streams, 90d", "does not say who"),
        ("Anna,, 90d", "does not say what for"),
        ("Anna, streams, 90", "until when"),
        ("Anna, streams, 90 days", "until when"),
        ("Anna, streams, for ever", "until when"),
        ("Anna, streams, 31.12.2027", "until when"),
        ("Anna, streams, 2027-02-30", "no day 2027-02-30"),
        ("Anna, streams, 2026-09-20", "over already"),
        ("Anna, streams, 0d", "over already"),
        ("Anna, streams, 2126-01-01", "ten years"),
        ("Anna, streams, 99999y", "ten years"),
        (f"{'A' * 101}, streams, 90d", "who.*100"),
        ("A\x07nna, streams, 90d", "printable"),
    ],
)
def test_what_is_missing_is_said(text, words):
    """C78"""
    with pytest.raises(ConsentError, match=words) as told:
        parse_consent(text, NOW)
    assert told.value.hint


def test_the_digest_covers_all_of_it():
    one = parse_consent("Anna, streams, 90d", NOW)
    others = ["Ann, streams, 90d", "Anna, stream, 90d", "Anna, streams, 91d"]
    assert len({c.digest for c in [one, *(parse_consent(t, NOW) for t in others)]}) == 4
    assert parse_consent("Anna, streams, 90d", NOW).digest == one.digest
