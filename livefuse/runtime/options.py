"""What onnxruntime is told of a device: provider options as plain dicts, engine folders, plans.

Nothing here loads onnxruntime, so that what a GPU would be told can be read and tested anywhere.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.config import ModelsConfig
    from livefuse.runtime.providers import Provider

Precision = Literal["fp32", "fp16", "int8"]
ProviderOptions = list[tuple[str, dict[str, str]]]

_BYTES_PER_MB: Final = 1 << 20
_DRIVER_CARDS: Final = Path("/proc/driver/nvidia/gpus")
_DRIVER_VERSION: Final = Path("/proc/driver/nvidia/version")
_TRT_WORKSPACE_SHARE: Final = 4  # a quarter of the memory is for TensorRT to try kernels in


class Plan(NamedTuple):
    """How a network is run: what makes one session differ from another of the same model."""

    provider: Provider
    threads: int
    precision: Precision


def choose_precision(wish: str, provider: Provider) -> Precision:
    """Return what `auto` means on a device, else the wish.

    TensorRT has kernels for halves and falls back by layer, so it takes them; elsewhere full
    precision is never the wrong answer (on a processor halves gain nothing).
    """
    if wish == "auto":
        return "fp16" if provider == "tensorrt" else "fp32"
    return "int8" if wish == "int8" else "fp16" if wish == "fp16" else "fp32"


def build_provider_options(plan: Plan, config: ModelsConfig, engines: Path) -> ProviderOptions:
    """Return onnxruntime's `providers` argument: names and options, the wanted one first.

    `engines` is where TensorRT keeps what it built (`find_engine_folder`).
    """
    if plan.provider == "cpu":
        return [("CPUExecutionProvider", {})]
    cuda = ("CUDAExecutionProvider", _build_cuda_options(config))
    # The processor last: small bookkeeping nodes (shapes) belong there even on a graphics card.
    tail: ProviderOptions = [cuda, ("CPUExecutionProvider", {})]
    if plan.provider == "cuda":
        return tail
    return [("TensorrtExecutionProvider", _build_tensorrt_options(plan, config, engines)), *tail]


def _build_cuda_options(config: ModelsConfig) -> dict[str, str]:
    options = {
        "device_id": str(config.device),
        # Doubling, the default, may take twice what is needed; memory is capped, so by need.
        "arena_extend_strategy": "kSameAsRequested",
        # EXHAUSTIVE tries all kernels at each new shape: seconds, in the middle of a stream.
        "cudnn_conv_algo_search": "HEURISTIC",
        "cudnn_conv_use_max_workspace": "1",
        "do_copy_in_default_stream": "1",
    }
    if config.gpu_memory_mb:
        options["gpu_mem_limit"] = str(config.gpu_memory_mb * _BYTES_PER_MB)
    return options


def _build_tensorrt_options(plan: Plan, config: ModelsConfig, engines: Path) -> dict[str, str]:
    memory_mb = config.gpu_memory_mb or 4096
    return {
        "device_id": str(config.device),
        "trt_max_workspace_size": str(memory_mb * _BYTES_PER_MB // _TRT_WORKSPACE_SHARE),
        "trt_fp16_enable": str(int(plan.precision != "fp32")),
        "trt_int8_enable": str(int(plan.precision == "int8")),
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(engines),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(engines),
        "trt_builder_optimization_level": "3",
        # An engine of another job is being built meanwhile: one at a time keeps memory within.
        "trt_force_sequential_engine_build": "1",
        "trt_context_memory_sharing_enable": "1",
    }


def find_engine_folder(config: ModelsConfig, version: str) -> Path:
    """Return the folder for engines of this card, driver and `version` of onnxruntime.

    An engine is made for one card and one library; under another it fails or is slow, so each
    has its own folder and nothing needs to be found out of date. Not created yet.
    """
    card = read_card_name(config.device) or "card"
    driver = read_driver_version() or "driver"
    return find_cache_folder(config) / "engines" / _slug(f"{card}-{driver}-{version}")


def find_cache_folder(config: ModelsConfig) -> Path:
    """Return where files go that can be made again: configured, else the user's cache folder."""
    if config.cache_folder:
        return Path(config.cache_folder).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "livefuse"


def read_card_name(device: int = 0, cards: Path = _DRIVER_CARDS) -> str:
    """Return the name of the NVIDIA card number `device` as the driver tells it, or nothing."""
    try:
        entries = sorted(cards.iterdir())
        text = (entries[device] / "information").read_text("utf-8", "replace")
    except (OSError, IndexError):
        return ""
    return _find(r"^Model:\s*(.+?)\s*$", text.splitlines())


def read_driver_version(version: Path = _DRIVER_VERSION) -> str:
    """Return the NVIDIA driver's version, or nothing."""
    try:
        text = version.read_text("utf-8", "replace")
    except OSError:
        return ""
    return _find(r"^NVRM version:.*?\s(\d+\.[\d.]+)\s", text.splitlines())


def _find(pattern: str, lines: Iterable[str]) -> str:
    return next((found[1] for line in lines if (found := re.search(pattern, line))), "")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
