"""The CUDA libraries that onnxruntime's graphics card part needs: wanted, found, from where."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

from livefuse.runtime.providers import load_onnxruntime, preload_cuda_libraries

_SYSTEM_FOLDERS: Final = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu")
_MAPS: Final = Path("/proc/self/maps")
_CUDA_WITH_CUFFT_12: Final = 13
TENSORRT: Final = ("libnvinfer.so.10", "libnvonnxparser.so.10")
"""What onnxruntime's TensorRT part is linked with (1.24 to 1.31)."""


class Library(NamedTuple):
    """A shared library: the name that is wanted; where it was loaded from, or empty.

    `others` are the versions of it that are there and are not the wanted one.
    """

    wanted: str
    path: str
    others: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The version in the name of the file that was loaded, as far as it says one."""
        found = re.search(r"\.so\.([\d.]+)$", self.path)
        return found[1] if found else ""


def list_wanted(cuda_version: str) -> tuple[str, ...]:
    """Return the names of the libraries that a build for `cuda_version` ("13.0") loads.

    From onnxruntime's own list (`preload_dlls`): cuFFT and cuRAND count their versions apart.
    """
    major = int(cuda_version.partition(".")[0] or 0)
    cufft = 12 if major >= _CUDA_WITH_CUFFT_12 else 11
    return (
        f"libcudart.so.{major}",
        f"libcublasLt.so.{major}",
        f"libcublas.so.{major}",
        f"libcufft.so.{cufft}",
        "libcurand.so.10",
        "libcudnn.so.9",
    )


def get_cuda_version() -> str:
    """Return the CUDA version that the installed onnxruntime was built for, or nothing."""
    load_onnxruntime()
    with contextlib.suppress(ImportError, AttributeError):
        from onnxruntime.capi import build_and_package_info  # noqa: PLC0415 - slow to load

        return str(build_and_package_info.cuda_version or "")
    return ""


def examine_libraries(names: tuple[str, ...]) -> list[Library]:
    """Preload CUDA's libraries and say which are there. They stay loaded, as a job needs them."""
    if sys.platform == "win32":
        return []
    preload_cuda_libraries()
    preload_tensorrt_libraries()
    return [_examine(name) for name in names]


def preload_tensorrt_libraries() -> None:
    """Load TensorRT from its Python package where that is installed; silent when not."""
    for name in TENSORRT:
        for entry in sys.path:
            path = Path(entry) / "tensorrt_libs" / name
            if path.is_file():
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _examine(name: str) -> Library:
    try:
        ctypes.CDLL(name)
    except OSError:
        return Library(name, "", _find_others(name))
    return Library(name, _find_loaded(name))


def _find_loaded(name: str) -> str:
    """Return the real path of a loaded library: its soname's link names the full version."""
    stem = name.partition(".so")[0]
    with contextlib.suppress(OSError):
        for line in _MAPS.read_text("utf-8", "replace").splitlines():
            path = line.partition("/")[2]
            if path and Path(path).name.partition(".so")[0] == stem:
                return os.path.realpath("/" + path)
    return name


def _find_others(name: str, folders: tuple[str, ...] = ()) -> tuple[str, ...]:
    stem = name.partition(".so")[0]
    found: set[str] = set()
    for folder in folders or _list_folders():
        with contextlib.suppress(OSError):
            found |= {path.name for path in Path(folder).glob(f"{stem}.so.*")}
    return tuple(sorted(found))


def _list_folders() -> tuple[str, ...]:
    """Return where CUDA's libraries lie: the linker's, CUDA's own, and Python packages'."""
    given = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    cuda = (str(path / "lib64") for path in Path("/usr/local").glob("cuda*"))
    packages: list[str] = []
    for entry in sys.path:
        packages += (str(path) for path in Path(entry).glob("nvidia/*/lib"))
        packages.append(str(Path(entry) / "tensorrt_libs"))
    return tuple(folder for folder in (*given, *_SYSTEM_FOLDERS, *cuda, *packages) if folder)


def list_cuda_packages() -> tuple[str, ...]:
    """Return the Python packages of CUDA that are installed, with their versions."""
    found = {
        f"{name} {package.version}"
        for package in importlib.metadata.distributions()
        if (name := str(package.metadata["Name"])).startswith(("nvidia-c", "tensorrt"))
    }
    return tuple(sorted(found))
