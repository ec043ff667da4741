"""Skips all of these, with the reason, where networks cannot run on a graphics card."""

from __future__ import annotations

from functools import cache

import pytest

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime.libraries import examine_libraries, get_cuda_version, list_wanted
from livefuse.runtime.providers import has_nvidia_device
from livefuse.runtime.session import SessionCache


@cache
def tell_why_not(provider):
    """Return why networks cannot run with `provider` here, or nothing."""
    if not has_nvidia_device():
        return "this machine shows no NVIDIA device"
    try:
        SessionCache(ModelsConfig(providers=provider)).get("facemesh_468")
    except ModelError as error:
        wanted = examine_libraries(list_wanted(get_cuda_version()))
        missing = ", ".join(library.wanted for library in wanted if not library.path)
        return f"{error.message} (missing: {missing or 'nothing of CUDA'})"
    return ""


@pytest.fixture
def cuda(request):
    """A configuration that takes CUDA or nothing."""
    if reason := tell_why_not("cuda"):
        pytest.skip(reason)
    return ModelsConfig(providers="cuda")


@pytest.fixture
def tensorrt(tmp_path):
    """A configuration that takes TensorRT or nothing, its engines in a folder of its own."""
    if reason := tell_why_not("tensorrt"):
        pytest.skip(reason)
    return ModelsConfig(providers="tensorrt", cache_folder=str(tmp_path))
