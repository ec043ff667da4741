"""livefuse: a live stream in, a filter on the faces in it, and on it goes, with its sound.

The path of a frame, which is also the order of the folders:

    ingest/     packets -> frames in a pool of our own
    ring.py     the newest two wait; every drop is counted with a reason
    pipeline/   frame + token -> the same frame, its faces covered; pure numpy and OpenCV
    publish/    frames -> one encode -> packets -> rtmp, http-flv, http-ts, file
    job/        holds these four together for one stream; control/ never touches a pixel

`livefuse.job_manager` runs jobs from Python: create_job, submit_job, start_job, stop_job; in this
process, or in the daemon that LIVEFUSE_URL names.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute
    """Make the job manager when it is first asked for: it loads a lot."""
    if name != "job_manager":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # By name: the folders below import this one, and nothing below may lead up to control.
    manager = import_module("livefuse.control.programs").create_default_manager()
    globals()[name] = manager
    return manager
