"""CUDA's libraries, wanted and found, on made-up folders."""

import sys

import pytest

from livefuse.runtime import libraries
from livefuse.runtime.libraries import Library, examine_libraries, list_wanted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names of Linux's libraries")


def test_the_wanted_names_follow_the_build():
    assert "libcublas.so.13" in list_wanted("13.0")
    assert "libcufft.so.12" in list_wanted("13.0")
    assert "libcublas.so.12" in list_wanted("12.8")
    assert "libcufft.so.11" in list_wanted("12.8")


def test_the_installed_onnxruntime_says_what_it_was_built_for():
    assert int(libraries.get_cuda_version().partition(".")[0]) >= 12


def test_another_version_is_told_beside_the_wanted(tmp_path, monkeypatch):
    """(C20) wanted and found."""
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublas.so.12").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(libraries, "_SYSTEM_FOLDERS", ())
    (library,) = examine_libraries(("libcublas.so.99",))
    assert library == Library("libcublas.so.99", "", ("libcublas.so.12",))


def test_a_library_that_is_there_is_loaded_and_its_version_read():
    (library,) = examine_libraries(("libc.so.6",))
    assert library.path.startswith("/")
    assert library.others == ()
    assert Library("libx.so.9", "/usr/lib/libx.so.9.14.0").version == "9.14.0"
    assert Library("libx.so.9", "libx").version == ""


def test_looking_prints_nothing(capfd):
    examine_libraries(("libcublas.so.99",))
    assert capfd.readouterr() == ("", "")
