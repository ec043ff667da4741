"""An RTMP target goes on dialling whatever a connection meets (tests/wire has real servers)."""

from __future__ import annotations

import threading

import pytest

from livefuse.clock import SystemClock
from livefuse.config import RtmpConfig
from livefuse.errors import PublishError
from livefuse.packet import StreamsInfo
from livefuse.publish import rtmp


def test_a_fault_in_a_connection_is_told_and_the_next_is_tried(monkeypatch):
    dialled, is_back = [], threading.Event()

    class Session:
        def __init__(self, state, task, *_):
            self.state = state
            dialled.append(task.url)

        def run(self):
            if len(dialled) == 1:
                raise OSError(24, "Too many open files: rtmp://h/live/streamkey")
            is_back.set()
            self.state.give_up.wait(10)

        def has_held(self, _least_ns):
            return False

    monkeypatch.setattr(rtmp, "Session", Session)
    config = RtmpConfig(backoff_min_ms=400, backoff_max_ms=400)
    output = rtmp.RtmpOutput("rtmp://h/live/streamkey", config, SystemClock(), lambda: None)
    output.open(StreamsInfo(None, None))
    with pytest.raises(PublishError, match="the sender failed") as caught:
        output.wait_connected(10)
    assert "streamkey" not in str(caught.value)
    assert output.status().state == "refused"
    assert is_back.wait(10)
    output.close(0.1)
    assert output.status().state == "closed"
