"""`livefuse serve`: everything of the daemon brought up, and taken down in order."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import uvloop

from livefuse.clock import SystemClock
from livefuse.control.access import settle_access
from livefuse.control.api.key import accept_key, check_keyless
from livefuse.control.background import catch_signals
from livefuse.control.console import complain, say
from livefuse.control.daemon.answers import AnswerStore
from livefuse.control.daemon.app import DaemonServer
from livefuse.control.daemon.audit import DaemonAudit
from livefuse.control.daemon.book import JobBook
from livefuse.control.daemon.context import Daemon
from livefuse.control.daemon.database import Database
from livefuse.control.daemon.folder import DaemonFolder
from livefuse.control.daemon.notify import get_watchdog_s, notify
from livefuse.control.daemon.pool import WorkerPool
from livefuse.control.daemon.reloader import Reloader
from livefuse.control.daemon.revocation import Revocations, StoppedKeys
from livefuse.control.daemon.store import JobStore
from livefuse.control.daemon.supervisor import Supervisor
from livefuse.control.grpc.beside import serve_grpc
from livefuse.control.keys import KeyStore
from livefuse.errors import LivefuseError
from livefuse.safety.audit import AuditLog
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.keys import KeyRing
from livefuse.safety.seal import RingSealer
from livefuse.telemetry import get_logger, set_up_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from livefuse.config import Config
    from livefuse.control.api.caller import FindCaller

_CLOSING_S: Final = 1.5
"""What everything but the jobs needs to be closed."""


def run_daemon(config: Config, read: Callable[[], Config]) -> None:
    """Serve until a signal comes; returns when all is closed. `read` reads `config` again.

    Raises:
        JobError: another daemon has the folder.
        LivefuseError: it cannot be used, or the address cannot be listened on.
    """
    set_up_logging(config.log)
    config = settle_access(config, is_shared=True)
    with _open(config) as (folder, database):
        serving = _Serving(config, folder, database, lambda: settle_access(read(), is_shared=True))
        try:
            uvloop.run(serving.run())
        except BaseExceptionGroup as group:
            # Whatever of its tasks fails first ends the others: that one is what happened.
            raise group.exceptions[0] from None


@contextlib.contextmanager
def _open(config: Config) -> Iterator[tuple[DaemonFolder, Database]]:
    folder = DaemonFolder(config)
    try:
        database = Database(folder.path / "jobs.db")
        try:
            yield folder, database
        finally:
            database.close()
    finally:
        folder.close()


class _Serving:
    """The daemon on its loop, which runs on the main thread: workers end with it."""

    def __init__(
        self,
        config: Config,
        folder: DaemonFolder,
        database: Database,
        read: Callable[[], Config],
    ) -> None:
        self._config = config
        self._read = read
        self._hangup = asyncio.Event()
        self._folder = folder
        clock = SystemClock()
        safety = find_safety_folder(config.safety)
        self._audit = AuditLog(safety, clock, config.audit)
        self._keys = KeyStore(safety, clock, self._audit)
        store = JobStore(database, clock, RingSealer(KeyRing(safety, clock)))
        self._epoch = store.begin_epoch()
        self._book = JobBook(store)
        self._answers = AnswerStore(database, clock)
        self._stopped = StoppedKeys(database)
        self._log = get_logger("daemon")

    async def run(self) -> None:
        find_caller, key = self._choose_keys()
        self._audit.append("daemon.started", facts={"epoch": self._epoch})
        await self._book.open()
        try:
            with catch_signals(on_hangup=self._hangup.set) as stop:
                async with asyncio.TaskGroup() as group:
                    await self._serve(group, find_caller, key, stop)
        except BaseExceptionGroup as group:
            raise _find_cause(group) from None
        self._book.close()
        self._audit.owe("daemon.stopped", facts={"epoch": self._epoch})

    async def _serve(
        self,
        group: asyncio.TaskGroup,
        find_caller: FindCaller,
        key: str,
        stop: asyncio.Future[str],
    ) -> None:
        daemon = self._create(group)
        server = DaemonServer(daemon, self._config.http, find_caller, self._config.limits)
        server.bind()  # before anything is begun that would have to be undone
        beside = [
            group.create_task(daemon.pool.run()),
            group.create_task(daemon.supervisor.doorkeeper.run()),
            group.create_task(_feed_watchdog()),
        ]
        await daemon.supervisor.resume()
        await server.start()
        async with serve_grpc(self._config, server.base_url):
            self._announce(server, key)
            notify("READY=1")
            if self._config.http.require_key:
                revocations = Revocations(daemon, self._keys, self._stopped)
                beside.append(group.create_task(revocations.run()))
            reloader = Reloader(daemon, self._read, server.set_limits, self._hangup)
            beside.append(group.create_task(reloader.run()))
            reason = await stop
            self._log.info("ending", cause=reason)
            notify("STOPPING=1")
            await self._drain(daemon)
        await server.close()
        await daemon.pool.close()
        for task in beside:
            task.cancel()

    def _create(self, group: asyncio.TaskGroup) -> Daemon:
        audit = DaemonAudit(self._audit)
        pool = WorkerPool(self._config, self._folder, self._epoch, group)
        supervisor = Supervisor(self._config, self._book, pool, group, audit)
        pool.on_change = supervisor.note_worker
        return Daemon(self._config, self._book, self._answers, pool, supervisor, group, audit)

    def _choose_keys(self) -> tuple[FindCaller, str]:
        """Return who knows whose key it is, and the key that was made now, if one was."""
        http = self._config.http
        if http.require_key:
            return self._keys.find_caller, self._keys.ensure_first_key()
        check_keyless(http)
        return accept_key(""), ""

    def _announce(self, server: DaemonServer, key: str) -> None:
        wanted = self._config.http.port
        if wanted and server.port != wanted:
            complain(f"port {wanted} is taken: using {server.port}")
        say(f"livefuse serves at {server.base_url}")
        if key:
            say(f"open {server.base_url}/?key={key}")
            say("this key is shown once:  livefuse keys create --role operator  makes another one")

    async def _drain(self, daemon: Daemon) -> None:
        try:
            async with asyncio.timeout(max(daemon.config.daemon.drain_s - _CLOSING_S, 0.5)):
                await daemon.supervisor.drain()
        except TimeoutError:
            self._log.warning("jobs are not closed in time", seconds=daemon.config.daemon.drain_s)
        daemon.supervisor.cancel()


async def _feed_watchdog() -> None:
    period_s = get_watchdog_s()
    while period_s is not None:
        notify("WATCHDOG=1")
        await asyncio.sleep(period_s)


def _find_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what a person is to be told of several faults: one of ours before any other."""
    ours = group.subgroup(LivefuseError)
    found: BaseException = ours or group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
