"""Who works, since when, and whether that is too long: pulses in, verdicts out. Pure.

Each loop of a job has a pulse and says when it begins and ends a piece of work; waiting for input
is no work. One thread looks at all of them, about five times a second. How often something is made
anew is counted here too, so that a fault which comes back at once ends a job instead of keeping it
busy.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from livefuse.clock import NS_PER_S, Clock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.errors import LivefuseError

Kind = Literal["slow", "hung", "died"]

SLOW_NS: Final = NS_PER_S
"""Work that takes longer is slow: from here on whoever watches sees the picture stand."""
LOADING: Final = "loading"
"""The work of a pipeline that is being made ready: not slow, the job's health tells of it."""
_USUAL_NS: Final = NS_PER_S // 4
_LATE_NS: Final = NS_PER_S // 2
_FIRST_WORK_FACTOR: Final = 10
_MINUTE_NS: Final = 60 * NS_PER_S
_FIRST_WAIT_NS: Final = NS_PER_S // 2
_MAX_WAIT_NS: Final = 8 * NS_PER_S
_WELL_NS: Final = 5 * NS_PER_S
"""Who has worked that long is well again: what breaks next is another fault."""
_QUICK: Final = frozenset({"encode", "audio"})
# They are made anew in a moment, and while they are away nothing goes out: no picture may be missed
# for a second and a half because of a wait.
_QUICK_WAIT_NS: Final = NS_PER_S // 40
_MAX_QUICK_WAIT_NS: Final = NS_PER_S * 2 // 5
QUICK_TRIES: Final = 4
"""That many times as often as others they may be made anew: what cannot be had for a few seconds
ends no job."""


class Work(NamedTuple):
    """What a loop does, and since when (monotonic)."""

    name: str
    since_ns: int


class Verdict(NamedTuple):
    """What was found of the loop `name`.

    `slow`: it works for longer than a second, said once for each piece of work. `hung`: for longer
    than its limit. `died`: it ended by `error`. `worked_ns` is how long it had worked well by then.
    """

    name: str
    kind: Kind
    work: str = ""
    age_ns: int = 0
    error: LivefuseError | None = None
    worked_ns: int = 0


class Pulse:
    """One loop's signs of life: written by its thread, read by the watcher. No lock: references.

    The first piece of work may take ten times as long: buffers, kernels, caches are made then.
    """

    def __init__(self, name: str, clock: Clock, limit_ns: int | None = None) -> None:
        """`limit_ns` bounds one piece of work; None: it may take for ever."""
        self.name = name
        self.limit_ns = limit_ns
        self.work: Work | None = None
        self.error: LivefuseError | None = None
        self.has_worked = False
        self.first_ns: int | None = None  # when its first piece of work was done
        self.last_ns = 0
        self.is_left_behind = False  # its thread hangs and is waited for no more
        self._clock = clock

    def begin(self, name: str = "") -> None:
        """Begin a piece of work, or another part of the same one."""
        before = self.work
        since_ns = before.since_ns if before is not None else self._clock.now_ns()
        self.work = Work(name or self.name, since_ns)

    def end(self) -> None:
        """Wait for the next."""
        if self.work is not None:
            self.work, self.has_worked = None, True
            self.last_ns = self._clock.now_ns()
            if self.first_ns is None:
                self.first_ns = self.last_ns

    @property
    def worked_ns(self) -> int:
        """For how long it has worked, from the first piece of work done to the last."""
        return self.last_ns - self.first_ns if self.first_ns is not None else 0

    def die(self, error: LivefuseError) -> None:
        """Tell what the loop has died of."""
        self.error = error


class Watchdog:
    """Looks at pulses. One thread looks; pulses may be added from it alone."""

    def __init__(self) -> None:
        self._pulses: dict[str, Pulse] = {}
        self._told: dict[str, int] = {}
        self._spared: dict[str, tuple[int, int]] = {}
        self._looked_ns: int | None = None

    def watch(self, pulses: Iterable[Pulse]) -> None:
        """Look at `pulses` from now on; one takes the place of another of its name."""
        for pulse in pulses:
            self._pulses[pulse.name] = pulse

    def forget(self, part: str) -> None:
        """Look no more at the loop `part` and at those named `part-N`."""
        for name in [n for n in self._pulses if get_part(n) == part]:
            del self._pulses[name]

    def look(self, now_ns: int) -> list[Verdict]:
        """Return what is wrong at `now_ns`. A loop that hangs or has died is looked at no more."""
        gap_ns = now_ns - (self._looked_ns if self._looked_ns is not None else now_ns)
        late_ns = gap_ns - _USUAL_NS if gap_ns > _LATE_NS else 0
        self._looked_ns = now_ns
        verdicts = []
        for pulse in list(self._pulses.values()):
            verdict = self._judge(pulse, now_ns, late_ns)
            if verdict is not None:
                verdicts.append(verdict)
                if verdict.kind != "slow":
                    del self._pulses[pulse.name]
        return verdicts

    def find_slow_work(self, part: str, now_ns: int) -> str:
        """Return what a loop of `part` has been doing for more than a second. From any thread."""
        works = [p.work for p in self._pulses.copy().values() if get_part(p.name) == part]
        slow = [w.name for w in works if w is not None and now_ns - w.since_ns > SLOW_NS]
        return next((name for name in slow if name != LOADING), "")

    def _judge(self, pulse: Pulse, now_ns: int, late_ns: int) -> Verdict | None:
        if pulse.error is not None:
            return Verdict(pulse.name, "died", error=pulse.error, worked_ns=pulse.worked_ns)
        work = pulse.work
        if work is None:
            return None
        # While the watcher did not run either, the machine was asleep or the process stopped.
        since_ns, spared_ns = self._spared.get(pulse.name, (0, 0))
        if late_ns or since_ns != work.since_ns:
            spared_ns = late_ns + (spared_ns if since_ns == work.since_ns else 0)
            self._spared[pulse.name] = (work.since_ns, spared_ns)
        age_ns = now_ns - work.since_ns - spared_ns
        if pulse.limit_ns is None:
            return None
        if age_ns > pulse.limit_ns * (1 if pulse.has_worked else _FIRST_WORK_FACTOR):
            pulse.is_left_behind = True
            return Verdict(pulse.name, "hung", work.name, age_ns, worked_ns=pulse.worked_ns)
        is_news = work.name != LOADING and self._told.get(pulse.name) != work.since_ns
        if age_ns > SLOW_NS and is_news:
            self._told[pulse.name] = work.since_ns
            return Verdict(pulse.name, "slow", work.name, age_ns)
        return None


class _Restart(NamedTuple):
    """When, and when on a clock that stands while the part hangs; why."""

    at_ns: int
    own_ns: int
    why: str


class Restarts:
    """What was made anew, how often, why; and whether once more is allowed. One writing thread."""

    def __init__(self, most_per_min: int) -> None:
        self._most = most_per_min
        self._times: defaultdict[str, deque[_Restart]] = defaultdict(deque)
        self._hung_ns: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()  # since it worked well for the last time
        self._counts: Counter[str] = Counter()

    def ask(
        self, part: str, why: str, now_ns: int, worked_ns: int = 0, took_ns: int = 0
    ) -> int | None:
        """Count one more, and return how long to wait before it (ns); None: it is too often.

        The first is due at once, the next after half a second, then twice as long each time;
        encoder and sound wait less. It starts afresh after a minute without any, and for a part
        that has worked well for five seconds in between (`worked_ns`); the time that it hung for
        (`took_ns`) is no such minute.
        """
        times, is_quick = self._times[part], part in _QUICK
        self._hung_ns[part] += took_ns
        own_ns = now_ns - self._hung_ns[part]
        while times and own_ns - times[0].own_ns > _MINUTE_NS:
            times.popleft()
        tries = 0 if worked_ns >= _WELL_NS else min(self._tries[part], len(times))
        if tries >= self.get_most(part):
            return None
        self._tries[part] = tries + 1
        times.append(_Restart(now_ns, own_ns, why))
        self._counts[f"{part}_{why}"] += 1
        if not tries:
            return 0
        if is_quick:
            return min(_QUICK_WAIT_NS << (tries - 1), _MAX_QUICK_WAIT_NS)
        return min(_FIRST_WAIT_NS << (tries - 1), _MAX_WAIT_NS)

    def get_most(self, part: str) -> int:
        """Return how often `part` may be made anew within a minute without working well."""
        return self._most * (QUICK_TRIES if part in _QUICK else 1)

    def count_recent(self, part: str, now_ns: int, why: str = "") -> int:
        """Return how often `part` was made anew within the last minute, because of `why` alone."""
        times = self._times.copy().get(part, deque()).copy()
        return sum(now_ns - one.at_ns <= _MINUTE_NS and why in ("", one.why) for one in times)

    def counts(self) -> dict[str, int]:
        """Return all since the start, by `PART_WHY`."""
        return dict(self._counts.copy())


def get_part(name: str) -> str:
    """Return which part of a job the loop `name` belongs to: `pipeline` for `pipeline-2`."""
    return name.partition("-")[0]
