"""What a job that goes on after a loss is to do: the same, but in files of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from livefuse.control.background import call_in_thread
from livefuse.control.places import place_target
from livefuse.errors import JobError
from livefuse.publish import find_file_path
from livefuse.publish.record_file import find_next

if TYPE_CHECKING:
    from livefuse.config import RecordConfig
    from livefuse.control.api.views import Spec
    from livefuse.control.daemon.records import JobRecord


async def place(record: JobRecord, config: RecordConfig, *, resumes: bool) -> tuple[Spec, str]:
    """Return what a job is given to do, and a word on it: as `go_on` when it `resumes`.

    Raises:
        JobError: that is not known any more.
        LivefuseError: as `go_on`.
    """
    spec = record.spec
    if spec is None:
        raise JobError("its spec cannot be opened any more", hint="submit it again")
    if not resumes:
        return spec, ""
    return await call_in_thread("resume", lambda: go_on(spec, config))


def go_on(spec: Spec, config: RecordConfig) -> tuple[Spec, str]:
    """Return `spec` with targets for what comes now, and a word on those that are others.

    A file that is there already is left as it is: the stream goes on in NAME-2.mp4 and so on. Looks
    at the disc: not for a loop.

    Raises:
        RefusedError, ConfigError: a file would lie where none may (places.py).
    """
    targets, moved = [], []
    for target in spec.targets:
        placed = place_target(target.strip(), config)
        path = find_file_path(placed)
        if path is not None and path.exists():
            path = find_next(path)
            moved.append(path.name)
            placed = str(path)
        targets.append(placed)
    note = f"goes on in {', '.join(moved)}" if moved else ""
    return msgspec.structs.replace(spec, targets=tuple(targets)), note
