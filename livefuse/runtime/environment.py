"""What all sessions of the process share: one arena on this side, one on the card, quiet logs."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from livefuse.runtime.libraries import preload_tensorrt_libraries
from livefuse.runtime.options import build_provider_options, find_engine_folder
from livefuse.runtime.providers import EXECUTION_PROVIDERS, load_onnxruntime

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import ModelsConfig
    from livefuse.runtime.options import Plan

_LOG_ERRORS_ONLY: Final = 3
_LOG_FATAL_ONLY: Final = 4
_BYTES_PER_MB: Final = 1 << 20
# As in onnxruntime's ArenaExtendStrategy; -1 leaves a value at its default.
_SAME_AS_REQUESTED: Final = 1
_DEFAULT: Final = -1

_lock = threading.Lock()
_shared: set[str] = set()


def create_session(path: Path, plan: Plan, config: ModelsConfig) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """Return a session that runs on the plan's device for certain, or None."""
    onnxruntime = load_onnxruntime()
    _share_allocators(plan, config)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = plan.threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # A GPU that does not load is expected here and told in one sentence of our own.
    options.log_severity_level = _LOG_ERRORS_ONLY if plan.provider == "cpu" else _LOG_FATAL_ONLY
    # A spinning thread doubles a frame's time on a busy machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.add_session_config_entry("session.use_env_allocators", "1")
    engines = find_engine_folder(config, str(onnxruntime.__version__))
    try:
        if plan.provider == "tensorrt":
            preload_tensorrt_libraries()
            engines.mkdir(parents=True, exist_ok=True)
        # Without enable_fallback=0 onnxruntime prints and runs on the CPU behind our back.
        session = onnxruntime.InferenceSession(
            str(path),
            options,
            providers=build_provider_options(plan, config, engines),
            enable_fallback=0,
        )
    except Exception:  # noqa: BLE001 - onnxruntime raises many unrelated types
        return None
    return session if session.get_providers()[0] == EXECUTION_PROVIDERS[plan.provider] else None


def _share_allocators(plan: Plan, config: ModelsConfig) -> None:
    """Give all sessions one arena: four sessions cost 18 MB instead of 70."""
    with _lock:
        if "cpu" not in _shared:
            _shared.add("cpu")
            onnxruntime = load_onnxruntime()
            onnxruntime.set_default_logger_severity(_LOG_ERRORS_ONLY)
            onnxruntime.create_and_register_allocator(_describe_memory("Cpu", 0), None)
        if plan.provider != "cpu" and config.gpu_memory_mb and "cuda" not in _shared:
            _shared.add("cuda")
            _share_card_memory(config)


def _share_card_memory(config: ModelsConfig) -> None:
    """Give all sessions one capped arena on the card; failing that, each has its own cap."""
    onnxruntime = load_onnxruntime()
    limits = {
        "max_mem": config.gpu_memory_mb * _BYTES_PER_MB,
        "arena_extend_strategy": _SAME_AS_REQUESTED,
        "initial_chunk_size_bytes": _DEFAULT,
        "max_dead_bytes_per_chunk": _DEFAULT,
    }
    onnxruntime.set_default_logger_severity(_LOG_FATAL_ONLY)  # the session says it, in our words
    with contextlib.suppress(Exception):  # onnxruntime raises many unrelated types
        onnxruntime.create_and_register_allocator_v2(
            EXECUTION_PROVIDERS["cuda"],
            _describe_memory("Cuda", config.device),
            {"device_id": str(config.device)},
            onnxruntime.OrtArenaCfg(limits),
        )
    onnxruntime.set_default_logger_severity(_LOG_ERRORS_ONLY)


def _describe_memory(kind: str, device: int) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    onnxruntime = load_onnxruntime()
    return onnxruntime.OrtMemoryInfo(
        kind,
        onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR,
        device,
        onnxruntime.OrtMemType.DEFAULT,
    )
