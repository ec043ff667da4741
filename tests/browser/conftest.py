"""One Chromium and one livefuse for all tests of the page; a context of its own for each page."""

from __future__ import annotations

import contextlib

import pytest

from tests.apis import RunningApi
from tests.browser import CHROMIUM, FLAGS, write_camera_clip
from tests.browser.guard import watch_sockets
from tests.browser.pages import Visitor
from tests.wire.servers import require

_FAKE_UI = "--use-fake-ui-for-media-stream"  # would let every page have the camera


@pytest.fixture(scope="package")
def browser(tmp_path_factory):
    """A Chromium whose camera shows a face and a counter, 320x180."""
    require(CHROMIUM)
    from playwright.sync_api import sync_playwright

    clip = write_camera_clip(tmp_path_factory.mktemp("camera") / "face.y4m", 320, 180)
    flags = [flag for flag in FLAGS if flag != _FAKE_UI]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[*flags, f"--use-file-for-fake-video-capture={clip}"],
            timeout=60_000,
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def api(tmp_path_factory):
    """A worker; sockets that leave this machine are noted, and none may be."""
    folder = tmp_path_factory.mktemp("worker")
    with (
        watch_sockets() as foreign,
        RunningApi(folder, "governor.enabled=false", f"record.folder={folder}") as running,
    ):
        yield running
    assert foreign == []


@pytest.fixture
def clean(api):
    """Whatever jobs there are at the end are gone afterwards, when the pages have been left."""
    yield
    forget_jobs(api)


@pytest.fixture
def drawn(api, clean):
    """The job `main`: a face that is drawn, found and blurred."""
    spec = {"source": "demo:?size=320x180", "operations": ["detect", "blur"]}
    answer = api.ask("POST", "/v1/jobs", {"id": "main", "spec": spec, "start": True})
    assert answer.status == 201, answer
    return "main"


@pytest.fixture
def empty(api, clean):
    """The worker without a job."""
    return api


def forget_jobs(api):
    for job in api.ask("GET", "/v1/jobs").value["jobs"]:
        api.ask("DELETE", f"/v1/jobs/{job['id']}")


@pytest.fixture
def visit(browser, api, clean):
    """A function that opens the page in a context of its own. At the end none has complained."""
    with contextlib.ExitStack() as stack:

        def open_page(url=None, **wishes):
            return stack.enter_context(
                contextlib.closing(Visitor(browser, url or api.server.get_url("/"), **wishes))
            )

        yield open_page
