"""One run from start to end: peers, victim, the plan, and who watches meanwhile."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av

from tests.chaos.control import Victim, is_good
from tests.chaos.faults import Faults
from tests.chaos.peers import Camera, Server, make_films, read_now_s
from tests.measure import LOW_LATENCY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.plan import Fault

KEY = "far-end"
_SAMPLE_S = 0.5
_START_S = 40.0


@dataclass(slots=True)
class Done:
    """A fault as it was done; times in s after the epoch. `recovered_s` is after its end."""

    fault: Fault
    began_s: float
    ended_s: float
    note: str = ""
    recovered_s: float | None = None


@dataclass(slots=True)
class Sample:
    """What livefuse said of itself at `at_s`; `status` is None when it did not answer."""

    at_s: float
    is_good: bool
    status: dict[str, Any] | None


@dataclass(slots=True)
class Outcome:
    """What a run left. `files` are the recordings: `file`, `steady` and `harmed` pieces."""

    epoch_ns: int
    began_s: float = 0.0
    ended_s: float = 0.0
    done: list[Done] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    arrivals: list[tuple[float, float]] = field(default_factory=list)
    threads: tuple[list[str], list[str]] = ([], [])
    end: dict[str, Any] = field(default_factory=dict)
    files: dict[str, list[Path]] = field(default_factory=dict)
    clip: Path | None = None
    log_path: Path | None = None
    hits: dict[str, int] = field(default_factory=dict)
    died: str = ""


class Observer:
    """A viewer of the steady server: notes when each picture came (s after the epoch), its PTS."""

    def __init__(self, url: str, epoch_ns: int, arrivals: list[tuple[float, float]]) -> None:
        self._url, self._epoch_ns, self._arrivals = url, epoch_ns, arrivals
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="chaos-observer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with av.open(self._url, options=LOW_LATENCY, timeout=(10.0, 30.0)) as container:
                stream = container.streams.video[0]
                for packet in container.demux(stream):
                    if self._is_over:
                        return
                    if packet.pts is not None and stream.time_base is not None:
                        at_s = read_now_s(self._epoch_ns)
                        self._arrivals.append((at_s, float(packet.pts * stream.time_base)))
        except (av.error.FFmpegError, OSError):
            return  # the stream has ended; the gap shows it when that was too early

    def close(self) -> None:
        """Look no more."""
        self._is_over = True
        self._thread.join(2.0)


class Monitor:
    """Asks livefuse for its status twice a second, in a thread."""

    def __init__(self, victim: Victim, outcome: Outcome) -> None:
        self._victim, self._outcome = victim, outcome
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaos-monitor", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(_SAMPLE_S):
            status = self._victim.read_status()
            at_s = read_now_s(self._outcome.epoch_ns)
            self._outcome.samples.append(Sample(at_s, is_good(status), status))
            self._victim.list_children()

    def close(self) -> None:
        """Ask no more."""
        self._is_over.set()
        self._thread.join(3.0)


def run_chaos(
    folder: Path,
    plan: list[Fault],
    seconds: float,
    *,
    variant: str = "blur",
    say: Callable[[str], None] = print,
) -> Outcome:
    """Run livefuse for `seconds` between real servers while `plan` is done to them all."""
    films = make_films(folder)
    outcome = Outcome(time.monotonic_ns(), clip=films["clip"])
    victim = Victim(folder)
    outcome.log_path = victim.log_path
    file = folder / "record.mkv"
    with Camera(films, outcome.epoch_ns) as camera, Server() as harmed, Server() as steady:
        try:
            targets = [steady.url(KEY), harmed.url(KEY), str(file)]
            victim.start(camera.url, targets, variant, [f"safety.folder={folder / 'private'}"])
            wait_good(victim)
            faults = Faults(camera, harmed, victim)
            _run_watched(victim, faults, steady, outcome, (plan, seconds, say))
        finally:
            victim.close()
        time.sleep(0.5)  # the servers close their files
        outcome.files = {
            "file": [file],
            "steady": _keep(steady, folder / "steady"),
            "harmed": _keep(harmed, folder / "harmed"),
        }
    return outcome


def _run_watched(
    victim: Victim,
    faults: Faults,
    steady: Server,
    outcome: Outcome,
    task: tuple[list[Fault], float, Callable[[str], None]],
) -> None:
    plan, seconds, say = task
    observer = Observer(steady.url(KEY), outcome.epoch_ns, outcome.arrivals)
    monitor = Monitor(victim, outcome)
    try:
        outcome.began_s = read_now_s(outcome.epoch_ns)
        _do_all(victim, faults, plan, outcome, say)
        while (left_s := outcome.began_s + seconds - read_now_s(outcome.epoch_ns)) > 0:
            if not victim.is_running():
                break
            time.sleep(min(left_s, 0.2))
        if victim.is_running():
            outcome.threads = (outcome.threads[0], victim.command("threads"))
            outcome.hits = victim.command("hits")
        else:
            outcome.died = outcome.died or "livefuse ended by itself"
        outcome.ended_s = read_now_s(outcome.epoch_ns)
    finally:
        monitor.close()
        outcome.end = victim.end()
        observer.close()


def wait_good(victim: Victim) -> None:
    """Wait until all is well for the first time.

    Raises:
        RuntimeError: it is not within 40 s; with the end of livefuse's log.
    """
    deadline_s = time.monotonic() + _START_S
    while not is_good(victim.read_status()):
        if time.monotonic() > deadline_s or not victim.is_running():
            log = victim.log_path.read_text("utf-8", "replace")[-2000:]
            raise RuntimeError(f"livefuse did not come up:\n{log}")
        time.sleep(0.2)


def _do_all(
    victim: Victim,
    faults: Faults,
    plan: list[Fault],
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    for fault in plan:
        _sleep_until(outcome, outcome.began_s + fault.at_s)
        if not victim.is_running():
            outcome.died = f"livefuse ended by itself before {fault.kind} at {fault.at_s:.1f} s"
            return
        if not outcome.threads[0]:
            outcome.threads = (victim.command("threads"), [])
        done = Done(fault, read_now_s(outcome.epoch_ns), 0.0)
        outcome.done.append(done)
        say(_describe(done, outcome))
        try:
            end = faults.begin(fault)
            _sleep_until(outcome, outcome.began_s + fault.end_s)
            end()
        except OSError as error:
            done.note = f"not done: {error}"
            say(f"          {done.note}")
        done.ended_s = read_now_s(outcome.epoch_ns)


def _describe(done: Done, outcome: Outcome) -> str:
    fault = done.fault
    details = " ".join(f"{key}={value}" for key, value in fault.details.items())
    at_s = done.began_s - outcome.began_s
    return f"{at_s:8.2f} s  {fault.kind:<18} {fault.lasts_s:5.2f} s  {details}"


def _sleep_until(outcome: Outcome, at_s: float) -> None:
    time.sleep(max(at_s - read_now_s(outcome.epoch_ns), 0.0))


def _keep(server: Server, folder: Path) -> list[Path]:
    """Move the pieces out of the server's folder, which goes away with it."""
    folder.mkdir(exist_ok=True)
    return [Path(shutil.move(piece, folder / piece.name)) for piece in server.list_pieces(KEY)]
