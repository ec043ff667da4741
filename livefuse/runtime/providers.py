"""On which device networks run. A device that was asked for is used, or the start is refused."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import platform
import sys
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from livefuse.errors import ModelError

Provider = Literal["cpu", "cuda", "tensorrt"]
Wish = Literal["auto", "cpu", "cuda", "tensorrt"]

EXECUTION_PROVIDERS: Final[dict[Provider, str]] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
# What the drivers of Linux and of Windows' subsystem for Linux create.
_DEVICES: Final = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


class ProviderChoice(NamedTuple):
    """The device that networks run on, and why, as a sentence for a person.

    `fell_back`: a better one was looked for and could not be had.
    """

    provider: Provider
    note: str
    fell_back: bool = False


class RuntimeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `livefuse doctor` tells of the machine learning runtime."""

    onnxruntime: str
    opencv: str
    numpy: str
    python: str
    compiled_providers: tuple[str, ...]
    usable_providers: tuple[str, ...]
    has_nvidia_device: bool


def load_onnxruntime() -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """Return the module; it is slow to load, and a job that runs no network goes without.

    Unless it is told before it is loaded, it reports the machine to its makers over the network.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime  # noqa: PLC0415 - see above

    return onnxruntime


def has_nvidia_device() -> bool:
    """Say whether the machine shows an NVIDIA device. Loads no library, prints nothing."""
    if sys.platform == "win32":
        return EXECUTION_PROVIDERS["cuda"] in load_onnxruntime().get_available_providers()
    return any(Path(device).exists() for device in _DEVICES)


def list_usable_providers() -> tuple[Provider, ...]:
    """Return the providers that may be tried here, the best first; the CPU is always last.

    onnxruntime names CUDA whenever it was compiled in, and complains at length when its
    libraries are missing, so without a device CUDA is not even tried.
    """
    compiled = load_onnxruntime().get_available_providers()
    if has_nvidia_device() and EXECUTION_PROVIDERS["cuda"] in compiled:
        preload_cuda_libraries()
        return ("cuda", "cpu")
    return ("cpu",)


def explain_unusable(wish: Wish) -> ModelError:
    """Return the error for a device that was asked for and is not there: cause and cure."""
    if EXECUTION_PROVIDERS["cuda"] not in load_onnxruntime().get_available_providers():
        cause = "the installed onnxruntime is built for the CPU only"
        cure = "pip uninstall onnxruntime; pip install --force-reinstall onnxruntime-gpu"
    elif not has_nvidia_device():
        cause = "this machine shows no NVIDIA device"
        cure = "install the NVIDIA driver (nvidia-smi must work), or set models.providers to auto"
    else:
        cause = "its libraries do not load"
        more = ' "tensorrt-cu13<11"' if wish == "tensorrt" else ""
        cure = f'pip install "onnxruntime-gpu[cuda,cudnn]"{more}, or set models.providers to auto'
    return ModelError(f"{wish} was asked for, but {cause}", hint=cure)


def explain_choice(wish: Wish, provider: Provider) -> ProviderChoice:
    """Return the choice of `provider` with a sentence that says why."""
    if wish != "auto" or provider != "cpu":
        return ProviderChoice(provider, f"networks run on {provider}")
    if has_nvidia_device():
        cause = "the NVIDIA device cannot be used, livefuse doctor says why"
    else:
        cause = "no usable NVIDIA device"
    return ProviderChoice(provider, f"networks run on the CPU: {cause}", fell_back=True)


def preload_cuda_libraries() -> None:
    """Load CUDA and cuDNN from Python packages where they are installed; silent when not."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(OSError, RuntimeError):
        load_onnxruntime().preload_dlls()


def describe_runtime() -> RuntimeReport:
    """Return versions and devices. Fast; creates no session."""
    return RuntimeReport(
        onnxruntime=str(load_onnxruntime().__version__),
        opencv=_find_version("opencv-python-headless") or _find_version("opencv-python"),
        numpy=_find_version("numpy"),
        python=platform.python_version(),
        compiled_providers=tuple(load_onnxruntime().get_available_providers()),
        usable_providers=tuple(list_usable_providers()),
        has_nvidia_device=has_nvidia_device(),
    )


def _find_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
