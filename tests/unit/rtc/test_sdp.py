"""Offers as browsers and OBS make them, answers as they go back: texts only."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.errors import ConfigError, LivefuseError, NotAcceptableError, get_http_status
from livefuse.rtc import answers, sdp
from livefuse.rtc import fragment as ice

OFFERS = Path(__file__).with_name("offers")
OBS = "obs_h264_opus_without_candidates"
CHROMIUM = "chromium_publisher_with_candidates"
VIEWER = "chromium_viewer_hidden_behind_mdns"


def load(name):
    return (OFFERS / f"{name}.sdp").read_bytes().decode()


def test_what_obs_offers_is_read():
    """Its credentials stand before the sections, sound comes first, and there are no candidates."""
    offer = sdp.read_offer(load(OBS))
    assert [(m.kind, m.mid, m.is_sent, m.is_received) for m in offer.media] == [
        ("audio", "0", True, False),
        ("video", "1", True, False),
    ]
    assert offer.media[1].codecs[0].name == sdp.H264
    assert offer.candidates == ()
    sdp.check_publisher(offer)


def test_candidates_are_taken_out_of_the_offer():
    """C71: what has to be looked up must not hold up the answer."""
    offer = sdp.read_offer(load(CHROMIUM))
    assert [candidate.host for candidate in offer.candidates] == ["192.0.2.17", "192.0.2.17"]
    assert {candidate.mid for candidate in offer.candidates} == {"0"}
    assert "a=candidate" not in offer.text
    assert "a=ice-ufrag:YdEs" in offer.text
    assert sdp.read_offer(load(VIEWER)).candidates[0].host.endswith(".local")


def test_the_numbers_of_header_extensions_are_read():
    text = load(VIEWER).replace(
        "a=extmap:4", "a=extmap:x urn:a\r\na=extmap:5\r\na=extmap:6/sendonly urn:b c\r\na=extmap:4"
    )
    video = sdp.read_offer(text).find("video")
    assert video is not None
    sent = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    own = {sent: 2, "urn:b": 6, "urn:ietf:params:rtp-hdrext:sdes:mid": 4}
    assert video.extensions == own


def test_what_firefox_sends_before_it_has_openh264_is_taken():
    """It is VP8; its sound, bundled with the pictures, has the port 0 and is not refused by it."""
    offer = sdp.read_offer(load("firefox_publisher_before_openh264"))
    sdp.check_publisher(offer)
    assert [(m.kind, m.is_sent) for m in offer.media] == [("video", True), ("audio", True)]
    assert not any(sdp.is_h264(codec) for codec in offer.media[0].codecs)
    assert offer.media[0].codecs[0].name == sdp.VP8
    assert {candidate.mid for candidate in offer.candidates} == {"0"}


def test_a_viewer_is_no_publisher_and_the_other_way_round():
    publisher, viewer = sdp.read_offer(load(CHROMIUM)), sdp.read_offer(load(VIEWER))
    sdp.check_publisher(publisher)
    sdp.check_viewer(viewer)
    with pytest.raises(NotAcceptableError, match="sends no pictures"):
        sdp.check_publisher(viewer)
    with pytest.raises(NotAcceptableError, match="asks for no pictures"):
        sdp.check_viewer(publisher)


@pytest.mark.parametrize(
    ("name", "check", "said"),
    [
        ("obs_av1_only", sdp.check_publisher, "AV1"),
        ("publisher_of_sound_only", sdp.check_publisher, "sends no pictures"),
        ("viewer_without_h264", sdp.check_viewer, "only VP8"),
        ("firefox_viewer_before_openh264", sdp.check_viewer, "only VP8, VP9, AV1: .*OpenH264"),
    ],
)
def test_an_offer_without_a_common_codec_is_406_and_says_what_to_choose(name, check, said):
    with pytest.raises(NotAcceptableError, match=said) as caught:
        check(sdp.read_offer(load(name)))
    assert get_http_status(caught.value) == 406
    assert caught.value.hint


@pytest.mark.parametrize("name", ["without_fingerprint", "parameters_of_no_codec"])
def test_an_offer_that_lacks_something_is_422(name):
    with pytest.raises(ConfigError) as caught:
        sdp.read_offer(load(name))
    assert get_http_status(caught.value) == 422


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "v=0\r\n",
        "v=0\r\nm=video\r\n",
        load(OBS).replace("a=rtcp-mux", "a=rtcp-none"),
        "v=0\r\n" + "a=x\r\n" * 20_000,
        load(CHROMIUM).replace("49203 typ host", "typ host"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(text):
    with pytest.raises(ConfigError, match="no usable SDP"):
        sdp.read_offer(text)


@given(st.data())
def test_a_damaged_offer_is_read_or_refused_never_worse(data):
    lines = load(CHROMIUM).splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at] = data.draw(st.sampled_from(["", "m=", "a=rtpmap:x y", lines[at][:9], "a=fmtp:"]))
    try:
        offer = sdp.read_offer("\r\n".join(lines))
    except LivefuseError:
        return
    assert offer.media


def test_the_answer_asks_browsers_to_start_faster():
    answer = load(OBS) + "m=video 9 X 97\r\na=rtpmap:97 VP8/90000\r\na=mid:2\r\n"
    changed = answers.raise_start_bitrate(answer, 2500, 6000).splitlines()
    rates = "x-google-min-bitrate=300;x-google-start-bitrate=2500;x-google-max-bitrate=6000"
    h264 = next(line for line in changed if line.startswith("a=fmtp:96"))
    assert h264 == (
        f"a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f;{rates}"
    )
    assert changed[changed.index("a=rtpmap:97 VP8/90000") + 1] == f"a=fmtp:97 {rates}"
    assert next(line for line in changed if line.startswith("a=fmtp:111")).endswith("fec=1")
    assert len(changed) == len(answer.splitlines()) + 1


def test_an_address_from_outside_takes_the_place_of_our_own():
    answer = answers.announce_address(load(CHROMIUM), "203.0.113.9")
    assert "a=candidate:3884411041 1 udp 2122260223 203.0.113.9 49203 typ host" in answer
    assert "c=IN IP4 192.0.2.17" in answer


def test_candidates_that_are_not_allowed_are_left_out_and_nobody_is_refused():
    line = "a=candidate:{0} 1 udp 1 {1} 9 typ host\r\n"
    named = "".join(line.format(n, host) for n, host in enumerate(("10.0.0.1", "192.0.2.17")))
    offer = sdp.read_offer(load(OBS) + named)
    assert offer.leave_out(None) == offer
    kept = offer.leave_out(lambda host: host == "192.0.2.17")
    assert [candidate.host for candidate in kept.candidates] == ["192.0.2.17"]
    assert kept.text == offer.text
    fragment = ice.read_fragment("a=mid:0\r\n" + named)
    assert fragment.leave_out(lambda _: False).candidates == ()
    assert fragment.leave_out(None) == fragment


@pytest.mark.parametrize(
    ("host", "is_address"),
    [
        ("192.0.2.1", True), ("2001:db8::1", True), ("x.local", False), ("X.LOCAL.", False),
        ("cam.example", False), ("2130706433", False), ("127.1", False), ("0x7f.1", False),
    ],
)  # fmt: skip
def test_names_are_told_from_addresses(host, is_address):
    """What is no address would be looked up: nothing is."""
    assert sdp.Candidate("0", f"1 1 udp 1 {host} 9 typ host").is_address is is_address


def test_a_fragment_is_read():
    text = (
        "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n"
        "m=audio 9 RTP/AVP 0\r\na=mid:0\r\n"
        "a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0\r\n"
        "a=end-of-candidates\r\n"
    )
    fragment = ice.read_fragment(text)
    assert (fragment.username, fragment.password[:4]) == ("EsAw", "P2uY")
    assert [(c.mid, c.host) for c in fragment.candidates] == [("0", "192.0.2.1")]
    assert ice.read_fragment("a=mid:0\r\na=end-of-candidates\r\n").candidates == ()


@pytest.mark.parametrize("text", ["", "v=0", "a=candidate:1 1 udp\r\n", "x" * 70_000])
def test_a_fragment_that_is_none_is_refused(text):
    with pytest.raises(ConfigError):
        ice.read_fragment(text)


def test_the_answer_to_an_ice_restart_can_be_read_again():
    text = ice.build_fragment("user", "password", "0", ["1 1 udp 1 192.0.2.1 5 typ host"])
    fragment = ice.read_fragment(text)
    assert (fragment.username, fragment.password) == ("user", "password")
    assert fragment.candidates[0].host == "192.0.2.1"
