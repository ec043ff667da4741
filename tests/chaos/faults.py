"""What each fault does: `begin` does it and returns what ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from tests.chaos.control import Victim
    from tests.chaos.peers import Camera, Server
    from tests.chaos.plan import Fault

End = Callable[[], None]


class Faults:
    """Does the faults of a plan to one run. One thread."""

    def __init__(self, camera: Camera, server: Server, victim: Victim) -> None:
        self._camera = camera
        self._server = server
        self._victim = victim

    def begin(self, fault: Fault) -> End:
        """Do `fault`; the answer ends it and is to be called `lasts_s` later."""
        act: Callable[[Fault], End] = getattr(self, f"_{fault.kind}")
        return act(fault)

    # The camera.

    def _camera_stop(self, _fault: Fault) -> End:
        self._camera.pause()
        return self._camera.resume

    def _camera_kill(self, _fault: Fault) -> End:
        self._camera.kill()
        return self._start(self._camera)

    def _camera_other_size(self, _fault: Fault) -> End:
        return self._change_film("small")

    def _camera_other_sets(self, _fault: Fault) -> End:
        return self._change_film("other_sets")

    def _change_film(self, film: str) -> End:
        self._camera.kill()
        self._camera.film = "plain" if self._camera.film == film else film
        return self._start(self._camera)

    # The server and who sends to it.

    def _server_stop(self, _fault: Fault) -> End:
        self._server.pause()
        return self._server.resume

    def _server_kill(self, _fault: Fault) -> End:
        self._server.kill()
        return self._start(self._server)

    def _server_refuse(self, _fault: Fault) -> End:
        self._server.kill()
        self._server.refuses = True
        self._server.start()

        def allow() -> None:
            self._server.kill()
            self._server.refuses = False
            self._server.start()

        return allow

    def _sender_stop(self, _fault: Fault) -> End:
        sender = self._victim.find_sender(self._server.port)
        if sender is None:
            return _nothing
        sender.send_signal(signal.SIGSTOP)
        return lambda: _resume(sender)

    def _sender_kill(self, _fault: Fault) -> End:
        sender = self._victim.find_sender(self._server.port)
        if sender is not None:
            sender.kill()
        return _nothing

    # Inside livefuse.

    def _arm(self, place: str, action: str, fault: Fault) -> End:
        times = int(fault.details.get("times", 1))
        self._victim.command("arm", place=place, action=action, times=times, seconds=fault.lasts_s)
        return _nothing

    def _step_hang(self, fault: Fault) -> End:
        return self._arm(f"step:{fault.details['where']}", "hang", fault)

    def _step_raise(self, fault: Fault) -> End:
        return self._arm(f"step:{fault.details['where']}", "raise", fault)

    def _thread_kill(self, fault: Fault) -> End:
        return self._arm(f"thread:{fault.details['where']}", "raise", fault)

    def _decoder_raise(self, fault: Fault) -> End:
        return self._arm("decode", "raise_foreign", fault)

    def _decoder_crash(self, fault: Fault) -> End:
        return self._arm("decode", "raise", fault)

    def _decoder_garbage(self, fault: Fault) -> End:
        return self._arm("decode", "garbage", fault)

    def _decoder_hang(self, fault: Fault) -> End:
        return self._arm("decode", "hang", fault)

    def _encoder_raise(self, fault: Fault) -> End:
        return self._arm("encode", "raise_foreign", fault)

    def _encoder_hang(self, fault: Fault) -> End:
        return self._arm("encode", "hang", fault)

    def _audio_raise(self, fault: Fault) -> End:
        return self._arm("audio", "raise", fault)

    def _audio_hang(self, fault: Fault) -> End:
        return self._arm("audio", "hang", fault)

    def _burn(self, fault: Fault) -> End:
        self._victim.command("burn", seconds=fault.lasts_s)
        return _nothing

    def _eat(self, fault: Fault) -> End:
        self._victim.command("eat", mb=fault.details["times"], seconds=fault.lasts_s)
        return _nothing

    def _freeze(self, _fault: Fault) -> End:
        pid = self._victim.pid
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    @staticmethod
    def _start(peer: Any) -> End:
        def start() -> None:
            peer.start()

        return start


def _nothing() -> None:
    """What needs no end."""


def _resume(process: psutil.Process) -> None:
    """Let a stopped child go on; livefuse may have replaced it meanwhile."""
    try:
        process.send_signal(signal.SIGCONT)
    except psutil.Error:
        return
