"""The section about WebRTC: browsers and OBS by WHIP, viewers by WHEP."""

from __future__ import annotations

from typing import Annotated

import msgspec

from livefuse.config.values import Kbps, Positive

Address = Annotated[str, msgspec.Meta(pattern=r"^([0-9.]+|[0-9a-fA-F:.]+)$")]
_ICE_PATTERN = r"^(stun|turns?):[^\s?]+(\?transport=(udp|tcp))?$"


class IceServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A STUN or TURN server. `credential` is a secret."""

    url: Annotated[str, msgspec.Meta(pattern=_ICE_PATTERN)]
    username: str = ""
    credential: str = ""


class WebRtcConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Browsers and OBS in (WHIP), viewers out (WHEP)."""

    ice_servers: tuple[IceServer, ...] = ()
    addresses: tuple[Address, ...] = ()
    announce_address: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F:.]*$")] = ""
    canvas: Annotated[str, msgspec.Meta(pattern=r"^(source|[1-9]\d{1,4}x[1-9]\d{1,4})$")] = (
        "1280x720"
    )
    start_kbps: Kbps = 2500
    max_kbps: Kbps = 4000
    max_viewers: Positive = 16
    opus_kbps: Annotated[int, msgspec.Meta(ge=6, le=510)] = 96
