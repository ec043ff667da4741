"""The token: immutable, bounded, checked when made."""

import pickle
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.errors import TokenError
from livefuse.token import (
    MAX_BODY_BYTES,
    MAX_LOG_ENTRIES,
    MAX_TOKEN_BYTES,
    AudioSegment,
    ExpressionStrength,
    MouthShape,
    Parameters,
    Token,
    check_operations,
    check_token,
    create_token,
    parse_token,
)

FIELDS = [
    "request_id",
    "source_face",
    "target_face",
    "operations",
    "parameters",
    "state",
    "timestamp",
    "ttl_s",
    "log",
    "extensions",
]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 4


def create(**fields):
    return create_token(["detect"], now_epoch_s=1.0, **fields)


def test_the_fields_are_the_documented_ones():
    """R1"""
    assert list(msgspec.json.decode(create().to_json())) == FIELDS


def test_defaults_are_the_documented_ones():
    """R2"""
    token = create_token(["detect", "blur"], now_epoch_s=5.0)
    assert token.parameters.face_size == 256
    assert token.parameters.blend_ratio == 0.85
    assert token.parameters.enable_gfpgan is True
    assert token.parameters.device_mode == "auto"
    assert (token.state, token.timestamp, token.ttl_s) == ("initialized", 5.0, 300.0)
    assert len(token.request_id) == 36
    assert parse_token(b'{"request_id":"a"}') == Token(request_id="a")


def test_a_change_makes_a_new_token():
    token = create()
    after = token.update_state("detected", at=1.0, reason="two faces", ms=2.5)
    assert token.state == "initialized"
    assert token.log == ()
    assert after.state == "detected"
    assert (after.log[0].at, after.log[0].reason, after.log[0].ms) == (1.0, "two faces", 2.5)
    with pytest.raises(AttributeError):
        after.state = "other"


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token.extensions.__setitem__("x-a", 1),
        lambda token: token.extensions["x-mine"].update(b=2),
        lambda token: token.parameters.beautify.pop("smooth"),
        lambda token: token.parameters.beautify.clear(),
        lambda token: token.extensions.setdefault("x-b", 1),
    ],
)
def test_nothing_inside_can_be_changed_either(change):
    """R7: what threads share stays as it is."""
    token = create(
        extensions={"x-mine": {"b": [1, 2]}}, parameters=Parameters(beautify={"smooth": 0.5})
    )
    with pytest.raises(TypeError, match="immutable"):
        change(token)
    assert token.extensions["x-mine"] == {"b": (1, 2)}


def test_json_round_trip_loses_nothing():
    """R1"""
    token = create_token(
        ["detect", "align", "swap", "blur"],
        now_epoch_s=1.5,
        source_face="face_0123456789ab",
        parameters=Parameters(people=("Anna", "王小明"), select="id", beautify={"lips": 0.2}),
        extensions={
            "audio": AudioSegment(start_pts=90_000, duration_ms=20.0),
            "mouth": MouthShape(open=0.4, viseme="aa"),
            "x-mine": {"deep": [1, {"er": None}]},
        },
    ).update_state("blurred", at=2.0, ms=1.25)
    assert parse_token(token.to_json()) == token
    assert pickle.loads(pickle.dumps(token)) == token


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=8).map("x-".__add__), _JSON, max_size=4), st.floats(0, 1))
def test_whatever_is_carried_along_comes_back(foreign, amount):
    """R1, R13"""
    token = create(extensions=foreign, parameters=Parameters(beautify={"slim": amount}))
    assert parse_token(token.to_json()) == token


@given(st.lists(st.tuples(st.text(max_size=200), st.text(max_size=200)), max_size=60))
def test_a_token_stays_small_whatever_it_is_told(entries):
    """R5, R6"""
    token = create()
    for state, reason in entries:
        token = token.update_state(state, at=1.0, reason=reason)
    assert len(token.log) == min(len(entries), MAX_LOG_ENTRIES)
    assert len(token.to_json()) <= MAX_TOKEN_BYTES


def test_the_latest_entry_always_fits():
    """R5, R6: the worst log and the largest body that is accepted."""
    token = create(extensions={"x-a": "e" * (MAX_BODY_BYTES - 500)})
    token = msgspec.structs.replace(token, timestamp=1234567890.123456)
    check_token(token)
    token = token.update_state("\x00" * 100, at=1.7e9, reason="\x01" * 100, ms=123456.789)
    read = parse_token(token.to_json())
    assert len(token.to_json()) <= MAX_TOKEN_BYTES
    assert read.log == token.log[-1:]


def test_a_reason_that_is_no_text_does_no_harm():
    """A file's name need not be UTF-8, and its error quotes it."""
    token = create().update_state("failed", at=1.0, reason="cannot read a\udcff.png")
    assert parse_token(token.to_json()).log[0].reason == "cannot read a?.png"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source_face": "data:image/png;base64,AAAA"}, "data URL.*face store"),
        ({"source_face": PNG}, "looks like a picture.*enroll"),
        ({"source_face": b"\x89PNG"}, "bytes instead of text"),
        ({"source_face": "/home/anna/me.png"}, "a path"),
        ({"source_face": "C:\\me.png"}, "a path"),
        ({"source_face": "a\nb"}, "cannot be printed"),
        ({"target_face": "A" * 129}, "target_face"),
        ({"request_id": ""}, "request_id"),
        ({"request_id": "a" * 129}, "request_id"),
    ],
)
def test_pixels_and_paths_are_refused_by_the_token_itself(fields, words):
    """R5"""
    with pytest.raises(TokenError, match=words) as told:
        Token(**{"request_id": "a", **fields})
    assert PNG not in str(told.value)


def test_base64_in_json_is_refused_too():
    with pytest.raises(TokenError, match="face store"):
        parse_token(msgspec.json.encode({"request_id": "a", "source_face": PNG}))


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        (["detect", "blurr"], "did you mean blur"),
        (["blur", "detect"], "write detect,blur"),
        (["blur"], "write detect,blur"),
        (["detect", "detect"], "once"),
        (["detect", "swap"], "swap needs align"),
    ],
)
def test_wrong_operations_are_refused_with_the_right_ones(operations, sentence):
    """R3"""
    with pytest.raises(TokenError, match=sentence):
        check_operations(operations)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"request_id": 3}',
        b'{"request_id":"a","x":1}',
        b'{"request_id":"a","extensions":{"x-a":' + b"[" * 5000 + b"]" * 5000 + b"}}",
        b"\xff\xfe",
        b'{"request_id":"a","ttl_s":0}',
        b'{"request_id":"a","log":[1]}',
        b" " * 20_000,
    ],
)
def test_what_is_not_a_token_is_refused(data):
    with pytest.raises(TokenError, match="not a token"):
        parse_token(data)


def test_a_misspelt_field_is_told_its_right_name():
    with pytest.raises(TokenError, match="did you mean blend_ratio"):
        parse_token(b'{"request_id":"a","parameters":{"blendratio":1}}')
    with pytest.raises(TokenError, match="did you mean operations"):
        parse_token(b'{"request_id":"a","operation":[]}')


MANY: dict[str, float | str] = {f"p{i:02}": "x" * 60 for i in range(64)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"parameters": Parameters(face_size=8)}, "face_size"),
        ({"parameters": Parameters(blend_ratio=1.01)}, "blend_ratio"),
        ({"parameters": Parameters(blend_ratio=float("nan"))}, "blend_ratio"),
        ({"parameters": Parameters(select="biggest")}, "biggest"),  # type: ignore[arg-type]
        ({"parameters": Parameters(beautify={"slim": 1.5})}, "beautify"),
        ({"parameters": Parameters(beautify={"smoth": 0.5})}, "did you mean smooth"),
        ({"parameters": Parameters(beautify={"smooth": -0.5})}, "smooth is out of range"),
        ({"parameters": Parameters(people=("a" * 65,), select="id")}, "people"),
        ({"parameters": Parameters(people=("a",) * 33, select="id")}, "people"),
        ({"parameters": Parameters(beautify=MANY)}, "bytes.*parameters.beautify is the largest"),
        ({"extensions": {"x-a": "y" * 4000}}, "extensions is the largest"),
        ({"extensions": {"x-a": float("inf")}}, "finite"),
        ({"extensions": {"x-a": object()}}, "JSON cannot carry"),
        ({"extensions": {"x-a": "\ud800"}}, "JSON cannot carry"),
        ({"extensions": {"x-a": {1: 2}}}, "come back"),
        ({"ttl_s": -1.0}, "ttl_s"),
    ],
)
def test_what_is_out_of_range_is_refused_when_submitted(fields, words):
    """R3, R5"""
    with pytest.raises(TokenError, match=words):
        check_token(create(**fields))


@pytest.mark.parametrize(
    ("operations", "fields", "words"),
    [
        (["detect", "align", "swap"], {}, "swap needs a source_face"),
        (["detect", "align", "puppet"], {}, "puppet needs a source_face"),
        (
            ["detect", "blur"],
            {"parameters": Parameters(select="reference", people=("Anna",))},
            "needs identify",
        ),
        (["detect", "blur"], {"parameters": Parameters(select="id")}, "without people"),
    ],
)
def test_operations_that_lack_what_they_need_are_refused(operations, fields, words):
    """R3"""
    token = create_token(operations, now_epoch_s=1.0, **fields)
    with pytest.raises(TokenError, match=words):
        check_token(token)
    with pytest.raises(TokenError, match=words):
        parse_token(token.to_json())


def test_a_usable_token_is_returned():
    token = create_token(
        ["detect", "align", "identify", "swap", "blur"],
        now_epoch_s=1.0,
        source_face="avatar:fox",
        parameters=Parameters(select="reference", people=("Anna",)),
    )
    assert check_token(token) is token


@pytest.mark.parametrize(
    ("extensions", "words"),
    [
        ({"audioo": {}}, "did you mean audio.*x-"),
        ({"audio": {"start_pts": 1}}, "duration_ms"),
        ({"audio": {"start_pts": 1, "duration_ms": 20, "channels": 0}}, "channels"),
        ({"audio": {"start_pts": 1, "duration_ms": 20, "samples": "AAAA"}}, "samples"),
        ({"mouth": {"open": 1.5}}, "open"),
        ({"expression": {"strength": "strong"}}, "strength"),
        ({"x-" + "a" * 60: 1}, "unknown extension"),
        ({f"x-{i}": 1 for i in range(17)}, "more than 16"),
    ],
)
def test_extensions_are_typed(extensions, words):
    """R13"""
    with pytest.raises(TokenError, match=words):
        create(extensions=extensions)


def test_known_extensions_are_structs_however_they_come():
    """R13"""
    plain = create(extensions={"expression": {"strength": 0.5}, "mouth": {"open": 1}})
    assert plain.extensions["expression"] == ExpressionStrength(strength=0.5)
    assert plain.extensions["mouth"].open == 1.0
    assert parse_token(plain.to_json()).extensions == plain.extensions


def test_it_expires_after_its_ttl_unless_it_is_renewed():
    """R8"""
    token = create_token(["detect"], now_epoch_s=100)
    assert not token.is_expired(400)
    assert token.is_expired(400.1)
    renewed = token.renew(400.0)
    assert not renewed.is_expired(700.0)
    assert token.renew(400.0, 1.0).is_expired(402.0)
    assert (renewed.request_id, renewed.log) == (token.request_id, token.log)


def test_an_entry_costs_microseconds():
    """The log is written for every step of every frame: 10 us at most, against what dicts cost."""
    token = create_token(["detect", "blur"], now_epoch_s=1.0)

    def measure():
        started = time.thread_time()
        for _ in range(2000):
            token.update_state("detect", at=1.0, reason="detected 1", ms=1.2345)
        return time.thread_time() - started

    def measure_dicts():
        started = time.thread_time()
        for i in range(2000):
            dict(zip(FIELDS, range(i, i + len(FIELDS)), strict=True))
        return time.thread_time() - started

    measure(), measure_dicts()
    assert min(measure() for _ in range(3)) < 10 * min(measure_dicts() for _ in range(3))
