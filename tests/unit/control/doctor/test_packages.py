"""Packages that were installed over one another, on made-up installations."""

import base64
import hashlib
import importlib
import sys

import pytest

from livefuse.control.doctor.packages import check_packages, find_altered_files


def install(site, package, files):
    """Put `files` (path -> bytes) and the RECORD of `package` into the folder `site`."""
    rows = []
    for name, data in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")


FILES = {"onnxruntime/__init__.py": b"gpu = True\n", "onnxruntime/capi/lib.so": b"\x7fELF" * 100}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The only place where packages are looked for; Python's own modules stay to be found."""
    own = [path for path in sys.path if "site-packages" not in path and "python3" in path]
    monkeypatch.setattr(sys, "path", [str(tmp_path), *own])
    importlib.invalidate_caches()
    return tmp_path


def test_one_package_with_its_own_files_is_well(site):
    install(site, "onnxruntime-gpu", FILES)
    install(site, "opencv-python-headless", {"cv2/__init__.py": b"x = 1\n"})
    assert check_packages() == []


def test_no_package_is_not_the_matter_here(site):
    assert check_packages() == []


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("onnxruntime", "onnxruntime-gpu", "onnxruntime-gpu"),
        ("opencv-python", "opencv-contrib-python", "opencv-python-headless"),
    ],
)
def test_two_of_a_kind_are_a_problem(site, one, other, wanted):
    install(site, one, {})
    install(site, other, {})
    (check,) = check_packages()
    assert check.level == "problem"
    assert one in check.text
    assert other in check.text
    assert check.cure == f"pip uninstall {one} {other}; pip install --force-reinstall {wanted}"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("onnxruntime/__init__.py", b"gpu = None\n"),  # of the same size
        ("onnxruntime/capi/lib.so", b"shorter"),
        ("onnxruntime/capi/lib.so", None),
    ],
)
def test_files_of_another_package_are_a_problem(site, name, data):
    """What a package leaves behind that was installed over this one, then uninstalled."""
    install(site, "onnxruntime-gpu", FILES)
    if data is None:
        (site / name).unlink()
    else:
        (site / name).write_bytes(data)
    assert find_altered_files("onnxruntime-gpu", "onnxruntime") == [name]
    (check,) = check_packages()
    assert check.level == "problem"
    assert name in check.text
    assert "--force-reinstall" in check.cure


def test_this_installation_is_whole():
    assert check_packages() == []
