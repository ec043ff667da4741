"""Which outputs must be there when a job starts."""

from __future__ import annotations

import pytest

from livefuse.clock import SystemClock
from livefuse.config import RtmpConfig
from livefuse.errors import PublishConnectError
from livefuse.publish import start
from livefuse.publish.rtmp import RtmpOutput
from livefuse.publish.start import wait_for_start


class Remote(RtmpOutput):
    """Reached, or not, at once: what a real one says after a while."""

    def __init__(self, name, *, is_up):
        super().__init__(f"rtmp://{name}/live/key", RtmpConfig(), SystemClock(), lambda: None)
        self.name = name
        self.is_up = is_up
        self.waits = []
        self.close(0)

    def wait_connected(self, timeout_s=None):
        self.waits.append(timeout_s)
        if not self.is_up:
            raise PublishConnectError(f"{self.name} is down")


class File:
    """Anything that is not remote."""


UP, DOWN, OTHER = "up", "down", "file"


def make(kinds):
    return [
        File() if kind == OTHER else Remote(f"{kind}{n}", is_up=kind == UP)
        for n, kind in enumerate(kinds)
    ]


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
        wait_for_start(outputs, rule)
    else:
        with pytest.raises(PublishConnectError, match=told):
            wait_for_start(outputs, rule)


def test_nobody_is_waited_for_longer_than_needed():
    none, file, one = make([DOWN]), make([OTHER, DOWN]), make([DOWN, UP])
    wait_for_start(none, "none")
    assert none[0].waits == []
    wait_for_start(file, "one")
    assert file[1].waits == [start._TOGETHER_S]
    wait_for_start(one, "one")
    assert [remote.waits for remote in one] == [[start._TOGETHER_S]] * 2


def test_one_that_is_slow_to_connect_is_waited_for():
    """Not there within the two seconds for all together, but within the time that it may take."""
    slow, down = make([DOWN, DOWN])

    def wait_connected(timeout_s=None):
        slow.waits.append(timeout_s)
        if timeout_s is not None:
            raise PublishConnectError("not yet")

    slow.wait_connected = wait_connected
    wait_for_start([down, slow], "one")
    assert slow.waits == [start._TOGETHER_S, None]
