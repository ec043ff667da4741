"""Whether a network scales px by itself: old exports of ArcFace and its kin begin with that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.runtime.graph import list_first_operators
from livefuse.runtime.registry import load_registry

if TYPE_CHECKING:
    from livefuse.config import Config

_LOOK: Final = 8  # where insightface looks for them
_LOOK_NORM: Final = 3
_NORM: Final = "BatchNormalization"
_SCALING: Final = frozenset({"Sub", "Mul"})


def scales_by_itself(name: str, config: Config) -> bool:
    """Say whether the graph of model `name` begins with its own scaling, so is fed 0..255.

    Reads the file's head, so not for the frame's thread.

    Raises:
        ModelError: the file cannot be read.
    """
    path = load_registry(config.models).find_path(name)
    if path is None:
        return False
    first = list_first_operators(path, _LOOK)
    if set(first) >= _SCALING:
        return True
    # A norm on the picture itself scales too; one behind a convolution does not.
    before = first[: first.index(_NORM)] if _NORM in first[:_LOOK_NORM] else ("Conv",)
    return "Conv" not in before
