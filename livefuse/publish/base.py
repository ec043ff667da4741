"""What every way out has in common: it never blocks the one who feeds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from livefuse.frame import Frame
    from livefuse.packet import Packet, StreamsInfo

FILE_SUFFIXES: Final = (".mp4", ".mkv", ".flv", ".ts")
OutputState = Literal["connecting", "live", "stalled", "refused", "closed"]


class OutputStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One output as a person may see it: `url` is redacted, `watch` is the text to paste.

    `state_s` says for how many seconds it has been in its state; `error` is the sentence of a state
    that is not as it should be. `id` names it within its job.
    """

    kind: str
    url: str
    state: OutputState
    connected: bool
    packets: int = 0
    dropped: int = 0
    reconnects: int = 0
    viewers: int = 0
    error: str = ""
    watch: str = ""
    state_s: float = 0.0
    id: str = ""


class Output(Protocol):
    """Takes the packets of the one encode. All methods return at once."""

    def open(self, streams: StreamsInfo) -> None:
        """Take the description of the streams; before the first packet, from the encode thread."""
        ...

    def send(self, packet: Packet) -> None:
        """Take a packet, from the encode or audio thread; what does not fit is dropped, counted."""
        ...

    def close(self, timeout_s: float) -> None:
        """Finish what can be finished within `timeout_s`, then let go of everything."""
        ...

    def status(self) -> OutputStatus:
        """Return a snapshot, from any thread."""
        ...


class FrameOutput(Protocol):
    """Takes pictures before they are encoded (a virtual camera)."""

    def show(self, frame: Frame) -> None:
        """Copy what is needed of `frame` and return; from the encode thread."""
        ...

    def close(self, timeout_s: float) -> None:
        """Let go of the device."""
        ...

    def status(self) -> OutputStatus:
        """Return a snapshot, from any thread."""
        ...
