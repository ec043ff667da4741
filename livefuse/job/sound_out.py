"""Sound to all outputs, in step by PTS; silence while the input, or its sound alone, is away."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from livefuse.clock import NS_PER_MS, Clock
from livefuse.frame import TIME_BASE_HZ
from livefuse.publish.silence import create_silence
from livefuse.publish.sound_line import SoundLine
from livefuse.ring import Ring, RingClosed

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.job.watchdog import Pulse
    from livefuse.packet import Packet
    from livefuse.publish.audio import AudioTrack
    from livefuse.publish.fanout import FanOut
    from livefuse.telemetry import Telemetry

_SMOOTHING: Final = 1 / 16


class PictureLine(Protocol):
    """How far the pictures have come on the job's line (1/90000 s)."""

    @property
    def last_pts(self) -> int:
        """The stamp of the last picture shown, held ones too; -1 before the first."""
        ...

    @property
    def shift(self) -> int:
        """How far pictures are moved, since their source goes on where it had stopped."""
        ...


class SoundOut:
    """One job's sound. `run` has a thread of its own; `renew` gives its work to another.

    Silence comes from the pictures' thread (`follow`), so it also comes while the sound's own hangs
    or is being made anew.
    """

    def __init__(
        self, track: AudioTrack, fanout: FanOut, telemetry: Telemetry, config: Config
    ) -> None:
        self._track = track
        self._fanout = fanout
        self._telemetry = telemetry
        self._clock: Clock = telemetry.clock
        self._offset = config.audio.offset_ms * TIME_BASE_HZ // 1000
        patience = config.hold.after_ms * TIME_BASE_HZ // 1000
        self._line = SoundLine(create_silence(track.info), patience)
        self._shift = 0
        self.delay_ms = 0.0
        """How long sound takes from its arrival to the outputs, lately."""
        self._owner: int | None = None  # the thread whose turn it is
        self._lock = threading.Lock()

    def renew(self, track: AudioTrack) -> None:
        """Take another track, for the next thread that calls `run`; the one before is refused."""
        with self._lock:
            self._owner = None
            self._track = track

    def describe(self, picture_ms: float) -> dict[str, Any]:
        """Return what status shows; `picture_ms` is how long pictures take. Any thread.

        `ahead_ms`: how much earlier than its picture sound leaves. Players wait for that long.
        """
        return {
            "codec": self._track.info.codec,
            "is_relayed": self._track.is_relayed,
            "offset_ms": self._offset * 1000 // TIME_BASE_HZ,
            "delay_ms": round(self.delay_ms, 1),
            "ahead_ms": round(picture_ms - self.delay_ms, 1),
        }

    def run(self, sound: Ring[Packet], *, pulse: Pulse | None = None) -> None:
        """Relay or transcode until the end; it never waits for pictures.

        `pulse` is told when there is work.

        Raises:
            RingClosed: another thread has taken over.
        """
        self._owner = threading.get_ident()
        track = self._track
        try:
            while True:
                packet = sound.take()
                if pulse is not None:
                    pulse.begin()
                self._take(track, packet)
                if pulse is not None:
                    pulse.end()
        except RingClosed:
            self._send(track.flush())

    def follow(self, pictures: PictureLine) -> None:
        """Let silence fill the time where sound stays behind `pictures`.

        From the thread that shows them, after each; what is missing comes in small pieces.
        """
        if pictures.last_pts < 0:
            return
        with self._lock:
            self._shift = pictures.shift
            self._pass_on(self._line.follow(pictures.last_pts), "silent_packets")

    def _take(self, track: AudioTrack, packet: Packet) -> None:
        if track.source_codec == "opus":
            self._pass_on_source(packet)
        errors = track.errors
        packets = track.process(packet)
        if track.errors > errors:
            self._telemetry.count("audio_errors", track.errors - errors)
        self._send(packets)
        self._note_delay(packet)

    def _send(self, packets: list[Packet]) -> None:
        with self._lock:
            self._check_turn()
            for packet in packets:
                moved = replace(packet, pts=packet.pts + self._shift, dts=packet.dts + self._shift)
                placed = self._line.place(moved)
                if not placed:
                    self._telemetry.count("audio_behind_silence")
                self._pass_on(placed[:-1], "filled_audio_packets")
                self._pass_on(placed[-1:])

    def _pass_on_source(self, packet: Packet) -> None:
        """Let viewers by WebRTC have the source's own Opus, with nothing in between."""
        with self._lock:
            self._check_turn()
            moved_by = self._shift + self._offset
        self._fanout.relay(replace(packet, pts=packet.pts + moved_by, dts=packet.dts + moved_by))

    def _pass_on(self, packets: list[Packet], counter: str = "") -> None:
        for packet in packets:
            if counter:
                self._telemetry.count(counter)
            if packet.dts + self._offset >= 0:
                moved = replace(
                    packet, pts=packet.pts + self._offset, dts=packet.dts + self._offset
                )
                self._fanout.send(moved)

    def _check_turn(self) -> None:
        if self._owner != threading.get_ident():
            raise RingClosed

    def _note_delay(self, packet: Packet) -> None:
        took_ms = (self._clock.now_ns() - packet.arrival_ns) / NS_PER_MS
        self.delay_ms += (took_ms - self.delay_ms) * _SMOOTHING
