"""What a builder makes of a job's source."""

import pytest

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.errors import JobError
from livefuse.ingest.whip import WhipIngest
from livefuse.job.job import Job
from livefuse.job.spec import JobSpec


def create_job(source, *settings):
    config = load_config(None, settings)
    spec = JobSpec(source=source, targets=(), operations=())
    return Job(
        "main", spec, config, SystemClock(), lambda mode: pytest.fail(f"not started: {mode}")
    )


@pytest.mark.parametrize("settings", [(), ("replay.keep_s=5",)])
def test_a_browsers_camera_is_found_behind_a_tap_too(settings):
    assert isinstance(create_job("whip:", *settings).get_peers("whip"), WhipIngest)


def test_what_is_no_browser_takes_no_offer():
    with pytest.raises(JobError, match="takes no camera"):
        create_job("test:").get_peers("whip")
