"""Whether installed packages are what they say: two that share a folder overwrite one another."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
from pathlib import Path
from typing import Final

from livefuse.control.doctor.check import Check

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
_RECORD_COLUMNS: Final = 3  # path, digest, size
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
    installed = importlib.metadata.distribution(package)
    # Not `installed.files`: from Python 3.12 on that leaves out what is gone.
    rows = csv.reader((installed.read_text("RECORD") or "").splitlines())
    return [
        name
        for name, digest, size in (row for row in rows if len(row) == _RECORD_COLUMNS)
        if name.split("/")[0] == folder
        and digest
        and _is_altered(Path(str(installed.locate_file(name))), digest, size)
    ]


def _is_altered(path: Path, digest: str, size: str) -> bool:
    """Say whether the file at `path` has not `size` bytes or not `digest` (mode=value)."""
    mode, _, value = digest.partition("=")
    try:
        found = path.stat().st_size
        if size and found != int(size):
            return True
        if found > _HASHED_BYTES:
            return False
        actual = hashlib.new(mode, path.read_bytes()).digest()
    except (OSError, ValueError):
        return True
    return base64.urlsafe_b64encode(actual).rstrip(b"=").decode() != value


def _has(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
