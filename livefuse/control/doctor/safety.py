"""The safety folder, and whose marks pictures get. Nothing is made here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from livefuse.control.doctor.check import Check
from livefuse.errors import ConfigError
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.mark_keys import peek_mark_keys

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import SafetyConfig

_OTHERS: Final = 0o077


def check_safety(config: SafetyConfig) -> list[Check]:
    """Return the lines about the folder of faces, consents and keys, and about the mark keys."""
    folder = find_safety_folder(config)
    try:
        return [_check_folder(folder), _check_keys(config)]
    except PermissionError:
        cure = "ask as the user that livefuse runs as"
        return [Check("problem", "safety folder", f"you may not look into {folder}", cure)]


def _check_folder(folder: Path) -> Check:
    name = "safety folder"
    place = folder
    while not place.exists():  # its nearest parent, the root at last
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        cure = "set safety.folder to a folder that you may write to; nothing is done unlogged"
        return Check("problem", name, f"{place} cannot be written", cure)
    if place != folder:
        return Check("ok", name, f"{folder} is made when it is needed")
    if folder.stat().st_mode & _OTHERS:
        return Check("warning", name, f"others can look into {folder}", f"run  chmod 700 {folder}")
    return Check("ok", name, f"{folder} can be written")


def _check_keys(config: SafetyConfig) -> Check:
    try:
        keys = peek_mark_keys(config)
    except ConfigError as error:
        return Check("problem", "mark keys", error.message, error.hint)
    if keys is None:
        return Check("ok", "mark keys", "none yet, they are made with the first job")
    return Check("ok", "mark keys", f"install {keys.install_id} (see  livefuse mark key)")
