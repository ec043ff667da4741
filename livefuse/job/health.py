"""How a job is, in one word and a sentence. Pure: what is seen of it goes in.

LOADING             not on air yet: the input is being opened, networks load
ONLINE              pictures come, are treated as asked for, and go out
DEGRADED_INPUT      the input stalls or is lost; the output goes on with the last picture
DEGRADED_INFERENCE  pictures are not treated as asked for; they are covered or held meanwhile
ERROR               it has ended by a fault, or no output takes its stream
STOPPED             it has ended as it was meant to
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from livefuse.ingest.base import InputState

Health = Literal["LOADING", "ONLINE", "DEGRADED_INPUT", "DEGRADED_INFERENCE", "ERROR", "STOPPED"]
READY: Final = frozenset({"ONLINE", "DEGRADED_INPUT", "DEGRADED_INFERENCE"})
"""A job of these is on air."""

_DEAD_MS: Final = 1000
_FRAMES_AWAY: Final = 3.0
FAILING_SHARE: Final = 0.5
"""Of the last pictures: where a step fails on so many, they are not treated as asked for."""
_ENDED: Final = frozenset({"stopping", "stopped"})
_AWAY: Final[dict[InputState, str]] = {
    "connecting": "the input is being dialled",
    "stalled": "the input sends nothing",
    "lost": "the input is lost",
}


class Signs(NamedTuple):
    """What is seen of a job.

    `state` is the job's (connecting, running, stopping, stopped, failed), `error` what it ended by.
    `is_loading`: frames are covered until networks are ready. `input_age_ms` is None before the
    first frame, or where age says nothing (a file). `failed_share` is the part of the last frames
    that a step failed on; `withheld` says why none may be seen whatever the steps do (a consent
    that was revoked); `slow_work` is a step that has been at one picture for over a second;
    `is_holding`: the last picture is shown for want of another.
    `has_renewed`: the pipeline was made anew within the last minute; `outputs` are the states of
    what was asked for, `opening` for those that are being reached for the first time.
    """

    state: str
    error: str = ""
    is_loading: bool = False
    input_state: InputState = "live"
    input_age_ms: int | None = None
    frame_ms: float = 1000 / 30
    failed_share: float = 0.0
    withheld: str = ""
    covers_all: bool = False
    slow_work: str = ""
    is_holding: bool = False
    has_renewed: bool = False
    outputs: tuple[str, ...] = ()


class Condition(NamedTuple):
    """A job's health, and why; empty when there is nothing to say.

    `is_withheld`: no picture may be seen, whatever else ails it.
    """

    health: Health
    reason: str = ""
    is_withheld: bool = False


def judge(signs: Signs) -> Condition:
    """Return how a job is: the first that holds, the gravest first."""
    if signs.state == "failed":
        return Condition("ERROR", signs.error or "it has failed")
    if signs.state in _ENDED:
        return Condition("STOPPED")
    if signs.state != "running":
        return Condition("LOADING", "the input is being opened")
    if signs.outputs and all(state == "refused" for state in signs.outputs):
        return Condition("ERROR", "no output takes the stream")
    if signs.is_loading and not signs.has_renewed:
        return Condition("LOADING", "networks are loading, pictures are covered")
    return _judge_input(signs) or _judge_inference(signs) or Condition("ONLINE", _tell(signs))


def _judge_input(signs: Signs) -> Condition | None:
    age_ms = signs.input_age_ms
    is_silent = age_ms is not None and age_ms > max(_DEAD_MS, _FRAMES_AWAY * signs.frame_ms)
    words = _AWAY.get(signs.input_state) or ("the input sends nothing" if is_silent else "")
    if not words:
        return None
    since = f", the last picture is {age_ms / 1000:.1f} s old" if age_ms is not None else ""
    return Condition("DEGRADED_INPUT", words + since)


def _judge_inference(signs: Signs) -> Condition | None:
    percent = round(100 * signs.failed_share)
    troubles = (
        (signs.is_loading, "the pipeline is being made anew"),
        (bool(signs.withheld), signs.withheld),
        (signs.failed_share >= FAILING_SHARE, f"steps fail on {percent} % of the pictures"),
        (bool(signs.slow_work), f"{signs.slow_work} does not come back"),
        (signs.is_holding, "pictures come and do not get through the pipeline"),
        (signs.covers_all, "overload: every picture is covered whole"),
    )
    words = next((words for holds, words in troubles if holds), "")
    is_withheld = bool(signs.withheld) and words == signs.withheld
    return Condition("DEGRADED_INFERENCE", words, is_withheld) if words else None


def _tell(signs: Signs) -> str:
    away = sum(state not in ("live", "opening") for state in signs.outputs)
    return f"{away} of {len(signs.outputs)} outputs not live" if away else ""
