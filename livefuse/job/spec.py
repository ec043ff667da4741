"""What a job is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from livefuse.ingest import is_live_url
from livefuse.publish import is_file_url
from livefuse.token import Parameters, Token, check_token, create_token

if TYPE_CHECKING:
    from livefuse.config import Mode
    from livefuse.ring import RingMode


@dataclass(slots=True, frozen=True)
class JobSpec:
    """From where to where, and what on the way.

    The URLs may hold secrets: print them only through `redact`. `source_face` is the id of an
    enrolled face or of a drawn one (`avatar:NAME`).
    """

    source: str
    targets: tuple[str, ...]
    operations: tuple[str, ...]
    mode: Mode = "auto"
    source_face: str = ""
    parameters: Parameters = field(default_factory=Parameters)

    def create_token(self, now_epoch_s: float) -> Token:
        """Return the job's template token, its operations checked.

        Raises:
            TokenError: operations or parameters are unknown, out of order or do not fit.
        """
        token = create_token(self.operations, now_epoch_s=now_epoch_s)
        return check_token(
            msgspec.structs.replace(token, source_face=self.source_face, parameters=self.parameters)
        )

    def choose_mode(self) -> RingMode:
        """Return `every_frame` from file to file, else `live`, unless the spec says."""
        if self.mode != "auto":
            return self.mode
        offline = not is_live_url(self.source) and bool(self.targets)
        return "every_frame" if offline and all(map(is_file_url, self.targets)) else "live"
