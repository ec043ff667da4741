"""precision: how far networks in halves (fp16) and bytes (int8) are from full precision, in dB.

On the processor, on what the demo's moving head feeds them. The figure is the worst output of the
worst network in halves; the details have both for each network, and what they weigh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from livefuse.config import Config, ModelsConfig
from livefuse.control.samples import record_samples
from livefuse.runtime.precision import compare_models, get_reduced_path, reduce_model
from livefuse.runtime.registry import load_registry
from tests.bench.harness import Result, bench

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.runtime.options import Precision

_MODELS = ("centerface", "facemesh_attention_478")
_SAMPLES = 16
PRECISIONS: tuple[Precision, ...] = ("fp16", "int8")


@bench("precision")
def measure_precision(folder: Path) -> dict[str, Result]:
    models = ModelsConfig(cache_folder=str(folder), providers="cpu")
    config = msgspec.structs.replace(Config(), models=models)
    registry = load_registry(models)
    detail, worst = {}, float("inf")
    for name in _MODELS:
        source = registry.verify_model(name)
        samples = record_samples(config, registry.get_model(name), _SAMPLES)
        for precision in PRECISIONS:
            target = get_reduced_path(models, source, precision)
            reduce_model(source, target, precision, samples)
            decibels = compare_models(source, target, samples)
            share = target.stat().st_size / source.stat().st_size
            detail[f"{name} {precision}"] = (
                f"{min(decibels):.1f} to {max(decibels):.1f} dB at {share:.0%} of the size"
            )
            if precision == "fp16":
                worst = min(worst, *decibels)
    return {"precision": Result(worst, "dB", ">= 30", detail)}
