"""Kills, waits, compares. What is done is one seed's; when, is the machine's too."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil

from tests.daemons import RunningDaemon, list_family
from tests.kill.client import Client
from tests.kill.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ORPHANS_S = 2.0
_SETTLED_S = 90.0
_LEAST_ANSWERS = 2


@dataclass(slots=True)
class Outcome:
    """What came of all rounds."""

    rounds: int = 0
    daemons: int = 0
    workers: int = 0
    answered: int = 0
    unanswered: int = 0
    back_s: list[float] = field(default_factory=list)
    """From the end of a worker to the next picture of its job, a spare worker being there."""
    cold_s: list[float] = field(default_factory=list)
    """The same where there may be none: several were lost in a row."""
    again_s: list[float] = field(default_factory=list)
    """From the end of a daemon to all its jobs running, its start included."""

    def describe(self) -> str:
        """Return one line."""
        return (
            f"{self.rounds} rounds, {self.daemons} daemons and {self.workers} workers killed; "
            f"{self.answered} answers, all kept; {self.unanswered} requests broke off; "
            f"back after {_describe(self.back_s)}; perhaps without a spare worker after "
            f"{_describe(self.cold_s)}; daemon again after {_describe(self.again_s)}"
        )


def _describe(seconds: list[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return f"{ordered[len(ordered) // 2]:.2f} s (median), {ordered[-1]:.2f} s at most"


def play(
    folder: Path, rounds: int, seed: int, tell: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Play so many rounds; AssertionError at the first thing that is lost."""
    dice = random.Random(seed)
    daemon, ledger, outcome = RunningDaemon(folder).start(), Ledger(), Outcome()
    client = Client(daemon, ledger, random.Random(dice.random()))
    try:
        for number in range(rounds):
            _play_round(daemon, ledger, client, dice, outcome)
            tell(f"round {number + 1}: {outcome.describe()}")
        assert daemon.stop() == 0, daemon.read_log()
    finally:
        client.close()
        daemon.stop()
    return outcome


def _play_round(
    daemon: RunningDaemon, ledger: Ledger, client: Client, dice: random.Random, outcome: Outcome
) -> None:
    answered = ledger.answered
    client.work()
    time.sleep(dice.uniform(0.5, 3.0))
    _wait_for_answers(ledger, answered + _LEAST_ANSWERS)  # else the round would show nothing
    if dice.random() < 0.5:
        _kill_worker(daemon, dice, outcome)
    else:
        _kill_daemon(daemon, outcome)
    client.rest()
    jobs = _settle(daemon)
    wrong = ledger.compare(jobs)
    assert not wrong, (wrong, daemon.read_log())
    ledger.settle(jobs)
    outcome.rounds += 1
    outcome.answered, outcome.unanswered = ledger.answered, ledger.unanswered


def _wait_for_answers(ledger: Ledger, count: int) -> None:
    deadline = time.monotonic() + _SETTLED_S
    while ledger.answered < count:
        assert time.monotonic() < deadline, f"{ledger.answered} answers, not {count}"
        time.sleep(0.01)


def _kill_worker(daemon: RunningDaemon, dice: random.Random, outcome: Outcome) -> None:
    """End the worker of a job that runs, or a spare one."""
    running = [name for name, view in _list(daemon).items() if view["state"] == "running"]
    if not running:
        os.kill(dice.choice(daemon.list_workers()), signal.SIGKILL)
        outcome.workers += 1
        return
    job = dice.choice(running)
    has_spare = dice.random() < 0.7
    if has_spare:
        daemon.wait_spare()
    pid = daemon.find_worker(job)
    if pid not in daemon.list_workers():
        return  # the client has deleted the job meanwhile
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    outcome.workers += 1
    if (elapsed_s := _wait_for_picture(daemon, job, began)) is not None:
        (outcome.back_s if has_spare else outcome.cold_s).append(elapsed_s)


def _wait_for_picture(daemon: RunningDaemon, job: str, began: float) -> float | None:
    """Return how long after `began` the job showed a picture of a new life; None: it is deleted."""
    while (elapsed_s := time.monotonic() - began) < _SETTLED_S:
        answer = daemon.ask("GET", f"/v1/jobs/{job}")
        if answer.status == 404:
            return None
        figures = answer.value["statistics"]
        if figures and figures["frames_out"] and figures["seconds"] < elapsed_s:
            return elapsed_s
        time.sleep(0.03)
    raise AssertionError(f"{job} did not come back: {daemon.read_log()}")


def _kill_daemon(daemon: RunningDaemon, outcome: Outcome) -> None:
    family = list_family(daemon.pid)
    began = time.monotonic()
    daemon.kill()
    while alive := [process for process in family if _lives(process)]:
        assert time.monotonic() < began + ORPHANS_S, f"orphans: {alive}"
        time.sleep(0.02)
    outcome.daemons += 1
    daemon.start(90.0)
    _settle(daemon)
    outcome.again_s.append(time.monotonic() - began)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _settle(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    """Wait until no job is on its way anywhere; return all by id."""
    deadline = time.monotonic() + _SETTLED_S
    while True:
        jobs = _list(daemon)
        moving = [n for n, view in jobs.items() if view["state"] in ("loading", "stopping")]
        if not moving:
            return jobs
        assert time.monotonic() < deadline, (moving, daemon.read_log())
        time.sleep(0.1)


def _list(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    answer = daemon.ask("GET", "/v1/jobs")
    assert answer.status == 200, answer.data
    return {view["id"]: view for view in answer.value["jobs"]}
