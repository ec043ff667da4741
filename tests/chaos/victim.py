"""livefuse's own command line with seams for faults inside it: `victim.py SOCKET run --from ...`.

Before `main` runs, the places where faults may strike are wrapped; what is wrapped asks `Faults`
each time. Commands come as JSON lines over a unix socket, one connection each:

    {"do": "arm", "place": "step:detect", "action": "hang", "seconds": 2.0}
    {"do": "arm", "place": "thread:pipeline", "action": "raise", "times": 1}
    {"do": "burn", "seconds": 3.0}   {"do": "eat", "mb": 200, "seconds": 3.0}
    {"do": "threads"}   {"do": "places"}   {"do": "hits"}

Places: `step:NAME` (inside a step), `thread:NAME` (after a step's work, outside of it), `decode`,
`encode`, `audio`. Actions: hang, raise, raise_foreign, garbage (decode only).
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import av.error
import numpy as np


class ChaosError(RuntimeError):
    """What an armed place raises."""


@dataclass(slots=True)
class Armed:
    """A fault that waits at a place: so often, or until then."""

    action: str
    times: int
    until_s: float


class Faults:
    """What is armed where. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[str, Armed] = {}
        self.hits: Counter[str] = Counter()
        self.places: set[str] = set()

    def arm(self, place: str, action: str, times: int, seconds: float) -> None:
        """Let `place` fail `times` times, or hang once until `seconds` have passed."""
        with self._lock:
            self._armed[place] = Armed(action, times, time.monotonic() + seconds)

    def take(self, place: str) -> Armed | None:
        """Return what strikes at `place` now."""
        if not self._armed:
            return None
        with self._lock:
            armed = self._armed.get(place)
            if armed is None:
                return None
            armed.times -= 1
            if armed.times <= 0:
                del self._armed[place]
            self.hits[f"{place} {armed.action}"] += 1
        return armed

    def strike(self, place: str) -> None:
        """Hang or raise if that is armed here."""
        armed = self.take(place)
        if armed is None:
            return
        if armed.action == "hang":
            time.sleep(max(armed.until_s - time.monotonic(), 0))
        elif armed.action == "raise":
            raise ChaosError(f"chaos at {place}")
        elif armed.action == "raise_foreign":
            raise av.error.InvalidDataError(1094995529, "chaos", "")


FAULTS = Faults()


def wrap(owner: Any, method: str, place: str) -> None:
    """Let `owner.method` strike at `place` before it does its work."""
    before = getattr(owner, method)
    FAULTS.places.add(place)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        FAULTS.strike(place)
        return before(*arguments, **options)

    setattr(owner, method, wrapped)


class StruckDecoder:
    """A decoder that may raise, hang, or answer with noise; all else is the real one's."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def decode(self, packet: Any = None) -> list[Any]:
        """Decode, or do what is armed."""
        armed = FAULTS.take("decode")
        if armed is None:
            return list(self._decoder.decode(packet))
        if armed.action == "hang":
            time.sleep(max(armed.until_s - time.monotonic(), 0))
        elif armed.action == "raise":
            raise ChaosError("chaos in the decoder")
        elif armed.action == "raise_foreign":
            self._decoder.decode(packet)
            raise av.error.InvalidDataError(1094995529, "chaos", "")
        frames = list(self._decoder.decode(packet))
        return [_make_noise(f) for f in frames] if armed.action == "garbage" else frames


def _make_noise(frame: Any) -> Any:
    noise = np.random.default_rng(frame.pts or 0).integers(
        16, 235, (frame.height * 3 // 2, frame.width), dtype=np.uint8
    )
    made = av.VideoFrame.from_ndarray(noise, format="yuv420p")
    made.pts, made.time_base = frame.pts, frame.time_base
    return made


def install() -> None:
    """Wrap every place."""
    from livefuse.clock import SystemClock
    from livefuse.pipeline import steps
    from livefuse.publish.audio import AudioTrack
    from livefuse.publish.encode import VideoEncoder

    for name, create in list(steps.STEPS.items()):
        steps.STEPS[name] = _wrap_step(name, create)
        FAULTS.places.add(f"step:{name}")
    wrap(VideoEncoder, "encode", "encode")
    wrap(AudioTrack, "process", "audio")
    pull: Any = importlib.import_module("livefuse.ingest.pull")
    before = pull.open_source

    def open_source(*arguments: Any, **options: Any) -> Any:
        source = before(*arguments, **options)
        return replace(source, decoder=StruckDecoder(source.decoder))

    pull.open_source = open_source
    decode: Any = importlib.import_module("livefuse.ingest.decode")
    renew = decode.renew_decoder
    decode.renew_decoder = lambda *given: StruckDecoder(renew(*given))
    FAULTS.places |= {"decode", "thread:pipeline", "thread:encode", "thread:decode"}
    _wrap_charge(SystemClock)


def _wrap_step(name: str, create: Any) -> Any:
    def create_struck(context: Any) -> Any:
        step = create(context)
        before = step.run

        def run(state: Any) -> None:
            if not getattr(state, "is_trial", False):
                FAULTS.strike(f"step:{name}")
            before(state)

        step.run = run
        return step

    return create_struck


def _wrap_charge(clock: Any) -> None:
    """What a thread says after each piece of work is the way to end it from outside of a step."""
    threads = {"encode": "thread:encode", "decode": "thread:decode"}

    def charge(_self: Any, work: str) -> None:
        FAULTS.strike(threads.get(work, "thread:pipeline"))

    clock.charge = charge


class Commands:
    """Serves the socket in a daemon thread."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen(4)
        threading.Thread(target=self._run, name="chaos-commands", daemon=True).start()

    def _run(self) -> None:
        while True:
            link, _ = self._socket.accept()
            with link, link.makefile("rw") as file:
                answer = self._obey(json.loads(file.readline()))
                file.write(json.dumps(answer) + "\n")

    def _obey(self, command: dict[str, Any]) -> Any:
        seconds = float(command.get("seconds", 0.0))
        match command["do"]:
            case "arm":
                times = int(command.get("times", 1))
                FAULTS.arm(command["place"], command["action"], times, seconds)
            case "burn":
                _start("chaos-burn", _burn, seconds)
            case "eat":
                _start("chaos-eat", _eat, int(command["mb"]), seconds)
            case "threads":
                return sorted(t.name for t in threading.enumerate() if "chaos" not in t.name)
            case "places":
                return sorted(FAULTS.places)
            case "hits":
                return dict(FAULTS.hits)
            case _:
                return "unknown"
        return "done"


def _start(name: str, run: Any, *arguments: Any) -> None:
    threading.Thread(target=run, args=arguments, name=name, daemon=True).start()


def _burn(seconds: float) -> None:
    """Hold Python's lock as often as it can be had."""
    end_s = time.monotonic() + seconds
    value = 1
    while time.monotonic() < end_s:
        for _ in range(1000):
            value = value * 1103515245 + 12345 & 0x7FFFFFFF


def _eat(mb: int, seconds: float) -> None:
    eaten = [b"\xa5" * (1 << 20) for _ in range(mb)]
    time.sleep(seconds)
    eaten.clear()


def note_end(path: Path) -> None:
    """Write down which threads are left when livefuse leaves."""
    import livefuse.__main__ as entry

    before = entry._leave

    def leave(code: int) -> None:
        left = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
        path.write_text(json.dumps([name for name in left if "chaos" not in name]))
        before(code)

    entry._leave = leave


def main() -> None:
    """Install the seams, then be livefuse."""
    path = sys.argv[1]
    sys.argv = ["livefuse", *sys.argv[2:]]
    install()
    Commands(path)
    note_end(Path(path).with_suffix(".end"))
    from livefuse.__main__ import main as run_livefuse

    run_livefuse()


if __name__ == "__main__":
    main()
