"""Every address of the API on one page. The description (openapi.py) is made from this table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web

from livefuse.control.api import (
    audit,
    catalogue,
    events,
    faces,
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
from livefuse.safety.deny_shelf import DeniedFace
from livefuse.telemetry import Statistics
from livefuse.token import Token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from livefuse.control.api.caller import Role

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """An address: `takes` and `gives` are types (JSON) or media types; `fails` are statuses.

    `role` is the least that may call it, for a job that it sees (caller.py).
    """

    method: str
    path: str
    role: Role
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
_PICTURE: Final = tuple(sorted(source.PICTURE_TYPES))
_FACE: Final = ("application/json", *_PICTURE)
_FACE_ID: Final = "/v1/faces/{face}"
_SDP, _FRAGMENT = webrtc.SDP, webrtc.FRAGMENT


def _list_webrtc(path: str, role: Role) -> tuple[Route, ...]:
    """Return the addresses of one way, `/whip` in or `/whep` out, and of its sessions."""
    one = f"{path}/{{session}}"
    return (
        Route("OPTIONS", path, role, webrtc.show_capabilities, status=204, fails=_GONE),
        Route("POST", path, role, webrtc.offer, _SDP, 201, _SDP, _JUDGED),
        Route("PATCH", one, role, webrtc.trickle, _FRAGMENT, 200, _FRAGMENT, _JUDGED),
        Route("DELETE", one, role, webrtc.hang_up, fails=_IDLE),
    )


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/jobs", "viewer", jobs.list_jobs, views.JobList),
    Route(
        "POST", "/v1/jobs", "streamer", jobs.create_job, views.JobView, 201, views.NewJob, _JUDGED
    ),
    Route("GET", _JOB, "viewer", jobs.show_job, views.JobView, fails=_GONE),
    Route("DELETE", _JOB, "streamer", jobs.delete_job, status=204, fails=_GONE),
    Route(
        "PUT", f"{_JOB}/spec", "streamer", jobs.submit_job, views.JobView, 200, views.Spec, _JUDGED
    ),
    Route(
        "POST",
        f"{_JOB}/start",
        "streamer",
        jobs.start_job,
        views.JobView,
        fails=_JUDGED,
        query=("queue",),
    ),
    Route("POST", f"{_JOB}/stop", "streamer", jobs.stop_job, views.JobView, fails=_GONE),
    Route("GET", f"{_JOB}/status", "viewer", jobs.show_status, Statistics, fails=_FULL),
    Route(
        "GET", f"{_JOB}/events", "viewer", events.stream_events, _EVENTS, fails=_FULL, query=("hz",)
    ),
    Route("GET", f"{_JOB}/token", "streamer", token.show_token, Token, fails=_IDLE),
    Route("PATCH", f"{_JOB}/token", "streamer", token.change_token, Token, 200, _PATCH, _JUDGED),
    Route(
        "PUT",
        f"{_JOB}/source-face",
        "streamer",
        source.set_source_face,
        views.FaceView,
        200,
        _FACE,
        _JUDGED,
        ("consent", "name"),
    ),
    Route(
        "GET", f"{_JOB}/outputs", "streamer", outputs.list_outputs, views.OutputList, fails=_IDLE
    ),
    Route(
        "POST",
        f"{_JOB}/outputs",
        "streamer",
        outputs.add_output,
        OutputStatus,
        201,
        views.NewOutput,
        _JUDGED,
    ),
    Route(
        "DELETE",
        f"{_JOB}/outputs/{{output}}",
        "streamer",
        outputs.remove_output,
        status=204,
        fails=_IDLE,
    ),
    # It shows faces bare, and lies on the machine's disc.
    Route(
        "POST",
        f"{_JOB}/recording",
        "operator",
        recording.write_recording,
        views.RecordingView,
        201,
        fails=_FULL,
    ),
    Route(
        "GET", f"{_JOB}/snapshot.jpg", "viewer", streams.show_snapshot, "image/jpeg", fails=_IDLE
    ),
    Route(
        "GET",
        f"{_JOB}/live.{{kind:flv|ts}}",
        "viewer",
        streams.stream_live,
        "video/x-flv",
        fails=_FULL,
    ),
    *_list_webrtc(f"{_JOB}/whip", "streamer"),
    *_list_webrtc(f"{_JOB}/whep", "viewer"),
    Route("GET", "/v1/faces", "operator", faces.list_faces, faces.FaceList),
    Route(
        "POST",
        "/v1/faces",
        "operator",
        faces.enroll_face,
        faces.EnrolledFace,
        201,
        _PICTURE,
        _JUDGED,
        faces.ENROLL_QUERY,
    ),
    Route("GET", _FACE_ID, "operator", faces.show_face, faces.EnrolledFace, fails=_GONE),
    Route(
        "POST",
        f"{_FACE_ID}/revoke",
        "operator",
        faces.revoke_face,
        faces.EnrolledFace,
        fails=_JUDGED,
    ),
    Route("DELETE", _FACE_ID, "operator", faces.remove_face, status=204, fails=_FULL),
    Route(
        "GET",
        "/v1/denied-faces",
        "operator",
        faces.list_denied,
        faces.DeniedList,
        fails=(422,),
    ),
    Route(
        "POST",
        "/v1/denied-faces",
        "operator",
        faces.deny_face,
        DeniedFace,
        201,
        _PICTURE,
        _JUDGED,
        ("name",),
    ),
    Route(
        "DELETE",
        "/v1/denied-faces/{face}",
        "operator",
        faces.undeny_face,
        status=204,
        fails=_JUDGED,
    ),
    Route(
        "GET",
        "/v1/audit",
        "operator",
        audit.show_audit,
        audit.AuditList,
        fails=(422, 503),
        query=("job", "event", "since", "limit"),
    ),
    Route("GET", "/v1/looks", "viewer", catalogue.list_looks_there, views.LookList, fails=(422,)),
    Route(
        "GET",
        "/v1/models",
        "viewer",
        catalogue.list_models_there,
        views.ModelList,
        fails=(422, 503),
    ),
    Route("GET", "/v1/catalogue", "viewer", catalogue.show_catalogue, views.Catalogue),
    # They name the jobs of all.
    Route("GET", "/metrics", "scraper", probes.show_metrics, "text/plain", fails=(503,)),
    Route("GET", "/healthz", "viewer", probes.show_health, "text/plain"),
    Route("GET", "/readyz", "viewer", probes.show_readiness, "text/plain", fails=(503,)),
)

ROUTE_OF: Final[web.AppKey[dict[web.AbstractRoute, Route]]] = web.AppKey("routes", dict)


def add_routes(app: web.Application, routes: Iterable[Route] = ROUTES) -> None:
    """Let `app` answer to `routes`, and the guard know them; once for an application."""
    app[ROUTE_OF] = {
        app.router.add_route(route.method, route.path, route.handler): route for route in routes
    }


def find_route(request: web.Request) -> Route | None:
    """Return the row of the table that `request` is for; None for the page and for nothing."""
    return request.app[ROUTE_OF].get(request.match_info.route)
