"""Sealed tokens and their keys: nothing to read, nothing to change, keys that come and go."""

import os
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import ManualClock
from livefuse.errors import ConfigError, TokenError
from livefuse.safety.keys import MAX_KEYS, KeyRing
from livefuse.safety.seal import get_key_id, open_bytes, open_token, seal_bytes, seal_token
from livefuse.token import MAX_BODY_BYTES, MAX_TOKEN_BYTES, check_token, create_token


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def ring(tmp_path, clock):
    return KeyRing(tmp_path / "safety", clock)


def create(clock, **fields):
    return create_token(
        ["detect", "align", "swap"],
        now_epoch_s=clock.epoch_s(),
        source_face="face_0123456789ab",
        extensions={"x-user": "anna@example.org"},
        **fields,
    )


def test_a_sealed_token_comes_back_and_tells_nothing(ring, clock):
    """R9"""
    token = create(clock).update_state("running", at=1.0, reason="read me.png")
    text = seal_token(token, ring)
    assert open_token(text, ring) == token
    assert open_token(f" {text}\n", ring) == token
    for secret in (token.request_id, "anna", "face_", "me.png", "swap"):
        assert secret not in text
    assert seal_token(token, ring) != text  # a nonce is used once


def test_even_the_largest_token_stays_small(ring, clock):
    """R5, R9"""
    token = create(clock)
    room = MAX_BODY_BYTES - len(token.to_json())
    token = create_token(
        token.operations,
        now_epoch_s=1234567890.123456,
        request_id=token.request_id,
        source_face=token.source_face,
        extensions={"x-user": "anna@example.org" + "e" * room},
    )
    check_token(token)
    with pytest.raises(TokenError, match="bytes"):
        check_token(msgspec.structs.replace(token, target_face="t" * 30))
    for i in range(16):
        token = token.update_state(f"{i}\x01" * 64, at=1.7e9, reason="\x02" * 64)
    text = seal_token(token, ring)
    assert len(text) <= MAX_TOKEN_BYTES
    opened = open_token(text, ring)
    assert opened.extensions == token.extensions
    assert opened.log == token.log[16 - len(opened.log) :]


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_one_changed_bit_is_noticed(tmp_path_factory, place, bit):
    """R9"""
    ring = KeyRing(tmp_path_factory.getbasetemp() / "bits", ManualClock())
    sealed = bytearray(seal_bytes(b"what rests here", "token", ring))
    sealed[place % len(sealed)] ^= 1 << bit
    with pytest.raises(TokenError):
        open_bytes(bytes(sealed), "token", ring)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:-1], "altered|cut"),
        (lambda text: text[:-40] + "A" * 40, "altered"),
        (lambda text: text[4:], "not a sealed token"),
        (lambda _: "", "not a sealed token"),
        (lambda text: text + "é", "altered|cut"),
        (lambda text: text + "A" * 5000, "not a sealed token"),
        (lambda _: "lf1.", "nothing that livefuse sealed"),
        (lambda _: "lf1.AAAA", "nothing that livefuse sealed"),
        (lambda text: "lf1.AAAAAA" + text[10:], "key 00000000.*not in"),
    ],
)
def test_what_was_altered_is_refused_in_words(ring, clock, change, words):
    """R9"""
    with pytest.raises(TokenError, match=words):
        open_token(change(seal_token(create(clock), ring)), ring)


def test_a_thing_of_another_kind_does_not_pass(ring):
    sealed = seal_bytes(b'{"request_id":"a"}', "picture:face_1", ring)
    with pytest.raises(TokenError, match="is no token"):
        open_bytes(sealed, "token", ring)
    assert open_bytes(sealed, "picture:face_1", ring) == b'{"request_id":"a"}'


def test_an_expired_token_is_refused_where_time_counts(ring, clock):
    """R8"""
    text = seal_token(create(clock, ttl_s=10.0), ring)
    assert open_token(text, ring, now_epoch_s=clock.epoch_s() + 10.0).ttl_s == 10.0
    with pytest.raises(TokenError, match="expired"):
        open_token(text, ring, now_epoch_s=clock.epoch_s() + 10.1)
    assert open_token(text, ring).ttl_s == 10.0


def test_keys_rotate_and_retire(ring, clock):
    """R9"""
    token = create(clock)
    old = seal_token(token, ring)
    (first,) = ring.list_keys()
    second = ring.rotate()
    new = seal_token(token, ring)
    assert [key.key_id for key in ring.list_keys()] == [first.key_id, second]
    assert get_key_id(seal_bytes(b"", "token", ring)) == second
    assert open_token(old, ring) == open_token(new, ring) == token
    ring.retire(first.key_id)
    assert open_token(new, ring) == token
    with pytest.raises(TokenError, match=f"{first.key_id}, which is retired"):
        open_token(old, ring)
    with pytest.raises(TokenError, match="rotate first"):
        ring.retire(second)
    with pytest.raises(TokenError, match=f"no key 'ffff'.*{second}"):
        ring.retire("ffff")


def test_a_key_of_somebody_else_is_named(ring, clock, tmp_path):
    with pytest.raises(TokenError, match=r"not in .*other"):
        open_token(seal_token(create(clock), ring), KeyRing(tmp_path / "other", clock))
    assert not (tmp_path / "other").exists()


def test_the_key_file_is_private_and_watched(ring, clock):
    """R9"""
    text = seal_token(create(clock), ring)
    path = ring.folder / "keys.json"
    assert (path.stat().st_mode & 0o777, ring.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    (key,) = ring.list_keys()
    assert key.secret not in f"{key!r}{ring.list_keys()!r}"
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600") as told:
        open_token(text, KeyRing(ring.folder, clock))
    assert key.secret not in str(told.value)


def test_a_damaged_key_file_is_never_written_over(ring, clock):
    seal_token(create(clock), ring)
    path = ring.folder / "keys.json"
    path.write_text(path.read_text()[:-20])
    damaged = path.read_bytes()
    for use in (lambda: seal_token(create(clock), ring), ring.rotate):
        with pytest.raises(ConfigError, match="damaged"):
            use()
    assert path.read_bytes() == damaged


def test_another_process_s_rotation_is_seen(ring, clock):
    other = KeyRing(ring.folder, clock)
    seal_token(create(clock), ring)
    second = other.rotate()
    assert ring.get_current()[0] == second


def test_many_threads_make_one_first_key(tmp_path, clock):
    rings = [KeyRing(tmp_path / "safety", clock) for _ in range(6)]
    found = []
    threads = [
        threading.Thread(target=lambda ring=ring: found.append(ring.get_current()))
        for ring in rings
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(rings[0].list_keys()) == 1


def test_keys_are_bounded(ring):
    for _ in range(MAX_KEYS):
        ring.rotate()
    with pytest.raises(TokenError, match="--retire"):
        ring.rotate()
    oldest = ring.list_keys()[0].key_id
    ring.retire(oldest)
    ring.rotate()
    assert len(ring.list_keys()) == MAX_KEYS
    assert oldest not in {key.key_id for key in ring.list_keys()}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path, clock):
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match=r"safety\.folder"):
        KeyRing(tmp_path / "safety", clock).rotate()


def test_a_folder_that_is_a_file_is_said(tmp_path, clock):
    (tmp_path / "safety").write_text("")
    with pytest.raises(ConfigError, match=r"safety\.folder"):
        KeyRing(tmp_path / "safety", clock).rotate()
