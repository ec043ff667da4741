"""What a job measures of itself: counters, distributions, snapshots, metrics, logs.

The pipeline does not know of this module: the job observes from outside.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections import Counter, deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import structlog

from livefuse.measures import Distribution, Percentiles, Rate
from livefuse.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from livefuse.clock import Clock
    from livefuse.config import LogConfig
    from livefuse.frame import Frame

_JOB: ContextVar[str] = ContextVar("livefuse_job", default="")
_WAITING: Final = frozenset({"queue"})
_OUTCOMES: Final = 30


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a job, as status, panel and `--stats` show them.

    `token` is the last frame's, with its log: each step, what it did and how long it took. `load`
    says what is spared and why (`LoadControl.describe`), empty where nothing ever is.
    `networks` says where networks run (runtime's figures), empty while none was loaded. `sound`
    says how far sound runs ahead of its picture; empty without sound. `health` is one word of
    health.py, `health_reason` why; `input` its state and how old its last picture is. `restarts`:
    what was made anew while running and why (`pipeline_hung`), and how often.
    """

    job: str
    state: str
    source: str
    seconds: float
    frames_in: int
    frames_out: int
    fps_in: float
    fps_out: float
    dropped: dict[str, int]
    counts: dict[str, int]
    faces: int
    latency: Percentiles
    latency_recent: Percentiles
    steps: dict[str, Percentiles]
    bottleneck: str
    outputs: list[dict[str, Any]]
    notes: list[str]
    media: dict[str, Any]
    token: dict[str, Any] = msgspec.field(default_factory=dict)
    rung: str = ""
    load: dict[str, Any] = msgspec.field(default_factory=dict)
    networks: dict[str, Any] = msgspec.field(default_factory=dict)
    sound: dict[str, Any] = msgspec.field(default_factory=dict)
    delay_ms: int = 0
    health: str = ""
    health_reason: str = ""
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    restarts: dict[str, int] = msgspec.field(default_factory=dict)


class Journal:
    """Takes every decision about single frames; this one forgets them.

    Each method is called from the thread that decides, may read what it is given during the call,
    and must not keep or change it.
    """

    def note_drop(self, frame: Frame, reason: str) -> None:
        """`frame` will not be shown."""

    def note_outcome(self, frame: Frame, outcome: Any) -> None:  # noqa: ANN401 - the pipeline's Outcome lies above
        """`frame` has been treated."""

    def note_rung(self, name: str, reason: str) -> None:
        """The governor goes to another rung."""

    def note_shown(self, frame: Frame, *, is_held: bool) -> None:
        """`frame` is about to be encoded, marks and all; `is_held`: once more."""


class Telemetry:
    """The measuring points of one job. Counting is safe from any thread."""

    def __init__(self, clock: Clock, journal: Journal | None = None) -> None:
        self.clock = clock
        self.journal = journal or Journal()
        self.started_ns = clock.now_ns()
        self.frames_in = Rate(clock)
        self.frames_out = Rate(clock)
        self.latency = Distribution()
        self.steps: dict[str, Distribution] = {}
        self._failed: deque[bool] = deque(maxlen=_OUTCOMES)
        self.withheld = ""
        """Why the last frame might not be seen though every step could do its work; in words."""
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, event: str, amount: int = 1) -> None:
        """Add `amount` to the counter `event`; drops are events named `dropped_REASON`."""
        with self._lock:
            self._counts[event] += amount

    def counts(self) -> dict[str, int]:
        """Return all counters but the drops."""
        with self._lock:
            return {k: v for k, v in self._counts.items() if not k.startswith("dropped_")}

    def dropped(self) -> dict[str, int]:
        """Return the drops by reason."""
        with self._lock:
            prefix = "dropped_"
            return {k[len(prefix) :]: v for k, v in self._counts.items() if k.startswith(prefix)}

    def observe_step(self, step: str, value_ms: float) -> None:
        """Note how long `step` took. Each step has one writing thread."""
        distribution = self.steps.get(step)
        if distribution is None:
            distribution = self.steps.setdefault(step, Distribution())
        distribution.add(value_ms)

    def note_outcome(self, *, failed: bool, withheld: str = "") -> None:
        """Note whether a step failed on a frame, or it was `withheld`. One writing thread."""
        self._failed.append(failed)
        self.withheld = withheld

    def get_failed_share(self) -> float:
        """Return on which part of the last 30 frames a step failed; 0 before there were so many."""
        failed = self._failed.copy()
        return sum(failed) / _OUTCOMES if len(failed) == _OUTCOMES else 0.0

    def bottleneck(self) -> str:
        """Name the step with the highest cost in all, or nothing; waiting is nobody's work."""
        costs = {
            name: step.sum_ms
            for name, step in self.steps.copy().items()
            if step.count and name not in _WAITING
        }
        return max(costs, key=costs.__getitem__) if costs else ""


def _takes_colours() -> bool:
    has_them = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return has_them and sys.stderr.isatty()


class _Unfailing:
    """A text stream that may have lost its reader: what cannot be written is not said.

    Any thread of a job may log, and none may die of it (`livefuse ... 2>&1 | head`, a full disk).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def set_up_logging(config: LogConfig, secrets: tuple[str, ...] = ()) -> None:
    """Send structured logs to standard error, each value redacted; `secrets` are URLs to hide."""

    def redact(_logger: Any, _name: str, event: Any) -> Any:  # noqa: ANN401 - structlog's signature
        return {
            k: redact_text(v, secrets) if isinstance(v, str) else v
            for k, v in event.items()
            if v != ""  # a cause that is not there is not worth a word
        }

    renderer = (
        structlog.processors.JSONRenderer()
        if config.form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=_takes_colours(),
            pad_event_to=0,
            pad_level=False,
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Before `redact`: a renderer would print a foreign exception's text as it is.
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[config.level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Unfailing(sys.stderr))),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    if not any(isinstance(handler, _Foreign) for handler in root.handlers):
        root.addHandler(_Foreign(logging.WARNING))


class _Foreign(logging.Handler):
    """Takes what libraries say by Python's own logging, so that it is redacted and in one form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log it as ours; the thread that says it must not die of it."""
        with contextlib.suppress(Exception):
            log = get_logger(record.name)
            tell = log.error if record.levelno >= logging.ERROR else log.warning
            tell(record.getMessage(), exc_info=record.exc_info or None)


def get_logger(name: str) -> Any:  # noqa: ANN401 - structlog's loggers are untyped
    """Return the structured logger of a module; one that is made for a job names it (`log_for`)."""
    job_id = _JOB.get()
    return structlog.get_logger(module=name, **({"job": job_id} if job_id else {}))


@contextlib.contextmanager
def log_for(job_id: str) -> Iterator[None]:
    """Let the loggers that are made meanwhile, in this thread, name the job."""
    token = _JOB.set(job_id)
    try:
        yield
    finally:
        _JOB.reset(token)


def get_logged_job() -> str:
    """Return the job that `log_for` names here, "" when none: for a thread that goes on with it."""
    return _JOB.get()
