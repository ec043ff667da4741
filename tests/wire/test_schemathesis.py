"""The API held against its own description by somebody else's reading of OpenAPI: schemathesis.

Requests that fit the description and requests that do not, with keys of each role and without one:
no undescribed status, no other media type or shape than described, no fault of ours, nothing let in
that has no key. What it cannot know is left out: that values which fit may still be refused in
words (a source that no job may read), and that a service may be described as not ready.
"""

from __future__ import annotations

import contextlib
import time
from itertools import cycle
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.errors import LoaderError
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from livefuse.control.api import guard
from livefuse.control.api.guard import OPEN_PATHS
from livefuse.control.api.openapi import create_description
from tests.apis import CALLERS, RunningApi

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]

BUDGET_S: Final = 30.0
STREAMS: Final = ("/events", "/live.{kind}")
SPEC: Final = {"source": "test:?size=160x120&fps=1", "operations": []}
JOBS: Final[dict[str, dict[str, Any]]] = {
    "running": {"spec": SPEC, "start": True},
    "submitted": {"spec": SPEC},
    "draft": {},
}
LEFT_OUT: Final = [positive_data_acceptance, schemathesis.checks.not_a_server_error]
FIXED: Final = settings(
    max_examples=6,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def serialize_text(_context: object, value: Any) -> bytes:
    """WebRTC's bodies are text, which it has no way of writing."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    # Nothing is dialled or read, whatever is made up; nobody waits or is limited.
    closed = ("access.restrict=on", "access.networks=[]", "publish.start=none")
    free = ("limits.key_requests_per_s=0", "limits.wrong_keys_per_min=0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "_WRONG_KEY_S", 0.0)
        with RunningApi(tmp_path_factory.mktemp("schema"), *closed, *free) as running:
            yield running


def keep_jobs(api) -> None:
    """See that the three jobs are as they are named, and no others pile up."""
    states = {job["id"]: job["state"] for job in api.ask("GET", "/v1/jobs").value["jobs"]}
    for job, state in states.items():
        if job != state:
            api.ask("DELETE", f"/v1/jobs/{job}")
    for job, wish in JOBS.items():
        if states.get(job) != job:
            assert api.ask("POST", "/v1/jobs", {"id": job, **wish}).status == 201


def find_faults(case, response, headers, *, with_keys: bool) -> list[str]:
    """What is wrong with an answer, in schemathesis's words."""
    left_out = LEFT_OUT if with_keys else [*LEFT_OUT, ignored_auth]
    try:
        case.validate_response(response, headers=headers, excluded_checks=left_out)
    except FailureGroup as group:
        return [f"{type(one).__name__}: {one}" for one in group.exceptions]
    except Failure as failure:
        return [f"{type(failure).__name__}: {failure}"]
    return []


def create_schema(api):
    try:
        schema = schemathesis.openapi.from_dict(create_description())
    except LoaderError as error:
        raise AssertionError(f"the description is none: {error}") from None
    schema.config.update(base_url=api.server.base_url)
    return schema


class Attack:
    """Asks operation after operation; `seen` are the statuses of each, `faults` what was wrong."""

    def __init__(self) -> None:
        self.seen: dict[str, set[int]] = {}
        self.faults: list[str] = []
        self._keys, self._jobs = cycle(CALLERS), cycle(JOBS)

    def run(self, operation, mode: GenerationMode, until_s: float) -> None:
        """Ask at least once, and until it is enough or `until_s`."""
        asked = 0

        @settings(FIXED)
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            nonlocal asked
            if not asked or time.monotonic() < until_s:
                asked += 1
                self._ask(operation, case, is_fit=mode is GenerationMode.POSITIVE)

        # There may be nothing that can be wrong in it.
        with contextlib.suppress(Unsatisfiable):
            ask()

    def _ask(self, operation, case, *, is_fit: bool) -> None:
        if "id" in case.path_parameters and is_fit:
            case.path_parameters["id"] = next(self._jobs)
        headers = {"Authorization": f"Bearer {next(self._keys)}"}
        response = case.call(headers=headers)
        name, status = f"{operation.method} {operation.path}", response.status_code
        self.seen.setdefault(name, set()).add(status)
        if status == 500 or (status > 500 and str(status) not in operation.responses.status_codes):
            self.faults.append(f"{name}: {status}")
        faults = find_faults(case, response, headers, with_keys=operation.path not in OPEN_PATHS)
        self.faults += [f"{name} {response.request.url}: {fault}" for fault in faults]


def test_the_api_is_as_it_is_described(api):
    operations = [found.ok() for found in create_schema(api).get_all_operations()]
    operations = [one for one in operations if not one.path.endswith(STREAMS)]
    attack = Attack()
    over_s = time.monotonic() + BUDGET_S
    for index, operation in enumerate(operations):
        keep_jobs(api)
        left_s = (over_s - time.monotonic()) / (len(operations) - index)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            attack.run(operation, mode, time.monotonic() + left_s / 2)
    assert not attack.faults, "\n".join(attack.faults[:20])
    assert len(attack.seen) == len(operations)
    assert {200, 201, 204, 403, 404, 422} <= set().union(*attack.seen.values())
