"""Who acts now, for the audit log: set once where somebody comes in, and known below.

It goes along into coroutines and into what `call_in_thread` runs; a thread that is started
otherwise acts for nobody.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND_LINE: Final = "cli"
NOBODY: Final = "anybody"
"""Whoever looks at what needs no key."""
ITSELF: Final = "livefuse"
"""What happens by itself: a job that ends, a stop for want of room."""

_ACTOR: ContextVar[str] = ContextVar("livefuse_actor", default="python")


def get_actor() -> str:
    """Return the name of the key that asked, `cli`, or `python` for a program's own calls."""
    return _ACTOR.get()


@contextlib.contextmanager
def act_as(who: str) -> Iterator[None]:
    """Let all that is logged meanwhile be done by `who`."""
    token = _ACTOR.set(who)
    try:
        yield
    finally:
        _ACTOR.reset(token)
