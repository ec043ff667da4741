"""RTMP and RTMPS out: one child process per target, watched, replaced when it makes no progress.

Opening and writing may block for ever inside FFmpeg, holding Python's lock (PyAV 18); a process can
be killed, a call cannot. The child is `rtmp_child`; here one thread per target feeds it, never
blocks, and never keeps more than `rtmp.queue_packets`: what is late is dropped, not sent late.
"""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import ConfigError, PublishError
from livefuse.publish.backoff import Backoff
from livefuse.publish.rtmp_child import Task
from livefuse.publish.rtmp_dial import TargetDialler
from livefuse.publish.rtmp_failure import Failure, explain_stall
from livefuse.publish.rtmp_session import Session
from livefuse.publish.rtmp_state import TargetState
from livefuse.redact import redact_text, redact_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import AccessConfig, RtmpConfig
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.publish.base import OutputStatus

_PAUSE_STEP_MS: Final = 100
# A connection that held this long starts the waits anew; a shorter one may be a refusal.
_HELD_NS: Final = 5 * NS_PER_S
_KILL_S: Final = 1.0
_CA_FILES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


class RtmpOutput:
    """An `Output` to an RTMP server. It comes back by itself, for ever.

    After each connection `request_keyframe` is called, and nothing goes out before that keyframe.

    Raises:
        ConfigError: the URL has no host, application or key.
    """

    def __init__(
        self,
        url: str,
        config: RtmpConfig,
        clock: Clock,
        request_keyframe: Callable[[], None],
        access: AccessConfig | None = None,
    ) -> None:
        _check_url(url)
        self._dialler = TargetDialler(access)
        self._config = config
        self._clock = clock
        self._request_keyframe = request_keyframe
        self._state = TargetState(url, config.queue_packets, clock, request_keyframe)
        self._thread: threading.Thread | None = None

    def open(self, streams: StreamsInfo) -> None:
        """Start connecting; returns at once."""
        self._state.wakeup.open()
        url = self._state.url
        task = Task(url, streams, _find_ca_file(url), self._config.stall_ms)
        self._thread = threading.Thread(
            target=self._run, args=(task,), name="livefuse-rtmp", daemon=True
        )
        self._thread.start()

    def send(self, packet: Packet) -> None:
        """Take a packet; dropped and counted while there is no connection. Any thread."""
        if self._state.offer(packet):
            self._request_keyframe()

    def close(self, timeout_s: float) -> None:
        """Send what waits and leave the server in order; killed after `timeout_s`."""
        self._state.begin_closing()
        if self._thread is not None:
            self._thread.join(timeout_s)
            self._state.give_up.set()
            self._state.wakeup.set()
            self._thread.join(_KILL_S)
        if self._thread is None or not self._thread.is_alive():
            self._state.wakeup.close()
        self._state.note_closed()

    def wait_connected(self, timeout_s: float | None = None) -> None:
        """Wait until the server has taken the stream and kept it for a moment.

        Without `timeout_s` as long as `rtmp.connect_timeout_ms` and a little.

        Raises:
            PublishError: it was refused, or does not answer.
        """
        if timeout_s is None:
            timeout_s = self._config.connect_timeout_ms / 1000 + _KILL_S
        if not self._state.wait_connected(timeout_s):
            after_ms = round(timeout_s * 1000)
            raise explain_stall(self._state.url, after_ms, was_connected=False).error

    def status(self) -> OutputStatus:
        """Return a snapshot."""
        return self._state.status()

    def _run(self, task: Task) -> None:
        backoff = Backoff(self._config.backoff_min_ms, self._config.backoff_max_ms)
        while not self._state.is_closing:
            if self._serve(task):
                backoff.reset()
            self._pause(backoff.next_ms())

    def _serve(self, task: Task) -> bool:
        """Live through one connection; return whether it held for a while."""
        session: Session | None = None
        try:
            dial = self._dialler.choose(task)
            session = Session(self._state, dial, self._config, self._clock)
            session.run()
        except PublishError as error:
            self._state.note_lost(Failure("refused", error), 0)
        except Exception as error:  # noqa: BLE001 - whatever it is, only this connection is lost
            text = redact_text(f"{type(error).__name__}: {error}", (task.url,))
            failure = PublishError(f"the sender failed ({text})", hint="please report this fault")
            self._state.note_lost(Failure("refused", failure), 0)
        return session is not None and session.has_held(_HELD_NS)

    def _pause(self, wait_ms: int) -> None:
        """Wait for the next try, in steps, so that closing is not kept waiting."""
        end_ns = self._clock.now_ns() + wait_ms * NS_PER_MS
        while not self._state.is_closing and (left_ns := end_ns - self._clock.now_ns()) > 0:
            self._clock.wait(self._state.give_up, min(left_ns, _PAUSE_STEP_MS * NS_PER_MS))


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    app, _, key = parts.path.strip("/").partition("/")
    if not (parts.hostname and app and key):
        raise ConfigError(
            f"{redact_url(url)} does not say where to publish",
            hint="write rtmp://HOST/APPLICATION/KEY",
        )


def _find_ca_file(url: str) -> str:
    """Return the trusted certificates for rtmps: FFmpeg's wheel does not know where they are."""
    if not url.lower().startswith("rtmps:"):
        return ""
    paths = ssl.get_default_verify_paths()
    candidates = (paths.cafile, *_CA_FILES)
    return next((path for path in candidates if path and Path(path).is_file()), "")
