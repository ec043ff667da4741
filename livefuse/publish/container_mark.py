"""What a container says of generated pictures, in words: title, comment and the AIGC field.

It is read off the record of a keyframe (sei.py), so it stands wherever one passes and needs no way
of its own: Matroska has it in its header when it begins with such a keyframe, MP4 (late_mark.py)
and FLV, in a new onMetaData, as soon as there is one. It is lost through MPEG-TS and wherever a
server writes metadata of its own; anybody can write or remove it.

The AIGC field is the JSON that GB 45438-2025 asks for; Label 1 means "generated".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from livefuse.publish.sei import read_record

if TYPE_CHECKING:
    from livefuse.packet import Packet


class ContainerMark(NamedTuple):
    """Which job of which install (16 hex digits, "" when unsigned) generated pictures."""

    job: int
    install_id: str

    def build_fields(self) -> dict[str, str]:
        """Return the metadata by name, as FFmpeg's muxers take it."""
        job = f"{self.job:08x}"
        label = {
            "Label": "1",
            "ContentProducer": f"livefuse {self.install_id}".rstrip(),
            "ProduceID": job,
            "ReservedCode1": "",
            "ContentPropagator": "",
            "PropagateID": "",
            "ReservedCode2": "",
        }
        return {
            "title": "AI-modified video",
            "comment": f"AI-modified job={job} install={self.install_id}",
            "AIGC": json.dumps(label, separators=(",", ":")),
        }


def find_container_mark(packet: Packet) -> ContainerMark | None:
    """Return what a container is to say from `packet` on; None when it is no marked keyframe."""
    if packet.kind != "video" or not packet.is_keyframe:
        return None
    record = read_record(packet.data)
    return ContainerMark(record.job, record.key_id.hex()) if record is not None else None
