"""What the graph of each family of models, or of one model of a family, looks like, as data.

A side is a number, `S` (the size in the model's row) or None (anything). A side that is free in
the file fits everything among the outputs, and only None or S of a row without a size among the
inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from livefuse.runtime.recognise import GraphFacts

S: Final = 0
_BASE: Final = 1  # what any fit counts, above no fit

Pattern = tuple[int | None, ...]


class Signature(NamedTuple):
    """A family's graph. `outputs` are patterns of the first outputs; more may follow.

    `counts` are the numbers of outputs it may have (none: any), `last_sides` what the outputs may
    end in, by how many do so; `names` must be among the inputs; `initialiser` is the last one's
    shape.
    """

    inputs: tuple[Pattern, ...]
    outputs: tuple[Pattern, ...] = ()
    counts: tuple[int, ...] = ()
    last_sides: tuple[dict[int, int], ...] = ()
    names: frozenset[str] = frozenset()
    initialiser: tuple[int, ...] = ()


_PICTURE: Final[Pattern] = (None, 3, S, S)
_FREE_PICTURE: Final[Pattern] = (None, 3, None, None)
_EMBEDDING: Final[Pattern] = (None, 512)
_ANY_ROWS: Final[tuple[Pattern, ...]] = ((None, None), (None, None))
_DISTANCES: Final = ({1: 3, 4: 3}, {1: 3, 4: 3, 10: 3}, {1: 5, 4: 5}, {1: 5, 4: 5, 10: 5})
_SWAP_NAMES: Final = frozenset({"source", "target"})

SIGNATURES: Final[dict[str, Signature]] = {
    "scrfd": Signature((_FREE_PICTURE,), last_sides=_DISTANCES),
    "retinaface": Signature((_FREE_PICTURE,), last_sides=_DISTANCES),
    "retinaface_mobile025": Signature((_FREE_PICTURE,), last_sides=({4: 1, 2: 1, 10: 1},)),
    "yoloface": Signature((_FREE_PICTURE,), ((None, 20, None),), counts=(1,)),
    "yunet": Signature((_FREE_PICTURE,), last_sides=({1: 6, 4: 3, 10: 3},)),
    "arcface": Signature((_PICTURE,), (_EMBEDDING,), counts=(1,)),
    "crossface": Signature((_EMBEDDING,), (_EMBEDDING,), counts=(1,)),
    "fan": Signature((_PICTURE,), ((None, 68, 3), (None, 68, 64, 64)), counts=(2,)),
    "peppa_wutz": Signature((_PICTURE,), last_sides=({3: 1}, {204: 1})),
    "fan_68_5": Signature(((None, 5, 2),), ((None, 68, 2),), counts=(1,)),
    "2d106det": Signature((_PICTURE,), ((None, 212),), counts=(1,)),
    "1k3d68": Signature((_PICTURE,), ((None, 3309),), counts=(1,)),
    "liveportrait_landmarks": Signature((_PICTURE,), (*_ANY_ROWS, (None, 406)), counts=(3,)),
    "inswapper": Signature(
        (_PICTURE, _EMBEDDING), (_PICTURE,), names=_SWAP_NAMES, initialiser=(512, 512)
    ),
    "simswap": Signature((_PICTURE, _EMBEDDING), (_PICTURE,), names=_SWAP_NAMES),
    "ghost": Signature((_PICTURE, _EMBEDDING), (_PICTURE,), names=_SWAP_NAMES),
    "hififace": Signature((_PICTURE, _EMBEDDING), (_PICTURE,), names=_SWAP_NAMES),
    "hyperswap": Signature((_PICTURE, _EMBEDDING), (_PICTURE,), names=_SWAP_NAMES),
    "blendswap": Signature((_PICTURE, (None, 3, 112, 112)), (_PICTURE,), names=_SWAP_NAMES),
    "uniface": Signature((_PICTURE, (None, 3, 256, 256)), (_PICTURE,), names=_SWAP_NAMES),
    "codeformer": Signature((_PICTURE, (None,)), (_PICTURE,), names=frozenset({"weight"})),
    "gfpgan": Signature((_PICTURE,), (_PICTURE,)),
    "gpen": Signature((_PICTURE,), (_PICTURE,)),
    "restoreformer": Signature((_PICTURE,), (_PICTURE,)),
    "real_esrgan": Signature((_FREE_PICTURE,), (_FREE_PICTURE,), counts=(1,)),
    "bisenet": Signature((_PICTURE,), ((None, 19, S, S),)),
    "xseg": Signature(((None, S, S, 3),), ((None, S, S, 1),), counts=(1,)),
}

# Networks of insightface's packs that livefuse has no use for.
IGNORED: Final[dict[str, Signature]] = {
    "genderage": Signature(((None, 3, 96, 96),), counts=(1,)),
}


def get_signature(name: str, family: str) -> Signature | None:
    """Return what the graph of the model `name` looks like, if that is known."""
    return SIGNATURES.get(name) or SIGNATURES.get(family)


def match_signature(signature: Signature, facts: GraphFacts, size: int) -> int:
    """Return how many fixed sides fit, plus one; 0 when `facts` do not fit."""
    shapes = list(facts.inputs.values())
    if len(shapes) != len(signature.inputs) or not signature.names <= set(facts.inputs):
        return 0
    if signature.initialiser and facts.last_initialiser != signature.initialiser:
        return 0
    found = _match_inputs(signature.inputs, shapes, size)
    outputs = _match_outputs(signature, list(facts.outputs.values()), size)
    if found < 0 or outputs < 0:
        return 0
    return _BASE + found + outputs + len(signature.initialiser)


def _match_inputs(patterns: tuple[Pattern, ...], shapes: list[tuple[int, ...]], size: int) -> int:
    """Return the fixed sides of `patterns`, each of which fits a shape of its own; -1: they don't.

    Exports order inputs differently. There are two at most, so trying both orders is all.
    """
    for order in (shapes, shapes[::-1]):
        scores = [_match_sides(p, s, size) for p, s in zip(patterns, order, strict=True)]
        if min(scores) >= 0:
            return sum(scores)
    return -1


def _match_outputs(signature: Signature, shapes: list[tuple[int, ...]], size: int) -> int:
    if signature.counts and len(shapes) not in signature.counts:
        return -1
    if signature.last_sides:
        ends: dict[int, int] = {}
        for shape in shapes:
            end = shape[-1] if shape else -1
            ends[end] = ends.get(end, 0) + 1
        return sum(ends.values()) if ends in signature.last_sides else -1
    if len(shapes) < len(signature.outputs):
        return -1
    scores = [
        _match_sides(pattern, shape, size, is_output=True)
        for pattern, shape in zip(signature.outputs, shapes, strict=False)
    ]
    return -1 if min(scores, default=0) < 0 else sum(scores)


def _match_sides(
    pattern: Pattern, shape: tuple[int, ...], size: int, *, is_output: bool = False
) -> int:
    """Return how many sides of `pattern` are fixed and fit; -1 when one does not."""
    if is_output and not shape:
        return 0
    if len(pattern) != len(shape):
        return -1
    score = 0
    for wanted, side in zip(pattern, shape, strict=True):
        expected = size if wanted == S else wanted
        if not expected:
            continue
        if side != expected and not (is_output and side < 0):
            return -1
        score += side == expected
    return score
