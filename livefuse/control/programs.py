"""`livefuse.job_manager`: jobs in the process of whoever writes a program (R45)."""

from __future__ import annotations

import structlog

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.control.jobs import JobManager
from livefuse.telemetry import set_up_logging
from livefuse.workers.local import Worker


def create_default_manager() -> JobManager:
    """Return a manager with a worker of its own and the default configuration.

    Logs go to standard error, unless the program has said already where its own go.
    """
    config = load_config()
    if not structlog.is_configured():
        set_up_logging(config.log, ())
    return JobManager(Worker(config, SystemClock()), outlives_script=True)
