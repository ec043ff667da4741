"""Messages to JSON and back: what is left out stays out, what is empty stays empty."""

import json
from urllib.parse import parse_qs

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.control.grpc.table import CALLS
from livefuse.control.http_client import Answer
from tests.rpc import pb

BY_NAME = {call.name.partition("/")[2]: call for call in CALLS}
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


def ask(name, request, **headers):
    from livefuse.control.grpc.messages import create_query

    return create_query(BY_NAME[name], request, headers)


def test_a_job_with_all_its_parts():
    spec = pb.Spec(source="test:", targets=["a.mp4"], operations=pb.Operations(names=["detect"]))
    spec.parameters.update({"face_size": 128, "select": "all"})
    query = ask("CreateJob", pb.CreateJobRequest(id="x", spec=spec, start=True), authorization="k")
    assert (query.method, query.path) == ("POST", "/v1/jobs")
    assert query.headers == {"authorization": "k", "Content-Type": "application/json"}
    assert json.loads(query.body) == {
        "id": "x",
        "spec": {
            "source": "test:",
            "targets": ["a.mp4"],
            "operations": ["detect"],
            "parameters": {"face_size": 128, "select": "all"},
        },
        "start": True,
    }


def test_what_was_left_out_is_not_sent():
    assert ask("CreateJob", pb.CreateJobRequest()).body == b"{}"
    spec = pb.Spec(source="test:")
    assert "operations" not in json.loads(ask("SubmitJob", _submit(spec)).body)
    spec.operations.SetInParent()
    assert json.loads(ask("SubmitJob", _submit(spec)).body)["operations"] == []


def _submit(spec):
    return pb.SubmitJobRequest(job_id="x", spec=spec)


def test_paths_queries_and_headers_take_their_fields():
    query = ask("RemoveOutput", pb.RemoveOutputRequest(job_id="a/b", output_id="ü ?"))
    assert query.path == "/v1/jobs/a%2Fb/outputs/%C3%BC%20%3F"
    assert query.body is None
    assert (
        ask("WatchJob", pb.WatchJobRequest(job_id="x", hz=2.5)).path == "/v1/jobs/x/events?hz=2.5"
    )
    assert ask("WatchJob", pb.WatchJobRequest(job_id="x")).path == "/v1/jobs/x/events"
    patch = pb.PatchTokenRequest(job_id="x", if_match='"1"')
    patch.patch.update({"source_face": None, "operations": []})
    query = ask("PatchToken", patch)
    assert query.headers["If-Match"] == '"1"'
    assert query.headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(query.body) == {"source_face": None, "operations": []}


def test_a_picture_is_sent_as_it_is():
    picture = pb.Picture(data=b"\x89PNG\x00", media_type="image/png", consent="我, 测试")
    query = ask("SetSourceFace", pb.SetSourceFaceRequest(job_id="x", picture=picture))
    assert query.body == b"\x89PNG\x00"
    assert query.headers["Content-Type"] == "image/png"
    assert query.path.startswith("/v1/jobs/x/source-face?consent=%E6%88%91")
    chosen = ask("SetSourceFace", pb.SetSourceFaceRequest(job_id="x", face="avatar:fox"))
    assert json.loads(chosen.body) == {"face": "avatar:fox"}


def test_a_face_comes_with_all_that_was_agreed():
    picture = pb.Picture(data=b"x", media_type="image/png", consent="A, b, 9d", name="Ann")
    request = pb.EnrollFaceRequest(
        picture=picture, jobs=["a*", "b"], forget_picture=True, evidence_bytes=7
    )
    query = ask("EnrollFace", request)
    path, _, tail = query.path.partition("?")
    assert (query.method, path, query.body) == ("POST", "/v1/faces", b"x")
    assert parse_qs(tail) == {
        "consent": ["A, b, 9d"],
        "name": ["Ann"],
        "jobs": ["a*,b"],
        "forget_picture": ["true"],
        "evidence_bytes": ["7"],
    }


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_refused(number):
    spec = pb.Spec(source="test:")
    spec.parameters.update({"blend_ratio": number})
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        ask("CreateJob", pb.CreateJobRequest(spec=spec))


def test_a_path_wants_its_field():
    with pytest.raises(ValueError, match="job_id"):
        ask("GetJob", pb.GetJobRequest())


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4))
def test_any_patch_comes_through_as_it_is(patch):
    request = pb.PatchTokenRequest(job_id="x")
    request.patch.update(patch)
    assert json.loads(ask("PatchToken", request).body) == patch


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4))
def test_any_figures_come_back_as_they_are(figures):
    from google.protobuf.json_format import MessageToDict

    from livefuse.control.grpc.messages import read_answer

    reply = pb.GetStatusResponse()
    answer = Answer(200, {}, msgspec.json.encode(figures))
    read_answer(BY_NAME["GetStatus"], answer, reply)
    assert MessageToDict(reply.statistics) == figures


def test_unknown_fields_are_left_out_and_unfit_ones_refused():
    from livefuse.control.grpc.messages import fill

    job = pb.Job()
    fill(job, {"id": "x", "spec": {"operations": [], "new": 1}, "newer": {"a": 1}, "error": ""})
    assert job.id == "x"
    assert job.spec.HasField("operations")
    with pytest.raises(ValueError, match="id"):
        fill(job, {"id": {}})
