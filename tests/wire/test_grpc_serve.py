"""gRPC and `job_manager` against `livefuse serve`: a daemon with its workers, as real processes."""

from __future__ import annotations

import contextlib
import re

import pytest

from livefuse.control.remote import connect_manager
from livefuse.errors import ConsentError, JobNotFoundError
from tests.daemons import ON_AIR, RunningDaemon
from tests.wire.servers import wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

TINY = "test:?size=320x180"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with RunningDaemon(tmp_path_factory.mktemp("g"), "grpc.enabled=true", "grpc.port=0") as running:
        yield running


def test_a_job_by_grpc_lives_in_a_worker(daemon):
    """R46: created once however often it is asked for, watched over the worker's life, stopped."""
    rpc = pytest.importorskip("tests.rpc", reason="the extra grpc is not installed")
    (port,) = re.findall(r"gRPC: 127\.0\.0\.1:(\d+)", daemon.out_path.read_text())
    pb = rpc.pb
    again = {"idempotency-key": "once-and-no-more"}
    with (
        rpc.Client(int(port), daemon.key) as client,
        rpc.Client(int(port), daemon.key, **again) as twice,
    ):
        spec = pb.Spec(source=TINY, operations=pb.Operations())
        made = twice.CreateJob(spec=spec, start=True)
        assert twice.CreateJob(spec=spec, start=True).id == made.id
        assert len(client.ListJobs().jobs) == 1
        wait_until(lambda: client.GetJob(job_id=made.id).state in ON_AIR, 40, "on air")
        token = client.GetToken(job_id=made.id)
        patch = {"job_id": made.id, "patch": {"operations": ["detect"]}, "if_match": token.etag}
        assert list(client.PatchToken(**patch).token.operations) == ["detect"]
        assert client.fail("PatchToken", **patch)[0] is rpc.grpc.StatusCode.ABORTED
        kinds = []
        for event in client.WatchJob(job_id=made.id, hz=5, timeout=60):
            kinds.append(event.WhichOneof("event"))
            if len(kinds) == 3:
                client.StopJob(job_id=made.id)
        assert kinds[-1] == "end"
        client.DeleteJob(job_id=made.id)


def test_job_manager_in_front_of_the_daemon(daemon):
    """R45."""
    manager = connect_manager(f"{daemon.url}/?key={daemon.key}")
    with contextlib.closing(manager):
        job = manager.create_job("mine")
        args = {"target_path": TINY, "output_path": "mine.ts", "processors": ["face_detector"]}
        manager.submit_job(job, {**args, "execution_threads": 2})
        manager.start_job(job, timeout_s=60)
        wait_until(lambda: manager.get_status(job).frames_out > 5, 30, "frames")
        assert manager.list_jobs() == ["mine"]
        assert not manager.wait_job(job, 0.1)
        assert manager.stop_job(job)
        assert manager.wait_job(job, 10)
        swapped = {**args, "processors": ["face_swapper"], "source_paths": ["nobody"]}
        with pytest.raises(ConsentError):
            manager.submit_job(job, swapped)
        manager.delete_job(job)
        with pytest.raises(JobNotFoundError):
            manager.get_status(job)
    assert (daemon.folder / "out/mine.ts").stat().st_size > 1000


def test_an_address_that_is_not_ours_is_told_in_one_sentence(tmp_path):
    """What fails among the tasks of the daemon comes out as itself, with its exit code."""
    pytest.importorskip("tests.rpc", reason="the extra grpc is not installed")
    settings = "grpc.enabled=true", "grpc.host=192.0.2.1", "http.allow_insecure=true"
    daemon = RunningDaemon(tmp_path, *settings)
    assert daemon.launch().wait(60) == 2
    assert "livefuse: gRPC cannot listen on 192.0.2.1" in daemon.read_log()
    assert "Group" not in daemon.read_log()
