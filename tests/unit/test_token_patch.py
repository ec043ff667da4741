"""Patches of a token in use (RFC 7396), and the published schema."""

import msgspec
import pytest

from livefuse.errors import TokenError
from livefuse.token import (
    EXTENSIONS,
    OPERATIONS,
    Parameters,
    Token,
    create_token,
    create_token_schema,
    merge_patch,
    patch_token,
)


@pytest.fixture
def token():
    return create_token(
        ["detect", "align", "beautify"],
        now_epoch_s=1.0,
        parameters=Parameters(beautify={"smooth": 0.5, "slim": 0.2}),
        extensions={"x-a": 1},
    ).update_state("running", at=2.0)


# RFC 7396, appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_merge_is_that_of_the_rfc(target, patch, result):
    before = msgspec.json.encode(target)
    assert merge_patch(target, patch) == result
    assert msgspec.json.encode(target) == before


def test_a_patch_changes_what_it_names_and_nothing_else(token):
    """R12"""
    after = patch_token(
        token,
        b'{"parameters": {"blend_ratio": 1, "beautify": {"smooth": 0.8, "slim": null}},'
        b' "operations": ["detect", "align", "beautify", "blur"], "extensions": {"x-b": [1]}}',
    )
    assert after.parameters.blend_ratio == 1.0
    assert after.parameters.beautify == {"smooth": 0.8}
    assert after.parameters.face_size == 256
    assert after.operations[-1] == "blur"
    assert after.extensions == {"x-a": 1, "x-b": (1,)}
    assert (after.request_id, after.log, after.timestamp) == (
        token.request_id,
        token.log,
        token.timestamp,
    )


def test_null_brings_the_default_back(token):
    assert patch_token(token, {"parameters": None}).parameters == Parameters()
    assert patch_token(token, {}) == token


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"parameters": {"blend_ratio": 2}}, "blend_ratio"),
        ({"parameters": {"blend": 1}}, "did you mean blend_ratio"),
        ({"operations": ["blur", "detect"]}, "write detect,blur"),
        ({"operations": None}, r"leaves open what is to be done.*\[\] for none"),
        ({"operations": ["detect", "align", "swap"]}, "source_face"),
        ({"source_face": "data:image/png;base64,AA"}, "data URL"),
        ({"extensions": {"audio": {"channels": 9}}}, "audio"),
        ({"extensions": {"x-a": "y" * 4000}}, "largest"),
        ({"request_id": "b"}, "cannot change 'request_id'"),
        ({"state": "done"}, "cannot change 'state'"),
        ({"log": None}, "cannot change 'log'"),
        (b"[]", "JSON object"),
        (b"{", "not JSON"),
        (b'{"a":' + b"[" * 4000, "not JSON"),
        (b" " * 5000, "larger than a token"),
    ],
)
def test_a_patch_is_taken_whole_or_not_at_all(token, patch, words):
    """R12"""
    before = token.to_json()
    with pytest.raises(TokenError, match=words):
        patch_token(token, patch)
    assert token.to_json() == before


def test_the_schema_tells_every_field():
    """R12"""
    schema = create_token_schema()
    assert msgspec.json.decode(msgspec.json.encode(schema)) == schema
    token = schema["$defs"]["Token"]
    assert set(token["properties"]) == set(Token.__struct_fields__)
    assert token["required"] == ["request_id"]
    assert token["properties"]["operations"]["items"]["enum"] == list(OPERATIONS)
    assert "cannot take them away (null)" in token["properties"]["operations"]["description"]
    assert set(schema["$defs"]["Parameters"]["properties"]) == set(Parameters.__struct_fields__)
    extensions = token["properties"]["extensions"]
    assert set(extensions["properties"]) == set(EXTENSIONS)
    assert extensions["additionalProperties"] is False


def test_every_definition_and_token_field_is_described():
    schema = create_token_schema()
    for name, definition in schema["$defs"].items():
        assert definition["description"], name
        assert "Raises" not in definition["description"], name
    own = schema["$defs"]["Token"]["properties"]
    assert [name for name, field in own.items() if "description" not in field] == ["parameters"]


def test_every_reference_of_the_schema_leads_somewhere():
    schema = create_token_schema()
    text = msgspec.json.encode(schema).decode()
    for part in text.split('"$ref":"')[1:]:
        name = part.partition('"')[0].removeprefix("#/$defs/")
        assert name in schema["$defs"]
