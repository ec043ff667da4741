"""One worker as the daemon sees it: its process, what it said last, and a way to ask it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp
import msgspec

from livefuse import errors
from livefuse.control.api.caller import LOCAL
from livefuse.control.api.forwarded import Forwarded
from livefuse.control.api.problems import ERROR_TYPE
from livefuse.control.api.tracing import get_trace
from livefuse.control.api.views import Problem
from livefuse.control.daemon.log import log_line
from livefuse.errors import DaemonTimeoutError, JobCapacityError, LivefuseError
from livefuse.workers.process import Beat, JobBeat, WorkerOrder, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from livefuse.config import Config
    from livefuse.control.api.caller import Caller

MODULE: Final = "livefuse.control.daemon.child"
_BASE: Final = "http://localhost"
_SECRET_BYTES: Final = 24
_BAD: Final = 400
_PATIENCE_S: Final = 20.0


class Reply(NamedTuple):
    """What a worker answered."""

    status: int
    data: bytes


class WorkerLostError(JobCapacityError):
    """The worker that was asked is gone, or was before it answered."""


class WorkerHandle:
    """Made and used on the loop, whose thread has to be the main one (workers/process.py).

    `jobs` are those that the daemon has given it. `beats` is how it said last that they are.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        number: int,
        epoch: int,
        config: Config,
        folder: Path,
        lock: Path,
        on_change: Callable[[WorkerHandle], None],
    ) -> None:
        """`on_change` is called on the loop after each beat, and at the end."""
        self.number = number
        self.config = config
        self.jobs: set[str] = set()
        self.beats: dict[str, JobBeat] = {}
        self.is_ready = asyncio.Event()
        self.has_ended = asyncio.Event()
        self.exit_code: int | None = None
        self.ended_by = ""
        self.is_worn = False
        """Something is left in it of a job that it had or looked at: it takes no other one."""
        self.is_outdated = False
        """Others have a newer configuration: it takes no other job."""
        self.guests: list[str] = []
        """The keys with sessions of WebRTC in it, as it said last."""
        self.questions = 0
        """How many are being asked now."""
        self._loop = asyncio.get_running_loop()
        self.last_beat_s = self._loop.time()
        self._on_change = on_change
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        self._forwarded = Forwarded(secret)
        socket = self._socket = str(folder / f"{epoch}-{number}")
        order = WorkerOrder(
            number=number,
            epoch=epoch,
            parent_pid=os.getpid(),
            socket=socket,
            secret=secret,
            lock=str(lock),
            config=config,
        )
        self.process = WorkerProcess(
            MODULE,
            order,
            on_beat=lambda beat: self._call(self._take_beat, beat),
            on_line=lambda line: log_line(line, self.number, self.jobs),
            on_end=lambda code: self._call(self._take_end, code),
        )
        # After the process, which may not come to be: a session has to be closed.
        self.session = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(socket, limit=0, keepalive_timeout=5.0),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be given jobs: ready, not gone, and nobody is ending it."""
        is_here = self.is_ready.is_set() and not self.has_ended.is_set()
        return is_here and not (self.ended_by or self.is_worn or self.is_outdated)

    def describe_end(self) -> str:
        """Return why it is gone, in words."""
        code = self.exit_code
        if self.ended_by:
            return self.ended_by
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"it was ended by {signal.Signals(-code).name}"
        return f"it ended with code {code}"

    def end(self, why: str = "") -> None:
        """End it at once."""
        self.ended_by = self.ended_by or why or "the daemon"
        self.process.kill()

    async def ask(
        self,
        method: str,
        path: str,
        value: Any = None,  # noqa: ANN401 - whatever msgspec can encode
        *,
        caller: Caller = LOCAL,
        timeout_s: float = _PATIENCE_S,
        trace: Mapping[str, str] | None = None,
    ) -> Reply:
        """Ask, and return what was answered with success.

        `trace` is of the request that is the cause, by default that of now (api/tracing.py).

        Raises:
            WorkerLostError: it is gone.
            DaemonTimeoutError: it did not answer in time.
            LivefuseError: what it said against it, in its words.
        """
        body = None if value is None else msgspec.json.encode(value)
        headers = {**self.sign(caller), **(get_trace() if trace is None else trace)}
        if body:
            headers["Content-Type"] = "application/json"
        try:
            with self.being_asked():
                async with (
                    asyncio.timeout(timeout_s),
                    self.session.request(method, _BASE + path, data=body, headers=headers) as got,
                ):
                    reply = Reply(got.status, await got.read())
        except TimeoutError:
            raise DaemonTimeoutError(f"worker {self.number} did not answer in time") from None
        except (aiohttp.ClientError, OSError, RuntimeError):
            raise explain_loss() from None
        if reply.status >= _BAD:
            raise read_problem(reply)
        return reply

    @contextlib.contextmanager
    def being_asked(self) -> Iterator[None]:
        """Count a question."""
        self.questions += 1
        try:
            yield
        finally:
            self.questions -= 1

    def sign(self, caller: Caller) -> dict[str, str]:
        """Return the headers that tell the worker who calls."""
        return {"Authorization": f"Bearer {self._forwarded.write_key(caller)}"}

    async def close(self) -> None:
        """End it if it lives, and wait for that."""
        self.end()
        await self.has_ended.wait()
        await self.session.close()

    def _call(self, function: Callable[..., None], *values: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the daemon is gone
            self._loop.call_soon_threadsafe(function, *values)

    def _take_beat(self, beat: Beat) -> None:
        self.last_beat_s = self._loop.time()
        self.beats = {job.id: job for job in beat.jobs}
        self.guests = beat.guests
        self.is_ready.set()
        self._on_change(self)

    def _take_end(self, code: int) -> None:
        self.exit_code = code
        with contextlib.suppress(OSError):  # one that was killed has left it
            Path(self._socket).unlink()
        self.has_ended.set()
        self._on_change(self)


def explain_loss() -> WorkerLostError:
    """Return the error for who asked a worker that is gone."""
    return WorkerLostError("the worker of this job is lost", hint="another one takes over: wait")


def read_problem(reply: Reply) -> LivefuseError:
    """Return the error that a worker told, as it was raised there."""
    try:
        problem = msgspec.json.decode(reply.data, type=Problem)
    except msgspec.MsgspecError:
        return LivefuseError(f"a worker said {reply.status}")
    kind = getattr(errors, problem.type.removeprefix(ERROR_TYPE), None)
    if isinstance(kind, type) and issubclass(kind, LivefuseError):
        return kind(problem.detail, hint=problem.hint)
    return LivefuseError(problem.detail, hint=problem.hint)
