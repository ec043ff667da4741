"""`livefuse audit`: is the log whole, and what does it say? Also of a copy, and while jobs run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.safety.audit_check import AuditReport
    from livefuse.safety.audit_records import AuditRecord
    from livefuse.safety.keys import KeyRing

Folder = Annotated[
    str, Parameter(metavar="FOLDER", help="A copy: of the folder audit, or of all it lies in.")
]
AsJson = Annotated[bool, Parameter(name="--json", help="For machines.", negative="")]
JobName = Annotated[str, Parameter(metavar="ID", help="Of this job only.")]
Since = Annotated[
    str, Parameter(metavar="TIME", help="From then on: 2026-11-30, 2026-11-30T16:00 (UTC) or 2h.")
]
Event = Annotated[
    str, Parameter(metavar="EVENT", help="Of this kind: job.started, or job for all of jobs.")
]
Number = Annotated[
    int, Parameter(name=["--number", "-n"], metavar="N", help="The newest so many, 1000 at most.")
]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    audit = App(name="audit", help="Who did what, when, with whose face; and is that all of it?")
    audit.command(verify)
    audit.command(show)
    app.command(audit)


def verify(
    *,
    folder: Folder = "",
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> int:
    """Check every line, the chain and its seals. Exit code 0: whole, 1: it says what is wrong."""
    from livefuse.safety.audit_check import verify_audit  # noqa: PLC0415 - loads cryptography

    place, ring, _ = _find(config, settings, folder)
    report = verify_audit(place, ring)
    if as_json:
        say(_format_json(report))
    else:
        _tell(report, place)
    return 0 if report.is_whole else 1


def show(  # noqa: PLR0913 - one parameter per option of the command line
    *,
    job: JobName = "",
    since: Since = "",
    event: Event = "",
    number: Number = 100,
    folder: Folder = "",
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Print records, the newest last."""
    from livefuse.control.audit_query import parse_since  # noqa: PLC0415 - loads cryptography
    from livefuse.safety.audit_read import AuditQuery, read_audit  # noqa: PLC0415 - as above

    place, _, now_epoch_s = _find(config, settings, folder)
    begin_s = parse_since(since, now_epoch_s) if since else 0.0
    records = read_audit(place, AuditQuery(job=job, event=event, since_epoch_s=begin_s), number)
    for record in records:
        say(msgspec.json.encode(record).decode() if as_json else format_record(record))
    if not records and not as_json:
        complain("no record fits")


def format_record(record: AuditRecord) -> str:
    """Return a record as a line for people."""
    facts = "  ".join(f"{name}={_format(value)}" for name, value in record.facts.items())
    time = record.time.replace("+00:00", "Z")
    what = f"{record.event:<14} {record.job or '-'}  by {record.who}  {facts}"
    # Names that others chose are among it: no line break of theirs, no escape to a terminal.
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in what)
    return f"{record.sequence:>6}  {time}  {shown.rstrip()}"


def _format(value: Any) -> str:  # noqa: ANN401 - any fact
    if isinstance(value, list):
        return ",".join(value) or "-"
    text = str(value)
    return f'"{text}"' if " " in text else text


def _tell(report: AuditReport, place: Path) -> None:
    for fault in report.faults:
        where = f"{fault.file} line {fault.line}" if fault.line else fault.file or str(place)
        say(f"{where}: {fault.how}: {fault.text}")
    for note in report.notes:
        say(f"note: {note}")
    if report.head == "unchecked":
        say("note: without the keys of the store nobody can tell whether all was written anew")
    if not report.records:
        return
    word = "whole" if report.is_whole else "broken"
    say(
        f"{word}: {report.records} records, {report.first} to {report.sequence}, in "
        f"{report.files} {'file' if report.files == 1 else 'files'}; the newest is {report.hash}"
    )


def _format_json(report: AuditReport) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def _find(
    config: ConfigFile, settings: Settings, folder: str
) -> tuple[Path, KeyRing | None, float]:
    tree = load_config(config, tuple(settings or ()))
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.control.audit_query import find_audit  # noqa: PLC0415 - loads cryptography

    clock = SystemClock()
    return *find_audit(tree, clock, folder), clock.epoch_s()
