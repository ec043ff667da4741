"""One stream of packets to all outputs of a job; none of them can harm another."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.publish import create_output
from livefuse.publish.flv import LiveStream, StreamFormat
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.publish.rtmp import RtmpOutput
from livefuse.publish.virtualcam import VirtualCameraOutput
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.frame import Frame
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.publish.base import FrameOutput, Output, OutputStatus

_FORMATS: Final[tuple[StreamFormat, ...]] = ("flv", "ts")


class FanOut:
    """The outputs of a job, and the streams that players can join. Safe from any thread.

    Args:
        targets: outputs in the order of the user's targets.
        live: streams by kind, `flv` and `ts`.
        keyframes: where wishes for a keyframe are joined.
    """

    def __init__(
        self,
        targets: Sequence[Output | FrameOutput],
        live: dict[str, LiveStream],
        keyframes: KeyframeRequests,
    ) -> None:
        self.live = live
        self._targets = tuple(targets)
        self._frame_outputs: list[FrameOutput] = []
        self._outputs: list[Output] = []
        for target in targets:
            if isinstance(target, VirtualCameraOutput):
                self._frame_outputs.append(target)
            else:
                self._outputs.append(target)  # type: ignore[arg-type] # all others take packets
        self._outputs += live.values()
        self._keyframes = keyframes
        self._reported: set[int] = set()
        self._lock = threading.Lock()
        self._log = get_logger("publish")

    @classmethod
    def create(
        cls,
        targets: tuple[str, ...],
        config: Config,
        clock: Clock,
        force_keyframe: Callable[[], None],
        *,
        lossless: bool,
    ) -> FanOut:
        """Return the outputs for `targets`, checked, with nothing opened yet.

        Raises:
            ConfigError: a target cannot be understood.
            PublishError: a file cannot be written.
        """
        keyframes = KeyframeRequests(clock, force_keyframe)
        request = keyframes.request
        outputs = [create_output(url, config, clock, request, lossless=lossless) for url in targets]
        # Nobody can watch what goes as fast as it can.
        formats = () if lossless else _FORMATS
        live = {str(kind): LiveStream(kind, config.http, request) for kind in formats}
        return cls(outputs, live, keyframes)

    def open(self, streams: StreamsInfo) -> None:
        """Open all outputs, then wait until the remote ones have connected for the first time.

        Raises:
            PublishError: a target cannot be reached. Later losses are mended, not raised.
        """
        for output in self._outputs:
            output.open(streams)
        for output in self._outputs:
            if isinstance(output, RtmpOutput):
                output.wait_connected()

    def send(self, packet: Packet) -> None:
        """Hand `packet` to every output, from the encode or audio thread."""
        if packet.kind == "video" and packet.is_keyframe:
            # Before it is sent: whoever asks from now on may have missed it.
            self._keyframes.note_keyframe()
        for output in self._outputs:
            try:
                output.send(packet)
            except Exception as error:  # noqa: BLE001 - one output must not take the others along
                self._report(output, error)
        self._keyframes.serve()

    def show(self, frame: Frame) -> None:
        """Hand the picture to every output that takes pictures, from the encode thread."""
        if self._frame_outputs:
            frame.fill_planes()
        for output in self._frame_outputs:
            try:
                output.show(frame)
            except Exception as error:  # noqa: BLE001 - as above
                self._report(output, error)

    def close(self, timeout_s: float) -> None:
        """Close all at the same time, each within `timeout_s`."""
        threads = [
            threading.Thread(
                target=target.close, args=(timeout_s,), name="livefuse-close", daemon=True
            )
            for target in (*self._targets, *self.live.values())
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout_s + 2.0)

    def statuses(self) -> list[OutputStatus]:
        """Return a snapshot of each target, in order, then of the streams that are watched."""
        watched = [stream.status() for stream in self.live.values()]
        return [target.status() for target in self._targets] + [s for s in watched if s.viewers]

    def _report(self, output: Output | FrameOutput, error: Exception) -> None:
        """Log the first failure of an output; the rest is in its status."""
        with self._lock:
            if id(output) in self._reported:
                return
            self._reported.add(id(output))
        status = output.status()
        self._log.error(
            "output failed", kind=status.kind, url=status.url, error=type(error).__name__
        )
