"""ICE restart (RFC 8445 section 9, RFC 9725 section 4.3.3), which aiortc has not.

A second ICE agent is made beside the first, which carries on. Once the new one has found its path
it takes over: what is sent goes through it, and what it receives goes where the first one's did, so
that DTLS and all above never notice. When it finds none, everything stays as it was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aioice import Candidate, Connection

from livefuse.rtc import patches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiortc import RTCIceTransport

    from livefuse.rtc.loop import RtcLoop

RESTART_S: Final = 20.0
_SERVERS: Final = (
    "stun_server", "turn_server", "turn_username", "turn_password", "turn_ssl", "turn_transport",
)  # fmt: skip


class IceRestarts:
    """The ICE agents of one transport, one after the other. Only on the peers' loop."""

    def __init__(
        self, transport: RTCIceTransport, loop: RtcLoop, note_datagram: Callable[[], None]
    ) -> None:
        self._transport: Any = transport
        self._loop = loop
        self._note_datagram = note_datagram
        # DTLS waits at the first one's queue, for ever.
        self._first: Any = transport._connection
        self._active: Any = self._first
        self._next: Any = None

    async def begin(self, addresses: Sequence[str], gather_s: float) -> Connection:
        """Return a new agent with its own credentials and candidates, not yet connecting."""
        if self._next is not None:
            await self._drop(self._next)
        servers = {name: getattr(self._first, name) for name in _SERVERS}
        fresh: Any = Connection(ice_controlling=self._active.ice_controlling, **servers)
        self._next = fresh
        patches.limit_gathering(fresh, addresses, gather_s)
        await fresh.gather_candidates()
        patches.watch_datagrams(fresh, self._note_datagram, waiting=self._first)
        fresh.data_received = self._first.data_received
        return fresh  # type: ignore[no-any-return] # Any only to reach what is private

    def connect(self, username: str, password: str) -> None:
        """Look for a path to the other end's new credentials; take over when there is one."""
        self._next.remote_username, self._next.remote_password = username, password
        self._loop.spawn(self._connect(self._next))

    async def add_candidate(self, value: str) -> None:
        """Add a candidate of the other end (the attribute's value) to the newest agent.

        Raises:
            ValueError: it cannot be used.
        """
        await (self._next or self._active).add_remote_candidate(Candidate.from_sdp(value))

    async def _connect(self, fresh: Any) -> None:
        try:
            await asyncio.wait_for(fresh.connect(), RESTART_S)
        except (TimeoutError, ConnectionError):
            if self._next is fresh:
                self._next = None
            await self._drop(fresh)
            return
        if self._next is fresh and not self._first._closing:
            before, self._active, self._next = self._active, fresh, None
            self._transport._connection = fresh
            self._transport._send = fresh.send
            await self._silence(before)
            await fresh.get_event()  # it is closed, by us or for want of consent
        await self._drop(fresh)
        if self._active is fresh:
            await self._first.close()

    async def _silence(self, agent: Any) -> None:
        """Close the sockets of an agent; whoever waits at its queue waits on."""
        agent.protocol_lost = _ignore
        if agent._query_consent_task is not None:
            agent._query_consent_task.cancel()
            agent._query_consent_task = None
        protocols = list(agent._protocols)
        agent._protocols.clear()
        for protocol in protocols:
            await protocol.close()

    async def _drop(self, agent: Any) -> None:
        agent.data_received = _ignore
        await agent.close()


def _ignore(*_: object) -> None:
    """Its time is over."""
