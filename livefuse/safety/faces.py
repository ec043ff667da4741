"""The faces that people enrolled, and whether they may be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.errors import ConsentError

if TYPE_CHECKING:
    from livefuse.face import KnownFace, SourceFace


def load_source(face_id: str) -> SourceFace:
    """Return the enrolled face `face_id`.

    Raises:
        ConsentError: it is not enrolled, or its consent does not hold.
    """
    raise ConsentError(f"no face {face_id!r} is enrolled", hint="run  livefuse faces enroll")


def list_gallery() -> tuple[KnownFace, ...]:
    """Return the enrolled people by name."""
    return ()
