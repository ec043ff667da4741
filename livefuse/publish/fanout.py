"""One stream of packets to all outputs of a job; none of them can harm another."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.clock import Clock, SystemClock
from livefuse.config import PublishConfig
from livefuse.errors import JobError, JobNotFoundError
from livefuse.publish import create_output
from livefuse.publish.delay import DelayLine
from livefuse.publish.flv import LiveStream, StreamFormat
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.publish.snapshot import Snapshot
from livefuse.publish.start import wait_for_start
from livefuse.publish.virtualcam import VirtualCameraOutput
from livefuse.publish.whep import WhepOutput
from livefuse.redact import redact_text, redact_url
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.frame import Frame
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.publish.base import FrameOutput, Output, OutputStatus
    from livefuse.publish.recording_signer import RecordingSigner

_FORMATS: Final[tuple[StreamFormat, ...]] = ("flv", "ts")
_CLOSE_S: Final = 5.0
_prefix = ""


def name_outputs(prefix: str) -> None:
    """Let the ids of outputs in this process begin with `prefix`, before any are made.

    A job that goes on in another process has others there: who knows the old ones does not take
    away what happens to bear the same number now.
    """
    global _prefix  # noqa: PLW0603 - said once, at the start of a worker
    _prefix = prefix


@dataclass(slots=True, eq=False)
class _Target:
    """One of the user's outputs: it takes either packets or pictures."""

    id: str
    url: str
    output: Output | FrameOutput
    packets: Output | None = None
    frames: FrameOutput | None = None
    has_failed: bool = False

    def status(self) -> OutputStatus:
        return msgspec.structs.replace(self.output.status(), id=self.id)


class FanOut:
    """The outputs of a job, and the streams that players can join. Safe from any thread.

    Args:
        create: returns the output for a URL, checked, not opened.
        live: streams by kind, `flv` and `ts`.
        keyframes: where wishes for a keyframe are joined.
        config: which of the remote outputs must be reached at the start, and the delay of all.
        whep: the stream that browsers can join, where there is one.
    """

    def __init__(
        self,
        create: Callable[[str], Output | FrameOutput],
        live: dict[str, LiveStream],
        keyframes: KeyframeRequests,
        config: PublishConfig | None = None,
        whep: WhepOutput | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.live = live
        self.whep = whep
        self._failed_streams: set[LiveStream | WhepOutput] = set()
        self.snapshot = Snapshot()
        self._joined: tuple[LiveStream | WhepOutput, ...] = (*live.values(), *filter(None, [whep]))
        self._create = create
        self._keyframes = keyframes
        self._config = config or PublishConfig()
        self._clock = clock or SystemClock()
        self._delay: DelayLine | None = None
        # Replaced, never changed: who sends reads it without a lock.
        self._targets: tuple[_Target, ...] = ()
        self._closing: list[threading.Thread] = []
        self._streams: StreamsInfo | None = None
        self._count = 0
        self._is_closed = False
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
        signer: RecordingSigner | None = None,
    ) -> FanOut:
        """Return the outputs for `targets`, checked, with nothing opened yet.

        `signer` signs recordings when they are closed.

        Raises:
            ConfigError: a target cannot be understood.
            PublishError: a file cannot be written.
        """
        keyframes = KeyframeRequests(clock, force_keyframe)
        request = keyframes.request
        # Nobody can watch what goes as fast as it can, and nothing is gained by a delay.
        formats = () if lossless else _FORMATS
        publish = config.publish
        if lossless:
            publish = msgspec.structs.replace(publish, delay_ms=0)
        live = {str(kind): LiveStream(kind, config.http, request, clock) for kind in formats}

        def create(url: str) -> Output | FrameOutput:
            return create_output(url, config, clock, request, lossless=lossless, signer=signer)

        whep = None
        if not lossless:
            records = config.mark.webrtc_sei
            whep = WhepOutput(config.webrtc, clock, request, has_records=records)
        fanout = cls(create, live, keyframes, publish, whep, clock)
        for url in targets:
            fanout.add(url)
        return fanout

    @property
    def delay_ms(self) -> int:
        """How long after its arrival everything leaves; 0: at once."""
        return self._config.delay_ms

    def add(self, url: str) -> OutputStatus:
        """Add an output, at any time; return its state. It starts with header and keyframe.

        Whether a remote server takes the stream is told by its status, not here.

        Raises:
            ConfigError: the URL cannot be understood.
            PublishError: the file cannot be written.
            JobError: the job is over, or sends there already.
        """
        output = self._create(url)
        with self._lock:
            if self._is_closed:
                raise JobError("the job is over: it takes no more outputs")
            if any(target.url == url for target in self._targets):
                raise JobError(
                    f"the job sends to {redact_url(url)} already", hint="remove that output first"
                )
            self._count += 1
            target = _Target(f"{_prefix}{self._count}", url, output)
            if isinstance(output, VirtualCameraOutput):
                target.frames = output
            else:
                target.packets = output  # type: ignore[assignment] # all others take packets
            if self._streams is not None and target.packets is not None:
                target.packets.open(self._streams)
            self._targets += (target,)
        self._keyframes.request()
        return target.status()

    def remove(self, which: str, timeout_s: float = _CLOSE_S) -> None:
        """Take away the output of that id or URL; it is closed behind the caller's back.

        Raises:
            JobNotFoundError: there is no such output.
        """
        with self._lock:
            found = next((t for t in self._targets if which in (t.id, t.url)), None)
            if found is None:
                raise JobNotFoundError(
                    f"the job has no output {redact_url(which)}",
                    hint=f"its outputs are {', '.join(t.id for t in self._targets) or 'none'}",
                )
            self._targets = tuple(target for target in self._targets if target is not found)
            self._closing = [thread for thread in self._closing if thread.is_alive()]
            self._closing.append(_start_closing(found.output, timeout_s))

    def open(self, streams: StreamsInfo) -> None:
        """Open all outputs, then wait until as many as `publish.start` says have been reached.

        Raises:
            PublishError: fewer can be reached. Later losses are mended, not raised.
        """
        with self._lock:
            self._streams = streams
            if self._config.delay_ms:
                self._delay = DelayLine(self._config.delay_ms, self._clock, self._deliver)
            targets = self._targets
            for output in (*self._list_packet_outputs(), *self._joined):
                output.open(streams)
        wait_for_start([target.output for target in targets], self._config.start, self._clock)

    def send(self, packet: Packet) -> None:
        """Hand `packet` to every output, now or after `publish.delay_ms`. Any thread."""
        if self._delay is not None:
            self._delay.put(packet)
        else:
            self._deliver(packet)

    def _deliver(self, packet: Packet) -> None:
        if packet.kind == "video" and packet.is_keyframe:
            # Before it is sent: whoever asks from now on may have missed it.
            self._keyframes.note_keyframe()
        for target in self._targets:
            if target.packets is not None:
                try:
                    target.packets.send(packet)
                except Exception as error:  # noqa: BLE001 - one output must not take the others along
                    self._report(target, error)
        for stream in self._joined:
            try:
                stream.send(packet)
            except Exception as error:  # noqa: BLE001 - as above
                self._report_player(stream, error)
        self._keyframes.serve()

    def relay(self, packet: Packet) -> None:
        """Hand Opus as it came to whoever takes that, beside the AAC for all; the audio thread.

        With a delay for all it is left to what is made of the delayed AAC.
        """
        if self.whep is not None and self._delay is None:
            self.whep.relay(packet)

    def show(self, frame: Frame) -> None:
        """Hand the picture to every output that takes pictures, from the encode thread."""
        self.snapshot.show(frame)
        for target in self._targets:
            if target.frames is not None:
                frame.fill_planes()
                try:
                    target.frames.show(frame)
                except Exception as error:  # noqa: BLE001 - as above
                    self._report(target, error)

    def close(self, timeout_s: float) -> None:
        """Close all at the same time, each within `timeout_s`."""
        if self._delay is not None:
            self._delay.close()
        with self._lock:
            self._is_closed = True
            outputs = (*(target.output for target in self._targets), *self._joined)
            threads = [_start_closing(output, timeout_s) for output in outputs] + self._closing
        for thread in threads:
            thread.join(timeout_s + 2.0)

    def statuses(self) -> list[OutputStatus]:
        """Return a snapshot of each target, in order, then of the streams that are watched."""
        watched = [stream.status() for stream in self._joined]
        own = [target.status() for target in self._targets]
        return own + [status for status in watched if status.viewers]

    def _list_packet_outputs(self) -> list[Output]:
        return [target.packets for target in self._targets if target.packets is not None]

    def _report_player(self, stream: LiveStream | WhepOutput, error: Exception) -> None:
        """Log the first failure of a stream for players."""
        if stream in self._failed_streams:
            return
        self._failed_streams.add(stream)
        kind = stream.status().kind
        self._log.error("players get no stream", kind=kind, cause=redact_text(repr(error)))

    def _report(self, target: _Target, error: Exception) -> None:
        """Log the first failure of an output; the rest is in its status."""
        if target.has_failed:
            return
        target.has_failed = True
        status = target.output.status()
        cause = redact_text(repr(error), (target.url,))
        self._log.error("output failed", kind=status.kind, url=status.url, cause=cause)


def _start_closing(output: Output | FrameOutput, timeout_s: float) -> threading.Thread:
    close = partial(output.close, timeout_s)
    thread = threading.Thread(target=close, name="livefuse-close", daemon=True)
    thread.start()
    return thread
