"""Which networks there are: the rows of models/manifest.toml, and whether their files are whole."""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

import livefuse
from livefuse.errors import ModelError

if TYPE_CHECKING:
    from livefuse.config import ModelsConfig

MANIFEST: Final = "manifest.toml"


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the manifest. `input_sizes` are (width, height) px; none: any multiple of 32."""

    name: str
    file: str
    sha256: str
    bytes: int
    licence: str
    family: str
    input_sizes: tuple[tuple[int, int], ...]
    normalisation: str
    source: str
    made: str


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[Model, ...]


class ModelRegistry:
    """The models of one folder. Immutable after construction, so safe from any thread."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest in `folder`; no model file is touched yet.

        Raises:
            ModelError: there is no manifest, or it cannot be understood.
        """
        self.folder = folder
        self._models = {model.name: model for model in _read_manifest(folder / MANIFEST)}

    def list_models(self) -> tuple[Model, ...]:
        """Return all models in the manifest's order."""
        return tuple(self._models.values())

    def get_model(self, name: str) -> Model:
        """Return the row called `name`.

        Raises:
            ModelError: there is none; the nearest name is told.
        """
        if name not in self._models:
            near = difflib.get_close_matches(name, self._models, n=1, cutoff=0.4)
            guess = f"did you mean {near[0]}? " if near else ""
            known = ", ".join(self._models)
            raise ModelError(f"unknown model {name!r}", hint=f"{guess}the models are {known}")
        return self._models[name]

    def verify_model(self, name: str) -> Path:
        """Return the path of the model's file once its size and SHA-256 are as the manifest says.

        Raises:
            ModelError: unknown, missing, unreadable, truncated or altered; says what to do.
        """
        model = self.get_model(name)
        path = self.folder / model.file
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = error.strerror or "unreadable"
            raise ModelError(
                f"cannot read the model file {path} ({reason})", hint=_tell_cure(model)
            ) from None
        if len(data) != model.bytes:
            raise ModelError(
                f"the model file {path} has {len(data)} bytes, expected {model.bytes}",
                hint=_tell_cure(model),
            )
        digest = hashlib.sha256(data).hexdigest()
        if digest != model.sha256:
            raise ModelError(
                f"the model file {path} has SHA-256 {digest}, expected {model.sha256}",
                hint=_tell_cure(model),
            )
        return path


def find_models_folder(config: ModelsConfig) -> Path:
    """Return the folder with the manifest: configured, else the checkout's, else the package's."""
    if config.folder:
        return Path(config.folder).expanduser()
    package = Path(livefuse.__file__).resolve().parent
    checkout = package.parent / "models"
    return checkout if (checkout / MANIFEST).is_file() else package / "_models"


def load_registry(config: ModelsConfig) -> ModelRegistry:
    """Return the registry of the configured folder.

    Raises:
        ModelError: there is no manifest, or it cannot be understood.
    """
    return ModelRegistry(find_models_folder(config))


def _read_manifest(path: Path) -> tuple[Model, ...]:
    try:
        rows = tomllib.loads(path.read_text("utf-8"))
        return msgspec.convert(rows, _Manifest).models
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ModelError(
            f"cannot read the model manifest {path} ({reason})",
            hint="set models.folder to the folder that holds manifest.toml, or install again",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ModelError(
            f"the model manifest {path} cannot be used ({error})", hint="mend that row"
        ) from None


def _tell_cure(model: Model) -> str:
    return (
        f"restore {model.file} with  git checkout models/{model.file}  or install livefuse again; "
        f"it comes from {model.source}"
    )
