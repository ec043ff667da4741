"""Marked streams for the tests of marks: packets stamped as PictureOut stamps them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import av

from livefuse.publish.sei import SeiMark, SeiStamp, read_sei_marks
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.streams import Media

JOB = JobMarks("main", REPLAY_KEYS)
PUBLIC = [REPLAY_KEYS.public_key]


def create_stamp(marks: JobMarks = JOB) -> SeiStamp:
    """Return what marks the keyframes of a job."""
    return SeiStamp(marks.number, marks.keys.key_id, marks.keys.signing.sign)


def mark_media(media: Media, marks: JobMarks = JOB, first: int = 0) -> Media:
    """Return `media` as a job sends it that generates faces, from its picture `first` on."""
    stamp = create_stamp(marks)
    video = [
        stamp.stamp(packet, 1_800_000_000 + index / 30) if index >= first else packet
        for index, packet in enumerate(media.video)
    ]
    return replace(media, video=video)


def read_marks(path: Path | str, public_keys: list[bytes] | None = None) -> list[SeiMark]:
    """Return what became of the record of each keyframe in a file."""
    with av.open(str(path)) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    return read_sei_marks(packets, PUBLIC if public_keys is None else public_keys)


def read_metadata(path: Path | str) -> dict[str, str]:
    """Return what the container says of itself, names in small letters (Matroska has capitals)."""
    with av.open(str(path)) as container:
        return {name.lower(): text for name, text in container.metadata.items()}
