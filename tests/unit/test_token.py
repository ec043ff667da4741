"""The token: immutable, bounded, checked when made."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.errors import TokenError
from livefuse.token import (
    MAX_LOG_ENTRIES,
    MAX_TOKEN_BYTES,
    Token,
    TokenCell,
    check_operations,
    create_token,
    parse_token,
)


def test_defaults_are_the_documented_ones():
    """R2"""
    token = create_token(["detect", "blur"], now_epoch_s=5.0)
    assert token.parameters.face_size == 256
    assert token.parameters.blend_ratio == 0.85
    assert token.parameters.enable_gfpgan is True
    assert token.parameters.device_mode == "auto"
    assert (token.state, token.timestamp, token.ttl_s) == ("initialized", 5.0, 300.0)
    assert len(token.request_id) == 36


def test_a_change_makes_a_new_token():
    token = create_token(["detect"], now_epoch_s=0)
    after = token.update_state("detected", at=1.0, reason="two faces", ms=2.5)
    assert token.state == "initialized"
    assert token.log == ()
    assert after.state == "detected"
    assert (after.log[0].at, after.log[0].reason, after.log[0].ms) == (1.0, "two faces", 2.5)
    with pytest.raises(AttributeError):
        after.state = "other"  # type: ignore[misc]


def test_json_round_trip_loses_nothing():
    """R1"""
    token = create_token(["detect", "blur"], now_epoch_s=1.5).update_state("blurred", at=2.0)
    assert parse_token(token.to_json()) == token


@given(st.lists(st.tuples(st.text(max_size=200), st.text(max_size=200)), max_size=60))
def test_a_token_stays_small_whatever_it_is_told(entries):
    """R5, R6"""
    token = create_token(["detect"], now_epoch_s=0)
    for state, reason in entries:
        token = token.update_state(state, at=1.0, reason=reason)
    assert len(token.log) == min(len(entries), MAX_LOG_ENTRIES)
    assert len(token.to_json()) <= MAX_TOKEN_BYTES


def test_a_token_that_carries_pixels_is_refused():
    with pytest.raises(TokenError, match="face store"):
        Token(request_id="a", source_face="A" * 5000).to_json()


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        (["detect", "blurr"], "did you mean blur"),
        (["blur", "detect"], "write detect,blur"),
        (["blur"], "write detect,blur"),
        (["detect", "detect"], "once"),
    ],
)
def test_wrong_operations_are_refused_with_the_right_ones(operations, sentence):
    """R3"""
    with pytest.raises(TokenError, match=sentence):
        check_operations(operations)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b'{"request_id": 3}', b'{"request_id":"a","x":1}']
)
def test_what_is_not_a_token_is_refused(data):
    with pytest.raises(TokenError, match="not a token"):
        parse_token(data)


def test_it_expires_after_its_ttl():
    token = create_token(["detect"], now_epoch_s=100)
    assert not token.is_expired(400)
    assert token.is_expired(400.1)


def test_many_threads_lose_no_update():
    """R7"""
    cell = TokenCell(create_token(["detect"], now_epoch_s=0))

    def hammer() -> None:
        for _ in range(200):
            cell.update(lambda token: token.update_state(str(int(token.state) + 1), at=0))

    cell.update(lambda token: token.update_state("0", at=0))
    threads = [threading.Thread(target=hammer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cell.get().state == "1600"
