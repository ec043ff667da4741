"""Which faces are meant: the token's selector."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.face import Face
    from livefuse.token import Parameters


def choose_faces(faces: Sequence[Face], parameters: Parameters) -> None:
    """Set `chosen` of each face. Names (`reference`) match once the faces are identified."""
    chosen = _pick(faces, parameters)
    for face in faces:
        face.chosen = face in chosen


def _pick(faces: Sequence[Face], parameters: Parameters) -> list[Face]:
    match parameters.select:
        case "all":
            return list(faces)
        case "largest":
            return sorted(faces, key=lambda f: -f.track.box.width * f.track.box.height)[:1]
        case "left-most":
            return sorted(faces, key=lambda f: f.track.box.x0 + f.track.box.x1)[:1]
        case "id":
            return [face for face in faces if str(face.track.track_id) in parameters.people]
        case "reference":
            return [face for face in faces if face.person and face.person in parameters.people]
