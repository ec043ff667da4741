"""Which outputs must be there when a job starts.

A wrong address is told at once, and yet one of several servers that is down stops no job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S
from livefuse.errors import PublishError
from livefuse.publish.rtmp import RtmpOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.clock import Clock
    from livefuse.config.media import StartRule
    from livefuse.publish.base import FrameOutput, Output

_TOGETHER_NS: Final = 2 * NS_PER_S


def wait_for_start(outputs: Sequence[Output | FrameOutput], rule: StartRule, clock: Clock) -> None:
    """Wait until the remote outputs were reached for the first time, as many as `rule` asks for.

    With "one" any output will do, a file too; the others are given two seconds together, so that a
    stream begins for all where that is possible. With "none" nothing is waited for.

    Raises:
        PublishError: what stands in the way of the first that cannot be reached.
    """
    remote = [output for output in outputs if isinstance(output, RtmpOutput)]
    if rule == "none" or not remote:
        return
    if rule == "all":
        for output in remote:
            output.wait_connected()
        return
    end_ns = clock.now_ns() + _TOGETHER_NS
    reached = [output for output in remote if _is_reached(output, end_ns - clock.now_ns())]
    if reached or len(remote) < len(outputs):
        return
    failures = [failure for output in remote if (failure := _find_failure(output)) is not None]
    if len(failures) == len(remote):
        raise failures[0]


def _is_reached(output: RtmpOutput, left_ns: int) -> bool:
    try:
        output.wait_connected(max(left_ns, 0) / NS_PER_S)
    except PublishError:
        return False
    return True


def _find_failure(output: RtmpOutput) -> PublishError | None:
    """Wait as long as connecting may take; return what went wrong."""
    try:
        output.wait_connected()
    except PublishError as error:
        return error
    return None
