"""Whether installed packages are what they say: two that share a folder overwrite one another."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
from typing import TYPE_CHECKING, Final

from livefuse.control.doctor_check import Check

if TYPE_CHECKING:
    from importlib.metadata import PackagePath

# Package -> the folder it shares with the others of its kind.
_SHARED: Final = {
    "onnxruntime": "onnxruntime",
    "onnxruntime-gpu": "onnxruntime",
    "onnxruntime-directml": "onnxruntime",
    "onnxruntime-openvino": "onnxruntime",
    "opencv-python": "cv2",
    "opencv-python-headless": "cv2",
    "opencv-contrib-python": "cv2",
    "opencv-contrib-python-headless": "cv2",
}
_WANTED: Final = {"onnxruntime": "onnxruntime-gpu", "cv2": "opencv-python-headless"}
_HASHED_BYTES: Final = 1_000_000  # a larger file is told by its size: hashing 300 MB takes a while


def check_packages() -> list[Check]:
    """Return a problem for each shared folder with two owners, or with files of another package."""
    checks: list[Check] = []
    for folder, wanted in _WANTED.items():
        owners = [name for name, shared in _SHARED.items() if shared == folder and _has(name)]
        cure = f"pip uninstall {' '.join(owners)}; pip install --force-reinstall {wanted}"
        if len(owners) > 1:
            text = f"{' and '.join(owners)} are both installed and overwrite one another"
            checks.append(Check("problem", "packages", text, cure))
        elif owners and (altered := find_altered_files(owners[0], folder)):
            text = f"{len(altered)} files of {owners[0]} are not its own, {altered[0]} first"
            checks.append(Check("problem", "packages", text, cure))
    return checks


def find_altered_files(package: str, folder: str) -> list[str]:
    """Return the files of `package` in `folder` that are gone or not as its RECORD says.

    A package that was installed over and then uninstalled leaves exactly that behind.
    """
    files = importlib.metadata.distribution(package).files or ()
    return [
        str(file)
        for file in files
        if file.parts[:1] == (folder,) and file.hash is not None and _is_altered(file)
    ]


def _is_altered(file: PackagePath) -> bool:
    try:
        path = file.locate()
        size = path.stat().st_size  # type: ignore[attr-defined] # a pathlib.Path for what is on disk
        if file.size is not None and size != file.size:
            return True
        if size > _HASHED_BYTES or file.hash is None:
            return False
        digest = hashlib.new(file.hash.mode, file.read_binary()).digest()
    except (OSError, ValueError):
        return True
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value


def _has(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
