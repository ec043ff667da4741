"""What a peer is given of the configuration, and codecs in their order."""

import pytest

from livefuse.config import Config, IceServer, WebRtcConfig, load_config
from livefuse.errors import ConfigError
from livefuse.rtc.peer import _configure


def test_nobody_is_contacted_unless_named():
    """aiortc takes a public STUN server for None."""
    assert Config().webrtc.ice_servers == ()
    assert _configure(WebRtcConfig()).iceServers == []


def test_servers_are_taken_from_the_configuration(tmp_path):
    """C73: TURN can be configured."""
    path = tmp_path / "own.toml"
    path.write_text(
        """
[webrtc]
addresses = ["127.0.0.1", "::1"]
ice_servers = [
    { url = "stun:192.0.2.1" },
    { url = "turns:relay.example:5349?transport=tcp", username = "me", credential = "secret" },
]
"""
    )
    config = load_config(path).webrtc
    assert config.ice_servers[0] == IceServer(url="stun:192.0.2.1")
    servers = _configure(config).iceServers
    assert servers is not None
    assert [(one.urls, one.username, one.credential) for one in servers] == [
        ("stun:192.0.2.1", None, None),
        ("turns:relay.example:5349?transport=tcp", "me", "secret"),
    ]


@pytest.mark.parametrize(
    "setting",
    [
        'webrtc.ice_servers=[{url="https://example"}]',
        'webrtc.addresses=["my host"]',
        "webrtc.max_viewers=0",
        'webrtc.announce_address="host.example"',
    ],
)
def test_what_cannot_be_is_refused(setting):
    with pytest.raises(ConfigError, match="webrtc"):
        load_config(settings=(setting,))
