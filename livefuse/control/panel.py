"""What a person sees while a stream runs: a panel on a terminal, else a line now and then.

Frames a second and delay are different things, so both are shown; and the step that costs most is
named, so that one knows what to lighten.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from livefuse.control.console import say

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

    from livefuse.measures import Percentiles
    from livefuse.telemetry import Statistics

REFRESH_S: Final = 0.5
LINE_INTERVAL_S: Final = 5.0


class Reporter(Protocol):
    """Shows figures; used as a context manager around the run."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def update(self, stats: Statistics) -> None:
        """Show the figures of now; called about twice a second."""
        ...


class QuietReporter:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return

    def update(self, stats: Statistics) -> None:
        """Do nothing."""


class LineReporter(QuietReporter):
    """A plain line every five seconds of the stream, for logs and pipes."""

    def __init__(self) -> None:
        self._next_s = LINE_INTERVAL_S

    def update(self, stats: Statistics) -> None:
        """Write a line when the last one is five seconds old."""
        if stats.seconds >= self._next_s:
            self._next_s = stats.seconds + LINE_INTERVAL_S
            say(format_line(stats))


class PanelReporter:
    """One panel that stays in its place on a terminal."""

    def __init__(self, watch: list[str]) -> None:
        self._watch = watch
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.console import Console  # noqa: PLC0415 - heavy, and only terminals need it
        from rich.live import Live  # noqa: PLC0415 - as above

        # One of our own: whether one is a terminal is asked once, when it is made.
        self._live = Live(console=Console(), auto_refresh=False, transient=True)
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):  # the terminal was closed
                self._live.stop()

    def update(self, stats: Statistics) -> None:
        """Redraw."""
        if self._live is None:
            return
        with contextlib.suppress(OSError):  # as above
            self._live.update(draw_panel(stats, self._watch), refresh=True)


def create_reporter(watch: list[str], *, quiet: bool) -> Reporter:
    """Return what fits standard output."""
    if quiet:
        return QuietReporter()
    return PanelReporter(watch) if sys.stdout.isatty() else LineReporter()


def format_line(stats: Statistics) -> str:
    """Return the figures in one line."""
    live = sum(bool(output.get("connected")) for output in stats.outputs)
    parts = [
        f"{stats.seconds:.0f} s {stats.state}",
        f"{stats.health}: {stats.health_reason}" if stats.health_reason else "",
        f"{stats.fps_in:.1f} fps in, {stats.fps_out:.1f} out",
        f"added latency {_times(stats.latency_recent)}",
        f"dropped {sum(stats.dropped.values())}",
        f"faces {stats.faces}",
        f"{stats.bottleneck} costs most" if stats.bottleneck else "",
        f"load {stats.rung}" if stats.load.get("rung_index") else "",
        f"outputs {live} of {len(stats.outputs)} connected",
    ]
    return " | ".join(part for part in parts if part)


def format_end(stats: Statistics) -> str:
    """Return what is said when the stream is over."""
    return (
        f"{stats.state} after {stats.seconds:.1f} s: {stats.frames_in} frames in, "
        f"{stats.frames_out} out, dropped {_drops(stats.dropped)}; "
        f"added latency {_times(stats.latency)}"
    )


def draw_panel(stats: Statistics, watch: list[str]) -> RenderableType:
    """Return the panel; 80 columns are enough."""
    from rich.console import Group  # noqa: PLC0415 - heavy, and only terminals need it
    from rich.panel import Panel  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    rows: list[RenderableType] = [
        _draw_figures(stats),
        Text(""),
        _draw_steps(stats),
        Text(""),
        _draw_outputs(stats.outputs),
    ]
    rows += [Text(f"note: {note}", style="yellow") for note in stats.notes]
    rows += [Text(f"watch: {line}", overflow="fold") for line in watch]
    title = Text(f"livefuse  {stats.source}  {stats.state}  {stats.seconds:.0f} s")
    return Panel(Group(*rows), title=title, subtitle=Text("Ctrl-C stops"))


def _draw_figures(stats: Statistics) -> Table:
    table = _table()
    if stats.health:
        table.add_row("health", ": ".join(filter(None, (stats.health, stats.health_reason))))
    if stats.restarts:
        table.add_row("made anew", ", ".join(f"{k} {n}" for k, n in stats.restarts.items()))
    table.add_row("rate", f"{stats.fps_in:.1f} fps in, {stats.fps_out:.1f} fps out")
    table.add_row("added latency", f"{_times(stats.latency_recent)}, all {_times(stats.latency)}")
    table.add_row("frames", f"{stats.frames_in} in, {stats.frames_out} out")
    table.add_row("dropped", _drops(stats.dropped))
    table.add_row("faces", str(stats.faces))
    if load := _load(stats):
        table.add_row("load", load)
    if media := _media(stats.media):
        table.add_row("stream", media)
    if stats.sound:
        table.add_row("sound", f"{stats.sound['ahead_ms']:.0f} ms ahead of its picture")
    if provider := stats.networks.get("provider"):
        table.add_row("networks", f"{provider} (asked for {stats.networks.get('wanted', 'auto')})")
    return table


def _draw_steps(stats: Statistics) -> Table:
    table = _table()
    for name, step in stats.steps.items():
        mark = "  costs most" if name == stats.bottleneck else ""
        table.add_row(name, f"{_times(step)}{mark}")
    return table


def _draw_outputs(outputs: list[dict[str, Any]]) -> Table:
    table = _table()
    for output in outputs:
        table.add_row(str(output.get("kind", "")), describe_output(output))
    return table


def describe_output(output: dict[str, Any]) -> str:
    """Return an output's state in words; its URL is redacted already."""
    state = output.get("state", "")
    lasting = output.get("state_s", 0.0) if state not in {"live", "closed"} else 0.0
    words = [
        str(output.get("url", "")),
        f"{state} for {lasting:.0f} s" if lasting >= 1 else str(state),
    ]
    if not output.get("connected") and state in {"live", "connecting"}:
        words.append("not connected")
    counts = ("viewers", "dropped", "reconnects")
    words += [f"{key} {output[key]}" for key in counts if output.get(key)]
    if output.get("error"):
        words.append(str(output["error"]))
    return ", ".join(word for word in words if word)


def _table() -> Table:
    from rich.table import Table  # noqa: PLC0415 - heavy, and only terminals need it

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True, min_width=14)
    table.add_column(overflow="fold")
    return table


def _times(times: Percentiles) -> str:
    return f"p50 {times.p50_ms:.1f} p95 {times.p95_ms:.1f} ms" if times.count else "not known yet"


def _drops(dropped: dict[str, int]) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in dropped.items() if count)
    total = sum(dropped.values())
    return f"{total} ({reasons})" if reasons else "0"


def _load(stats: Statistics) -> str:
    """Return what is spared, why, and what of the enhancement is seen."""
    words = [stats.rung] if stats.rung else []
    words += stats.load.get("pressures", ())
    if changes := stats.load.get("changes"):
        words.append("changes: " + ", ".join(f"{reason} {n}" for reason, n in changes.items()))
    if (share := stats.load.get("enhanced_share")) is not None:
        words.append(f"{100 * share:.0f} % of frames enhanced")
    return ", ".join(words)


def _media(media: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in media.items() if value not in ("", None))
