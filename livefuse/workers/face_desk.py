"""Where faces are enrolled, denied and taken back: the store, the eyes for it, and the log.

A worker has one for its jobs; the daemon and the command line have one without any job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.runtime.session import SessionCache
from livefuse.safety.audit import open_audit
from livefuse.safety.consent import Terms
from livefuse.safety.faces import FaceStore
from livefuse.workers.face_reader import FaceReader

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.safety.audit import AuditLog
    from livefuse.safety.deny_shelf import DeniedFace
    from livefuse.safety.records import FaceRecord


class FaceDesk:
    """Safe from any thread. What looks at pictures takes seconds: not for an event loop."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        *,
        sessions: SessionCache | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Take the configuration; nothing is read or loaded yet."""
        self.config = config
        self.clock = clock
        self.sessions = sessions or SessionCache(config.models)
        self.audit = audit or open_audit(config, clock)
        self.reader = FaceReader(config, self.sessions)
        self.store = FaceStore(
            config.safety,
            clock,
            embedder=self.reader.embedder,
            refuse=config.refuse,
            audit=self.audit,
        )

    def enroll(
        self,
        picture: bytes,
        consent: str,
        name: str = "",
        terms: Terms = Terms(),  # noqa: B008 - immutable
    ) -> FaceRecord:
        """Keep the one face of a picture's file with its consent.

        Raises:
            LivefuseError: as `FaceStore.enroll`; the picture does not show exactly one face.
        """
        return self.store.enroll(picture, consent, check=self.reader.check, name=name, terms=terms)

    def deny(self, picture: bytes, name: str) -> DeniedFace:
        """Refuse the one face of a picture's file from now on.

        Raises:
            LivefuseError: as `FaceStore.deny`; the picture does not show exactly one face.
        """
        return self.store.deny(picture, name, check=self.reader.check)
