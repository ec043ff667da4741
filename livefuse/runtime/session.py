"""Sessions: each model is loaded once per device, precision and thread count, for all jobs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

from livefuse.errors import ModelError
from livefuse.runtime.environment import create_session
from livefuse.runtime.network import Network
from livefuse.runtime.options import Plan, choose_precision
from livefuse.runtime.precision import get_reduced_path
from livefuse.runtime.providers import (
    ProviderChoice,
    explain_choice,
    explain_unusable,
    list_usable_providers,
)
from livefuse.runtime.registry import load_registry

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import ModelsConfig
    from livefuse.runtime.options import Precision
    from livefuse.runtime.providers import Provider
    from livefuse.runtime.registry import Model, ModelRegistry

__all__ = ["Network", "RuntimeStatistics", "SessionCache"]


class RuntimeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Where networks run and how many were made. `provider` is empty until one was."""

    provider: str
    wanted: str
    fell_back: bool
    sessions_created: int
    input_shapes: int
    garbage: int
    notes: tuple[str, ...]


class SessionCache:
    """One session per model, device, precision and thread count, for all jobs of a process."""

    def __init__(self, config: ModelsConfig) -> None:
        """Take where models are and which device is wanted; no file is touched yet."""
        self._config = config
        self._lock = threading.Lock()
        self._registry: ModelRegistry | None = None
        self._networks: dict[tuple[str, Plan], Network] = {}
        self._choice: ProviderChoice | None = None
        self._notes: list[str] = []
        self.created = 0

    @property
    def choice(self) -> ProviderChoice | None:
        """The device that was found to work, None until the first network was loaded."""
        return self._choice

    def statistics(self) -> RuntimeStatistics:
        """Return the figures of now."""
        choice, networks = self._choice, list(self._networks.copy().values())
        notes = [*self._notes, *(network.note for network in networks if network.note)]
        if choice is not None and choice.fell_back:
            notes.insert(0, choice.note)
        return RuntimeStatistics(
            provider=choice.provider if choice is not None else "",
            wanted=self._config.providers,
            fell_back=choice is not None and choice.fell_back,
            sessions_created=self.created,
            input_shapes=sum(len(network.shapes) for network in networks),
            garbage=sum(network.garbage for network in networks),
            notes=tuple(notes),
        )

    def check_device(self) -> None:
        """Refuse a device that was asked for by name and is not there; loads no network.

        Raises:
            ModelError: cause and cure.
        """
        if self._config.providers in ("cuda", "tensorrt"):
            self._list_candidates()

    def get(self, name: str, threads: int = 1) -> Network:
        """Return the network `name`, loading it the first time.

        On a card one that takes pictures of one size has run when it is returned, which may take
        minutes the first time; whoever uses one of free size runs it once in each size.

        Raises:
            ModelError: unknown, missing, damaged, or the device asked for does not work.
        """
        # Who wants what is there does not wait while another network is being built.
        if self._choice is not None and (known := self._find(name, self._list_plans(threads))):
            return known
        with self._lock:
            plans = self._list_plans(threads)
            if known := self._find(name, plans):
                return known
            if self._registry is None:
                self._registry = load_registry(self._config)
            path = self._registry.verify_model(name)
            network, plan = self._load(self._registry.get_model(name), path, plans)
            if plan.provider != "cpu" and network.has_own_size:
                network.warm_up()  # kernels and engines are built here, not in a stream
            self._networks[name, plan] = network
            self.created += 1
            return network

    def forget(self) -> None:
        """Let go of all networks: who has one keeps it, the next `get` loads anew. Any thread."""
        # One reference, no lock: whoever has that may hang in a load.
        self._networks = {}

    def _list_plans(self, threads: int) -> list[Plan]:
        return [
            Plan(provider, threads, choose_precision(self._config.precision, provider))
            for provider in self._list_candidates()
        ]

    def _find(self, name: str, plans: list[Plan]) -> Network | None:
        return next((self._networks[name, p] for p in plans if (name, p) in self._networks), None)

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

    def _load(self, model: Model, path: Path, plans: list[Plan]) -> tuple[Network, Plan]:
        for plan in plans:
            file, precision = self._choose_file(path, plan)
            session = create_session(file, plan._replace(precision=precision), self._config)
            if session is None:
                continue
            if self._choice is None:
                self._choice = explain_choice(self._config.providers, plan.provider)
            return self._wrap(session, model, path, plan._replace(precision=precision)), plan
        if self._choice is None and self._config.providers not in ("auto", "cpu"):
            raise explain_unusable(self._config.providers)
        hint = "run  livefuse models verify"
        if plans[0].provider != "cpu":
            hint += (
                f", or give it more memory than models.gpu_memory_mb {self._config.gpu_memory_mb}"
            )
        raise ModelError(f"the model {model.name} cannot be loaded", hint=hint)

    def _choose_file(self, path: Path, plan: Plan) -> tuple[Path, Precision]:
        """Return what is loaded for `plan`: the model's own file, or its smaller copy."""
        if plan.precision == "fp32":
            return path, "fp32"
        if plan.precision == "fp16" and plan.provider == "tensorrt":
            return path, "fp16"  # its engine has halves, the file need not
        if plan.precision == "fp16" and plan.provider == "cpu":
            self._tell("a processor gains nothing from fp16, networks run in fp32")
            return path, "fp32"
        reduced = get_reduced_path(self._config, path, plan.precision, plan.provider)
        if reduced.is_file():
            return reduced, plan.precision
        self._tell(
            f"{path.stem} runs in fp32: there is no {plan.precision} file yet, "
            f"make it with  livefuse models reduce {path.stem}"
        )
        return path, "fp32"

    def _tell(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _wrap(self, session: Any, model: Model, path: Path, plan: Plan) -> Network:  # noqa: ANN401 - onnxruntime is untyped
        full = plan._replace(precision="fp32")
        return Network(
            session,
            model,
            plan.provider,
            precision=plan.precision,
            max_batch=self._config.max_batch,
            device=self._config.device,
            reload=lambda: create_session(path, full, self._config),
        )
