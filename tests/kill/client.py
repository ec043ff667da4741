"""A client that makes, changes and deletes jobs as fast as it is answered, and notes it all."""

from __future__ import annotations

import http.client
import threading
import time
from typing import TYPE_CHECKING, Any

from tests.daemons import MERGE, TINY
from tests.kill.ledger import Entry

if TYPE_CHECKING:
    import random

    from tests.apis import Answer
    from tests.daemons import RunningDaemon
    from tests.kill.ledger import Ledger

MAX_RUNNING, MAX_JOBS = 2, 6
_PAUSE_S = 0.05
_BROKEN = (OSError, http.client.HTTPException, ValueError)


class Client:
    """One thread. `rest` returns when it has nothing under way."""

    def __init__(self, daemon: RunningDaemon, ledger: Ledger, dice: random.Random) -> None:
        self.failure: BaseException | None = None
        self._daemon = daemon
        self._ledger = ledger
        self._dice = dice
        self._count = 0
        self._is_wanted = threading.Event()
        self._rests = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="client", daemon=True)
        self._thread.start()

    def work(self) -> None:
        """Go on."""
        self._rests.clear()
        self._is_wanted.set()

    def rest(self) -> None:
        """Stop, what is under way having been answered, or not."""
        self._is_wanted.clear()
        assert self._rests.wait(90), "the client is stuck"
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """End."""
        self._is_over.set()
        self._is_wanted.set()
        self._thread.join(90)

    def _run(self) -> None:
        while True:
            if not self._is_wanted.is_set():
                self._rests.set()
            self._is_wanted.wait()
            if self._is_over.is_set():
                return
            try:
                self._act()
            except BaseException as error:  # noqa: BLE001 - told to who waits
                self.failure = error
                self._rests.set()
                return
            time.sleep(_PAUSE_S)

    def _act(self) -> None:
        entries = self._ledger.entries
        names = [name for name, entry in entries.items() if entry.there == {True}]
        running = [name for name in names if entries[name].wanted == {True}]
        if not names or (len(names) < MAX_JOBS and self._dice.random() < 0.3):
            self._create(is_started=len(running) < MAX_RUNNING)
        elif running and self._dice.random() < 0.6:
            self._patch(self._dice.choice(running))
        elif self._dice.random() < 0.5 and len(names) > 2:
            self._delete(self._dice.choice(names))
        else:
            self._submit(self._dice.choice(names))

    def _create(self, *, is_started: bool) -> None:
        self._count += 1
        name, blend = f"job-{self._count}", self._roll()
        entry = self._ledger.entries[name] = Entry(there={True, False}, blend={blend})
        entry.wanted = {is_started, False}
        wish = {"id": name, "spec": self._spec(blend), "start": is_started}
        answer = self._ask("POST", "/v1/jobs", wish, {"Idempotency-Key": name})
        if answer is not None and answer.status == 201:
            entry.there, entry.wanted = {True}, {is_started}

    def _submit(self, name: str) -> None:
        entry, blend = self._ledger.entries[name], self._roll()
        if True in entry.wanted:
            return
        before = set(entry.blend)
        entry.blend |= {blend}
        answer = self._ask("PUT", f"/v1/jobs/{name}/spec", self._spec(blend))
        if answer is not None:
            entry.blend = {blend} if answer.status == 200 else before

    def _patch(self, name: str) -> None:
        entry, blend = self._ledger.entries[name], self._roll()
        entry.blend |= {blend}
        patch = {"parameters": {"blend_ratio": blend}}
        answer = self._ask("PATCH", f"/v1/jobs/{name}/token", patch, MERGE)
        # Refused: its worker may have done it, and was lost before that was kept.
        if answer is not None and answer.status == 200:
            entry.blend = {blend}

    def _delete(self, name: str) -> None:
        entry = self._ledger.entries[name]
        entry.there |= {False}
        entry.wanted |= {False}
        answer = self._ask("DELETE", f"/v1/jobs/{name}")
        if answer is not None and answer.status in (204, 404):
            entry.there = {False}

    def _ask(
        self, method: str, path: str, value: Any = None, headers: dict[str, str] | None = None
    ) -> Answer | None:
        """Return what was answered, None when nothing was, or that it went wrong with us."""
        try:
            answer = self._daemon.ask(method, path, value, headers=headers)
        except _BROKEN:
            answer = None
        if answer is None or answer.status >= 500:
            self._ledger.unanswered += 1
            time.sleep(_PAUSE_S)
            return None
        self._ledger.answered += 1
        return answer

    def _roll(self) -> float:
        return self._dice.randrange(1, 100) / 100

    @staticmethod
    def _spec(blend: float) -> dict[str, Any]:
        return TINY | {"parameters": {"blend_ratio": blend}}
