"""The person before the camera is asked for poses, and looked at: `faces enroll --live`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S
from livefuse.control.console import say
from livefuse.errors import IngestError, IngestTimeoutError, LivefuseError, RefusedError
from livefuse.frame import FramePool
from livefuse.ingest import create_ingest, get_kind
from livefuse.redact import redact_text
from livefuse.ring import Ring, RingClosed
from livefuse.safety.live import LiveMatch, choose_poses
from livefuse.workers.live_reader import LiveReader

if TYPE_CHECKING:
    from random import Random

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.ingest.base import Ingest, InputState, MediaInfo
    from livefuse.packet import Packet
    from livefuse.ring import RingMode
    from livefuse.safety.evidence import Evidence
    from livefuse.safety.live import State
    from livefuse.workers.face_desk import FaceDesk

_PATIENCE_NS: Final = 20 * NS_PER_S
_JOIN_S: Final = 5.0
_FRAMES: Final = 4  # one in the ring, one looked at, one being filled, one to spare


class LiveSink:
    """Keeps the newest picture of an ingest; of a file each in its turn. See `IngestSink`."""

    def __init__(self, *, is_live: bool) -> None:
        self.error: LivefuseError | None = None
        self._pool: FramePool | None = None
        mode: RingMode = "live" if is_live else "every_frame"
        self.ring: Ring[Frame] = Ring(1, mode=mode, on_drop=self.release)

    def fill(self, ingest: Ingest) -> None:
        """Run `ingest` until it ends or enough was seen; in a thread of its own."""
        try:
            ingest.run(self)
        except RingClosed:
            pass  # enough was seen
        except LivefuseError as error:
            self.error = error
        finally:
            self.ring.close()

    def release(self, frame: Frame) -> None:
        """Give a frame back."""
        if self._pool is not None:
            self._pool.release(frame)

    def on_media(self, media: MediaInfo) -> None:
        """Make place for pictures."""
        self._pool = FramePool(media.width, media.height, _FRAMES)

    def acquire_frame(self) -> Frame | None:
        """Lend a frame."""
        return self._pool.acquire() if self._pool is not None else None

    def on_frame(self, frame: Frame) -> None:
        """Take it in."""
        self.ring.put(frame)

    def on_audio(self, packet: Packet) -> None:
        """Nobody listens."""

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Note why nothing comes."""
        self.error = None if state == "live" else error or self.error

    def count(self, event: str, amount: int = 1) -> None:
        """Count nothing."""

    def begin_work(self) -> None:
        """Nobody watches."""

    def end_work(self) -> None:
        """Nobody watches."""


def run_live_match(
    desk: FaceDesk,
    source: str,
    looks: NDArray[np.float32],
    *,
    rng: Random,
    limit_s: float = 60.0,
    mirrored: bool = False,
) -> Evidence:
    """Ask whoever is in the pictures of `source` for poses; return the evidence that they match.

    What is asked for is printed. `looks` (n, d) is the face they are to match. Blocks.

    Raises:
        RefusedError: they do not match, or the poses were not done.
        IngestError, ModelError, ConfigError: there are no pictures, or no networks.
    """
    is_live = get_kind(source) not in ("file", "demo", "test")
    config = desk.config.ingest
    ingest = create_ingest(source, config, desk.clock, paced=is_live, every_frame=not is_live)
    sink = LiveSink(is_live=is_live)
    reader = LiveReader(desk.config, desk.sessions)
    match = LiveMatch(
        choose_poses(rng),
        looks,
        same=reader.same,
        keep=reader.keep,
        limit_s=limit_s,
        mirrored=mirrored,
    )

    thread = threading.Thread(target=sink.fill, args=(ingest,), name="livefuse-live", daemon=True)
    thread.start()
    try:
        state = _watch(sink, reader, match, source)
    finally:
        ingest.stop()
        for frame in sink.ring.close(discard=True):
            sink.release(frame)
        thread.join(_JOIN_S)
        reader.close()
    if state is None or state.phase != "passed":
        raise _explain(state)
    say(state.sentence)
    return match.evidence


def _watch(sink: LiveSink, reader: LiveReader, match: LiveMatch, source: str) -> State | None:
    """Look at pictures until the match is over or none comes any more; say what to do."""
    state: State | None = None
    said = ""
    while True:
        try:
            frame = sink.ring.take_within(_PATIENCE_NS)
        except RingClosed:
            if state is None and sink.error is not None:
                raise sink.error from None
            return state
        if frame is None:
            raise sink.error or IngestTimeoutError(
                f"{redact_text(source, (source,))} shows no picture", hint="look at the camera"
            )
        try:
            state = match.note(reader.read(frame))
        finally:
            sink.release(frame)
        if state.phase != "asking":
            return state
        if state.sentence != said:
            said = state.sentence
            say(said)


def _explain(state: State | None) -> LivefuseError:
    """Return why the match was not passed."""
    if state is None:
        return IngestError("there was no picture to look at", hint="look at the camera")
    if state.phase == "failed":
        reason = state.sentence
    else:
        reason = f"the pictures ended when {state.done} of {state.poses} poses were done"
    return RefusedError(
        f"the live match failed: {reason}",
        hint="try again: do what is asked until the next line comes; a printed picture does not do",
    )
