"""The life of jobs over the API: much at once, stuck, failed, again and again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import psutil
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection

from livefuse.control.jobs import MAX_JOBS
from livefuse.job.job import Job
from livefuse.job.memory import trim_heap
from livefuse.pipeline.steps import Pipeline
from tests.apis import RunningApi
from tests.wire.servers import RtspServer, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]

TINY = {"source": "test:?size=160x120&fps=10", "operations": []}
FINE = {200, 201, 204, 404, 409, 412, 503}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with RunningApi(tmp_path_factory.mktemp("life")) as running:
        yield running


@pytest.fixture
def job(api):
    made = api.ask("POST", "/v1/jobs", {"spec": TINY, "start": True})
    assert made.status == 201, made.data
    name = made.value["id"]
    api.wait_frames(name, 2)
    yield name
    api.ask("DELETE", f"/v1/jobs/{name}")


def get_state(api, name):
    return api.ask("GET", f"/v1/jobs/{name}").value["state"]


def list_threads():
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("livefuse-"))


def test_fifty_at_once_leave_nothing_half_done(api):
    """Whatever comes first wins; the others are told; nothing runs that is not listed."""
    names = ("a", "b", "c")
    patch_kind = {"Content-Type": "application/merge-patch+json"}
    cover = {"parameters": {"cover_all": True}}

    def act(number):
        dice = random.Random(number)
        path = f"/v1/jobs/{dice.choice(names)}"
        return [
            lambda: api.ask("POST", "/v1/jobs", {"id": path[9:], "spec": TINY, "start": True}),
            lambda: api.ask("POST", "/v1/jobs", {"id": path[9:]}),
            lambda: api.ask("PUT", f"{path}/spec", TINY),
            lambda: api.ask("POST", f"{path}/start"),
            lambda: api.ask("POST", f"{path}/stop"),
            lambda: api.ask("DELETE", path),
            lambda: api.ask("PATCH", f"{path}/token", cover, headers=patch_kind),
            lambda: api.ask("GET", "/v1/jobs"),
        ][number % 8]().status

    with ThreadPoolExecutor(50) as pool:
        statuses = list(pool.map(act, range(100)))
    assert set(statuses) <= FINE, statuses
    for name in names:
        api.ask("DELETE", f"/v1/jobs/{name}")
    assert api.ask("GET", "/v1/jobs").value == {"jobs": []}
    assert not api.manager.worker.jobs
    wait_until(lambda: not [t for t in list_threads() if "supervise" in t], 15, "their end")


def test_offers_while_the_job_is_deleted(api, job):
    async def make_offer():
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        peer.addTransceiver("video", "recvonly")
        offer = await peer.createOffer()
        await peer.close()
        return offer.sdp.encode()

    sdp = asyncio.run(make_offer())
    kind = {"Content-Type": "application/sdp"}
    path = f"/v1/jobs/{job}"
    with ThreadPoolExecutor(9) as pool:
        offers = [
            pool.submit(api.ask, "POST", f"{path}/whep", body=sdp, headers=kind) for _ in range(8)
        ]
        gone = pool.submit(api.ask, "DELETE", path)
        assert gone.result().status == 204
        answers = [one.result() for one in offers]
    assert {answer.status for answer in answers} <= {201, 404, 406, 409, 422, 503}
    for answer in answers:
        if answer.status != 201:
            assert answer.value["detail"]


def test_a_stuck_job_holds_up_nobody(api, job, monkeypatch):
    """Lists, metrics and probes go on; one thread waits for it, however often it is asked."""
    other = api.ask("POST", "/v1/jobs", {"spec": TINY, "start": True}).value["id"]
    api.wait_frames(other, 2)
    freed = threading.Event()
    measure = Job.statistics

    def hang(self):
        if self.job_id == job:
            freed.wait(30)
        return measure(self)

    monkeypatch.setattr(Job, "statistics", hang)
    try:
        began = time.monotonic()
        for _ in range(3):
            jobs = {one["id"]: one for one in api.ask("GET", "/v1/jobs").value["jobs"]}
            assert jobs[job]["statistics"] is None
            assert jobs[job]["state"] == "running"
            assert jobs[other]["statistics"]["frames_out"] > 0
        assert api.ask("GET", f"/v1/jobs/{job}/status").status == 503
        assert time.monotonic() - began < 12
        assert list_threads().count("livefuse-figures") == 1
        assert api.ask("GET", "/metrics").status == 503
        assert api.ask("GET", "/readyz").status == 200
    finally:
        freed.set()
    wait_until(lambda: api.ask("GET", f"/v1/jobs/{job}/status").status == 200, 10, "an answer")
    assert api.ask("DELETE", f"/v1/jobs/{other}").status == 204


def test_a_job_that_loads_says_so_and_keeps_nobody_waiting(api, monkeypatch):
    loaded = threading.Event()
    prepare = Pipeline.prepare

    def wait(self, token):
        loaded.wait(30)
        prepare(self, token)

    monkeypatch.setattr(Pipeline, "prepare", wait)
    spec = TINY | {"operations": ["detect", "blur"]}
    name = api.ask("POST", "/v1/jobs", {"spec": spec, "start": True}).value["id"]
    try:

        def get_figures():
            return api.ask("GET", f"/v1/jobs/{name}/status").value

        wait_until(lambda: get_figures()["health"] == "LOADING", 10, "the word")
        assert get_state(api, name) == "running"
    finally:
        loaded.set()
    api.wait_frames(name, 2)
    api.ask("DELETE", f"/v1/jobs/{name}")


def test_a_job_that_failed_starts_again(api, face_clip):
    place = api.folder / "later.mp4"
    spec = {"source": str(place), "operations": []}
    name = api.ask("POST", "/v1/jobs", {"spec": spec, "start": True}).value["id"]
    wait_until(lambda: get_state(api, name) == "failed", 20, "the failure")
    told = api.ask("GET", f"/v1/jobs/{name}").value
    assert "later.mp4" in told["error"]
    place.write_bytes(face_clip.read_bytes())
    assert api.ask("POST", f"/v1/jobs/{name}/start").value["state"] == "running"
    api.wait_frames(name, 2)
    assert api.ask("GET", f"/v1/jobs/{name}").value["error"] == ""
    stopped = api.ask("POST", f"/v1/jobs/{name}/stop").value
    assert stopped["state"] == "stopped"
    later = api.ask("GET", f"/v1/jobs/{name}/status").value
    assert later["frames_out"] == stopped["statistics"]["frames_out"] > 0
    assert not api.manager.get(name).job._entrance.stages._pool._frames, "figures alone are kept"
    api.ask("DELETE", f"/v1/jobs/{name}")


def test_the_number_of_jobs_is_bounded(api):
    room = MAX_JOBS - len(api.ask("GET", "/v1/jobs").value["jobs"])
    names = [api.ask("POST", "/v1/jobs").value["id"] for _ in range(room)]
    full = api.ask("POST", "/v1/jobs")
    assert full.status == 503
    assert full.headers["Retry-After"]
    for name in names:
        assert api.ask("DELETE", f"/v1/jobs/{name}").status == 204


@contextlib.contextmanager
def watching(api, name):
    url = api.server.get_url(f"/v1/jobs/{name}/events") + "&hz=5"
    with urllib.request.urlopen(url, timeout=20) as events:
        yield events


def read_kinds(events):
    return [line.split()[1].decode() for line in events if line.startswith(b"event: ")]


def test_events_end_with_that_life_of_the_job(api, job):
    """Stopped, or deleted: `end`. Started again it has other events."""
    with watching(api, job) as events:
        api.ask("POST", f"/v1/jobs/{job}/stop")
        api.ask("POST", f"/v1/jobs/{job}/start")
        kinds = read_kinds(events)
    assert kinds[-1] == "end"
    with watching(api, job) as events:
        assert events.readline() == b"event: status\n"
        assert json.loads(events.readline()[6:])["state"] != "stopped"
        api.ask("DELETE", f"/v1/jobs/{job}")
        assert read_kinds(events)[-1] == "end"


def test_no_more_than_sixteen_watch(api, job):
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(watching(api, job)).readline()
        assert api.ask("GET", f"/v1/jobs/{job}/events").status == 503

    def is_let_in():
        try:
            with watching(api, job) as events:
                return events.readline() == b"event: status\n"
        except urllib.error.HTTPError:
            return False

    wait_until(is_let_in, 10, "a place")


def live_once(api):
    name = api.ask("POST", "/v1/jobs", {"spec": TINY, "start": True}).value["id"]
    api.wait_frames(name, 1)
    assert api.ask("POST", f"/v1/jobs/{name}/stop").value["state"] == "stopped"
    assert api.ask("DELETE", f"/v1/jobs/{name}").status == 204


def count_jobs():
    """How many jobs this process holds; those of other tests may be among them."""
    gc.collect()
    return sum(type(one) is Job for one in gc.get_objects())


def measure():
    gc.collect()
    trim_heap()
    process = psutil.Process()
    return process.memory_info().rss / 1e6, process.num_threads(), process.num_fds()


def test_a_job_that_is_gone_leaves_nothing(api):
    """Memory, threads and files come back, for as many lives as go into 12 seconds."""
    for _ in range(50):  # until the heap has the size that one life after the other needs
        live_once(api)
    time.sleep(0.5)
    before, jobs = measure(), count_jobs()
    over_s = time.monotonic() + 12
    lives = 0
    while lives < 100 and time.monotonic() < over_s:
        live_once(api)
        lives += 1
    wait_until(lambda: measure()[1] <= before[1] + 1, 10, "threads")
    after = measure()
    print(f"lives {lives}: {before} -> {after}")
    assert lives >= 5
    assert after[2] <= before[2] + 2
    assert after[0] - before[0] < 4 + 0.2 * lives
    assert count_jobs() <= jobs + 1


def take_picture(api, name):
    answer = api.ask("GET", f"/v1/jobs/{name}/snapshot.jpg")
    assert answer.status == 200, answer.data
    picture = cv2.imdecode(np.frombuffer(answer.data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None
    return picture


def measure_detail(picture):
    return float(cv2.Laplacian(picture, cv2.CV_64F).var())


def test_the_picture_that_is_held_can_be_covered(api, face_clip):
    """The snapshot is what is shown: held, then covered within a second; its label stays."""
    with RtspServer(face_clip) as server:
        spec = {
            "source": server.url,
            "operations": ["detect", "align", "swap"],
            "source_face": "avatar:robot",
        }
        name = api.ask("POST", "/v1/jobs", {"spec": spec, "start": True}).value["id"]
        api.wait_frames(name, 20)

    def get_held():
        return api.ask("GET", f"/v1/jobs/{name}/status").value["counts"].get("held_frames", 0)

    wait_until(lambda: get_held() > 1, 20, "the hold")
    held = take_picture(api, name)
    kind = {"Content-Type": "application/merge-patch+json"}
    done = api.ask(
        "PATCH", f"/v1/jobs/{name}/token", {"parameters": {"cover_all": True}}, headers=kind
    )
    assert done.status == 200
    shown = get_held()
    wait_until(lambda: get_held() > shown + 1, 5, "the next of it")
    covered = take_picture(api, name)
    height, width = covered.shape
    middle = slice(height // 8, height * 3 // 4), slice(0, width * 3 // 4)
    corner = slice(height * 9 // 10, height), slice(width * 3 // 4, width)
    assert measure_detail(covered[middle]) < measure_detail(held[middle]) / 4
    assert measure_detail(covered[corner]) > 20 * measure_detail(covered[middle])
    api.ask("DELETE", f"/v1/jobs/{name}")
