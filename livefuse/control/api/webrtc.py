"""WHIP (RFC 9725) and WHEP: a browser's offer in, our answer out; sessions changed and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from aiohttp import web

from livefuse.control.api.body import read_bytes, read_text
from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE

if TYPE_CHECKING:
    from livefuse.ingest.whip import WhipIngest
    from livefuse.publish.whep import WhepOutput
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
    peers = job.get_peers(kind)
    session = await api.run(kind, lambda: _answer(peers, sdp, request))
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
    said = await api.run("trickle", lambda: session.patch(fragment, etag))
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


def _answer(peers: Peers, sdp: str, request: web.Request) -> Session:
    session = peers.answer(sdp)
    if request.transport is None:
        session.close()  # whoever offered has hung up meanwhile and will never hear of it
    return session


def _get_session(request: web.Request) -> Session:
    peers = get_api(request).get_job(request).get_peers(_read_kind(request))
    return peers.get_session(request.match_info["session"])


def _read_kind(request: web.Request) -> Literal["whip", "whep"]:
    """Return the way by the path: /v1/jobs/{id}/whip and what is below it, or /whep."""
    return "whip" if request.rel_url.raw_path.split("/")[4] == "whip" else "whep"
