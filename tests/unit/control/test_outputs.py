"""Losses of outputs are told once, and a file that is not whole is a failure."""

import pytest
import structlog

from livefuse.control.outputs import OutputWatch, explain_lost_files, is_all_lost
from livefuse.errors import PublishError, get_exit_code


def output(kind="file", state="live", error="", **more):
    return {"kind": kind, "url": "out", "state": state, "error": error, "connected": False, **more}


LOST = output(state="refused", error="cannot write out.mp4: No space left on device")


def test_a_loss_and_a_return_are_told_once():
    watch = OutputWatch()
    up = output("rtmp", connected=True)
    lost = output("rtmp", "connecting", "the connection was lost")
    dialled = output("rtmp", "stalled", "the connection was lost", connected=True)
    untold = output("rtmp", "stalled", connected=True)
    player = output("http-flv", "refused", "never told")
    with structlog.testing.capture_logs() as logs:
        for now in (up, lost, lost, dialled, untold, up, up, lost):
            watch.note([now, player])
    told = [(line["log_level"], line["state"], line.get("cause", "")) for line in logs]
    lost_line = ("warning", "connecting", "the connection was lost")
    assert told == [lost_line, ("info", "live", ""), lost_line]


def test_outputs_are_told_apart_by_their_ids():
    """One that is removed shifts the others in the list, not in what was told of them."""
    watch = OutputWatch()
    gone = output("rtmp", connected=True, id="1")
    lost = output("rtmp", "refused", "the connection was refused", id="2")
    with structlog.testing.capture_logs() as logs:
        watch.note([gone, lost])
        watch.note([lost])
        watch.note([output("rtmp", connected=True, id="2")])
    assert [line["state"] for line in logs] == ["refused", "live"]


@pytest.mark.parametrize(
    ("outputs", "is_over"),
    [
        ([], False),
        ([LOST], True),
        ([LOST, output("http-flv", viewers=1)], True),
        ([LOST, output()], False),
        ([LOST, output("rtmp", "connecting")], False),
        ([output("virtualcam", "refused", "no driver")], False),
    ],
)
def test_only_files_are_lost_for_good(outputs, is_over):
    assert is_all_lost(outputs) is is_over


def test_a_lost_file_is_a_failure_of_the_run():
    assert explain_lost_files([output(), output("rtmp", "refused", "no such key")]) is None
    error = explain_lost_files([output(), LOST])
    assert isinstance(error, PublishError)
    assert get_exit_code(error) == 20
    assert "No space left" in str(error)
