"""Every address of the API on one page. The description (openapi.py) is made from this table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.control.api import (
    catalogue,
    events,
    jobs,
    outputs,
    probes,
    recording,
    source,
    streams,
    token,
    views,
    webrtc,
)
from livefuse.publish.base import OutputStatus
from livefuse.telemetry import Statistics
from livefuse.token import Token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """An address: `takes` and `gives` are types (JSON) or media types; `fails` are statuses."""

    method: str
    path: str
    handler: Handler
    gives: type | str | None = None
    status: int = 200
    takes: type | str | tuple[str, ...] | None = None
    fails: tuple[int, ...] = ()
    query: tuple[str, ...] = ()


_JOB: Final = "/v1/jobs/{id}"
_EVENTS: Final = "text/event-stream"
_PATCH: Final = "application/merge-patch+json"
# How a request can fail, besides for want of the key: no such job; it does not run; what is asked
# for is judged, and may be refused for any of these.
_GONE: Final = (404,)
_IDLE: Final = (404, 409)
_FULL: Final = (404, 409, 503)
_JUDGED: Final = (400, 403, 404, 406, 408, 409, 412, 413, 415, 422, 502, 503)
_FACE: Final = ("application/json", *sorted(source.PICTURE_TYPES))
_SDP, _FRAGMENT = webrtc.SDP, webrtc.FRAGMENT
_WAYS: Final = f"{_JOB}/{{kind:whip|whep}}"

ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/jobs", jobs.list_jobs, views.JobList),
    Route("POST", "/v1/jobs", jobs.create_job, views.JobView, 201, views.NewJob, _JUDGED),
    Route("GET", _JOB, jobs.show_job, views.JobView, fails=_GONE),
    Route("DELETE", _JOB, jobs.delete_job, status=204, fails=_GONE),
    Route("PUT", f"{_JOB}/spec", jobs.submit_job, views.JobView, 200, views.Spec, _JUDGED),
    Route("POST", f"{_JOB}/start", jobs.start_job, views.JobView, fails=_JUDGED),
    Route("POST", f"{_JOB}/stop", jobs.stop_job, views.JobView, fails=_GONE),
    Route("GET", f"{_JOB}/status", jobs.show_status, Statistics, fails=_FULL),
    Route("GET", f"{_JOB}/events", events.stream_events, _EVENTS, fails=_FULL, query=("hz",)),
    Route("GET", f"{_JOB}/token", token.show_token, Token, fails=_IDLE),
    Route("PATCH", f"{_JOB}/token", token.change_token, Token, 200, _PATCH, _JUDGED),
    Route(
        "PUT",
        f"{_JOB}/source-face",
        source.set_source_face,
        views.FaceView,
        200,
        _FACE,
        _JUDGED,
        ("consent", "name"),
    ),
    Route("GET", f"{_JOB}/outputs", outputs.list_outputs, views.OutputList, fails=_IDLE),
    Route(
        "POST",
        f"{_JOB}/outputs",
        outputs.add_output,
        OutputStatus,
        201,
        views.NewOutput,
        _JUDGED,
    ),
    Route("DELETE", f"{_JOB}/outputs/{{output}}", outputs.remove_output, status=204, fails=_IDLE),
    Route(
        "POST",
        f"{_JOB}/recording",
        recording.write_recording,
        views.RecordingView,
        201,
        fails=_IDLE,
    ),
    Route("GET", f"{_JOB}/snapshot.jpg", streams.show_snapshot, "image/jpeg", fails=_IDLE),
    Route("GET", f"{_JOB}/live.{{kind:flv|ts}}", streams.stream_live, "video/x-flv", fails=_FULL),
    Route("OPTIONS", _WAYS, webrtc.show_capabilities, status=204, fails=_GONE),
    Route("POST", _WAYS, webrtc.offer, _SDP, 201, _SDP, _JUDGED),
    Route("PATCH", f"{_WAYS}/{{session}}", webrtc.trickle, _FRAGMENT, 200, _FRAGMENT, _JUDGED),
    Route("DELETE", f"{_WAYS}/{{session}}", webrtc.hang_up, fails=_IDLE),
    Route("GET", "/v1/catalogue", catalogue.show_catalogue, views.Catalogue),
    Route("GET", "/metrics", probes.show_metrics, "text/plain", fails=(503,)),
    Route("GET", "/healthz", probes.show_health, "text/plain"),
    Route("GET", "/readyz", probes.show_readiness, "text/plain", fails=(503,)),
)
