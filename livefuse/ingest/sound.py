"""The sound beside the pictures: kept until the first picture, then passed on as it came."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.aac import read_adts
from livefuse.ingest.timeline import to_ticks
from livefuse.packet import Packet

if TYPE_CHECKING:
    import av
    from av.stream import Stream

    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.ratio import Ratio
    from livefuse.ingest.timeline import SourceTimeline
    from livefuse.packet import AudioInfo

_MAX_EARLY: Final = 512


class SoundRelay:
    """One job's sound. The outputs are told its kind once, so other sound is left out later."""

    def __init__(self, sink: IngestSink, timeline: SourceTimeline) -> None:
        self._sink = sink
        self._timeline = timeline
        self._told: AudioInfo | None = None
        self._is_relaying = False
        self._early: deque[tuple[av.Packet[Stream], int]] = deque(maxlen=_MAX_EARLY)

    def begin_segment(self, audio: AudioInfo | None, *, is_first: bool) -> None:
        """Take what a newly opened source has for sound; before `is_first` ends all is welcome."""
        self._early.clear()
        self._is_relaying = audio is not None if is_first else self._is_told(audio)

    def describe(self, audio: AudioInfo | None) -> AudioInfo | None:
        """Return what the outputs are to be told; believe sound that came more than a guess."""
        self._told = audio
        if audio is None or audio.codec != "aac" or not self._early:
            return audio
        header = read_adts(bytes(self._early[0][0]))
        if header is None or not header.config:
            return audio
        return msgspec.structs.replace(
            audio,
            sample_rate_hz=header.sample_rate_hz,
            channels=header.channels,
            extradata=header.config,
        )

    def get_first_stamp(self) -> tuple[int, Ratio] | None:
        """Return the stamp of the sound that waits for the first picture, if there is any."""
        sound = self._early[0][0] if self._early else None
        if sound is None or sound.pts is None or not sound.time_base:
            return None
        return sound.pts, sound.time_base

    def take(self, packet: av.Packet[Stream], arrival_ns: int, *, may_send: bool) -> None:
        """Send a packet of sound; before there is a picture keep it."""
        if not self._is_relaying:
            return
        if may_send and not self._early:
            self._send(packet, arrival_ns)
        else:
            self._early.append((packet, arrival_ns))

    def release(self) -> None:
        """Send what waited for the first picture."""
        while self._early:
            self._send(*self._early.popleft())

    def _is_told(self, audio: AudioInfo | None) -> bool:
        """Say whether sound after a reconnect is of the kind that the outputs were told."""
        first = self._told
        if audio is None or first is None:
            return False
        is_same = (audio.codec, audio.sample_rate_hz, audio.channels) == (
            first.codec,
            first.sample_rate_hz,
            first.channels,
        )
        if not is_same:
            self._sink.count("audio_changed")
        return is_same

    def _send(self, packet: av.Packet[Stream], arrival_ns: int) -> None:
        base = packet.time_base
        duration = to_ticks(packet.duration, base) if packet.duration and base else 0
        pts = packet.pts if packet.pts is not None else packet.dts
        place = self._timeline.stamp_audio(pts, base, arrival_ns, duration)
        if place is None:
            return
        data = bytes(packet)
        self._sink.on_audio(
            Packet("audio", data, place, place, duration, is_keyframe=True, arrival_ns=arrival_ns)
        )
