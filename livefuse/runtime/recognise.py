"""Which model a file is, told by its graph: inputs, outputs, their shapes, initialisers.

insightface routes its own packs in the same way. A file's name only decides between models whose
graphs look alike (ghost_1 and ghost_2). Read without onnx and without loading weights, so that
500 MB take milliseconds; a truncated file is noticed since every length is walked.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.errors import ModelError
from livefuse.runtime.graph import map_graph_file, walk_graph
from livefuse.runtime.protobuf import read_numbers, walk_fields
from livefuse.runtime.signatures import IGNORED, get_signature, match_signature

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable
    from pathlib import Path

    from livefuse.runtime.protobuf import Field
    from livefuse.runtime.registry import Model

# Field numbers of onnx.proto3.
_NODE, _INITIALISER, _INPUT, _OUTPUT = 1, 5, 11, 12
_TENSOR_DIMS, _TENSOR_KIND, _TENSOR_NAME, _TENSOR_PLACE = 1, 2, 8, 14
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TENSOR_SHAPE, _SHAPE_DIM, _DIM_VALUE = 1, 2, 1, 1
_FLOAT16: Final = 10
_HALF_SUFFIX: Final = "_fp16"

Shape = tuple[int, ...]


class GraphFacts(NamedTuple):
    """What a graph shows of itself. Free sides are -1; a shape that is not told is ().

    `inputs` and `outputs` are by name, in order, without initialisers; `last_initialiser` is the
    shape of the last one, `is_half` whether it is of 16 bits.
    """

    inputs: dict[str, Shape]
    outputs: dict[str, Shape]
    last_initialiser: Shape
    is_half: bool
    nodes: int


def read_facts(path: Path) -> GraphFacts:
    """Return what the graph in `path` shows.

    Raises:
        ModelError: it cannot be read, is truncated, or is not an ONNX file.
    """
    inputs: dict[str, Shape] = {}
    outputs: dict[str, Shape] = {}
    initialisers: dict[str, tuple[Shape, int]] = {}
    nodes = 0
    with map_graph_file(path) as data:
        try:
            for field in walk_graph(data):
                if field.number == _NODE:
                    nodes += 1
                elif field.number == _INITIALISER:
                    name, shape, kind = _read_tensor_head(data, field)
                    initialisers[name] = (shape, kind)
                elif field.number in (_INPUT, _OUTPUT):
                    name, shape = _read_value(data, field)
                    (inputs if field.number == _INPUT else outputs)[name] = shape
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise ModelError(
                f"{path} is not a whole ONNX file ({error})", hint="get it again from its source"
            ) from None
    last, kind = next(reversed(initialisers.values()), ((), 0))
    free = {name: shape for name, shape in inputs.items() if name not in initialisers}
    return GraphFacts(free, outputs, last, kind == _FLOAT16, nodes)


def recognise(
    facts: GraphFacts, models: Iterable[Model], name: str = "", file: str = ""
) -> Model | None:
    """Return the model that `facts` and, where graphs are alike, the `file`'s name show.

    None: a network of a pack that livefuse has no use for. `name` is what the user says it is.

    Raises:
        ModelError: unknown, not what the user says, or one of several that look alike.
    """
    fits = list_fitting(facts, models)
    if name:
        chosen = [model for model in fits if model.name == name]
        if chosen:
            return chosen[0]
        raise ModelError(
            f"{file or 'the file'} is not {name}: its graph has {describe_facts(facts)}",
            hint=f"it looks like {_join(fits)}" if fits else "it is no model that livefuse knows",
        )
    if not fits:
        if any(match_signature(signature, facts, 0) for signature in IGNORED.values()):
            return None
        raise ModelError(
            f"{file or 'the file'} is no model that livefuse knows: its graph has "
            f"{describe_facts(facts)}",
            hint="livefuse models list  shows those that it knows",
        )
    named = [model for model in fits if _is_named(model, file)]
    alike = named or [m for m in fits if m.name.endswith(_HALF_SUFFIX) == facts.is_half] or fits
    if len(alike) == 1:
        return alike[0]
    raise ModelError(
        f"{file or 'the file'} may be {_join(alike)}: their graphs look alike",
        hint="say which with --name",
    )


def list_fitting(facts: GraphFacts, models: Iterable[Model]) -> list[Model]:
    """Return the models whose family's signature fits best: the one with the most fixed sides."""
    scored = [
        (match_signature(signature, facts, model.size), model)
        for model in models
        if (signature := get_signature(model.name, model.family)) and not model.embedded
    ]
    best = max((score for score, _ in scored), default=0)
    return [model for score, model in scored if score == best > 0]


def describe_facts(facts: GraphFacts) -> str:
    """Return the inputs and outputs in words."""
    inputs = ", ".join(f"{name} {_format_shape(shape)}" for name, shape in facts.inputs.items())
    kinds = Counter(_format_shape(shape) for shape in facts.outputs.values())
    outputs = ", ".join(f"{n} x {kind}" if n > 1 else kind for kind, n in kinds.items())
    return f"inputs {inputs}; outputs {outputs}"


def _format_shape(shape: Shape) -> str:
    return "x".join("?" if side < 0 else str(side) for side in shape) or "?"


def _join(models: list[Model]) -> str:
    return " or ".join(model.name for model in models)


def _is_named(model: Model, file: str) -> bool:
    stems = {_normalise(each) for each in (model.name, model.file, *model.aliases)}
    return _normalise(file) in stems


def _normalise(name: str) -> str:
    return name.lower().removesuffix(".onnx").replace("-", "_").replace(" ", "_")


def _read_tensor_head(data: mmap.mmap, field: Field) -> tuple[str, Shape, int]:
    name, kind = "", 0
    shape: list[int] = []
    for part in walk_fields(data, field.start, field.end):
        if part.number == _TENSOR_DIMS:
            shape += read_numbers(data, part)
        elif part.number == _TENSOR_KIND:
            kind = part.value
        elif part.number == _TENSOR_NAME:
            name = data[part.start : part.end].decode("utf-8")
        elif part.number == _TENSOR_PLACE and part.value:
            raise ValueError("its weights lie in another file")
    return name, tuple(shape), kind


def _read_value(data: mmap.mmap, field: Field) -> tuple[str, Shape]:
    name = ""
    shape: Shape = ()
    for part in walk_fields(data, field.start, field.end):
        if part.number == _VALUE_NAME:
            name = data[part.start : part.end].decode("utf-8")
        elif part.number == _VALUE_TYPE:
            shape = _read_shape(data, part)
    return name, shape


def _read_shape(data: mmap.mmap, kind: Field) -> Shape:
    """Return a TypeProto's shape: tensor_type 1, its shape 2, each side's value 1 or free."""
    sides: list[int] = []
    for tensor in walk_fields(data, kind.start, kind.end):
        if tensor.number != _TYPE_TENSOR:
            continue
        for shape in walk_fields(data, tensor.start, tensor.end):
            if shape.number != _TENSOR_SHAPE:
                continue
            for side in walk_fields(data, shape.start, shape.end):
                if side.number == _SHAPE_DIM:
                    parts = list(walk_fields(data, side.start, side.end))
                    values = [part.value for part in parts if part.number == _DIM_VALUE]
                    sides.append(values[0] if values and values[0] > 0 else -1)
    return tuple(sides)
