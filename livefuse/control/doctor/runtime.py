"""Where networks run: onnxruntime, the graphics card, its libraries wanted and found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.control.doctor.check import Check
from livefuse.runtime.libraries import (
    TENSORRT,
    examine_libraries,
    get_cuda_version,
    list_cuda_packages,
    list_wanted,
)
from livefuse.runtime.options import find_cache_folder, read_card_name, read_driver_version
from livefuse.runtime.providers import EXECUTION_PROVIDERS, describe_runtime, explain_unusable

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.runtime.libraries import Library
    from livefuse.runtime.providers import RuntimeReport


def check_runtime(config: Config) -> list[Check]:
    """Return the lines about onnxruntime and the graphics card."""
    report = describe_runtime()
    devices = ", ".join(report.usable_providers)
    checks = [Check("ok", "onnxruntime", f"{report.onnxruntime}, runs on {devices}")]
    checks += _check_card(config, report)
    wish = config.models.providers
    if wish in ("cuda", "tensorrt") and "cuda" not in report.usable_providers:
        refusal = explain_unusable(wish)
        checks.append(Check("problem", "device", refusal.message, refusal.hint))
    return checks


def _check_card(config: Config, report: RuntimeReport) -> list[Check]:
    if EXECUTION_PROVIDERS["cuda"] not in report.compiled_providers:
        cure = "for a graphics card, pip install --force-reinstall onnxruntime-gpu"
        return [Check("warning", "cuda", "this onnxruntime is for the processor only", cure)]
    if not report.has_nvidia_device:
        return [Check("ok", "cuda", "no NVIDIA device, networks run on the processor")]
    card = read_card_name(config.models.device) or "an NVIDIA device"
    driver = read_driver_version() or "unknown"
    cache = find_cache_folder(config.models)
    checks = [Check("ok", "card", f"{card}, driver {driver}; engines are kept in {cache}")]
    more = TENSORRT if config.models.providers == "tensorrt" else ()
    return checks + check_libraries(get_cuda_version(), more)


def check_libraries(cuda_version: str, more: tuple[str, ...] = ()) -> list[Check]:
    """Return what of CUDA, and `more`, is wanted and found; all of it is loaded on the way."""
    libraries = examine_libraries((*list_wanted(cuda_version), *more))
    missing = [library for library in libraries if not library.path]
    if missing:
        packages = ", ".join(list_cuda_packages()) or "none"
        text = f"{'; '.join(map(_tell_missing, missing))} (Python packages of CUDA: {packages})"
        cure = 'pip install "onnxruntime-gpu[cuda,cudnn]"' + (' "tensorrt-cu13<11"' if more else "")
        return [Check("warning", "cuda", text, cure)]
    found = ", ".join(f"{library.wanted} {library.version}".rstrip() for library in libraries)
    return [Check("ok", "cuda", f"built for {cuda_version or 'an unknown version'}, found {found}")]


def _tell_missing(library: Library) -> str:
    found = ", ".join(library.others) or "none"
    return f"wanted {library.wanted}, found {found}"
