"""How outputs are named where a job's health is judged."""

import pytest

from livefuse.job.report import name_state
from livefuse.publish.base import OutputStatus


@pytest.mark.parametrize(
    ("state", "state_s", "error", "name"),
    [
        ("connecting", 9.0, "", "opening"),
        ("connecting", 15.0, "", "connecting"),
        ("connecting", 9.0, "the connection was lost", "connecting"),
        ("live", 1.0, "", "live"),
        ("refused", 1.0, "no", "refused"),
    ],
)
def test_an_output_may_open_for_as_long_as_it_may_be_dialled(state, state_s, error, name):
    status = OutputStatus(
        kind="rtmp", url="", state=state, connected=False, state_s=state_s, error=error
    )
    assert name_state(status, 15.0) == name
