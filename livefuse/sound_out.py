"""Sound to all outputs, in step by PTS; silence while the input is away."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S, Clock
from livefuse.frame import TIME_BASE_HZ
from livefuse.publish.silence import create_silence
from livefuse.ring import Ring, RingClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.packet import Packet
    from livefuse.publish.audio import AudioTrack
    from livefuse.publish.fanout import FanOut
    from livefuse.telemetry import Telemetry
    from livefuse.watchdog import Pulse

_LOOK_EVERY_NS: Final = 100 * NS_PER_MS


class SoundOut:
    """One job's sound. `run` has a thread of its own; `renew` gives its work to another."""

    def __init__(
        self, track: AudioTrack, fanout: FanOut, telemetry: Telemetry, config: Config
    ) -> None:
        self._track = track
        self._fanout = fanout
        self._telemetry = telemetry
        self._clock: Clock = telemetry.clock
        self._offset = config.audio.offset_ms * TIME_BASE_HZ // 1000
        self._after_ns = config.hold.after_ms * NS_PER_MS
        self._silence = create_silence(track.info)
        self._end_pts: int | None = None  # where the sound that was sent ends
        self._heard_ns = 0
        self._owner: int | None = None  # the thread whose turn it is
        self._lock = threading.Lock()

    def renew(self, track: AudioTrack) -> None:
        """Take another track, for the next thread that calls `run`; the one before is refused."""
        with self._lock:
            self._owner = None
            self._track = track

    def run(
        self,
        sound: Ring[Packet],
        *,
        is_holding: Callable[[], bool] | None,
        pulse: Pulse | None = None,
    ) -> None:
        """Relay or transcode until the end; it never waits for pictures.

        `is_holding` says whether the pictures stand still for want of an input: then silence fills
        the time; None: never. `pulse` is told when there is work.

        Raises:
            RingClosed: another thread has taken over.
        """
        self._owner = threading.get_ident()
        track = self._track
        try:
            while True:
                packet = sound.take() if is_holding is None else sound.take_within(_LOOK_EVERY_NS)
                if packet is not None:
                    if pulse is not None:
                        pulse.begin()
                    self._send(track.process(packet))
                    if pulse is not None:
                        pulse.end()
                elif is_holding is not None and is_holding():
                    self._fill()
        except RingClosed:
            self._send(track.flush())
        finally:
            if track.errors:
                self._telemetry.count("audio_errors", track.errors)

    def _send(self, packets: list[Packet]) -> None:
        with self._lock:
            if self._owner != threading.get_ident():
                raise RingClosed
            self._send_in_turn(packets)

    def _send_in_turn(self, packets: list[Packet]) -> None:
        for packet in packets:
            if self._end_pts is not None and packet.dts < self._end_pts - packet.duration:
                self._telemetry.count("audio_behind_silence")
                continue
            self._heard_ns = self._clock.now_ns()
            self._pass_on(packet)

    def _fill(self) -> None:
        """Send silence for the time since the last sound."""
        if self._end_pts is None or self._silence is None:
            return
        away_ns = self._clock.now_ns() - self._heard_ns
        if away_ns < self._after_ns:
            return
        self._heard_ns += away_ns
        until = self._end_pts + away_ns * TIME_BASE_HZ // NS_PER_S
        while self._end_pts + self._silence.duration <= until:
            self._telemetry.count("silent_packets")
            self._pass_on(replace(self._silence, pts=self._end_pts, dts=self._end_pts))

    def _pass_on(self, packet: Packet) -> None:
        unit = self._silence.duration if self._silence is not None else 0
        self._end_pts = packet.dts + (packet.duration or unit)
        if packet.dts + self._offset >= 0:
            moved = replace(packet, pts=packet.pts + self._offset, dts=packet.dts + self._offset)
            self._fanout.send(moved)
