"""Sessions: each model is loaded once per device and thread count, and used by all frames."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, cast

from livefuse.errors import ModelError
from livefuse.runtime.providers import (
    EXECUTION_PROVIDERS,
    ProviderChoice,
    explain_unusable,
    list_usable_providers,
    load_onnxruntime,
)
from livefuse.runtime.registry import load_registry

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.config import ModelsConfig
    from livefuse.runtime.providers import Provider, Wish
    from livefuse.runtime.registry import Model, ModelRegistry

_LOG_ERRORS_ONLY: Final = 3
_LOG_FATAL_ONLY: Final = 4

_environment = threading.Lock()
_has_shared_allocator = False


class Network:
    """A loaded network. `run` may be called from any thread; it lets go of the GIL."""

    def __init__(self, session: Any, model: Model, provider: Provider) -> None:  # noqa: ANN401 - onnxruntime is untyped
        self._session = session
        self.model = model
        self.provider = provider
        self.input_names = tuple(str(item.name) for item in session.get_inputs())
        self.output_names = tuple(str(item.name) for item in session.get_outputs())
        # A free dimension (any batch, any size) is -1.
        self.input_shapes = tuple(
            tuple(side if isinstance(side, int) else -1 for side in item.shape)
            for item in session.get_inputs()
        )

    def run(self, feeds: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Return the outputs in `output_names`' order.

        Raises:
            ModelError: the runtime refused or failed.
        """
        try:
            return cast("list[NDArray[np.float32]]", self._session.run(None, feeds))
        except Exception as error:  # noqa: BLE001 - onnxruntime raises many unrelated types
            raise ModelError(
                f"inference of {self.model.name} failed ({_first_line(error)})",
                hint="run  livefuse doctor",
            ) from None


class SessionCache:
    """One session per model, provider and thread count, for all jobs of a process."""

    def __init__(self, config: ModelsConfig) -> None:
        """Take where models are and which device is wanted; no file is touched yet."""
        self._config = config
        self._lock = threading.Lock()
        self._registry: ModelRegistry | None = None
        self._networks: dict[tuple[str, Provider, int], Network] = {}
        self._choice: ProviderChoice | None = None
        self.created = 0

    @property
    def choice(self) -> ProviderChoice | None:
        """The device that was found to work, None until the first network was loaded."""
        return self._choice

    def get(self, name: str, threads: int = 1) -> Network:
        """Return the network `name`, loading it the first time.

        Raises:
            ModelError: unknown, missing, damaged, or the device asked for does not work.
        """
        with self._lock:
            candidates = self._list_candidates()
            for provider in candidates:
                known = self._networks.get((name, provider, threads))
                if known is not None:
                    return known
            if self._registry is None:
                self._registry = load_registry(self._config)
            path = self._registry.verify_model(name)
            network = self._load(self._registry.get_model(name), path, candidates, threads)
            self._networks[name, network.provider, threads] = network
            self.created += 1
            return network

    def _list_candidates(self) -> tuple[Provider, ...]:
        if self._choice is not None:
            return (self._choice.provider,)
        if self._config.providers == "cpu":
            return ("cpu",)
        usable = list_usable_providers()
        if self._config.providers == "auto":
            return usable
        if usable == ("cpu",):
            raise explain_unusable(self._config.providers)
        return (self._config.providers,)

    def _load(
        self, model: Model, path: Path, candidates: tuple[Provider, ...], threads: int
    ) -> Network:
        for provider in candidates:
            session = _create_session(path, provider, threads)
            if session is None:
                continue
            if self._choice is None:
                self._choice = ProviderChoice(
                    provider, _explain_choice(self._config.providers, provider)
                )
            return Network(session, model, provider)
        if self._config.providers in ("auto", "cpu"):
            raise ModelError(
                f"the model {model.name} cannot be loaded", hint="run  livefuse models verify"
            )
        raise explain_unusable(self._config.providers)


def _create_session(path: Path, provider: Provider, threads: int) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """Return a session that runs on `provider` for certain, or None."""
    onnxruntime = load_onnxruntime()
    _share_allocator()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # A GPU that does not load is expected here and told in one sentence of our own.
    options.log_severity_level = _LOG_ERRORS_ONLY if provider == "cpu" else _LOG_FATAL_ONLY
    # A spinning thread doubles a frame's time on a busy machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.add_session_config_entry("session.use_env_allocators", "1")
    wanted = [EXECUTION_PROVIDERS[provider]]
    if provider == "tensorrt":
        wanted.append(EXECUTION_PROVIDERS["cuda"])
    try:
        # Without enable_fallback=0 onnxruntime prints and runs on the CPU behind our back.
        session = onnxruntime.InferenceSession(
            str(path), options, providers=wanted, enable_fallback=0
        )
    except Exception:  # noqa: BLE001 - onnxruntime raises many unrelated types
        return None
    return session if session.get_providers()[0] == wanted[0] else None


def _share_allocator() -> None:
    """Give all sessions one arena: four sessions cost 18 MB instead of 70."""
    global _has_shared_allocator  # noqa: PLW0603 - onnxruntime's environment is global too
    with _environment:
        if _has_shared_allocator:
            return
        onnxruntime = load_onnxruntime()
        onnxruntime.set_default_logger_severity(_LOG_ERRORS_ONLY)
        memory = onnxruntime.OrtMemoryInfo(
            "Cpu",
            onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR,
            0,
            onnxruntime.OrtMemType.DEFAULT,
        )
        onnxruntime.create_and_register_allocator(memory, None)
        _has_shared_allocator = True


def _explain_choice(wish: Wish, provider: Provider) -> str:
    if wish == "auto" and provider == "cpu":
        return "no usable NVIDIA device, networks run on the CPU"
    return f"networks run on {provider}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
