"""The golden recordings, each replayed with costs of its own, and what is kept of a report.

Kept are decisions, not pictures: those differ from one processor to the next. They stand in
`goldens/NAME.json`, one character a frame where that is enough, so that a change can be read.
`python -m tests.replay.update` writes them anew.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livefuse.clock import NS_PER_S
from livefuse.ingest.playback import open_recording
from livefuse.ingest.source import Source
from livefuse.virtual import Costs, Noise, Phase, TableCosts
from tests.replay.steps import create_config, create_replay
from tests.replay.stream import MadeRecording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from livefuse.ingest.playback import Entry
    from livefuse.replay.decisions import FrameDecision, ReplayReport

DATA = Path(__file__).parent / "data"
GOLDENS = Path(__file__).parent / "goldens"
_LINE = 60
_FATES = {"": "?", "shown": "s", "dropped": "d", "held": "h"}
USUAL = {
    "decode": 2.0, "encode": 4.0, "detect": 9.0, "detect_spared": 1.0, "align": 6.0,
    "align_spared": 0.5, "enhance": 9.0, "enhance_spared": 1.0, "blur": 1.0, "beautify": 3.0,
}  # fmt: skip

# What is cheap to compute: in virtual time it is the costs above that count.
_CHEAP: dict[str, dict[str, object]] = {
    "detect": {"model": "blazeface_full_192", "every_n": 5},
    "align": {"model": "facemesh_468"},
    "encode": {"preset": "ultrafast", "threads": 1},
}


@dataclass(frozen=True)
class Scene:
    """How a recording is replayed; what came after `until_s` is left out."""

    operations: tuple[str, ...] = ("detect", "blur")
    costs: Costs = field(default_factory=lambda: Costs(costs_ms=USUAL))
    until_s: float = 60.0


SCENES = {
    "burst": Scene(),
    "stall": Scene(),
    "restart": Scene(),
    "wrap": Scene(),
    "size": Scene(),
    "rotation": Scene(),
    "missing": Scene(),
    "noise": Scene(),
    # For a second and a half enhance takes five times as long: more than a frame has.
    "overload": Scene(
        operations=("detect", "align", "enhance"),
        costs=Costs(
            costs_ms=USUAL,
            noise=Noise(seed=1, share=0.1),
            phases=(Phase(start=45, end=90, factor=5.0, works=("enhance",)),),
        ),
        until_s=8.0,
    ),
}


def replay_scene(name: str) -> ReplayReport:
    """Replay the recording of that name."""
    scene, config = SCENES[name], create_config(**_CHEAP)
    recording = open_recording(DATA / f"{name}.mkv", config.ingest)
    begin = MadeRecording(lambda: itertools.takewhile(is_early, recording.read()))

    def is_early(entry: Entry) -> bool:
        at_ns = entry.opened_ns if isinstance(entry, Source) else entry.arrival_ns
        return at_ns < scene.until_s * NS_PER_S

    costs = TableCosts(scene.costs)
    return create_replay(begin, operations=scene.operations, costs=costs, config=config).run()


def condense(report: ReplayReport) -> dict[str, Any]:
    """Return the decisions of `report`, small and readable."""
    frames = report.frames
    names = dict.fromkeys(name for f in frames for name in (*f.done, *f.spared))
    return {
        "summary": report.summary,
        "rungs": [f"{c.at_ms:g} ms: {c.rung} ({c.reason})" for c in report.rungs],
        "input": [f"{c.at_ms:g} ms: {c.state}" for c in report.input],
        "frames (s shown, d dropped, h held)": _wrap(_FATES[f.fate] for f in frames),
        "steps (# done, - spared)": {
            name: _wrap("#" if name in f.done else "-" if name in f.spared else " " for f in frames)
            for name in names
        },
        "pts": _count_steps([f.pts for f in frames if f.pts is not None]),
        "shown at other pts": _list_numbers(frames, lambda f: f.shown_pts is not None),
        "dropped": _group(frames, lambda f: f.reason),
        "covered": _group(frames, lambda f: f.covered),
        "errors": _group(frames, lambda f: f.error),
        "rung": _group(frames, lambda f: f.rung),
        "faces": _group(frames, lambda f: str(f.faces) if f.fate == "shown" else ""),
        "token states": _group(
            frames, lambda f: ", ".join(state for state in f.token if state not in names)
        ),
    }


def write_golden(name: str, report: ReplayReport) -> None:
    """Let `report` be what is expected from now on."""
    GOLDENS.mkdir(exist_ok=True)
    text = json.dumps(condense(report), indent=1, ensure_ascii=False)
    (GOLDENS / f"{name}.json").write_text(text + "\n")


def read_golden(name: str) -> dict[str, Any]:
    """Return what is expected."""
    golden: dict[str, Any] = json.loads((GOLDENS / f"{name}.json").read_text())
    return golden


def _wrap(letters: Iterable[str]) -> list[str]:
    text = "".join(letters)
    return [text[at : at + _LINE] for at in range(0, len(text), _LINE)]


def _count_steps(stamps: Sequence[int]) -> str:
    """Return the first stamp and the steps between, `0 +3000x59 +1500`."""
    steps = [after - before for before, after in itertools.pairwise(stamps)]
    runs = [(step, len(list(group))) for step, group in itertools.groupby(steps)]
    return " ".join([str(stamps[0]), *(f"{step:+d}x{count}" for step, count in runs)])


def _group(frames: Sequence[FrameDecision], tell: Callable[[FrameDecision], str]) -> dict[str, str]:
    """Return for each word which frames have it, by their places in the list."""
    words = dict.fromkeys(word for f in frames if (word := tell(f)))

    def list_places(word: str) -> str:
        return _list_numbers(frames, lambda frame: tell(frame) == word)

    return {word: list_places(word) for word in words}


def _list_numbers(
    frames: Sequence[FrameDecision], is_meant: Callable[[FrameDecision], bool]
) -> str:
    """Return the places of those that are meant, `1-5 8`."""
    places = [place for place, frame in enumerate(frames, 1) if is_meant(frame)]
    runs = []
    for _, group in itertools.groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        run = [place for _, place in group]
        runs.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}")
    return " ".join(runs)
