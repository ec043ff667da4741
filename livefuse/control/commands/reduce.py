"""`livefuse models reduce`: smaller copies of models, and how far they are from the full ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import say

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.runtime.batch import Feeds

ModelName = Annotated[str, Parameter(metavar="NAME", help="As `livefuse models list` shows it.")]
Smaller = Annotated[
    Literal["fp16", "int8"],
    Parameter(help="Halves, for graphics cards; or bytes, measured on the demo's moving head."),
]


def reduce_model(
    name: ModelName,
    /,
    *,
    precision: Smaller = "fp16",
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Make a smaller copy of a model, used from then on with models.precision; needs onnx."""
    tree = load_config(config, tuple(settings or ()))
    from livefuse.control.samples import record_samples  # noqa: PLC0415 - loads the pipeline
    from livefuse.runtime import precision as copies  # noqa: PLC0415 - not for every command
    from livefuse.runtime.providers import list_usable_providers  # noqa: PLC0415 - as above
    from livefuse.runtime.registry import load_registry  # noqa: PLC0415 - as above

    registry = load_registry(tree.models)
    source = registry.verify_model(name)
    wish = tree.models.providers
    provider = list_usable_providers()[0] if wish == "auto" else wish
    target = copies.get_reduced_path(tree.models, source, precision, provider)
    samples = record_samples(tree, registry.get_model(name)) if precision == "int8" else []
    copies.reduce_model(source, target, precision, samples, is_symmetric=provider != "cpu")
    sizes = f"{source.stat().st_size / 1e6:.1f} MB -> {target.stat().st_size / 1e6:.1f} MB"
    say(f"{name} in {precision}: {sizes}{_tell_difference(source, target, samples)}, {target}")


def _tell_difference(source: Path, target: Path, samples: list[Feeds]) -> str:
    from livefuse.runtime.precision import compare_models  # noqa: PLC0415 - not for every command

    if not samples:
        return ""
    return f", {min(compare_models(source, target, samples)):.0f} dB from full precision"
