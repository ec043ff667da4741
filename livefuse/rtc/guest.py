"""Whose a session is, and what whoever opens it may name: told by the control plane. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

AllowsHost = Callable[[str], bool]
"""Says whether checks of connectivity may be sent to a host that the other end has named."""


class Guest(NamedTuple):
    """Who opens a session.

    `key_id` is the key of the API that it is asked for with. Of one output a key has `most`
    sessions at a time; 0: as many as there are places. `allows` judges the candidates of the other
    end; None: all may be checked.
    """

    key_id: str = ""
    most: int = 0
    allows: AllowsHost | None = None


ANYBODY: Final = Guest()
"""Where nobody keeps count: a program's own call."""
