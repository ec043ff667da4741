"""Stand-ins: tiny networks with the real models' names, inputs, outputs and shapes.

Each module here but `graph` has `MODELS`, a dict of a model's name (models/manifest.toml) to a
function that returns an `onnx.ModelProto`. `python -m tests.standins FOLDER` writes them all;
tests take `install_standins`.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from functools import cache
from typing import TYPE_CHECKING

from livefuse.config import ModelsConfig
from livefuse.runtime.installed import Installed, write_installed
from livefuse.runtime.registry import (
    MANIFEST,
    ModelRegistry,
    compute_sha256,
    load_registry,
)

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


def install_standins(folder: Path, *names: str) -> ModelsConfig:
    """Make `folder` a models folder with the embedded models and the stand-ins `names`.

    Licences are accepted and digests noted, so that `SessionCache(install_standins(...))` loads
    them all. Returns the configuration that names the folder.
    """
    ours = load_registry(ModelsConfig())
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ours.folder / MANIFEST, folder)
    for model in ours.list_models():
        if model.embedded and not (folder / model.file).exists():
            (folder / model.file).symlink_to(ours.folder / model.file)
    registry = ModelRegistry(folder)
    for name in names:
        model = registry.get_model(name)
        path = save_standin(name, folder, model.file)
        row = Installed(
            name=name,
            file=model.file,
            sha256=compute_sha256(path),
            bytes=path.stat().st_size,
            licence=model.licence,
            accepted_by="a test",
            accepted_at="2026-11-30",
        )
        write_installed(folder, row)
    return ModelsConfig(folder=str(folder), providers="cpu")
