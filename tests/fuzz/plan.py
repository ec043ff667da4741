"""One run, decided by a seed: what is filmed, what is asked for, what goes wrong when."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fuzz.scene import Actor, Place, Scene

FPS: Final = 30
SIZES: Final = ((320, 180), (320, 180), (384, 216), (240, 320))
SOURCES: Final = ((320, 180), (480, 270), (240, 320), (400, 300), (256, 144))
FACE_PX: Final = (60.0, 140.0)
_AVATARS: Final = ("avatar:robot", "avatar:fox", "avatar:porcelain")
_SWAP: Final = ("detect", "align", "swap")
_SHAKY: Final = ("detect", "align", "swap", "blur", "background", "enhance", "puppet", "beautify")

Patch = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What goes wrong on the camera's frames from `start` on, `frames` of them.

    `kind`: raise, raise_late (after the step has painted), raise_once (its second try works), slow
    (by `amount` ms), blind (the detector finds nobody), detector_error, mesh (landmarks are
    garbage), burst (all work costs `amount` times as much).
    """

    kind: str
    start: int
    frames: int = 1
    step: str = ""
    amount: float = 0.0


@dataclass(frozen=True)
class Hand:
    """What is done to the job at the camera's frame `at`: patch, consent, renew, pressure."""

    at: int
    kind: str
    value: Any = None


@dataclass(frozen=True)
class Gap:
    """The camera is silent for `seconds`; unless it `goes_on` its stamps do not know of it."""

    seconds: float
    goes_on: bool = True


@dataclass
class Plan:
    """One run. `token` is a patch to an empty token; `sources` are sizes from a frame on."""

    seed: int
    name: str = "random"
    frames: int = 600
    size: tuple[int, int] = SIZES[0]
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    token: Patch = field(default_factory=lambda: {"operations": ["detect", "blur"]})
    scenes: list[Scene] = field(default_factory=list)
    sources: dict[int, tuple[int, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    hands: list[Hand] = field(default_factory=list)
    gaps: dict[int, Gap] = field(default_factory=dict)
    jitter_ms: float = 0.0
    loading_s: float = 0.0


def make_plan(seed: int, frames: int = 600) -> Plan:
    """Return the run of `seed`."""
    rng = random.Random(f"never bare {seed}")
    plan = Plan(seed, frames=frames, size=rng.choice(SIZES))
    plan.sections = _choose_config(rng)
    plan.token = _choose_token(rng)
    plan.jitter_ms = rng.choice((0.0, 3.0, 15.0))
    plan.loading_s = rng.choice((0.0, 0.0, 0.7, 2.5))
    plan.scenes = _film(rng, frames)
    at = 30
    while at < frames - 40:
        _go_wrong(rng, plan, at)
        at += rng.randint(8, 45)
    return plan


def make_case(name: str, frames: int = 240) -> Plan:
    """Return a run of one known case: C12, C14, C18, C21 or C61, named in shared/cases.md."""
    rng = random.Random(f"never bare {name}")
    plan = Plan(0, name, frames, scenes=_film(rng, frames, cuts=False))
    if name == "C12":
        plan.faults = [
            Fault("slow", 60, 1, "detect", 3000.0),
            Fault("slow", 200, 1, "blur", 3000.0),
        ]
    elif name in ("C14", "C18"):
        plan.loading_s = 4.0
        plan.sections["pipeline"] = {"while_loading": "slate" if name == "C14" else "pass"}
    elif name == "C21":
        plan.token = {"operations": [*_SWAP, "blur"], "source_face": "avatar:fox"}
        plan.faults = [Fault("raise", 60, 1000, "swap")]
    else:
        plan.faults = [Fault("blind", start, 5) for start in range(25, frames - 10, 30)]
    return plan


def _choose_config(rng: random.Random) -> dict[str, dict[str, Any]]:
    return {
        "blur": {
            "style": rng.choice(("gaussian", "gaussian", "mosaic", "solid")),
            "strength": rng.choice((0.8, 0.8, 0.5, 1.0)),
        },
        "hold": {"show": rng.choice(("hold", "blur", "slate"))},
        "pipeline": {
            "while_loading": rng.choice(("blur", "slate", "pass")),
            "execution_threads": rng.choice((1, 2, 2, 4)),
        },
        "detect": {"rotations": rng.random() < 0.1},
        "encode": {"preset": "ultrafast"},
    }


def _choose_token(rng: random.Random) -> Patch:
    """Return operations that hide something, and how."""
    kinds = {"blur": 6, "some": 2, "swap": 5, "both": 3, "background": 2, "puppet": 1, "plain": 1}
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    parameters: Patch = {"on_failure": rng.choice(("skip", "hold", "alert"))}
    source = ""
    operations = ["detect", "blur"]
    if kind == "some":
        parameters |= {
            "select": rng.choice(("largest", "left-most")),
            "blur_whom": rng.choice(("chosen", "others", "others", "all")),
        }
    else:
        parameters |= {"select": "all", "blur_whom": "auto"}
    if kind == "background":
        operations = ["detect", "background", "blur"]
    elif kind == "plain":  # nothing that is to be hidden, until it is asked for
        operations = rng.choice((["detect"], ["background"], ["detect", "align", "beautify"]))
    elif kind not in ("blur", "some"):
        source = rng.choice(_AVATARS)
        parameters["blend_ratio"] = rng.choice((0.85, 0.85, 1.0))
        parameters["select"] = "all" if kind == "swap" else rng.choice(("all", "largest"))
        operations = [*_SWAP, "blur"] if kind == "both" else list(_SWAP)
        if kind == "puppet":
            operations = ["detect", "align", "puppet"]
        elif kind == "swap" and rng.random() < 0.3:
            operations += ["beautify", "enhance"]
    return {"operations": operations, "source_face": source, "parameters": parameters}


# What is filmed.


def _film(rng: random.Random, frames: int, *, cuts: bool = True) -> list[Scene]:
    scenes, start = [], 0
    while start < frames:
        end = start + rng.randint(90, 260) if cuts else frames
        people = rng.sample((0, 1, 2), rng.choices((0, 1, 2), (1, 6, 5))[0] if start else 1)
        actors = tuple(
            Actor(who, _walk(rng, start, end, index, len(people), jumps=cuts), rng.uniform(0, 6))
            for index, who in enumerate(people)
        )
        light = rng.choice((1.0, 1.0, 1.0, 0.6, 0.45))
        scenes.append(Scene(start, rng.randrange(1000), light, actors))
        start = end
    return scenes


def _walk(
    rng: random.Random, start: int, end: int, index: int, people: int, *, jumps: bool
) -> tuple[tuple[int, Place], ...]:
    """Return a path that ends no earlier than `end`; with several people each has its side."""
    low, high = (0.22, 0.78) if people == 1 else ((0.2, 0.42), (0.58, 0.8))[index % 2]
    tall = FACE_PX[1] if people == 1 else 100.0

    def choose() -> Place:
        return Place(rng.uniform(low, high), rng.uniform(0.42, 0.6), rng.uniform(FACE_PX[0], tall))

    here = choose()
    path = [(start, here)]
    if index or rng.random() < 0.3:  # comes in from a side
        begin = start + rng.randint(0, 60)
        outside = here._replace(x=-0.3 if low < 0.3 else 1.3)
        path = [(begin, outside), (begin + rng.randint(8, 35), here)]
    while path[-1][0] < end:
        path += _step(rng, *path[-1], choose(), jumps=jumps)
    return tuple(path)


def _step(
    rng: random.Random, now: int, here: Place, there: Place, *, jumps: bool
) -> list[tuple[int, Place]]:
    """Return what somebody does next; a jump is a cut that leaves the wall as it is.

    Without `jumps` the face is always there and a detector can find it.
    """
    kinds = {"rest": 5, "move": 5, "fast": 3, "jump": 1, "roll": 3, "turn": 3, "away": 2, "far": 1}
    if not jumps:
        del kinds["jump"], kinds["far"], kinds["away"]
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    if kind == "rest":
        return [(now + rng.randint(15, 50), here)]
    if kind in ("move", "fast", "jump"):
        took = {"move": rng.randint(15, 45), "fast": rng.randint(4, 8), "jump": 1}[kind]
        return [(now + took, there)]
    if kind in ("roll", "far"):
        angle = rng.choice((-1, 1)) * rng.uniform(0.4, 0.7 if kind == "roll" else 1.5)
        back = rng.randint(12, 30)
        return [(now + back, here._replace(roll_rad=angle)), (now + 2 * back, here)]
    if kind == "turn":
        back = rng.randint(8, 25)
        turned = here._replace(squeeze=rng.uniform(0.55, 0.75))
        rest = now + back + rng.randint(5, 30)
        return [(now + back, turned), (rest, turned), (rest + back, here)]
    outside = here._replace(x=-0.35 if here.x < 0.5 else 1.35)
    left = now + rng.randint(8, 30)
    back = left + rng.randint(15, 60)
    return [(left, outside), (back, outside), (back + rng.randint(8, 30), there)]


# What goes wrong.


def _go_wrong(rng: random.Random, plan: Plan, at: int) -> None:
    kinds = {
        "raise": 5, "slow": 4, "blind": 5, "detector_error": 2, "mesh": 3, "burst": 2,
        "patch": 6, "consent": 1, "renew": 1, "pressure": 1, "gap": 2, "size": 2,
    }  # fmt: skip
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    if kind in ("patch", "consent", "renew", "pressure"):
        plan.hands += _lay_hand(rng, plan, at, kind)
    elif kind == "gap":
        plan.gaps[at] = Gap(rng.choice((0.3, 1.3, 2.5)), rng.random() < 0.7)
        if rng.random() < 0.5:  # while the last picture stands
            plan.hands += _lay_hand(rng, plan, at, rng.choice(("patch", "patch", "consent")))
    elif kind == "size":
        plan.sources[at] = rng.choice(SOURCES)
    else:
        plan.faults.append(_choose_fault(rng, at, kind))


def _choose_fault(rng: random.Random, at: int, kind: str) -> Fault:
    step = rng.choice(_SHAKY[:4])
    if kind == "raise":
        how = rng.choice(("raise", "raise", "raise_late", "raise_once"))
        return Fault(how, at, rng.choice((1, 1, 2, 5, 40)), step)
    if kind == "slow":
        return Fault(
            "slow", at, rng.choice((1, 1, 3)), step, rng.choice((60.0, 250.0, 900.0, 3000.0))
        )
    if kind == "blind":
        return Fault("blind", at, rng.choice((1, 2, 3, 5, 5, 10, 15, 25)))
    if kind == "burst":
        return Fault("burst", at, rng.randint(30, 100), "", rng.choice((4.0, 9.0, 20.0)))
    return Fault(kind, at, rng.choice((1, 2, 5)))


def _lay_hand(rng: random.Random, plan: Plan, at: int, kind: str) -> list[Hand]:
    if kind == "consent":
        return [Hand(at, "consent", False), Hand(at + rng.randint(20, 90), "consent", True)]
    if kind == "renew":
        return [Hand(at, "renew", rng.choice((0.2, 1.0, 2.5)))]
    if kind == "pressure":
        return [Hand(at, "pressure", True), Hand(at + rng.randint(20, 60), "pressure", False)]
    changes: list[Patch] = [
        _choose_token(rng),
        _choose_token(rng),
        {"parameters": {"blend_ratio": rng.choice((1.0, 0.85, 0.5, 0.0))}},
        {"parameters": {"on_failure": rng.choice(("skip", "hold"))}},
        {"parameters": {"select": rng.choice(("all", "largest", "left-most"))}},
        {"source_face": rng.choice((*_AVATARS, "f_nobody"))},
    ]
    if rng.random() < 0.25:
        back = at + rng.randint(10, 50)
        return [
            Hand(at, "patch", {"parameters": {"cover_all": True}}),
            Hand(back, "patch", {"parameters": {"cover_all": False}}),
        ]
    return [Hand(at, "patch", rng.choice(changes))]
