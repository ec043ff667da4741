"""`livefuse models`: list, verify, and bring models: import, pull, accept."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands.reduce import reduce_model
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say
from livefuse.errors import ConfigError, LivefuseError, ModelError, get_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from livefuse.config import Config
    from livefuse.runtime.install import Brought
    from livefuse.runtime.registry import Model, ModelRegistry

ModelFile = Annotated[
    Path,
    Parameter(metavar="FILE", help="An .onnx file, an insightface pack's folder, or its .zip."),
]
ModelName = Annotated[str, Parameter(metavar="NAME", help="As `livefuse models list` shows it.")]
Accept = Annotated[
    bool,
    Parameter(
        name="--accept-licence",
        negative=(),
        help="You have read the licence and may use the model; it is noted who said so and when.",
    ),
]
Address = Annotated[
    str, Parameter(name="--from", metavar="URL", help="Where the file is; else models.mirror/FILE.")
]
Digest = Annotated[
    str,
    Parameter(name="--sha256", metavar="HEX", help="The digest that its publisher names."),
]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    models = App(name="models", help="The networks that find, swap and mend faces.")
    models.command(list_models, name="list")
    models.command(verify_models, name="verify")
    models.command(import_models, name="import")
    models.command(pull)
    models.command(accept)
    models.command(reduce_model, name="reduce")
    app.command(models)


def list_models(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """List the models: task, name, whether it is here, licence, whether that limits its use."""
    registry = _load_registry(load_config(config, tuple(settings or ())))
    for model in registry.list_models():
        state = "embedded" if model.embedded else "missing"
        if not model.embedded and registry.is_present(model.name):
            state = "present"
        limits = _tell_limits(registry, model)
        line = f"{model.task:<10} {model.name:<24} {state:<8} {model.licence:<14} {limits}"
        say(line.rstrip())


def verify_models(*, config: ConfigFile = None, settings: Settings = None) -> int:
    """Check each model file that is here against its SHA-256; a bad one is an error."""
    registry = _load_registry(load_config(config, tuple(settings or ())))
    code = 0
    for model in registry.list_models():
        if not (model.embedded or registry.is_present(model.name)):
            continue
        try:
            say(f"ok  {registry.verify_model(model.name)}")
        except ModelError as error:
            complain(str(error))
            code = get_exit_code(error)
    return code


def import_models(
    file: ModelFile,
    /,
    *more: ModelFile,
    name: Annotated[
        str, Parameter(metavar="NAME", help="Which model it is, where graphs look alike.")
    ] = "",
    accept_licence: Accept = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> int:
    """Bring models from this machine: recognised by their graphs, copied and checked."""
    if name and more:
        raise ConfigError("--name says what one file is", hint="import them one by one")
    tree = load_config(config, tuple(settings or ()))
    registry = _load_registry(tree)
    from livefuse.runtime.install import import_path  # noqa: PLC0415 - not for every command

    code, ask = 0, _ask(accept_licence=accept_licence)
    for path in (file, *more):
        for brought in import_path(registry, path, ask, name=name):
            code = _tell_brought(tree, registry, brought) or code
    return code


def pull(
    name: ModelName,
    /,
    *,
    url: Address = "",
    sha256: Digest = "",
    accept_licence: Accept = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> int:
    """Fetch a model from an address that you give; goes on where it broke off."""
    tree = load_config(config, tuple(settings or ()))
    registry = _load_registry(tree)
    from livefuse.runtime.pull import Order, pull_model  # noqa: PLC0415 - not for every command

    ask = _ask(accept_licence=accept_licence)
    with _show_progress(name) as progress:
        brought = pull_model(registry, tree.models, Order(name, url, sha256), ask, progress)
    return _tell_brought(tree, registry, brought)


def accept(
    name: ModelName,
    /,
    *more: ModelName,
    accept_licence: Accept = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Accept the licences of models that are here, in a pack or put there by hand."""
    registry = _load_registry(load_config(config, tuple(settings or ())))
    from livefuse.runtime.install import accept_model, ask_licence  # noqa: PLC0415 - likewise

    ask = _ask(accept_licence=accept_licence)
    for each in (name, *more):
        ask_licence(registry, registry.get_model(each), ask)
        row = accept_model(registry, each)
        say(f"{each}: licence {row.licence} accepted by {row.accepted_by} at {row.accepted_at}")


def _ask(*, accept_licence: bool) -> Callable[[Model], bool]:
    """Return who answers for a licence: the flag, a person at a terminal, or nobody.

    One answer holds for all models of one source and licence: a pack asks once.
    """
    answers: dict[tuple[str, str], bool] = {}

    def answer(model: Model) -> bool:
        if accept_licence:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        key = (model.source, model.licence)
        if key not in answers:
            complain(
                f"{model.name} is under a licence that limits its use: {model.licence}. "
                f"Read it at {model.source}"
            )
            sys.stderr.write("You have read it and may use the model [y/N]? ")
            sys.stderr.flush()
            answers[key] = sys.stdin.readline().strip().lower() in ("y", "yes")
        return answers[key]

    return answer


def _tell_brought(tree: Config, registry: ModelRegistry, brought: Brought) -> int:
    """Say what a file became, and whether it loads; return the exit code."""
    if brought.model is None:
        (complain if brought.failed else say)(f"{brought.file}: {brought.words}")
        return get_exit_code(ModelError("")) if brought.failed else 0
    model = brought.model
    say(f"{brought.file}: {model.name} ({model.task}), {model.licence}, {brought.words}")
    try:
        _try_to_load(tree, model.name)
    except LivefuseError as error:
        complain(str(error))
        return get_exit_code(error)
    for need in model.needs:
        if not registry.is_present(need):
            say(f"{model.name} also needs {need}: bring it with  livefuse models import FILE")
    return 0


def _try_to_load(tree: Config, name: str) -> None:
    """Raise a ModelError when the file is not whole or its network does not load here."""
    import msgspec  # noqa: PLC0415 - not for every command

    from livefuse.runtime.session import SessionCache  # noqa: PLC0415 - loads onnxruntime

    SessionCache(msgspec.structs.replace(tree.models, providers="cpu")).get(name)


def _tell_limits(registry: ModelRegistry, model: Model) -> str:
    if not model.restricted:
        return ""
    row = registry.get_installed(model.name)
    return "accepted" if row is not None and row.accepted else "restricted"


@contextmanager
def _show_progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar on a terminal's standard error; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 - takes 0.1 s to load
    from rich.progress import (  # noqa: PLC0415 - likewise
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress("{task.description}", *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _load_registry(tree: Config) -> ModelRegistry:
    from livefuse.runtime.registry import load_registry  # noqa: PLC0415 - not for every command

    return load_registry(tree.models)
