"""Who stands at the door: addresses, proxies, names; how often, and how unencrypted, they come."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from livefuse.config import HttpConfig, LimitsConfig
from livefuse.control.api.binding import prepare_binding
from livefuse.control.api.buckets import Buckets
from livefuse.control.api.perimeter import Perimeter, parse_ip, read_host
from livefuse.errors import ConfigError


def ask(peer, *headers):
    """A request from `peer`, as far as the door looks at it."""
    transport = SimpleNamespace(get_extra_info=lambda _name: (peer, 1) if peer else "")
    return cast("Any", SimpleNamespace(transport=transport, headers=CIMultiDict(headers)))


def forward(*names):
    return [("X-Forwarded-For", name) for name in names]


BEHIND = Perimeter(
    HttpConfig(
        host="0.0.0.0", trusted_proxies=("127.0.0.1", "10.0.0.0/8"), public_host="Live.Example."
    )
)


@pytest.mark.parametrize(
    ("peer", "headers", "found"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", forward("1.2.3.4"), "192.0.2.1"),  # not a proxy of ours: not believed
        ("127.0.0.1", forward("1.2.3.4"), "1.2.3.4"),
        ("::ffff:127.0.0.1", forward("1.2.3.4"), "1.2.3.4"),
        ("127.0.0.1", forward("6.6.6.6, 1.2.3.4"), "1.2.3.4"),  # what the client invents is first
        ("127.0.0.1", forward("6.6.6.6", "1.2.3.4, 10.1.1.1"), "1.2.3.4"),
        ("127.0.0.1", forward("1.2.3.4:5678"), "1.2.3.4"),
        ("127.0.0.1", forward("[2606:4700::1]:443"), "2606:4700::1"),
        ("127.0.0.1", forward("nonsense"), "127.0.0.1"),
        ("127.0.0.1", forward("1.2.3.4, unknown"), "127.0.0.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("", forward("1.2.3.4"), ""),
    ],
)
def test_the_last_address_that_a_trusted_proxy_names_is_believed(peer, headers, found):
    assert BEHIND.find_address(ask(peer, *headers)) == found


def test_where_somebody_asks_from_is_not_guessed():
    """Behind a proxy that does not say it nobody is taken for this machine."""
    assert BEHIND.find_client(ask("127.0.0.1", *forward("1.2.3.4"))) == "1.2.3.4"
    assert BEHIND.find_client(ask("::ffff:192.0.2.1")) == "192.0.2.1"
    for peer, headers in (("127.0.0.1", []), ("10.1.1.1", forward("nonsense")), ("", [])):
        assert BEHIND.find_client(ask(peer, *headers)) == ""
    assert Perimeter().find_client(ask("127.0.0.1", *forward("1.2.3.4"))) == "127.0.0.1"


def test_many_may_come_from_this_machine_and_from_proxies():
    for address in ("127.0.0.1", "::1", "10.2.3.4", "", "::ffff:127.0.0.1"):
        assert BEHIND.is_shared_address(address)
    assert not BEHIND.is_shared_address("192.168.1.4")


def test_an_address_that_asks_too_often_waits_and_its_neighbours_do_not():
    door = Perimeter(None, LimitsConfig(address_requests_per_s=1))
    for _ in range(4):
        assert door.check_address(ask("192.0.2.1")) is None
    refusal = door.check_address(ask("192.0.2.1"))
    assert refusal is not None
    assert refusal.status == 429
    assert 1 <= int(refusal.headers["Retry-After"]) <= 2
    assert door.check_address(ask("192.0.2.2")) is None
    for _ in range(20):
        assert door.check_address(ask("127.0.0.1")) is None


def test_all_addresses_of_one_customer_count_as_one():
    door = Perimeter(None, LimitsConfig(address_requests_per_s=1))
    found = [door.check_address(ask(f"2606:4700:1:2::{n:x}")) for n in range(5)]
    assert found[-1] is not None
    assert door.check_address(ask("2606:4700:1:3::1")) is None


def test_wrong_keys_are_counted():
    door = Perimeter(None, LimitsConfig(wrong_keys_per_min=3))
    found = [door.check_wrong_key(ask("127.0.0.1")) for _ in range(4)]
    assert [one is None for one in found] == [True, True, True, False]


def test_no_limit_is_none():
    door = Perimeter(None, LimitsConfig(address_requests_per_s=0))
    assert all(door.check_address(ask("192.0.2.1")) is None for _ in range(1000))


@pytest.mark.parametrize(
    ("peer", "headers", "is_refused"),
    [
        ("127.0.0.1", [*forward("1.2.3.4"), ("X-Forwarded-Proto", "http")], True),
        ("127.0.0.1", [*forward("1.2.3.4"), ("X-Forwarded-Proto", "https, http")], True),
        ("127.0.0.1", [*forward("1.2.3.4"), ("X-Forwarded-Proto", "https")], False),
        ("127.0.0.1", [("X-Forwarded-Proto", "http")], False),  # from this machine
        ("192.0.2.1", [("X-Forwarded-Proto", "https")], True),  # past the proxy, unencrypted
        ("::ffff:127.0.0.1", [], False),
        ("", [], False),
    ],
)
def test_what_reached_the_proxy_unencrypted_is_refused(peer, headers, is_refused):
    assert (BEHIND.check_transport(ask(peer, *headers)) is not None) == is_refused


def test_who_has_tls_or_is_forced_takes_strangers():
    for config in (HttpConfig(tls_cert="x"), HttpConfig(allow_insecure=True)):
        assert Perimeter(config).check_transport(ask("192.0.2.1")) is None


def test_the_public_name_is_ours_and_its_pages_too():
    assert "live.example" in BEHIND.names
    for origin in ("https://live.example", "https://LIVE.example:8443", "http://127.0.0.1:8090"):
        assert BEHIND.is_own_origin(origin, "127.0.0.1:8090")
    for origin in ("https://live.example.evil", "https://evil.example", "null", "https://"):
        assert not BEHIND.is_own_origin(origin, "127.0.0.1:8090")
    assert not Perimeter().is_own_origin("null", "127.0.0.1")


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "1.2.3.4.5:80", "[1.2", "::g", "unknown"])
def test_what_is_no_address_is_none(text):
    assert parse_ip(text) is None


@given(st.text(max_size=40))
def test_any_text_is_read_without_a_fault(text):
    assert parse_ip(text) is None or text.strip()
    assert read_host(text) == read_host(text).lower()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.example"])
def test_wider_than_loopback_takes_a_proxy_or_is_forced(host):
    with pytest.raises(ConfigError, match="unencrypted"):
        prepare_binding(HttpConfig(host=host))
    assert prepare_binding(HttpConfig(host=host, trusted_proxies=("10.0.0.1",))) is None
    assert prepare_binding(HttpConfig(host=host, allow_insecure=True)) is None
    assert prepare_binding(HttpConfig()) is None


def test_a_certificate_that_is_none_is_said_to_be(tmp_path):
    path = tmp_path / "cert.pem"
    path.write_text("nonsense")
    for config in (
        HttpConfig(tls_cert=str(path)),
        HttpConfig(tls_cert=str(tmp_path / "nix")),
        HttpConfig(tls_key=str(path)),
    ):
        with pytest.raises(ConfigError):
            prepare_binding(config)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.1, 1000), st.integers(1, 50), st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30)
)
def test_a_bucket_gives_no_more_than_it_gets(rate, burst, gaps):
    """Over any time: the burst and what has flowed in; and whoever waits as told is served."""
    buckets = Buckets(rate, burst)
    now, served = 100.0, 0
    for gap in gaps:
        now += gap
        wait = buckets.take("a", now)
        served += not wait
        if wait:
            assert buckets.take("a", now + wait * 1.0001 + 1e-6) == 0.0
            now += wait * 1.0001 + 1e-6
            served += 1
    assert served <= burst + rate * (now - 100.0) + 1


def test_buckets_are_bounded():
    buckets = Buckets(1.0, 2.0)
    for n in range(10_000):
        buckets.take(n, 0.0)
    assert len(buckets._levels) <= 4096
