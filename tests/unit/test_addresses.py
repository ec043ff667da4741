"""Which addresses may be dialled, in every spelling that systems understand."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.addresses import (
    Networks,
    build_tcurl,
    check_host,
    is_public,
    parse_literal,
    parse_network,
    pin_url,
    split_url,
    unwrap,
)
from livefuse.errors import ConfigError, RefusedError

NAMES = {
    "cam.example": ["198.41.0.4"],
    "six.example": ["2606:4700::1", "198.41.0.4"],
    "inside.example": ["10.0.0.5"],
    "both.example": ["198.41.0.4", "127.0.0.1"],
    "mapped.example": ["::ffff:169.254.169.254"],
    "localhost": ["127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "scoped.example": ["fe80::1%eth0"],
}


def resolve(host):
    if host not in NAMES:
        raise socket.gaierror("no such name")
    return NAMES[host]


PUBLIC = Networks(["public"])


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1",
        "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.0.1",
        "255.255.255.255", "198.18.0.1", "192.0.2.1", "240.0.0.1",
        "::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:10.0.0.1",
        "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::",
        "2002:a9fe:a9fe::", "2001:0:1::1", "2001:db8::1", "::127.0.0.1", "fec0::1", "4000::1",
    ],
)  # fmt: skip
def test_what_is_not_public(text):
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    ["198.41.0.4", "1.1.1.1", "172.32.0.1", "2606:4700::1", "::ffff:1.1.1.1", "64:ff9b::101:101"],
)
def test_what_is(text):
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses())
def test_public_is_never_what_python_calls_private(address):
    if is_public(address):
        inner = unwrap(address)
        assert not (inner.is_private or inner.is_loopback or inner.is_link_local)
        assert not (inner.is_multicast or inner.is_unspecified)


@pytest.mark.parametrize(
    "host",
    [
        "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.1", "0177.0.0.1", "0177.1",
        "017700000001", "127.0.0.1.", "0x7f.0x0.0x0.0x1", "127.0x0.0.01", "[::1]", "0",
        "3232235521", "0xA9FEA9FE", "0251.0376.0251.0376", "2852039166", "0x.0x.0x.0x1",
        "localhost", "localhost.", "inside.example", "both.example", "mapped.example",
        "scoped.example",
    ],
)  # fmt: skip
def test_no_spelling_leads_inside(host):
    name = split_url(f"http://{host}/").hostname or ""
    with pytest.raises(RefusedError, match="may dial"):
        check_host(name, PUBLIC, resolve)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["d", "x", "o"]), st.integers(1, 4))
def test_literals_mean_what_the_system_says(value, base, parts):
    """As inet_aton(3) reads them, whatever the base and however many numbers."""
    data = value.to_bytes(4, "big")
    numbers = [*data[: parts - 1], int.from_bytes(data[parts - 1 :], "big")]
    host = ".".join({"d": f"{n}", "x": f"{n:#x}", "o": f"0{n:o}"}[base] for n in numbers)
    assert parse_literal(host) == ipaddress.IPv4Address(socket.inet_aton(host))


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3.4.5", "08", "1.2.3.256", "1..2", "a.1", "4294967296"]
)
def test_what_is_no_literal(host):
    assert parse_literal(host) is None


def test_all_addresses_of_a_name_are_judged_and_the_common_kind_comes_first():
    assert check_host("six.example", PUBLIC, resolve).addresses == ("198.41.0.4", "2606:4700::1")
    with pytest.raises(RefusedError):
        check_host("both.example", PUBLIC, resolve)


def test_the_refusal_tells_nothing_of_the_network():
    with pytest.raises(RefusedError) as caught:
        check_host("inside.example", PUBLIC, resolve)
    assert "10.0.0.5" not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["１２７.0.0.1", "ⓛocalhost", "пример.example", "a b", "a%31", "", "-a", "a/b"]
)
def test_hosts_that_programs_read_differently_are_refused(host):
    with pytest.raises(RefusedError):
        check_host(host, PUBLIC, resolve)


@pytest.mark.parametrize(
    "url",
    [
        "http://cam.example\\@127.0.0.1/",
        "http://a@cam.example@127.0.0.1/",
        "http://cam.example /",
        "http://cam.example:80:80/",
        "http://cam.example:0/",
        "http://cam.example:99999/",
        "http://[::1/",
        "http://cam.example/\r\nHost: x",
        "http://cam.example/\u202e",
    ],
)
def test_urls_that_are_not_clear_are_refused(url):
    with pytest.raises(RefusedError):
        split_url(url)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://cam.example@127.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1#@cam.example/", "127.0.0.1"),
        ("http://127.0.0.1?@cam.example/", "127.0.0.1"),
        ("rtsp://u:p@cam.example:554/x", "cam.example"),
    ],
)
def test_user_info_hides_no_host(url, host):
    assert split_url(url).hostname == host


def test_lists_of_networks():
    inside = Networks(["public", "10.1.0.0/16", "192.168.1.7", "fd00::/8"])
    for text, allowed in [
        ("10.1.2.3", True), ("10.2.0.1", False), ("192.168.1.7", True), ("192.168.1.8", False),
        ("fd00::1", True), ("::ffff:10.1.2.3", True), ("1.1.1.1", True),
    ]:  # fmt: skip
        assert inside.allows(ipaddress.ip_address(text)) == allowed, text
    assert Networks(["any"]).allows(ipaddress.ip_address("127.0.0.1"))
    assert not Networks([]).allows(ipaddress.ip_address("1.1.1.1"))
    with pytest.raises(ConfigError):
        parse_network("everything")


def test_a_url_is_pinned_to_what_was_judged():
    parts = split_url("rtsp://u:p@cam.example:8554/live?x=1")
    assert pin_url(parts, "198.41.0.4") == "rtsp://u:p@198.41.0.4:8554/live?x=1"
    assert pin_url(parts, "2606:4700::1") == "rtsp://u:p@[2606:4700::1]:8554/live?x=1"


def test_an_rtmp_server_hears_the_name_it_was_asked_by():
    assert build_tcurl("rtmp://u:p@cdn.example/live/key") == "rtmp://cdn.example:1935/live"
    assert build_tcurl("rtmp://cdn.example:99/app/inst/key") == "rtmp://cdn.example:99/app/inst"
