"""Keys of each role, over HTTP: what they may, what they are told, what is nobody's business."""

import pytest

from tests.apis import RunningApi
from tests.faces import ASTRONAUT

pytestmark = pytest.mark.wire

ONE, TWO = "key-of-a-streamer", "key-of-another-streamer"
VIEWER, OPERATOR = "key-of-a-viewer", "key-of-an-operator"
SPEC = {
    "source": "test:?size=160x120&fps=5",
    "targets": ["rtmp://127.0.0.1:9/app/k"],
    "operations": [],
}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with RunningApi(tmp_path_factory.mktemp("roles"), "publish.start=none") as running:
        made = running.ask("POST", "/v1/jobs", {"id": "one", "spec": SPEC, "start": True}, key=ONE)
        assert made.status == 201
        assert running.ask("POST", "/v1/jobs", {"id": "two"}, key=TWO).status == 201
        running.wait_frames("one")
        yield running


def list_ids(api, key):
    return {job["id"] for job in api.ask("GET", "/v1/jobs", key=key).value["jobs"]}


def test_each_sees_its_own_jobs(api):
    assert list_ids(api, ONE) == {"one"}
    assert list_ids(api, TWO) == {"two"}
    assert list_ids(api, OPERATOR) == {"one", "two"}
    assert list_ids(api, VIEWER) == {"one"}  # the other one does not run


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/status"),
        ("GET", "/snapshot.jpg"),
        ("GET", "/token"),
        ("POST", "/stop"),
        ("DELETE", ""),
    ],
)
def test_another_ones_job_is_not_there(api, method, path):
    """In the very words of one that is not: not even its name is told."""
    refused = api.ask(method, f"/v1/jobs/one{path}", key=TWO)
    absent = api.ask(method, f"/v1/jobs/nix{path}", key=TWO)
    assert refused.status == absent.status == 404
    assert refused.data.replace(b"one", b"nix") == absent.data
    assert api.ask("GET", "/v1/jobs/one/status", key=ONE).status == 200


def test_a_viewer_looks_and_changes_nothing(api):
    for path in ("", "/status", "/snapshot.jpg"):
        assert api.ask("GET", f"/v1/jobs/one{path}", key=VIEWER).status == 200
    for method, path in (("POST", "/stop"), ("DELETE", ""), ("GET", "/token"), ("POST", "/whip")):
        answer = api.ask(method, f"/v1/jobs/one{path}", key=VIEWER)
        assert answer.status == 403
        assert "viewer" in answer.value["detail"]
        assert "streamer" in answer.value["hint"]


def test_a_viewer_is_not_told_from_where_to_where(api):
    own = api.ask("GET", "/v1/jobs/one", key=ONE)
    assert b"127.0.0.1:9" in own.data
    for path in ("/v1/jobs", "/v1/jobs/one", "/v1/jobs/one/status"):
        data = api.ask("GET", path, key=VIEWER).data
        assert b"127.0.0.1:9" not in data
        assert b"160x120&fps" not in data
    view = api.ask("GET", "/v1/jobs/one", key=VIEWER).value
    assert (view["spec"]["source"], view["spec"]["targets"]) == ("", [])


@pytest.mark.parametrize(
    "source",
    [
        "rtsp://127.0.0.1:9/app/s3cretpathkey",
        "listen:rtmp://127.0.0.1:19357/app/s3cretpathkey",
        "srt://127.0.0.1:9/app/s3cretpathkey?mode=caller",
    ],
)
def test_a_key_in_the_path_of_a_source_is_shown_to_nobody(api, source):
    """(C76) Not even to who has set it, as that of a target is not."""
    spec = {"source": source, "operations": []}
    made = api.ask("POST", "/v1/jobs", {"id": "path", "spec": spec}, key=ONE)
    assert made.status == 201, made.data
    views = [api.ask("GET", "/v1/jobs/path", key=key) for key in (ONE, OPERATOR, VIEWER)]
    for answer in (made, *views):
        assert b"s3cretpathkey" not in answer.data
    assert "/app/***" in views[0].value["spec"]["source"]
    assert api.ask("GET", "/v1/jobs/path", key=TWO).status == 404
    audit = api.ask("GET", "/v1/audit?limit=20", key=OPERATOR).data
    assert b"/app/***" in audit
    assert b"s3cretpathkey" not in audit
    assert api.ask("DELETE", "/v1/jobs/path", key=ONE).status == 204


def test_metrics_are_no_business_of_streamers_and_viewers(api):
    """They name everybody's jobs."""
    statuses = {key: api.ask("GET", "/metrics", key=key).status for key in (ONE, VIEWER, OPERATOR)}
    assert statuses == {ONE: 403, VIEWER: 403, OPERATOR: 200}
    assert api.ask("GET", "/metrics", key="key-of-a-scraper").status == 200


def test_only_an_operator_writes_down_what_came_in(api):
    assert api.ask("POST", "/v1/jobs/one/recording", key=ONE).status == 403
    assert api.ask("POST", "/v1/jobs/one/recording", key=OPERATOR).status == 409


def test_an_operator_ends_the_job_of_another(api):
    assert api.ask("POST", "/v1/jobs", {"id": "three"}, key=ONE).status == 201
    assert api.ask("DELETE", "/v1/jobs/three", key=TWO).status == 404
    assert api.ask("DELETE", "/v1/jobs/three", key=OPERATOR).status == 204


def test_who_is_nobody_is_told_so(api):
    answer = api.ask("GET", "/v1/jobs", key="key-of-nobody")
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_no_other_page_is_let_in(api):
    """CORS stays closed: a browser asks first, is refused, and reads no header that lets it in."""
    asks = {"Origin": "http://elsewhere.example", "Access-Control-Request-Method": "GET"}
    for path in ("/v1/jobs", "/v1/jobs/one/whep", "/"):
        answer = api.ask("OPTIONS", path, headers=asks)
        assert answer.status in (403, 405)
        assert not [name for name in answer.headers if name.startswith("Access-Control")]
    plain = api.ask("GET", "/v1/jobs", headers={"Origin": "http://elsewhere.example"})
    assert not [name for name in plain.headers if name.startswith("Access-Control")]


def test_a_streamer_takes_in_no_face_of_anybody(api):
    """(C78) Else it could write itself a consent, also in place of one that was taken back."""
    path = "/v1/jobs/one/source-face?consent=me,+all,+1y&name=zed"
    picture = {"body": ASTRONAUT.read_bytes(), "headers": {"Content-Type": "image/png"}}
    refused = api.ask("PUT", path, key=ONE, **picture)
    assert refused.status == 403
    assert "operator" in refused.value["detail"]
    unknown = api.ask("PUT", path.partition("?")[0], key=ONE, **picture)
    assert unknown.status == 403
    assert "consented" in unknown.value["detail"]
    assert api.ask("GET", "/v1/faces", key=OPERATOR).value["faces"] == []


@pytest.mark.parametrize("name", ["inj\n", "a\r\nX: y", "a b", "", "a" * 65])
def test_an_odd_id_is_refused_in_words(api, name):
    refused = api.ask("POST", "/v1/jobs", {"id": name}, key=ONE)
    assert refused.status == 422
    assert list_ids(api, ONE) == {"one"}
