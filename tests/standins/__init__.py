"""Stand-ins: tiny networks with the real models' names, inputs, outputs and shapes.

Each module here but `graph` has `MODELS`, a dict of a model's name (models/manifest.toml) to a
function that returns an `onnx.ModelProto`. `python -m tests.standins FOLDER` writes them all;
tests take `save_standin`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import onnx

    Builder = Callable[[], onnx.ModelProto]


@cache
def list_standins() -> dict[str, Builder]:
    """Return every stand-in's builder by its model's name."""
    found: dict[str, Builder] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            found |= getattr(importlib.import_module(f"{__name__}.{module.name}"), "MODELS", {})
    return found


def save_standin(name: str, folder: Path, file: str = "") -> Path:
    """Write the stand-in `name` into `folder` (as `file`, else NAME.onnx) if it is not there."""
    path = folder / (file or f"{name}.onnx")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(list_standins()[name]().SerializeToString())
    return path
