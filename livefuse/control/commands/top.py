"""`livefuse top`: all jobs of a daemon or a worker in a terminal, as they are now."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from cyclopts import App, Parameter

from livefuse.control.console import say
from livefuse.errors import ConfigError, DaemonError, LivefuseError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

    from livefuse.control.http_client import HttpClient

DEFAULT_URL: Final = "http://127.0.0.1:8090"
_TIMEOUT_S: Final = 5.0
_LEAST_EVERY_S: Final = 0.2
_REFUSED: Final = frozenset({401, 403})
_OK: Final = 200
_AT_WORK: Final = frozenset({"running", "degraded"})
"""States in which the job's own word for its health says more."""
_NOT_YET: Final = frozenset({"draft", "submitted", "queued"})
"""Figures, if there are any, are of its life before."""

Url = Annotated[
    str,
    Parameter(
        metavar="URL",
        help="The address as it was printed at the start; else LIVEFUSE_URL, with LIVEFUSE_KEY.",
    ),
]
Every = Annotated[float, Parameter(metavar="SECONDS", help="How often it is drawn anew.")]
Once = Annotated[bool, Parameter(negative=(), help="Draw it once and end, as into a pipe.")]


class Times(msgspec.Struct, frozen=True):
    """Of a job's latency, in ms."""

    p50_ms: float = 0.0
    p95_ms: float = 0.0
    count: int = 0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a job's statistics; other versions may say more or less."""

    seconds: float = 0.0
    fps_in: float = 0.0
    fps_out: float = 0.0
    dropped: dict[str, int] = {}
    faces: int = 0
    latency_recent: Times = Times()
    bottleneck: str = ""
    outputs: list[dict[str, Any]] = []
    rung: str = ""
    health: str = ""
    health_reason: str = ""


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a job."""

    id: str
    state: str
    error: str = ""
    reason: str = ""
    statistics: Figures | None = None


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[JobRow]


class _Problem(msgspec.Struct, frozen=True):
    detail: str = ""
    hint: str = ""


def add_commands(app: App) -> None:
    """Add `top` to `app`."""
    app.command(top)


def top(*, url: Url = "", every: Every = 1.0, once: Once = False) -> None:
    """Show all jobs, how each is, and what costs most."""
    from livefuse.control.address import parse_daemon_url  # noqa: PLC0415 - only here
    from livefuse.control.http_client import HttpClient  # noqa: PLC0415 - only here

    if every < _LEAST_EVERY_S:
        raise ConfigError(f"--every {every:g} is too often", hint=f"say {_LEAST_EVERY_S} or more")
    address = parse_daemon_url(url or os.environ.get("LIVEFUSE_URL", "") or DEFAULT_URL)
    key = address.key or os.environ.get("LIVEFUSE_KEY", "")
    client = HttpClient(address, max_idle=1)
    try:
        if once or not sys.stdout.isatty():
            _print(draw_jobs(fetch_jobs(client, key)))
        else:
            _watch(client, key, every)
    finally:
        client.close()


def fetch_jobs(client: HttpClient, key: str) -> list[JobRow]:
    """Return the jobs as they are now.

    Raises:
        DaemonError: nobody answers, or not as livefuse does.
        ConfigError: the key is not right.
    """
    from livefuse.control.http_client import Query  # noqa: PLC0415 - as above

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = client.ask(Query("GET", "/v1/jobs", headers), _TIMEOUT_S)
    if answer.status in _REFUSED:
        raise ConfigError(
            f"{client.address} wants another key",
            hint="give the address as it was printed at the start, or set LIVEFUSE_KEY",
        )
    try:
        if answer.status != _OK:
            problem = msgspec.json.decode(answer.data, type=_Problem)
            raise DaemonError(f"{client.address}: {problem.detail}", hint=problem.hint)
        return msgspec.json.decode(answer.data, type=_Jobs).jobs
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise DaemonError(
            f"{client.address} does not answer as livefuse does", hint="is the port right?"
        ) from None


class Listing:
    """A table whose rows have one line each, beneath some of them a line as long as it may be."""

    def __init__(self, table: Table, beneath: list[str]) -> None:
        self._table = table
        self._beneath = ["", *beneath]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield it as rich wants it."""
        from rich.segment import Segment  # noqa: PLC0415 - heavy
        from rich.text import Text  # noqa: PLC0415 - heavy

        lines = console.render_lines(self._table, options.update(height=None), pad=False)
        for line, text in zip(lines, self._beneath, strict=False):
            yield from line
            yield Segment.line()
            if text:
                yield Text(f"  {text}", style="yellow", overflow="ellipsis", no_wrap=True)


def draw_jobs(jobs: list[JobRow]) -> Listing:
    """Return a table with a line for each job, the trouble beneath it."""
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("JOB", "HEALTH"):
        table.add_column(name, no_wrap=True)
    for name in ("FPS IN", "OUT", "P50 MS", "P95 MS", "DROPPED", "FACES", "OUTPUTS"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("COSTS MOST", "SPARED"):
        table.add_column(name, no_wrap=True)
    for job in jobs:
        table.add_row(Text(job.id), *map(Text, _list_cells(job)))
    if not jobs:
        table.add_row("no jobs")
        return Listing(table, ["POST /v1/jobs makes one"])
    return Listing(table, [job.error or job.reason or _get_health_reason(job) for job in jobs])


def _get_health_reason(job: JobRow) -> str:
    return job.statistics.health_reason if job.statistics and job.state in _AT_WORK else ""


def _list_cells(job: JobRow) -> tuple[str, ...]:
    stats = job.statistics
    if stats is None or job.state in _NOT_YET:
        return (job.state,)
    is_known = stats.latency_recent.count > 0
    connected = sum(bool(output.get("connected")) for output in stats.outputs)
    return (
        (job.state in _AT_WORK and stats.health) or job.state,
        f"{stats.fps_in:.1f}",
        f"{stats.fps_out:.1f}",
        f"{stats.latency_recent.p50_ms:.0f}" if is_known else "",
        f"{stats.latency_recent.p95_ms:.0f}" if is_known else "",
        str(sum(stats.dropped.values())),
        str(stats.faces),
        f"{connected}/{len(stats.outputs)}",
        stats.bottleneck,
        stats.rung if stats.rung != "everything" else "",
    )


def _print(listing: Listing) -> None:
    from rich.console import Console  # noqa: PLC0415 - heavy

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    with console.capture() as drawn:
        console.print(listing)
    say("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def _watch(client: HttpClient, key: str, every_s: float) -> None:
    """Draw until Ctrl-C; what goes wrong on the way is shown, and tried again."""
    from rich.console import Console  # noqa: PLC0415 - heavy
    from rich.live import Live  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    drawn = draw_jobs(fetch_jobs(client, key))  # what is wrong from the start ends it
    # One of our own: whether one is a terminal is asked once, when it is made.
    with Live(drawn, console=Console(), auto_refresh=False, screen=True) as live:
        while True:
            try:
                live.update(draw_jobs(fetch_jobs(client, key)), refresh=True)
            except LivefuseError as error:
                live.update(Text(str(error), style="yellow"), refresh=True)
            time.sleep(every_s)
