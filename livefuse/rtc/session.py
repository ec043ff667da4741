"""What HTTP holds of a peer: an id, the answer, an entity tag; patch and close, from any thread.

`patch` and `close` wait for the peers' loop (milliseconds). A server on a loop of its own calls
them, and what makes sessions, in a thread.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from livefuse.errors import JobChangedError, JobNotFoundError
from livefuse.rtc.fragment import read_fragment

if TYPE_CHECKING:
    from livefuse.rtc.guest import AllowsHost
    from livefuse.rtc.loop import RtcLoop
    from livefuse.rtc.peer import Peer, PeerState


def _create_tag() -> str:
    return f'"{secrets.token_hex(8)}"'


@dataclass(slots=True)
class Session:
    """One WHIP or WHEP session.

    `id` is unguessable; `etag` (with its quotes) names the present ICE credentials. `key_id` is the
    key of the API that it was opened with.
    """

    answer_sdp: str
    _peer: Peer
    _loop: RtcLoop
    key_id: str = ""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    etag: str = field(default_factory=_create_tag)

    @property
    def state(self) -> PeerState:
        """Whether it connects, is connected, or is gone."""
        return self._peer.state

    @property
    def silent_s(self) -> float:
        """For how long nothing has been heard of the other end."""
        return self._peer.silent_s

    def patch(self, body: str, etag: str, allows: AllowsHost | None = None) -> str:
        """Take the body of a PATCH and If-Match, "" without; return what is answered.

        `allows` judges the candidates in it; who asks now may do so from another address.

        Nothing (204) for more candidates; a fragment (200) for new credentials, which restart ICE
        and give the session another `etag`.

        Raises:
            ConfigError: the body is no ICE fragment (422).
            JobChangedError: `etag` is not the session's (412).
            JobNotFoundError: the session has ended (404).
            RefusedError: ICE cannot be restarted here (422).
        """
        if self._peer.state == "closed":
            raise JobNotFoundError("the session has ended", hint="send a new offer")
        fragment = read_fragment(body).leave_out(allows)
        if etag.removeprefix("W/").strip('"') not in (self.etag.strip('"'), "*", ""):
            raise JobChangedError(
                "the ICE session has changed meanwhile", hint="send its present ETag in If-Match"
            )
        said = self._loop.call(self._peer.patch(fragment))
        if said:
            self.etag = _create_tag()
        return said

    def close(self) -> None:
        """End the session; twice is once. Returns when the connection is closed."""
        from livefuse.rtc.peer import Ending  # noqa: PLC0415 - it is loaded where there is a peer

        self._loop.call(self._peer.close(Ending("closed")))

    def close_soon(self) -> None:
        """End the session without waiting."""
        from livefuse.rtc.peer import Ending  # noqa: PLC0415 - as above

        self._loop.post(lambda: self._loop.spawn(self._peer.close(Ending("closed"))))
