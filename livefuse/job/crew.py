"""The threads of a job: who works, and who takes the place of one that hangs or has died.

`look` is called by one thread, the job's supervisor, about five times a second and as soon as there
is something to do (`wait`). It asks the watchdog (pure) and does what it says: what is broken is
abandoned at once, counted, told once, and made anew after a moment that grows when it goes on
breaking; too often, and the job fails with a sentence.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import IngestError, JobError, LivefuseError
from livefuse.job.watchdog import Pulse, Restarts, Verdict, Watchdog, get_part
from livefuse.redact import redact_text
from livefuse.ring import RingClosed
from livefuse.telemetry import get_logged_job, get_logger, log_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import WatchdogConfig
    from livefuse.telemetry import Telemetry

_JOIN_S: Final = 2.0
_LOOK_NS: Final = NS_PER_S // 5
_AGAIN_NS: Final = NS_PER_S
_MAX_AGAIN_NS: Final = 30 * NS_PER_S


@dataclass(slots=True, frozen=True)
class Renewal:
    """How one part of a job is made anew: `abandon` at once, `renew` when its time has come."""

    abandon: Callable[[], None]
    renew: Callable[[], None]


class Crew:
    """One job's threads. `spawn`, `look`, `renew`, `join` from the supervisor's thread alone."""

    def __init__(
        self,
        job_id: str,
        config: WatchdogConfig,
        telemetry: Telemetry,
        secrets: tuple[str, ...],
        fail: Callable[[LivefuseError], None],
    ) -> None:
        """`fail` is told, from any thread, what nothing can be done about."""
        self.restarts = Restarts(config.max_restarts_per_min)
        self.renewals: dict[str, Renewal] = {}
        self._job_id = job_id
        self._telemetry = telemetry
        self._clock = telemetry.clock
        self._secrets = secrets
        self._fail = fail
        self._watchdog = Watchdog()
        self._threads: list[tuple[Pulse | None, threading.Thread]] = []
        self._due: dict[str, int] = {}
        self._away_ns = 0
        self._has_news = threading.Event()
        self._log = get_logger("job")

    def spawn(self, name: str, run: Callable[[], None], pulse: Pulse | None = None) -> None:
        """Start a thread. What it dies of is for the watchdog when its part can be made anew."""

        def die(error: LivefuseError) -> None:
            if pulse is not None and get_part(pulse.name) in self.renewals:
                pulse.die(error)
                self.wake()
            else:
                self._fail(error)

        if pulse is not None and pulse.limit_ns is not None:
            # Perhaps it is only slow: from the second time on each new try may take twice as long.
            part, now_ns = get_part(pulse.name), self._clock.now_ns()
            pulse.limit_ns <<= max(self.restarts.count_recent(part, now_ns, "hung") - 1, 0)
        self._threads = [entry for entry in self._threads if entry[1].is_alive()]
        self._threads.append((pulse, start_stage(name, run, die, self._secrets)))
        if pulse is not None:
            self._watchdog.watch([pulse])

    def wait(self, over: threading.Event) -> bool:
        """Wait until it is time to look, at most a fifth of a second; return whether all is `over`.

        Who sets that calls `wake`.
        """
        now_ns = self._clock.now_ns()
        wait_ns = min((due_ns - now_ns for due_ns in self._due.values()), default=_LOOK_NS)
        self._has_news.wait(min(max(wait_ns, 0), _LOOK_NS) / NS_PER_S)
        self._has_news.clear()
        return over.is_set()

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        self._has_news.set()

    def look(self) -> None:
        """See who hangs or has died, and put something new in its place when that is due."""
        now_ns = self._clock.now_ns()
        for verdict in self._watchdog.look(now_ns):
            self._heed(verdict)
        for part in [part for part, due_ns in self._due.items() if now_ns >= due_ns]:
            del self._due[part]
            self._renew(part)

    def find_slow_work(self) -> str:
        """Return what a part of the pipeline has been doing for more than a second, if any does."""
        return self._watchdog.find_slow_work("pipeline", self._clock.now_ns())

    def renew(
        self,
        part: str,
        why: str,
        cause: LivefuseError | None = None,
        worked_ns: int = 0,
        took_ns: int = 0,
    ) -> None:
        """Abandon `part` now and make it anew soon.

        `why` is one word, `cause` tells more; `worked_ns` is how long it had been well before,
        `took_ns` how long it has hung.
        """
        renewal = self.renewals.get(part)
        if renewal is None or part in self._due:
            return
        now_ns = self._clock.now_ns()
        self._watchdog.forget(part)
        renewal.abandon()
        if isinstance(cause, IngestError):
            # A server that is away is dialled for ever: that is no fault of ours.
            self._away_ns = min(2 * self._away_ns or _AGAIN_NS, _MAX_AGAIN_NS)
            self._due[part] = now_ns + self._away_ns
            return
        self._away_ns = 0
        wait_ns = self.restarts.ask(part, why, now_ns, worked_ns, took_ns)
        if wait_ns is None:
            self._fail(self._explain_end(part, why, cause))
            return
        text = redact_text(str(cause or ""), self._secrets)
        self._log.warning("made anew", job=self._job_id, part=part, why=why, cause=text)
        self._due[part] = now_ns + wait_ns

    def wait_for(self, part: str, *, is_patient: Callable[[], bool]) -> None:
        """Wait for the threads of `part`, all together no longer than a moment unless patient."""
        threads = [t for pulse, t in self._threads if pulse and get_part(pulse.name) == part]
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(_JOIN_S / len(threads))
            if not is_patient():
                return

    def join(self, *, is_patient: Callable[[], bool]) -> None:
        """Wait for all threads, decode last. Those that do not end in time are left behind."""
        for pulse, thread in sorted(self._threads, key=lambda entry: "decode" in entry[1].name):
            if pulse is not None and pulse.is_left_behind:
                continue
            while thread.is_alive() and is_patient():
                thread.join(_JOIN_S)  # in turns: a fault elsewhere may leave it waiting for ever
            thread.join(_JOIN_S)
            if thread.is_alive():
                if pulse is not None:
                    pulse.is_left_behind = True
                self._telemetry.count("abandoned_threads")
                self._log.warning("thread abandoned", job=self._job_id, thread=thread.name)

    def _heed(self, verdict: Verdict) -> None:
        part, took_ms = get_part(verdict.name), verdict.age_ns // NS_PER_MS
        if verdict.kind == "slow":
            self._telemetry.count(f"slow_{part}")  # its job's health says it in words
        elif verdict.kind == "hung":
            self._telemetry.count("abandoned_threads")
            error = JobError(f"{verdict.work} did not come back for {took_ms} ms")
            self.renew(part, "hung", error, verdict.worked_ns, verdict.age_ns)
        else:
            self.renew(part, "died", verdict.error, verdict.worked_ns)

    def _renew(self, part: str) -> None:
        """Make `part` anew; when that fails, try again as if it had died."""
        try:
            self.renewals[part].renew()
        except LivefuseError as error:
            self.renew(part, "died", error)
        except Exception as error:  # noqa: BLE001 - whoever looks after the others must not die
            self.renew(part, "died", wrap_error(part, error, self._secrets))

    def _explain_end(self, part: str, why: str, cause: LivefuseError | None) -> LivefuseError:
        reason = f", last: {redact_text(cause.message, self._secrets)}" if cause else ""
        return JobError(
            f"the {part} stage had to be made anew more than {self.restarts.get_most(part)} times "
            f"within a minute ({why}{reason})",
            hint="see the log; log.level = debug says more",
        )


def start_stage(
    name: str,
    run: Callable[[], None],
    fail: Callable[[LivefuseError], None],
    secrets: tuple[str, ...],
) -> threading.Thread:
    """Run `run` in a daemon thread; whatever it dies of is told to `fail` in one sentence."""
    job_id = get_logged_job()

    def guard() -> None:
        try:
            run()
        except RingClosed:
            pass
        except LivefuseError as error:
            fail(error)
        except Exception as error:  # noqa: BLE001 - a stage must not die unseen
            fail(wrap_error(name, error, secrets))
            get_logger("stages").debug("stage failed", stage=name, exc_info=True)

    def guard_named() -> None:
        with log_for(job_id):
            guard()

    thread = threading.Thread(target=guard_named, name=f"livefuse-{name}", daemon=True)
    thread.start()
    return thread


def wrap_error(name: str, error: Exception, secrets: tuple[str, ...]) -> JobError:
    """Return a foreign error of the stage `name` as one of ours, its secrets hidden."""
    text = redact_text(f"{type(error).__name__}: {error}", secrets)
    return JobError(f"the {name} stage failed ({text})", hint="please report this fault")
