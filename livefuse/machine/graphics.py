"""How much of the graphics card's memory is in use, by NVIDIA's own management library (NVML).

Only where this process has CUDA loaded already: a job that computes on the processor is not pressed
by what others do on a card. Structures and names as in nvml.h.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final

from livefuse.machine.reading import Usage

_CUDA: Final = "libcuda.so.1"
_NVML: Final = "libnvidia-ml.so.1"
_SUCCESS: Final = 0


class _Memory(ctypes.Structure):
    """nvmlMemory_t, in bytes."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class GraphicsMemory:
    """Reads one card's memory. One thread."""

    def __init__(self, device: int = 0) -> None:
        """`device` is counted as CUDA counts, from 0."""
        self._device = device
        self._library: Any = None
        self._handle = ctypes.c_void_p()
        self._is_absent = False

    def read(self) -> Usage | None:
        """Return what is used of the card by anybody; None when it is not to be had."""
        if self._is_absent or not self._open():
            return None
        memory = _Memory()
        if self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(memory)) != _SUCCESS:
            return None
        return Usage(int(memory.used), int(memory.total))

    def _open(self) -> bool:
        """Find the library and the card, once CUDA is there; what fails is not tried again."""
        if self._library is not None:
            return True
        if not _is_loaded(_CUDA):
            return False  # it may come with the first network
        self._library = self._load()
        self._is_absent = self._library is None
        return not self._is_absent

    def _load(self) -> Any:  # noqa: ANN401 - a foreign library
        """Return the library, the card found in it, or None."""
        index = find_index(self._device, os.environ.get("CUDA_VISIBLE_DEVICES"))
        try:
            library = ctypes.CDLL(_NVML)
            if index is None or library.nvmlInit_v2() != _SUCCESS:
                return None
            find = library.nvmlDeviceGetHandleByIndex_v2
        except (OSError, AttributeError):  # not there, or older than its second version
            return None
        is_found = find(ctypes.c_uint(index), ctypes.byref(self._handle)) == _SUCCESS
        return library if is_found else None


def find_index(device: int, visible: str | None) -> int | None:
    """Return the card's number among all, given CUDA's variable that hides some; None: unknown."""
    if visible is None:
        return device
    names = [name.strip() for name in visible.split(",")]
    if device >= len(names) or not names[device].isdecimal():
        return None
    return int(names[device])


def _is_loaded(name: str) -> bool:
    """Say whether the process has the library already, without loading it."""
    flag = getattr(os, "RTLD_NOLOAD", None)
    if flag is None:
        return False
    try:
        ctypes.CDLL(name, mode=flag)
    except OSError:
        return False
    return True
