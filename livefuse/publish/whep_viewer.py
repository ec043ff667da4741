"""One viewer of a WHEP output, and whether there is room for one more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.errors import JobCapacityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.rtc.guest import Guest
    from livefuse.rtc.sending import OutgoingTrack
    from livefuse.rtc.session import Session


class Viewer:
    """One viewer: its key, its session once there is one, and what it gets of each kind."""

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        self.session: Session | None = None
        self.tracks: dict[str, OutgoingTrack] = {}

    @property
    def dropped(self) -> int:
        """How many packets it missed because it, or the way to it, was slow."""
        return sum(track.dropped for track in self.tracks.values())

    def hang_up(self) -> None:
        """End its session, if it has one by now; returns at once."""
        if self.session is not None:
            self.session.close_soon()


def check_room(keys: Sequence[str], guest: Guest, limit: int) -> None:
    """Refuse one viewer too many; `keys` are those of the ones that are there, `limit` is for all.

    Raises:
        JobCapacityError: all places are taken, or as many as the guest's key may have.
    """
    if len(keys) >= limit:
        raise JobCapacityError(
            f"{limit} viewers are watching already, no more are let in",
            hint="raise webrtc.max_viewers, or watch live.flv",
        )
    if 0 < guest.most <= keys.count(guest.key_id):
        raise JobCapacityError(
            f"{guest.most} of the {limit} viewers are this key's already",
            hint="close one, or raise limits.key_share",
        )
