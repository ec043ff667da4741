"""`livefuse replay`: a recording again, in virtual time with every decision told, or as it came."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from livefuse.control.commands.run import (  # noqa: TC001 - read at run time
    ConfigFile,
    Face,
    Look,
    Operations,
    Params,
    Quiet,
    Settings,
    To,
)
from livefuse.control.console import say
from livefuse.control.failure import explain_unexpected
from livefuse.control.figures import check_writable, write_atomically
from livefuse.control.paths import check_distinct
from livefuse.control.requests import RunRequest, Wish, create_request
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from cyclopts import App

    from livefuse.replay import KnownCosts
    from livefuse.replay.decisions import ReplayReport

_MEASURED: Final = "measured"
_SOURCE: Final = "replay:"

File = Annotated[Path, Parameter(metavar="FILE", help="What `livefuse record` wrote.")]
ReportFile = Annotated[
    Path | None,
    Parameter(metavar="FILE", help="Write every decision there, as JSON; the same each time."),
]
CostsOption = Annotated[
    str,
    Parameter(
        metavar="FILE",
        help="What work takes: JSON, or the report of another replay; `measured`: what it takes "
        "here. Not said: a table of usual costs.",
    ),
]
Speed = Annotated[
    Literal["recorded", "max"],
    Parameter(help="recorded drops late frames as live; max treats every frame."),
]
RealTime = Annotated[
    bool,
    Parameter(name="--real-time", negative=(), help="Run it as a live source, at its own pace."),
]


def add_commands(app: App) -> None:
    """Add `replay` to `app`."""
    app.command(replay)


def replay(  # noqa: PLR0913 - one parameter per option of the command line
    file: File,
    /,
    *,
    to: To = None,
    operations: Operations = None,
    source_face: Face = "",
    look: Look = "",
    param: Params = None,
    config: ConfigFile = None,
    settings: Settings = None,
    report: ReportFile = None,
    costs: CostsOption = "",
    speed: Speed = "recorded",
    real_time: RealTime = False,
    quiet: Quiet = False,
) -> None:
    """Run a recording again: in virtual time, to the same decisions, or as a live source."""
    if real_time:
        _refuse_virtual_options(report, costs, speed)
    request = create_request(
        f"{_SOURCE}{file}",
        to or (),
        wish=Wish(operations, source_face, look, tuple(param or ())),
        config=config,
        # In virtual time nothing is served, but then a replay need not go anywhere.
        settings=(*(settings or ()), *(() if real_time else ("http.enabled=true",))),
        mode="every_frame" if speed == "max" else "live",
        for_s=None,
        stats=None,
        quiet=quiet or not real_time,
    )
    costs_file = None if costs in ("", _MEASURED) else Path(costs)
    with explain_unexpected(request.config.log.level, request.urls):
        if real_time:
            from livefuse.control.session import run_request  # noqa: PLC0415 - loads the codecs

            run_request(request)
        else:
            _check_files(request, report, [path for path in (config, costs_file) if path])
            _replay(request, file, report, _choose_costs(costs, costs_file), quiet=quiet)


def _refuse_virtual_options(report: Path | None, costs: str, speed: str) -> None:
    """Refuse what has no meaning in real time."""
    given = {"--report": report is not None, "--costs": bool(costs), "--speed": speed != "recorded"}
    for option, is_given in given.items():
        if is_given:
            raise ConfigError(
                f"{option} belongs to a replay in virtual time",
                hint=f"leave out {option} or --real-time",
            )


def _check_files(request: RunRequest, report: Path | None, also_read: list[Path]) -> None:
    """Check where the results go: into files, and not over what is read."""
    from livefuse.publish import is_file_url  # noqa: PLC0415 - not for every command

    for target in request.targets:
        if not is_file_url(target):
            raise ConfigError(
                "a replay in virtual time writes files only",
                hint="add --real-time to publish it, or name a file",
            )
    check_distinct(request.source, request.targets, report, also_read=also_read)
    if report is not None:
        check_writable(report, "--report")


def _choose_costs(wish: str, path: Path | None) -> KnownCosts:
    from livefuse.virtual import (  # noqa: PLC0415 - not for every command
        DEFAULT_COSTS,
        MeasuredCosts,
        TableCosts,
        read_costs,
    )

    if wish == _MEASURED:
        return MeasuredCosts()
    return TableCosts(read_costs(path) if path is not None else DEFAULT_COSTS)


def _replay(
    request: RunRequest, file: Path, report_path: Path | None, costs: KnownCosts, *, quiet: bool
) -> None:
    from livefuse.clock import SystemClock  # noqa: PLC0415 - these load the codecs
    from livefuse.control.job_audit import JobAudit  # noqa: PLC0415 - as above
    from livefuse.control.outputs import explain_lost_files  # noqa: PLC0415 - as above
    from livefuse.ingest.playback import open_recording  # noqa: PLC0415 - as above
    from livefuse.job.spec import JobSpec  # noqa: PLC0415 - as above
    from livefuse.replay import Replay  # noqa: PLC0415 - as above
    from livefuse.replay.decisions import format_report  # noqa: PLC0415 - as above
    from livefuse.telemetry import set_up_logging  # noqa: PLC0415 - as above
    from livefuse.workers.local import Worker  # noqa: PLC0415 - as above

    set_up_logging(request.config.log, request.urls)
    spec = JobSpec(
        source=request.source,
        targets=request.targets,
        operations=request.operations,
        mode=request.mode,
        source_face=request.source_face,
        parameters=request.parameters,
    )
    recording = open_recording(file, request.config.ingest)
    worker = Worker(request.config, SystemClock())
    replay = Replay(spec, request.config, recording, worker.create_pipeline, costs)
    with JobAudit(worker).note_replay(spec):
        report = replay.run()
    if report_path is not None:
        write_atomically(report_path, format_report(report), "--report")
    if lost := explain_lost_files(replay.list_outputs()):
        raise lost
    if not quiet:
        for line in _describe(report):
            say(line)


def _describe(report: ReplayReport) -> list[str]:
    """Return the sums in words."""
    summary = report.summary
    drops = summary["dropped"]
    dropped = ", ".join(f"{count} {reason}" for reason, count in drops.items())
    fates = [
        f"{summary['shown']} shown",
        f"{sum(drops.values())} dropped" + (f" ({dropped})" if dropped else ""),
        f"{summary['held']} held",
    ]
    latency = ", ".join(f"{name} {value:.0f}" for name, value in summary["latency_ms"].items())
    rungs = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in summary["rung_s"].items())
    return [
        f"{summary['frames_in']} frames in {summary['seconds']:.1f} s: {', '.join(fates)}",
        f"latency {latency} ms" + (f"; rungs {rungs}" if rungs else ""),
    ]
