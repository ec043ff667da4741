"""Which outputs must be there when a job starts."""

from __future__ import annotations

import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import RtmpConfig
from livefuse.errors import PublishConnectError
from livefuse.publish.rtmp import RtmpOutput
from livefuse.publish.start import wait_for_start


class Remote(RtmpOutput):
    """Reached at once, or not within the time that it is given."""

    def __init__(self, name, clock, *, is_up):
        super().__init__(f"rtmp://{name}/live/key", RtmpConfig(), clock, lambda: None)
        self.clock = clock
        self.name = name
        self.is_up = is_up
        self.waits = []
        self.close(0)

    def wait_connected(self, timeout_s=None):
        self.waits.append(timeout_s)
        if not self.is_up:
            self.clock.advance(round((timeout_s or 0) * NS_PER_S))
            raise PublishConnectError(f"{self.name} is down")


class File:
    """Anything that is not remote."""


UP, DOWN, OTHER = "up", "down", "file"


def make(kinds):
    clock = ManualClock()
    return [
        File() if kind == OTHER else Remote(f"{kind}{n}", clock, is_up=kind == UP)
        for n, kind in enumerate(kinds)
    ]


def wait(outputs, rule):
    """Wait by the clock that all of them were made with."""
    clocks = [output.clock for output in outputs if isinstance(output, Remote)]
    wait_for_start(outputs, rule, clocks[0] if clocks else ManualClock())


@pytest.mark.parametrize(
    ("rule", "kinds", "told"),
    [
        ("one", [DOWN], "down0"),
        ("one", [DOWN, DOWN], "down0"),
        ("one", [UP, DOWN], None),
        ("one", [DOWN, UP], None),
        ("one", [OTHER, DOWN], None),
        ("one", [], None),
        ("all", [UP, DOWN], "down1"),
        ("all", [OTHER, DOWN], "down1"),
        ("all", [UP, UP], None),
        ("none", [DOWN], None),
    ],
)
def test_who_must_be_there(rule, kinds, told):
    outputs = make(kinds)
    if told is None:
        wait(outputs, rule)
    else:
        with pytest.raises(PublishConnectError, match=told):
            wait(outputs, rule)


def test_nobody_is_waited_for_longer_than_needed():
    """Two seconds, however many are down: the one that is there must not wait for each of them."""
    none, file, one = make([DOWN]), make([OTHER, DOWN]), make([DOWN, DOWN, DOWN, UP])
    wait(none, "none")
    assert none[0].waits == []
    wait(file, "one")
    assert file[1].waits == [2.0]
    wait(one, "one")
    assert [remote.waits for remote in one] == [[2.0], [0.0], [0.0], [0.0]]


def test_one_that_is_slow_to_connect_is_waited_for():
    """Not there within the two seconds for all together, but within the time that it may take."""
    slow, down = make([DOWN, DOWN])

    def wait_connected(timeout_s=None):
        slow.waits.append(timeout_s)
        if timeout_s is not None:
            raise PublishConnectError("not yet")

    slow.wait_connected = wait_connected
    wait([down, slow], "one")
    assert slow.waits == [0.0, None]
