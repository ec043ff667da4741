"""WHIP (RFC 9725) and WHEP: a browser's offer in, our answer out; sessions changed and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from aiohttp import web

from livefuse.control.access import Access
from livefuse.control.api.body import read_bytes, read_text
from livefuse.control.api.caller import get_caller
from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.shares import count_share
from livefuse.rtc.guest import Guest

if TYPE_CHECKING:
    from livefuse.control.api.context import Api
    from livefuse.ingest.whip import WhipIngest
    from livefuse.publish.whep import WhepOutput
    from livefuse.rtc.guest import AllowsHost
    from livefuse.rtc.session import Session

    Peers = WhipIngest | WhepOutput

SDP: Final = "application/sdp"
FRAGMENT: Final = "application/trickle-ice-sdpfrag"
_MAX_SDP_BYTES: Final = 64 * 1024
_CAPABILITIES: Final = {"Accept-Post": SDP, "Accept-Patch": FRAGMENT}


async def offer(request: web.Request) -> web.Response:
    """Answer an offer: 201, the session's address and its ETag."""
    api = get_api(request)
    job = api.get_job(request)
    kind = _read_kind(request)
    sdp = read_text(await read_bytes(request, frozenset({SDP}), _MAX_SDP_BYTES))
    peers, guest = job.get_peers(kind), _create_guest(api, request)
    session = await api.run(kind, lambda: _answer(peers, sdp, guest, request))
    return web.Response(
        status=201,
        text=session.answer_sdp,
        content_type=SDP,
        headers={
            **NO_STORE,
            "Location": f"/v1/jobs/{job.job_id}/{kind}/{session.id}",
            "ETag": session.etag,
            "Accept-Patch": FRAGMENT,
        },
    )


async def show_capabilities(request: web.Request) -> web.Response:
    """Say what may be posted."""
    get_api(request).get_managed(request)
    return web.Response(status=204, headers={**NO_STORE, **_CAPABILITIES})


async def trickle(request: web.Request) -> web.Response:
    """Take more candidates, or restart ICE (RFC 8840)."""
    api = get_api(request)
    session = _get_session(request)
    fragment = read_text(await read_bytes(request, frozenset({FRAGMENT}), _MAX_SDP_BYTES))
    etag = request.headers.get("If-Match", "")
    allows = _create_rule(api, request)
    said = await api.run("trickle", lambda: session.patch(fragment, etag, allows))
    headers = {**NO_STORE, "ETag": session.etag}
    if not said:
        return web.Response(status=204, headers=headers)
    return web.Response(status=200, text=said, content_type=FRAGMENT, headers=headers)


async def hang_up(request: web.Request) -> web.Response:
    """End a session."""
    api = get_api(request)
    session = _get_session(request)
    await api.run("hang-up", session.close)
    return web.Response(status=200, headers=NO_STORE)


def _create_guest(api: Api, request: web.Request) -> Guest:
    caller = get_caller(request)
    most = count_share(api.config.webrtc.max_viewers, caller, api.config.limits)
    return Guest(caller.key_id, most, _create_rule(api, request))


def _create_rule(api: Api, request: web.Request) -> AllowsHost | None:
    """Return what judges the candidates in this request (access.py)."""
    access, asker = Access(api.config.access), get_caller(request).address
    if not access.is_restricted:
        return None
    return lambda host: access.allows_candidate(host, asker)


def _answer(peers: Peers, sdp: str, guest: Guest, request: web.Request) -> Session:
    session = peers.answer(sdp, guest)
    if request.transport is None:
        session.close()  # whoever offered has hung up meanwhile and will never hear of it
    return session


def _get_session(request: web.Request) -> Session:
    peers = get_api(request).get_job(request).get_peers(_read_kind(request))
    return peers.get_session(request.match_info["session"])


def _read_kind(request: web.Request) -> Literal["whip", "whep"]:
    """Return the way by the path: /v1/jobs/{id}/whip and what is below it, or /whep."""
    return "whip" if request.rel_url.raw_path.split("/")[4] == "whip" else "whep"
