"""The API of a worker in this process, asked over real HTTP, for tests."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.control.api.caller import LOCAL, Caller
from livefuse.control.api.server import ApiServer
from livefuse.control.jobs import JobManager
from livefuse.workers.local import Worker

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.control.api.caller import FindCaller

KEY = "a-key-of-twenty-letters"
CALLERS = {
    KEY: LOCAL,
    "key-of-an-operator": Caller("op", "operator", "op"),
    "key-of-a-streamer": Caller("st1", "streamer", "one"),
    "key-of-another-streamer": Caller("st2", "streamer", "two"),
    "key-of-a-viewer": Caller("vi", "viewer", "eyes"),
    "key-of-another-viewer": Caller("vi2", "viewer", "more eyes"),
    "key-of-a-scraper": Caller("sc", "scraper", "prometheus"),
}
SMALL = ("ingest.canvas=320x180", "http.port=0")


class Answer(NamedTuple):
    """What came back. `value` is the JSON, where it is JSON."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.data)


class RunningApi:
    """A server and its worker, on a loop in a thread of its own."""

    def __init__(self, folder: Path, *settings: str, find_caller: FindCaller = CALLERS.get) -> None:
        self.folder = folder
        config = load_config(
            None,
            (
                *SMALL,
                f"safety.folder={folder / 'safety'}",
                f"record.folder={folder / 'out'}",
                *settings,
            ),
        )
        self.manager = JobManager(Worker(config, SystemClock()))
        self.server = ApiServer(config, self.manager, KEY, find_caller)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.manager.stop_all()
        asyncio.run_coroutine_threadsafe(self.server.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def ask(
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        key: str = KEY,
    ) -> Answer:
        """Send a request, JSON unless `body` is given, with one of the keys of `CALLERS`."""
        if value is not None:
            body = json.dumps(value).encode()
        sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            self.server.base_url + path, data=body, method=method, headers=sent | (headers or {})
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())

    def wait_frames(
        self,
        job: str,
        frames: int = 5,
        timeout_s: float = 30.0,
        states: tuple[str, ...] = ("live",),
    ) -> dict[str, Any]:
        """Wait until the job has shown so many more frames, and is well; return its status."""
        deadline = time.monotonic() + timeout_s
        first: int | None = None
        status: dict[str, Any] = {}
        while time.monotonic() < deadline:
            status = self.ask("GET", f"/v1/jobs/{job}/status").value
            first = status["frames_out"] if first is None else first
            if status["frames_out"] >= first + frames and status["state"] in states:
                return status
            assert status["state"] != "failed", status
            time.sleep(0.05)
        raise AssertionError(f"no frames: {status}")
