"""An RTMP target goes on dialling whatever a connection meets (tests/wire has real servers)."""

from __future__ import annotations

import threading

import pytest

from livefuse.clock import SystemClock
from livefuse.config import RtmpConfig
from livefuse.errors import PublishError
from livefuse.packet import Packet, StreamsInfo
from livefuse.publish import rtmp
from livefuse.publish.rtmp_state import TargetState


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


def make_packet(kind, dts, *, is_keyframe=False):
    return Packet(kind, b"x", dts, dts, is_keyframe=is_keyframe)


def test_after_each_connection_a_keyframe_is_asked_for_and_nothing_goes_before_it():
    """C36: dropped meanwhile, not kept."""
    asked: list[int] = []
    state = TargetState("rtmp://h/app/key", 10, SystemClock(), lambda: asked.append(1))
    for connection in (1, 2, 3):
        assert not state.offer(make_packet("video", 1, is_keyframe=True)), "nobody is there"
        state.note_connected()
        assert len(asked) == connection
        state.offer(make_packet("video", 2))
        state.offer(make_packet("audio", 2))
        assert state.take() is None
        state.offer(make_packet("video", 3, is_keyframe=True))
        state.offer(make_packet("audio", 3))
        first, second = state.take(), state.take()
        assert first is not None
        assert second is not None
        assert (first.is_keyframe, first.dts, second.kind) == (True, 3, "audio")
        state.offer(make_packet("video", 4))
        state.note_lost(None, 0)
        assert state.take() is None
    assert state.status().dropped == 3 * 4
    assert state.status().reconnects == 2
