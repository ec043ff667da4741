"""Jobs, as the daemon answers for them: made, listed, submitted, started, stopped, deleted."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from livefuse.control.api.body import MAX_PICTURED_BYTES, answer, read_json
from livefuse.control.api.caller import get_caller, is_large_enough, sees
from livefuse.control.api.hiding import hide_statistics
from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.views import JobList, JobView, NewJob, Spec
from livefuse.control.daemon.again import AGAIN
from livefuse.control.daemon.checks import name_check
from livefuse.control.daemon.context import get_daemon
from livefuse.control.daemon.life import ACTIVE, check_move
from livefuse.control.daemon.views import create_view
from livefuse.errors import (
    ConfigError,
    DaemonTimeoutError,
    JobCapacityError,
    JobError,
    LivefuseError,
)
from livefuse.telemetry import Statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.control.api.caller import Caller
    from livefuse.control.api.views import JobChange
    from livefuse.control.daemon.again import Again
    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.records import JobRecord

MAX_JOBS: Final = 1000
_ID_BYTES: Final = 6
_FIGURES_S: Final = 1.5
_YES: Final = frozenset({"1", "true", "yes"})


async def list_jobs(request: web.Request) -> web.Response:
    """List the jobs that the caller sees."""
    daemon, caller = get_daemon(request), get_caller(request)
    records = [
        record
        for record in daemon.book.list_records()
        if sees(caller, record.owner, is_running=record.phase in ACTIVE)
    ]
    views = await asyncio.gather(*(_view(daemon, caller, record) for record in records))
    return answer(JobList(list(views)))


async def create_job(request: web.Request) -> web.Response:
    """Make a job; with a spec submit it, and start it if asked to."""
    daemon, caller = get_daemon(request), get_caller(request)
    wish = await read_json(request, NewJob, MAX_PICTURED_BYTES)
    if wish.start and wish.spec is None:
        raise ConfigError("a job without a spec cannot be started", hint="send a spec")
    record = await daemon.complete(_create(daemon, caller, wish, request.get(AGAIN)))
    where = {"Location": f"/v1/jobs/{record.job_id}"}
    return answer(await _view(daemon, caller, record), 201, where)


async def show_job(request: web.Request) -> web.Response:
    """Show a job, with its last changes of state."""
    daemon = get_daemon(request)
    record = daemon.book.get(request.match_info["id"])
    changes = await daemon.book.list_changes(record.job_id)
    return answer(await _view(daemon, get_caller(request), record, changes))


async def submit_job(request: web.Request) -> web.Response:
    """Say what a job is to do. It must not be running."""
    daemon, caller = get_daemon(request), get_caller(request)
    record = daemon.book.get(request.match_info["id"])
    spec = await read_json(request, Spec, MAX_PICTURED_BYTES)
    check_move(record.job_id, record.phase, "submitted")
    record = await daemon.complete(_submit(daemon, caller, record.job_id, spec))
    return answer(await _view(daemon, caller, record))


async def start_job(request: web.Request) -> web.Response:
    """Start a job; what becomes of it is in its state."""
    daemon, caller = get_daemon(request), get_caller(request)
    record = await daemon.complete(_start(daemon, caller, request))
    return answer(await _view(daemon, caller, record))


async def stop_job(request: web.Request) -> web.Response:
    """Stop a job in order."""
    daemon = get_daemon(request)
    record = await daemon.complete(daemon.supervisor.stop(request.match_info["id"]))
    return answer(await _view(daemon, get_caller(request), record))


async def delete_job(request: web.Request) -> web.Response:
    """Stop a job and forget it."""
    daemon = get_daemon(request)
    await daemon.complete(daemon.supervisor.delete(request.match_info["id"]))
    return web.Response(status=204, headers=NO_STORE)


async def show_status(request: web.Request) -> web.Response:
    """Return the figures of a job that was started."""
    daemon = get_daemon(request)
    record = daemon.book.get(request.match_info["id"])
    figures = await _collect(daemon, record)
    if figures is None:
        if record.phase in ACTIVE:
            raise JobCapacityError(f"the job {record.job_id} does not answer", hint="try again")
        raise JobError(
            f"the job {record.job_id} has not run, or left no figures", hint="start it first"
        )
    return answer(hide_statistics(get_caller(request), figures))


async def _create(daemon: Daemon, caller: Caller, wish: NewJob, again: Again | None) -> JobRecord:
    job_id = wish.id or (again.job_id if again else secrets.token_hex(_ID_BYTES))
    record = daemon.book.find(job_id)
    if record is not None:
        is_same = again is not None and (again.is_repeated or not wish.id)
        if not is_same or record.owner != caller.key_id:
            raise JobError(f"there is a job {job_id!r} already", hint="choose another id")
    else:
        _check_room(daemon, caller)
        spec = None if wish.spec is None else await _check(daemon, caller, job_id, wish.spec)
        await daemon.audit.note_created(job_id, caller.key_id, spec)
        record = await daemon.book.create(job_id, caller.key_id, caller.name, spec)
    if not wish.start or record.phase != "submitted":
        return record
    try:
        may_wait = _may_wait(daemon, is_wanted=wish.queue)
        return await daemon.supervisor.start(job_id, caller, may_wait=may_wait)
    except LivefuseError:
        await daemon.supervisor.delete(job_id)  # nothing is left of it
        raise


def _check_room(daemon: Daemon, caller: Caller) -> None:
    if daemon.supervisor.is_draining:
        raise JobCapacityError("livefuse is ending", hint="start it again")
    if len(daemon.book.list_records()) >= MAX_JOBS:
        raise JobCapacityError(f"{MAX_JOBS} jobs are here", hint="delete some first")
    most = daemon.config.limits.jobs_per_key
    if not most or is_large_enough(caller, "operator"):
        return
    if sum(record.owner == caller.key_id for record in daemon.book.list_records()) >= most:
        raise JobCapacityError(f"{most} jobs are yours already", hint="delete some first")


async def _start(daemon: Daemon, caller: Caller, request: web.Request) -> JobRecord:
    again, record = request.get(AGAIN), daemon.book.get(request.match_info["id"])
    if again is not None and again.is_repeated and record.is_wanted and record.phase in ACTIVE:
        return record
    may_wait = _may_wait(daemon, is_wanted=request.query.get("queue", "") in _YES)
    return await daemon.supervisor.start(record.job_id, caller, may_wait=may_wait)


def _may_wait(daemon: Daemon, *, is_wanted: bool) -> bool:
    """Say whether a job that finds no room waits for its turn."""
    return is_wanted or daemon.config.daemon.when_full == "queue"


async def _submit(daemon: Daemon, caller: Caller, job_id: str, spec: Spec) -> JobRecord:
    checked = await _check(daemon, caller, job_id, spec)
    async with daemon.supervisor.get_life(job_id).changing:
        record = daemon.book.get(job_id)
        check_move(job_id, record.phase, "submitted")
        await daemon.audit.note_submitted(job_id, checked)
        return await daemon.book.set_spec(job_id, checked)


async def _check(daemon: Daemon, caller: Caller, job_id: str, spec: Spec) -> Spec:
    """Return `spec` with all chosen that it leaves open, once a worker finds that it can be done.

    Workers know codecs, networks and faces; and what brings one down is not to harm the daemon.

    Raises:
        LivefuseError: it cannot be.
    """
    worker = await daemon.pool.borrow()
    name = name_check(job_id)
    try:
        reply = await worker.ask("POST", "/v1/jobs", NewJob(id=name, spec=spec), caller=caller)
        await worker.ask("DELETE", f"/v1/jobs/{name}", caller=caller)
    except DaemonTimeoutError:
        worker.is_worn = True  # what was to be looked at may stay in it
        raise
    view = msgspec.json.decode(reply.data, type=JobView).spec
    if view is None:
        return spec
    return msgspec.structs.replace(
        spec,
        operations=view.operations,
        source_face=view.source_face,
        parameters=view.parameters,
        look="",
    )


async def _collect(daemon: Daemon, record: JobRecord) -> Statistics | None:
    """Return the figures of a job, of now or of its end; None when there are none."""
    life = daemon.supervisor.peek(record.job_id)
    if life.worker is None:
        return daemon.find_last_figures(life)
    try:
        path = f"/v1/jobs/{record.job_id}/status"
        reply = await life.worker.ask("GET", path, timeout_s=_FIGURES_S)
    except LivefuseError:
        return None
    return msgspec.json.decode(reply.data, type=Statistics)


async def _view(
    daemon: Daemon, caller: Caller, record: JobRecord, changes: Sequence[JobChange] = ()
) -> JobView:
    figures = await _collect(daemon, record)
    life = daemon.supervisor.peek(record.job_id)
    # Its figures may have taken a while: the record is the one of now.
    return create_view(caller, daemon.book.find(record.job_id) or record, life, figures, changes)
