"""Which networks there are: the rows of models/manifest.toml, and whether their files are whole.

Embedded files come with livefuse and their digests with the manifest. What a user brings lies
beside them, or in a pack where it is; its digest, and that its licence was accepted, are kept in
installed.toml (runtime/installed.py).
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

import livefuse
from livefuse.errors import ModelError
from livefuse.runtime.installed import read_installed

if TYPE_CHECKING:
    from livefuse.config import ModelsConfig
    from livefuse.runtime.installed import Installed

MANIFEST: Final = "manifest.toml"

Task = Literal[
    "detect", "align", "identify", "swap", "enhance", "mask", "background", "convert", "text"
]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the manifest.

    `family` names the code that feeds the network, `task` what it is for. `size` is the side of a
    square input in px (0: not square, or free), `input_sizes` are (width, height) px and none
    means any multiple of 32. The network is given (x / 255 - mean) / std of RGB where it is fed
    pictures; `template` names the landmark template its crop is aligned to. `needs` are models
    that it cannot work without, `aliases` the names its file has elsewhere. `restricted`: its
    licence must be accepted first. `sha256` and `bytes` must be met; they are unknown ("" and 0)
    for files that users bring, whose `published` digests only tell what a file is. `url` is where
    `models pull` finds the file, when a user wrote one there.
    """

    name: str
    file: FileName
    sha256: str = ""
    bytes: int = 0
    licence: str
    family: str
    task: Task
    size: int = 0
    input_sizes: tuple[tuple[int, int], ...] = ()
    template: str = ""
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    needs: tuple[str, ...] = ()
    aliases: tuple[FileName, ...] = ()
    published: tuple[Sha256, ...] = ()
    embedded: bool = False
    restricted: bool = False
    normalisation: str = ""
    source: str
    made: str = ""
    url: str = ""


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[Model, ...]


class ModelRegistry:
    """The models of one folder, and of packs beside it. Safe from any thread."""

    def __init__(self, folder: Path, packs: Path | None = None) -> None:
        """Read the manifest in `folder`; no model file is touched yet.

        `packs` is a folder of insightface's packs (or one pack), searched after `folder`.

        Raises:
            ModelError: there is no manifest, or it cannot be understood.
        """
        self.folder = folder
        self.packs = packs
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

    def find_path(self, name: str) -> Path | None:
        """Return where the file of `name` lies, or None; it is not read.

        Raises:
            ModelError: unknown.
        """
        model = self.get_model(name)
        own = self.folder / model.file
        if own.is_file():
            return own
        return None if model.embedded else self._find_in_packs((model.file, *model.aliases))

    def is_present(self, name: str) -> bool:
        """Say whether there is a file for `name`; whether it is whole, `verify_model` says.

        Raises:
            ModelError: unknown.
        """
        return self.find_path(name) is not None

    def get_installed(self, name: str) -> Installed | None:
        """Return what was noted of `name` when it was imported or accepted.

        Raises:
            ModelError: the notes cannot be understood.
        """
        return read_installed(self.folder).get(name)

    def verify_model(self, name: str) -> Path:
        """Return the path of the model's file once it is whole and may be used.

        Size and SHA-256 must be the manifest's, or those noted when it was imported; a restricted
        licence must have been accepted.

        Raises:
            ModelError: unknown, missing, unreadable, truncated, altered or not accepted; says
                what to do.
        """
        model = self.get_model(name)
        path = self.find_path(name) or self.folder / model.file
        installed = None if model.embedded else self.get_installed(name)
        size, digest = _measure_file(path, model)
        _check_file(path, model, installed, size, digest)
        if model.restricted and (installed is None or not installed.accepted):
            raise ModelError(
                f"the licence of {name} ({model.licence}) has not been accepted",
                hint=f"read it at {model.source}; if you may use it, run  "
                f"livefuse models accept {name}",
            )
        return path

    def _find_in_packs(self, names: tuple[str, ...]) -> Path | None:
        if self.packs is None:
            return None
        folders = (self.packs, *sorted(path for path in self.packs.glob("*") if path.is_dir()))
        for folder in folders:
            for name in names:
                if (folder / name).is_file():
                    return folder / name
        return None


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
    packs = Path(config.packs).expanduser() if config.packs else None
    return ModelRegistry(find_models_folder(config), packs)


def compute_sha256(path: Path) -> str:
    """Return the SHA-256 of the file at `path` in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _measure_file(path: Path, model: Model) -> tuple[int, str]:
    try:
        return path.stat().st_size, compute_sha256(path)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ModelError(
            f"cannot read the model file {path} ({reason})", hint=_tell_cure(model)
        ) from None


def _check_file(
    path: Path, model: Model, installed: Installed | None, size: int, digest: str
) -> None:
    expected_size = model.bytes or (installed.bytes if installed else 0)
    expected = model.sha256 or (installed.sha256 if installed else "")
    if expected_size and size != expected_size:
        raise ModelError(
            f"the model file {path} has {size} bytes, expected {expected_size}",
            hint=_tell_cure(model),
        )
    if expected and digest != expected:
        raise ModelError(
            f"the model file {path} has SHA-256 {digest}, expected {expected}",
            hint=_tell_cure(model),
        )


def _tell_cure(model: Model) -> str:
    if not model.embedded:
        return (
            f"livefuse does not ship it; get it from {model.source} and run  "
            "livefuse models import FILE"
        )
    return (
        f"restore {model.file} with  git checkout models/{model.file}  or install livefuse again; "
        f"it comes from {model.source}"
    )
