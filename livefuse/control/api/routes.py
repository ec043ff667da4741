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
_SESSION: Final = f"{_JOB}/{{kind:whip|whep}}/{{session}}"
_PATCH: Final = "application/merge-patch+json"
_WRONG: Final = (413, 415, 422)

ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/jobs", jobs.list_jobs, views.JobList),
    Route(
        "POST",
        "/v1/jobs",
        jobs.create_job,
        views.JobView,
        201,
        views.NewJob,
        (403, 409, 502, 503, *_WRONG),
    ),
    Route("GET", _JOB, jobs.show_job, views.JobView, fails=(404,)),
    Route("DELETE", _JOB, jobs.delete_job, status=204, fails=(404,)),
    Route(
        "PUT",
        f"{_JOB}/spec",
        jobs.submit_job,
        views.JobView,
        200,
        views.Spec,
        (403, 404, 409, 502, 503, *_WRONG),
    ),
    Route(
        "POST", f"{_JOB}/start", jobs.start_job, views.JobView, fails=(403, 404, 409, 422, 502, 503)
    ),
    Route("POST", f"{_JOB}/stop", jobs.stop_job, views.JobView, fails=(404,)),
    Route("GET", f"{_JOB}/status", jobs.show_status, Statistics, fails=(404, 409)),
    Route(
        "GET",
        f"{_JOB}/events",
        events.stream_events,
        "text/event-stream",
        fails=(404, 409, 503),
        query=("hz",),
    ),
    Route("GET", f"{_JOB}/token", token.show_token, Token, fails=(404, 409)),
    Route(
        "PATCH",
        f"{_JOB}/token",
        token.change_token,
        Token,
        200,
        _PATCH,
        (403, 404, 409, 412, 503, *_WRONG),
    ),
    Route(
        "PUT",
        f"{_JOB}/source-face",
        source.set_source_face,
        views.FaceView,
        200,
        ("application/json", *sorted(source.PICTURE_TYPES)),
        (403, 404, 409, 503, *_WRONG),
        ("consent", "name"),
    ),
    Route("GET", f"{_JOB}/outputs", outputs.list_outputs, views.OutputList, fails=(404, 409)),
    Route(
        "POST",
        f"{_JOB}/outputs",
        outputs.add_output,
        views.OutputView,
        201,
        views.NewOutput,
        (404, 409, 502, 503, *_WRONG),
    ),
    Route(
        "DELETE", f"{_JOB}/outputs/{{output}}", outputs.remove_output, status=204, fails=(404, 409)
    ),
    Route(
        "POST",
        f"{_JOB}/recording",
        recording.write_recording,
        views.RecordingView,
        201,
        fails=(404, 409),
    ),
    Route("GET", f"{_JOB}/snapshot.jpg", streams.show_snapshot, "image/jpeg", fails=(404, 409)),
    Route(
        "GET",
        f"{_JOB}/live.{{kind:flv|ts}}",
        streams.stream_live,
        "video/x-flv",
        fails=(404, 409, 503),
    ),
    Route(
        "OPTIONS", f"{_JOB}/{{kind:whip|whep}}", webrtc.show_capabilities, status=204, fails=(404,)
    ),
    Route(
        "POST",
        f"{_JOB}/{{kind:whip|whep}}",
        webrtc.offer,
        webrtc.SDP,
        201,
        webrtc.SDP,
        (404, 406, 409, 503, *_WRONG),
    ),
    Route(
        "PATCH",
        _SESSION,
        webrtc.trickle,
        webrtc.FRAGMENT,
        200,
        webrtc.FRAGMENT,
        (404, 409, 412, *_WRONG),
    ),
    Route("DELETE", _SESSION, webrtc.hang_up, fails=(404, 409)),
    Route("GET", "/v1/catalogue", catalogue.show_catalogue, views.Catalogue),
    Route("GET", "/metrics", probes.show_metrics, "text/plain"),
    Route("GET", "/healthz", probes.show_health, "text/plain"),
    Route("GET", "/readyz", probes.show_readiness, "text/plain", fails=(503,)),
)
