"""The API over gRPC: real channels, the real HTTP API behind, real jobs behind that (R46)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
import threading
import time

import pytest

from livefuse.config import load_config
from livefuse.control.grpc import start_grpc
from livefuse.errors import ConfigError
from tests.apis import KEY, RunningApi
from tests.certificates import make_certificate
from tests.contract.repo import ROOT
from tests.faces import ASTRONAUT
from tests.rpc import (
    Client,
    grpc,
    health_pb2,
    health_pb2_grpc,
    pb,
    reflection_pb2,
    reflection_pb2_grpc,
)
from tests.wire.servers import wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

PROTO_FOLDER = ROOT / "livefuse/control/grpc"
TEST = "test:?size=320x180"
BARE = pb.Spec(source=TEST, operations=pb.Operations())
CONSENT = "Eileen Collins, tests, 90d"
Code = grpc.StatusCode


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with RunningApi(tmp_path_factory.mktemp("grpc")) as running:
        yield running


def start(api, *settings):
    return start_grpc(load_config(None, ("grpc.port=0", *settings)), api.server.base_url)


@pytest.fixture(scope="module")
def port(api):
    server = start(api)
    yield server.port
    server.close()


@pytest.fixture
def client(port):
    with Client(port) as one:
        yield one


@pytest.fixture
def job(api, client):
    """A job that runs, faces covered."""
    spec = pb.Spec(source="demo:?size=480x270", operations=pb.Operations(names=["detect", "blur"]))
    name = client.CreateJob(spec=spec, start=True).id
    api.wait_frames(name)
    yield name
    client.DeleteJob(job_id=name)


def test_a_job_from_draft_to_deletion(api, client):
    made = client.CreateJob(id="life")
    assert (made.id, made.state, made.HasField("spec")) == ("life", "draft", False)
    assert made.links["flv"] == "/v1/jobs/life/live.flv"
    assert client.fail("CreateJob", id="life")[0] is Code.FAILED_PRECONDITION
    assert client.fail("StartJob", job_id="life")[0] is Code.FAILED_PRECONDITION
    told = client.SubmitJob(job_id="life", spec=BARE)
    assert (told.state, told.spec.source) == ("submitted", TEST)
    assert told.spec.HasField("operations")
    assert list(told.spec.operations.names) == []
    assert client.StartJob(job_id="life").state == "running"
    api.wait_frames("life")
    assert client.GetJob(job_id="life").statistics["frames_out"] >= 5
    wait_until(
        lambda: client.GetStatus(job_id="life").statistics["state"] == "live", 20, "the state"
    )
    assert client.StopJob(job_id="life").state == "stopped"
    assert "life" in [one.id for one in client.ListJobs().jobs]
    client.DeleteJob(job_id="life")
    assert client.fail("GetJob", job_id="life")[0] is Code.NOT_FOUND


def test_operations_that_are_left_out_are_chosen(client):
    made = client.CreateJob(spec=pb.Spec(source=TEST, source_face="avatar:fox"))
    assert list(made.spec.operations.names) == ["detect", "align", "swap"]
    client.DeleteJob(job_id=made.id)


@pytest.mark.parametrize(
    ("name", "fields", "code", "words"),
    [
        ("GetJob", {"job_id": "nobody"}, Code.NOT_FOUND, "nobody"),
        ("GetJob", {}, Code.INVALID_ARGUMENT, "job_id"),
        ("GetJob", {"job_id": "a/../b?c"}, Code.NOT_FOUND, "a/../b?c"),
        ("CreateJob", {"start": True}, Code.INVALID_ARGUMENT, "spec"),
        ("CreateJob", {"spec": pb.Spec(source="rtps://x/y")}, Code.INVALID_ARGUMENT, "rtsp"),
        (
            "CreateJob",
            {"spec": pb.Spec(source=TEST, source_face="nobody")},
            Code.PERMISSION_DENIED,
            "enrolled",
        ),
        ("WatchJob", {"job_id": "nobody"}, Code.NOT_FOUND, "nobody"),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_the_http_api(client, name, fields, code, words):
    got, text = client.fail(name, **fields)
    assert got is code
    assert words in text


def test_a_failure_brings_its_problem_details(client):
    code, text = client.fail("CreateJob", id="a b")
    problem = json.loads(client.trailing["problem-bin"])
    assert code is Code.INVALID_ARGUMENT
    assert problem["status"] == 422
    assert text == f"{problem['detail']}: {problem['hint']}"


def test_numbers_that_are_none_are_refused(client):
    spec = pb.Spec(source=TEST)
    spec.parameters.update({"blend_ratio": float("nan")})
    assert client.fail("CreateJob", spec=spec)[0] is Code.INVALID_ARGUMENT


def test_the_key_and_its_role_count(port):
    with Client(port, "not-the-key") as nobody:
        assert nobody.fail("ListJobs")[0] is Code.UNAUTHENTICATED
        assert nobody.fail("WatchJob", job_id="x")[0] is Code.UNAUTHENTICATED
        assert nobody.fail("GetCatalogue")[0] is Code.UNAUTHENTICATED
    with Client(port, "key-of-a-viewer") as viewer:
        assert viewer.ListJobs() is not None
        code, text = viewer.fail("CreateJob", spec=BARE)
    assert code is Code.PERMISSION_DENIED
    assert "viewer" in text


def test_no_change_is_lost(client, job):
    """R12."""
    read = client.GetToken(job_id=job)
    assert list(read.token.operations) == ["detect", "blur"]
    patch = {"operations": ["detect", "align", "swap"], "source_face": "avatar:robot"}
    done = client.PatchToken(job_id=job, patch=patch, if_match=read.etag)
    assert list(done.token.operations) == patch["operations"]
    assert done.etag != read.etag
    again = {"job_id": job, "patch": {"operations": ["detect"]}, "if_match": read.etag}
    assert client.fail("PatchToken", **again)[0] is Code.ABORTED
    reset = client.PatchToken(job_id=job, patch={"source_face": None, "operations": ["detect"]})
    assert reset.token.source_face == ""


def test_another_face_by_name_and_by_picture(client, job):
    """C17, C78: a picture needs its consent, over gRPC too."""
    client.PatchToken(
        job_id=job, patch={"operations": ["detect", "align", "swap"], "source_face": "avatar:fox"}
    )
    assert client.SetSourceFace(job_id=job, face="avatar:robot").kind == "drawn"
    picture = pb.Picture(data=ASTRONAUT.read_bytes(), media_type="image/png")
    assert client.fail("SetSourceFace", job_id=job, picture=picture)[0] is Code.PERMISSION_DENIED
    picture.consent, picture.name = CONSENT, "eileen"
    face = client.SetSourceFace(job_id=job, picture=picture)
    assert (face.name, face.kind) == ("eileen", "person")
    assert client.SetSourceFace(job_id=job, face="eileen").id == face.id
    picture.media_type = "text/plain"
    assert client.fail("SetSourceFace", job_id=job, picture=picture)[0] is Code.INVALID_ARGUMENT
    client.RemoveFace(face=face.id)


def test_outputs_come_and_go_and_a_picture_is_there(client, job):
    made = client.AddOutput(job_id=job, url="added.ts")
    wait_until(lambda: client.ListOutputs(job_id=job).outputs[0].packets > 5, 20, "packets")
    assert client.ListOutputs(job_id=job).outputs[0].id == made.id
    client.RemoveOutput(job_id=job, output_id=made.id)
    assert list(client.ListOutputs(job_id=job).outputs) == []
    assert client.fail("RemoveOutput", job_id=job, output_id=made.id)[0] is Code.NOT_FOUND
    shown = client.GetSnapshot(job_id=job)
    assert shown.data[:2] == b"\xff\xd8"
    assert shown.media_type == "image/jpeg"


def test_the_catalogue_is_whole(api, client):
    told = client.GetCatalogue()
    wanted = api.ask("GET", "/v1/catalogue").value
    assert [one.name for one in told.operations] == [one["name"] for one in wanted["operations"]]
    assert [one.name for one in told.looks] == [one["name"] for one in wanted["looks"]]
    assert {one.name: one.low for one in told.beautify} == {
        one["name"]: one["low"] for one in wanted["beautify"]
    }
    assert told.parameters["properties"].keys() == wanted["parameters"]["properties"].keys()


def test_faces_are_enrolled_shown_revoked_and_forgotten(client, port):
    """R46, C78: the consent's terms come through."""
    picture = pb.Picture(data=ASTRONAUT.read_bytes(), media_type="image/png", name="commander")
    assert client.fail("EnrollFace", picture=picture)[0] is Code.PERMISSION_DENIED
    picture.consent = CONSENT
    face = client.EnrollFace(picture=picture, jobs=["live-*"], evidence_sha256="ab" * 32)
    assert (face.name, face.state, list(face.jobs)) == ("commander", "valid", ["live-*"])
    assert face.evidence.sha256 == "ab" * 32
    assert client.GetFace(face="commander").id == face.id
    with Client(port, "key-of-a-viewer") as viewer:
        assert viewer.fail("ListFaces")[0] is Code.PERMISSION_DENIED
    digest = f"sha256:{hashlib.sha256(picture.data).hexdigest()}"
    made = client.CreateJob(id="live-1", spec=pb.Spec(source=TEST, source_face=digest))
    assert made.spec.source_face == face.id
    client.DeleteJob(job_id="live-1")
    assert client.RevokeFace(face=face.id).state == "revoked"
    client.RemoveFace(face=face.id)
    assert face.id not in [one.id for one in client.ListFaces().faces]
    assert client.fail("GetFace", face=face.id)[0] is Code.NOT_FOUND


def test_operators_read_who_did_what(client, port):
    client.DeleteJob(job_id=client.CreateJob(spec=BARE, start=True).id)
    told = client.ListRecords(event="job.started", limit=1)
    assert [record.event for record in told.records] == ["job.started"]
    with Client(port, "key-of-a-streamer") as one:
        assert one.fail("ListRecords")[0] is Code.PERMISSION_DENIED


def test_watching_ends_with_the_job(client):
    name = client.CreateJob(spec=BARE, start=True).id
    kinds = []
    for event in client.WatchJob(job_id=name, hz=5):
        kinds.append(event.WhichOneof("event"))
        if len(kinds) == 3:
            assert event.status["job"] == name
            client.StopJob(job_id=name)
    assert kinds[-1] == "end"
    assert set(kinds[:-1]) == {"status"}
    client.DeleteJob(job_id=name)


def test_who_goes_away_is_not_watched_for(api, client, job, port):
    """The place of a watcher that has gone, or whose time is over, is free again."""
    watching = [client.WatchJob(job_id=job) for _ in range(8)]
    for one in watching:
        next(one)
    assert client.fail("WatchJob", job_id=job)[0] is Code.RESOURCE_EXHAUSTED
    for one in watching:
        one.cancel()
    wait_until(lambda: api.server._api.watchers.taken == 0, 10, "nobody watches")
    assert client.fail("WatchJob", job_id=job, timeout=1.0)[0] is Code.DEADLINE_EXCEEDED
    wait_until(lambda: api.server._api.watchers.taken == 0, 10, "nobody watches")


def test_health_is_readiness(api, client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    kinds = health_pb2.HealthCheckResponse

    def look(service=""):
        return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10).status

    assert look() == look("livefuse.v1.JobService") == kinds.NOT_SERVING
    with pytest.raises(grpc.RpcError) as caught:
        look("livefuse.v2.JobService")
    assert caught.value.code() is Code.NOT_FOUND
    watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=40)
    assert next(watch).status == kinds.NOT_SERVING
    name = client.CreateJob(spec=BARE, start=True).id
    assert next(watch).status == kinds.SERVING
    assert look() == kinds.SERVING
    watch.cancel()
    client.DeleteJob(job_id=name)


def reflect(channel, **asked):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(**asked)
    return next(iter(stub.ServerReflectionInfo(iter([request]), timeout=10)))


def test_reflection_tells_all_services(client):
    listed = reflect(client.channel, list_services="").list_services_response.service
    assert {one.name for one in listed} == {
        *(f"livefuse.v1.{name}" for name in pb.DESCRIPTOR.services_by_name),
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    told = reflect(client.channel, file_containing_symbol="livefuse.v1.JobService")
    assert pb.DESCRIPTOR.serialized_pb in told.file_descriptor_response.file_descriptor_proto


def test_idle_reflection_takes_no_more_than_its_places(client):
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
    done = threading.Event()

    def ask():
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        done.wait(20)

    open_ones = [stub.ServerReflectionInfo(ask(), timeout=30) for _ in range(2)]
    for one in open_ones:
        next(one)
    with pytest.raises(grpc.RpcError) as caught:
        reflect(client.channel, list_services="")
    assert caught.value.code() is Code.RESOURCE_EXHAUSTED
    assert client.ListJobs() is not None
    for one in open_ones:
        one.cancel()
    done.set()


def test_churn_of_clients_leaves_no_threads(api, port, job):
    def run(number):
        with Client(port) as one, contextlib.suppress(grpc.RpcError):
            one.GetJob(job_id=job)
            watch = one.WatchJob(job_id=job)
            next(watch)
            if number % 2:
                watch.cancel()

    for start in range(0, 50, 5):
        threads = [threading.Thread(target=run, args=(start + n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    wait_until(lambda: api.server._api.watchers.taken == 0, 10, "nobody watches")
    mine = [t for t in threading.enumerate() if t.name == "livefuse-grpc"]
    assert 0 < len(mine) <= load_config().grpc.max_workers


def test_closing_sends_watchers_away_and_ends_all_threads(api, job):
    before = {t.ident for t in threading.enumerate()}
    server = start(api)
    with Client(server.port) as one:
        watch = one.WatchJob(job_id=job)
        next(watch)
        began = time.monotonic()
        server.close(grace_s=5.0)
        assert time.monotonic() - began < 4.0
        with pytest.raises(grpc.RpcError):
            list(watch)
        assert one.fail("ListJobs", timeout=2)[0] in {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED}
    left = [t for t in threading.enumerate() if t.ident not in before]
    assert not [t for t in left if t.name == "livefuse-grpc"]


def test_without_the_api_behind_it_says_so(tmp_path):
    server = start_grpc(load_config(None, ("grpc.port=0",)), str(tmp_path / "no.sock"))
    try:
        with Client(server.port) as one:
            code, text = one.fail("ListJobs")
        assert code is Code.UNAVAILABLE
        assert KEY not in text
    finally:
        server.close()


def test_a_taken_port_gives_the_next_and_no_other_address_without_tls(api, port):
    second = start(api, f"grpc.port={port}")
    second.close()
    assert second.port != port
    with pytest.raises(ConfigError, match="unencrypted"):
        start(api, "grpc.host=0.0.0.0")
    with pytest.raises(ConfigError, match="cannot listen"):
        start(api, "grpc.host=192.0.2.1", "http.allow_insecure=true")


def test_tls_with_the_certificate_of_http_which_may_be_renewed(tmp_path):
    own = make_certificate(tmp_path)
    files = f"http.tls_cert={own[0]}", f"http.tls_key={own[1]}"
    with RunningApi(tmp_path, *files) as secure:
        assert secure.server.base_url.startswith("https://")
        server = start(secure, *files)
        for _ in range(2):
            trusted = grpc.ssl_channel_credentials(own[0].read_bytes())
            with Client(server.port, credentials=trusted) as one:
                assert one.ListJobs() is not None
            make_certificate(tmp_path)
        with Client(server.port) as plain:
            assert plain.fail("ListJobs", timeout=5)[0] is Code.UNAVAILABLE
        server.close()


def test_a_missing_package_is_named(api, monkeypatch):
    monkeypatch.delitem(sys.modules, "livefuse.control.grpc.server")
    monkeypatch.setitem(sys.modules, "grpc_reflection.v1alpha", None)
    with pytest.raises(ConfigError, match=r"pip install 'livefuse\[grpc\]'"):
        start(api)


STRANGER = """
import sys
import grpc
from livefuse.v1 import livefuse_pb2 as pb, livefuse_pb2_grpc as stubs

with grpc.insecure_channel(sys.argv[1]) as channel:
    jobs = stubs.JobServiceStub(channel)
    key = (("authorization", "Bearer " + sys.argv[2]),)
    made = jobs.CreateJob(pb.CreateJobRequest(id="stranger"), metadata=key)
    print(made.state, [job.id for job in jobs.ListJobs(pb.ListJobsRequest(), metadata=key).jobs])
    jobs.DeleteJob(pb.DeleteJobRequest(job_id="stranger"), metadata=key)
"""


def test_a_client_that_has_nothing_but_the_proto(port, tmp_path):
    """Stubs that protoc makes of the file, in a process that knows no other livefuse."""
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO_FOLDER}"]
    out = [f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}"]
    subprocess.run([*protoc, *out, "livefuse/v1/livefuse.proto"], check=True, timeout=60)
    (tmp_path / "livefuse/__init__.py").touch()
    (tmp_path / "script.py").write_text(STRANGER)
    done = subprocess.run(
        [sys.executable, "script.py", f"127.0.0.1:{port}", KEY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("draft ['stranger']")
