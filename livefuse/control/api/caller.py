"""Who calls, and what that role may: one rule for the daemon and its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

import msgspec
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

    FindCaller = Callable[[str], "Caller | None"]
    FindOwner = Callable[[str], str | None]

Role = Literal["viewer", "streamer", "operator", "scraper"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
LADDER: Final[tuple[Role, ...]] = ("viewer", "streamer", "operator")
"""The smallest first; each may all that the ones before it may, of the jobs that it sees.

A scraper stands beside them: it may read the metrics, which tell of everybody's jobs, as an
operator may, and nothing else, so that Prometheus need not have an operator's key.
"""


class Caller(msgspec.Struct, frozen=True):
    """Whose request this is: `key_id` owns the jobs that it makes.

    `address` is from where it asks (perimeter.py), empty where that is not known.
    """

    key_id: str
    role: Role
    name: str
    address: str = ""


LOCAL: Final = Caller("local", "operator", "local")
"""Whoever has the one printed key of `livefuse run`, or needs none."""
CALLER: Final = web.RequestKey("caller", Caller)


class HasRole(Protocol):
    """An address of the API, by the least role that may call it."""

    @property
    def role(self) -> Role:
        """That role."""
        ...


def get_caller(request: web.Request) -> Caller:
    """Return who calls; only behind the guard, and not for the paths that are open to all.

    Raises:
        KeyError: the guard has let nobody in.
    """
    return request[CALLER]


def is_large_enough(caller: Caller, role: Role) -> bool:
    """Say whether the caller's role is `role` or a larger one."""
    if "scraper" in (caller.role, role):
        return caller.role in (role, "operator")
    return LADDER.index(caller.role) >= LADDER.index(role)


def may(caller: Caller, route: HasRole, owner: str | None) -> bool:
    """Say whether `caller` may call `route` for a job of the key `owner` (None: of no job).

    An operator may all. A streamer sees and changes only the jobs that it made. A viewer sees
    every job that runs (`sees`), and changes none.
    """
    if not is_large_enough(caller, route.role):
        return False
    return caller.role != "streamer" or owner is None or owner == caller.key_id


def sees(caller: Caller, owner: str, *, is_running: bool) -> bool:
    """Say whether `caller` is told of a job that the key `owner` made."""
    if caller.role == "streamer":
        return owner == caller.key_id
    return caller.role == "operator" or (caller.role == "viewer" and is_running)


def sees_urls(caller: Caller) -> bool:
    """Say whether `caller` is told where a job's pictures come from and go to."""
    return caller.role in ("streamer", "operator")
