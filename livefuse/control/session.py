"""One job from start to stop, for `run` and `demo`: worker, HTTP, panel, signals, figures."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
import uvloop

from livefuse.clock import SystemClock
from livefuse.control.background import call_in_thread, catch_signals
from livefuse.control.changes import write_recording
from livefuse.control.console import complain, say
from livefuse.control.figures import merge_last, write_atomically
from livefuse.control.grpc import announce_grpc, start_grpc
from livefuse.control.jobs import JobManager
from livefuse.control.outputs import OutputWatch, explain_lost_files, is_all_lost
from livefuse.control.panel import REFRESH_S, Reporter, create_reporter, format_end
from livefuse.errors import ConfigError
from livefuse.job.spec import JobSpec
from livefuse.redact import redact_text
from livefuse.telemetry import log_for, set_up_logging
from livefuse.workers.local import Worker

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.control.api.server import ApiServer
    from livefuse.control.grpc.server import GrpcServer
    from livefuse.control.requests import RunRequest
    from livefuse.job.job import Job
    from livefuse.telemetry import Statistics

JOB_ID: Final = "main"
_PATIENCE_S: Final = 2.0


def run_request(request: RunRequest) -> None:
    """Run the job until its input ends, `--for` is over, or a signal comes.

    Raises:
        LivefuseError: it could not start, or ended by a fault.
    """
    set_up_logging(request.config.log, request.urls)
    # A stage waits for the interpreter at most half a millisecond, not five: frames are short.
    sys.setswitchinterval(0.0002)
    gc.freeze()  # what is loaded by now stays: the collector need not look at it in between frames
    uvloop.run(_Session(request).run())


class _Session:
    """The life of one run on the loop's thread; the job lives in threads of its own."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._config = request.config
        self._manager = JobManager(Worker(request.config, SystemClock()))
        self._server: ApiServer | None = None
        self._grpc: GrpcServer | None = None

    async def run(self) -> None:
        spec = JobSpec(
            source=self._request.source,
            targets=self._request.targets,
            operations=self._request.operations,
            mode=self._request.mode,
            source_face=self._request.source_face,
            parameters=self._request.parameters,
        )
        self._manager.create(JOB_ID)
        self._manager.submit_spec(JOB_ID, spec)
        with catch_signals(self._write_recording) as stop:
            try:
                if spec.choose_mode() == "live":
                    await self._serve()
                await self._run_job(stop)
            finally:
                await self._close_servers()
                await call_in_thread("stop-others", self._manager.close)

    def _write_recording(self) -> None:
        """Write what is kept of the input, and say where; SIGUSR1 asks for it."""
        jobs = [managed.job for managed in self._manager.list_managed()]
        job = next(filter(None, jobs), None)
        if job is None:
            return

        def tell(done: asyncio.Future[Path]) -> None:
            error = done.exception()
            if error is None:
                say(f"recording: {done.result()}")
            else:
                complain(redact_text(str(error), self._request.urls))

        written = call_in_thread("recording", lambda: write_recording(self._manager, job))
        written.add_done_callback(tell)

    async def _serve(self) -> None:
        if not self._config.http.enabled:
            if self._config.grpc.enabled:
                raise ConfigError(
                    "grpc.enabled is true and http.enabled is false",
                    hint="gRPC asks the HTTP API: set both, or neither",
                )
            return
        from livefuse.control.api.key import load_key  # noqa: PLC0415 - slow to load
        from livefuse.control.api.server import ApiServer  # noqa: PLC0415 - slow to load

        self._server = ApiServer(self._config, self._manager, load_key(self._config))
        await self._server.start()
        if self._config.grpc.enabled:
            upstream = self._server.base_url
            self._grpc = await call_in_thread("grpc", lambda: start_grpc(self._config, upstream))

    async def _close_servers(self) -> None:
        if self._grpc is not None:
            await call_in_thread("grpc", self._grpc.close)
        if self._server is not None:
            await self._server.close()

    async def _run_job(self, stop: asyncio.Future[str]) -> None:
        job = self._manager.start(JOB_ID)
        started = call_in_thread("start", job.wait_started)
        last: Statistics | None = None
        try:
            either: set[asyncio.Future[Any]] = {started, stop}
            done, _ = await asyncio.wait(
                either, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not done and not self._request.quiet:
                say(f"waiting for {redact_text(self._request.source)}, Ctrl-C stops")
                if self._server is not None:
                    say(f"watch: {self._server.get_url('/')}  (in a browser)")
            left_s = None if self._request.for_s is None else self._request.for_s - _PATIENCE_S
            if not done:
                await asyncio.wait(
                    either,
                    timeout=left_s and max(left_s, 0.0),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if started.done():
                started.result()
                last = await self._watch(job, stop)
        finally:
            started.cancel()  # whoever stops first is not told of a late failure by the loop
            if not job.wait(0):
                # All at the same time: others may have been started over HTTP.
                await call_in_thread("stop", self._manager.close)
        self._finish(job, last)

    async def _watch(self, job: Job, stop: asyncio.Future[str]) -> Statistics | None:
        """Show the figures until the end; return the last ones of a job that we are to stop."""
        watch = self._list_watch(job)
        self._announce(watch)
        # Whoever opened a camera in the page meanwhile is not sent away with this job.
        finished = call_in_thread("finish", self._manager.wait_idle)
        loop = asyncio.get_running_loop()
        end_s = loop.time() + (self._request.for_s or float("inf"))
        with create_reporter(watch, quiet=self._request.quiet) as reporter:
            if not self._request.quiet:
                # Again, now that a panel may stand between the logs and the terminal.
                set_up_logging(self._config.log, self._request.urls)
            await self._show_until(reporter, job, {finished, stop}, end_s)
        set_up_logging(self._config.log, self._request.urls)
        return None if job.wait(0) else job.statistics()

    async def _show_until(
        self, reporter: Reporter, job: Job, ends: set[asyncio.Future[Any]], end_s: float
    ) -> None:
        loop = asyncio.get_running_loop()
        with log_for(JOB_ID):
            watch = OutputWatch()
        while (left_s := end_s - loop.time()) > 0:
            stats = self._manager.get_shown(job).statistics()
            reporter.update(stats)
            watch.note(stats.outputs)
            if is_all_lost(stats.outputs):
                return
            done, _ = await asyncio.wait(
                ends, timeout=min(REFRESH_S, left_s), return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                return

    def _list_watch(self, job: Job) -> list[str]:
        """Return what to paste where, without secrets."""
        lines = [str(text) for o in job.statistics().outputs if (text := o.get("watch"))]
        if self._server is not None:
            flv = self._server.get_url(f"/v1/jobs/{JOB_ID}/live.flv")
            page = self._server.get_url("/")
            lines += [
                f"{page}  (in a browser)",
                f"{flv}  (OBS media source, VLC)",
                f"ffplay -fflags nobuffer '{flv}'",
            ]
        return lines

    def _announce(self, watch: list[str]) -> None:
        server, wanted = self._server, self._config.http.port
        if server is not None and wanted and server.port != wanted:
            complain(f"port {wanted} is taken: using {server.port}")
        if self._grpc is not None:
            announce_grpc(self._grpc, self._config.grpc, quiet=self._request.quiet)
        if not self._request.quiet:
            for line in watch:
                say(f"watch: {line}")

    def _finish(self, job: Job, last: Statistics | None) -> None:
        final = job.statistics()
        stats = merge_last(final, last)
        if self._request.stats is not None:
            data = msgspec.json.format(msgspec.json.encode(stats), indent=2)
            write_atomically(self._request.stats, data + b"\n")
        if job.error is not None:
            raise job.error
        if lost := explain_lost_files(final.outputs):
            raise lost
        if not self._request.quiet:
            say(format_end(stats))
