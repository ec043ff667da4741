"""One RTMP connection from start to end: feed the child, hear it, watch that it gets on."""

from __future__ import annotations

import select
from collections import deque
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS
from livefuse.errors import PublishConnectError
from livefuse.publish.rtmp_child import CONNECTED, FAILED, SENT
from livefuse.publish.rtmp_failure import Failure, explain_failure, explain_stall
from livefuse.publish.rtmp_link import ChildLink

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import RtmpConfig
    from livefuse.publish.rtmp_child import Task
    from livefuse.publish.rtmp_state import TargetState

_POLL_MS: Final = 200
_KEPT_LINES: Final = 20


class Session:
    """One child. `run` blocks its thread until the child has ended or was killed."""

    def __init__(self, state: TargetState, task: Task, config: RtmpConfig, clock: Clock) -> None:
        self._state = state
        self._task = task
        self._config = config
        self._clock = clock
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._poller = select.poll()
        # Packets given to the child, those that it must answer for (pictures), and its last answer.
        self._given = self._asked = self._sent = 0
        self._progress_ns = clock.now_ns()
        self._connected_ns: int | None = None
        self._is_finishing = False

    def has_held(self, least_ns: int) -> bool:
        """Return whether the connection was good for `least_ns`, up to its last progress."""
        return self._connected_ns is not None and (
            self._progress_ns - self._connected_ns >= least_ns
        )

    @property
    def is_connected(self) -> bool:
        """Whether the server has taken the connection."""
        return self._connected_ns is not None

    def run(self) -> None:
        """Serve one connection; its end is noted in the shared state."""
        try:
            link = ChildLink(self._task)
        except OSError as error:
            sentence = f"the sender cannot be started ({error.strerror})"
            self._state.note_lost(Failure("refused", PublishConnectError(sentence)), 0)
            return
        failure: Failure | None = None
        try:
            failure = self._serve(link)
        finally:
            link.kill()
            self._state.note_lost(failure, self._given - self._sent)

    def _serve(self, link: ChildLink) -> Failure | None:
        self._poller.register(link.stdout_fd, select.POLLIN)
        self._poller.register(self._state.wakeup.fd, select.POLLIN)
        while not self._state.give_up.is_set():
            self._poll(link)
            for line in link.read_lines():
                self._take_line(line)
            if link.has_ended:
                return None if self._is_finishing else self._explain_end()
            if self._state.is_closing and not self._finish(link):
                return None
            self._feed(link)
            stall = self._find_stall(link)
            if stall is not None:
                return stall
        return None

    def _poll(self, link: ChildLink) -> None:
        wakeup = self._state.wakeup
        if not link.is_idle:
            self._poller.register(link.stdin_fd, select.POLLOUT)
        ready = self._poller.poll(_POLL_MS)
        if not link.is_idle:
            self._poller.unregister(link.stdin_fd)
        if any(fd == wakeup.fd for fd, _ in ready):
            wakeup.clear()

    def _take_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        now = self._clock.now_ns()
        if word == CONNECTED:
            self._connected_ns = self._progress_ns = now
            self._state.note_connected()
        elif word == SENT and rest.isdigit():
            self._progress_ns = now
            self._state.note_sent(int(rest) - self._sent)
            self._sent = int(rest)
        else:
            self._said.append(line.removeprefix(f"{FAILED} "))

    def _feed(self, link: ChildLink) -> None:
        """Give the child what the pipe takes, a packet at a time."""
        link.flush()
        while link.is_idle and not self._is_finishing:
            packet = self._state.take()
            if packet is None:
                return
            self._given += 1
            if packet.kind == "video":
                self._asked = self._given
            link.send(packet)
            link.flush()

    def _finish(self, link: ChildLink) -> bool:
        """While closing: end the input once all has gone; False when nothing is worth waiting."""
        if not self.is_connected:
            return False
        if not self._is_finishing and link.is_idle and not self._state.count_waiting():
            self._is_finishing = True
            link.end_input()
        return True

    def _find_stall(self, link: ChildLink) -> Failure | None:
        """Return the failure of a peer that has not moved for too long while something waits."""
        now = self._clock.now_ns()
        waits = self._asked > self._sent or not link.is_idle or self._is_finishing
        if self.is_connected and not waits:
            self._progress_ns = now
        config = self._config
        limit_ms = config.stall_ms if self.is_connected else config.connect_timeout_ms
        if now - self._progress_ns <= limit_ms * NS_PER_MS:
            return None
        return explain_stall(self._task.url, limit_ms, was_connected=self.is_connected)

    def _explain_end(self) -> Failure:
        return explain_failure(
            self._task.url,
            list(self._said),
            was_connected=self.is_connected,
            lived_ns=self._clock.now_ns() - (self._connected_ns or 0),
        )
