"""Every call on one page: which address of the HTTP API (api/routes.py) it is.

A test holds this table and the addresses equal. Fields of a request that the path does not take
and that are not the body go into the query.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

PACKAGE: Final = "livefuse.v1"


class Call(NamedTuple):
    """One call: `path` names the fields of the request that stand in it.

    `body`: the field that is sent as JSON, `*` for all that the path leaves. `upload`: the field of
    the type Picture whose bytes are sent as they are, where it is set; its other parts go into the
    query. `reply`: the field of the answer that the JSON becomes, empty for the whole answer.
    `headers` are fields of the request and the headers they are sent as, `reply_headers` likewise
    of the answer. What comes back is JSON, the bytes of a file, or server-sent events.
    """

    name: str
    method: str
    path: str
    body: str = ""
    reply: str = ""
    kind: Literal["json", "file", "events"] = "json"
    upload: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    reply_headers: tuple[tuple[str, str], ...] = ()


_JOB: Final = "/v1/jobs/{job_id}"
_ETAG: Final = (("etag", "etag"),)
_IF_MATCH: Final = (("if_match", "If-Match"),)

CALLS: Final[tuple[Call, ...]] = (
    Call("JobService/CreateJob", "POST", "/v1/jobs", body="*"),
    Call("JobService/SubmitJob", "PUT", f"{_JOB}/spec", body="spec"),
    Call("JobService/StartJob", "POST", f"{_JOB}/start"),
    Call("JobService/StopJob", "POST", f"{_JOB}/stop"),
    Call("JobService/DeleteJob", "DELETE", _JOB),
    Call("JobService/GetJob", "GET", _JOB),
    Call("JobService/ListJobs", "GET", "/v1/jobs"),
    Call("JobService/GetStatus", "GET", f"{_JOB}/status", reply="statistics"),
    Call("JobService/WatchJob", "GET", f"{_JOB}/events", kind="events"),
    Call("JobService/GetToken", "GET", f"{_JOB}/token", reply="token", reply_headers=_ETAG),
    Call(
        "JobService/PatchToken",
        "PATCH",
        f"{_JOB}/token",
        body="patch",
        reply="token",
        headers=_IF_MATCH,
        reply_headers=_ETAG,
    ),
    Call("JobService/SetSourceFace", "PUT", f"{_JOB}/source-face", body="*", upload="picture"),
    Call("JobService/AddOutput", "POST", f"{_JOB}/outputs", body="*"),
    Call("JobService/RemoveOutput", "DELETE", f"{_JOB}/outputs/{{output_id}}"),
    Call("JobService/ListOutputs", "GET", f"{_JOB}/outputs"),
    Call("JobService/GetSnapshot", "GET", f"{_JOB}/snapshot.jpg", kind="file"),
    Call("JobService/WriteRecording", "POST", f"{_JOB}/recording"),
    Call("JobService/GetCatalogue", "GET", "/v1/catalogue"),
    Call("FaceService/ListFaces", "GET", "/v1/faces"),
    Call("FaceService/GetFace", "GET", "/v1/faces/{face}"),
    Call("FaceService/EnrollFace", "POST", "/v1/faces", upload="picture"),
    Call("FaceService/RevokeFace", "POST", "/v1/faces/{face}/revoke"),
    Call("FaceService/RemoveFace", "DELETE", "/v1/faces/{face}"),
    Call("FaceService/ListDeniedFaces", "GET", "/v1/denied-faces"),
    Call("FaceService/DenyFace", "POST", "/v1/denied-faces", upload="picture"),
    Call("FaceService/AllowFace", "DELETE", "/v1/denied-faces/{face}"),
    Call("AuditService/ListRecords", "GET", "/v1/audit"),
)

# Addresses that are no calls, and why.
NOT_CALLS: Final[dict[str, str]] = {
    "/v1/looks": "part of GetCatalogue",
    "/v1/models": "what operators see to on the machine itself",
    "/v1/jobs/{}/live.{}": "a stream of media that players open by its address",
    "/v1/jobs/{}/whip": "WebRTC's own exchange over HTTP",
    "/v1/jobs/{}/whip/{}": "WebRTC's own exchange over HTTP",
    "/v1/jobs/{}/whep": "WebRTC's own exchange over HTTP",
    "/v1/jobs/{}/whep/{}": "WebRTC's own exchange over HTTP",
    "/metrics": "what Prometheus reads",
    "/healthz": "that the health service answers says the same",
    "/readyz": "the health service: SERVING or NOT_SERVING",
}
