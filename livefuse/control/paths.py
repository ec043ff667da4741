"""Files that one command line names twice: nothing may be written over what is read or written.

Two names can mean one file (`./a.mp4`, a link), and `record.overwrite` takes no question, so this
is asked before anything is opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from livefuse.errors import ConfigError
from livefuse.ingest import get_file_path, get_kind, get_recording_path
from livefuse.ingest.sidecar import get_sidecar_path
from livefuse.publish import find_file_path
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def check_distinct(
    source: str, targets: Sequence[str], stats: Path | None, *, also_read: Iterable[Path]
) -> None:
    """Refuse a target or a place for figures that is an input, or that is named twice.

    `also_read` are the other files that the job reads: the configuration, a picture.

    Raises:
        ConfigError: two of them are one file.
    """
    read = list(also_read)
    if (kind := get_kind(source)) == "file":
        read.append(Path(get_file_path(source)))
    elif kind == "replay":
        recording = Path(get_recording_path(source))
        read += [recording, get_sidecar_path(recording)]
    for url in targets:
        if targets.count(url) > 1:
            raise ConfigError(f"{redact_url(url)} is named twice", hint="name each target once")
    written: list[Path] = []
    for path in [*filter(None, map(find_file_path, targets)), *([stats] if stats else [])]:
        if any(is_same_file(path, other) for other in read):
            raise ConfigError(
                f"{path} would be written over while it is read", hint="choose another name"
            )
        if any(is_same_file(path, other) for other in written):
            raise ConfigError(f"{path} is to be written twice", hint="name each file once")
        written.append(path)


def is_same_file(one: Path, other: Path) -> bool:
    """Say whether two paths lead to one file, which need not be there yet."""
    try:
        if one.samefile(other):
            return True
    except OSError:
        pass  # one of them is not there yet
    return os.path.realpath(one) == os.path.realpath(other)
