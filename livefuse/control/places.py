"""Where outputs that are asked for over HTTP may lie as files: in one folder, and nowhere else.

Whoever is at the command line or writes a program is the owner of the machine's files anyway. The
API is reached with a key alone, perhaps from a page or another machine, so what it writes stays in
`record.folder`, links and `..` included. What it reads, and where it sends, access.py judges.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from livefuse.errors import ConfigError, RefusedError
from livefuse.publish import find_file_path

if TYPE_CHECKING:
    from livefuse.config import RecordConfig


def place_target(url: str, config: RecordConfig) -> str:
    """Return `url`; a file's as its whole path, within the folder, which is made if need be.

    A path that begins with the folder's own name is meant to be in it, not in a second one of that
    name: so the command line and README write it (out/show.mp4).

    Raises:
        RefusedError: the file would lie elsewhere.
        ConfigError: this is no path, or the folder cannot be made.
    """
    folder = Path(config.folder)
    try:
        path = find_file_path(url)
        if path is None:
            return url
        folder = folder.expanduser().resolve()
        if path.parts[:1] == (folder.name,) and len(path.parts) > 1:
            path = path.relative_to(folder.name)
        whole = (folder / path).resolve()
        if not whole.is_relative_to(folder) or whole == folder:
            raise RefusedError(
                "a file that is asked for over HTTP may not lie there",
                hint=f"give its name alone: it is written in {folder} (record.folder)",
            )
        folder.mkdir(parents=True, exist_ok=True)
        whole.exists()  # raises where a name is too long for the disc
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "no such path can be"
        raise ConfigError(
            f"nothing can be written in {folder} ({reason})", hint="check record.folder"
        ) from None
    return str(whole)
