"""A worker believes its daemon who calls, and nobody else."""

import pytest

from livefuse.control.api.caller import Caller
from livefuse.control.api.forwarded import Forwarded

SECRET = "s" * 43
CALLER = Caller("k1", "streamer", "张三's key", "2606:4700::1")


def test_what_the_daemon_says_comes_through():
    ours = Forwarded(SECRET)
    key = ours.write_key(CALLER)
    assert key.isascii()
    assert key.isprintable()
    assert ours.find_caller(key) == CALLER


@pytest.mark.parametrize(
    "given", ["", ".", SECRET, f"{SECRET}.", f"{SECRET}.e30=", f"{SECRET}.x", "é.中"]
)
def test_nothing_else_does(given):
    assert Forwarded(SECRET).find_caller(given) is None


def test_another_daemon_does_not():
    assert Forwarded(SECRET).find_caller(Forwarded("t" * 43).write_key(CALLER)) is None
