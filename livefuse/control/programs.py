"""`livefuse.job_manager`: jobs in the process of whoever writes a program (R45), or in a daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.control.remote import find_manager_by_environment

if TYPE_CHECKING:
    from livefuse.control.jobs import JobManager
    from livefuse.control.remote import RemoteJobManager


def create_default_manager() -> JobManager | RemoteJobManager:
    """Return the manager of the daemon that LIVEFUSE_URL names, else one of this process.

    Raises:
        ConfigError: LIVEFUSE_URL is no address.
    """
    return find_manager_by_environment() or _create_own_manager()


def _create_own_manager() -> JobManager:
    """Return a manager with a worker of its own and the default configuration.

    Logs go to standard error, unless the program has said already where its own go.
    """
    # Slow to load, and not for those whose jobs run elsewhere.
    import structlog  # noqa: PLC0415 - as above

    from livefuse.clock import SystemClock  # noqa: PLC0415 - as above
    from livefuse.config import load_config  # noqa: PLC0415 - as above
    from livefuse.control.jobs import JobManager  # noqa: PLC0415 - as above
    from livefuse.telemetry import set_up_logging  # noqa: PLC0415 - as above
    from livefuse.workers.local import Worker  # noqa: PLC0415 - as above

    config = load_config()
    if not structlog.is_configured():
        set_up_logging(config.log, ())
    return JobManager(Worker(config, SystemClock()), outlives_script=True)
