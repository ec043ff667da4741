"""Who opens a session of WebRTC over HTTP: where it may have packets sent, and its share."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.apis import RunningApi
from tests.webrtc import LOOPBACK, Watcher, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.wire, pytest.mark.timeout(90)]
OFFER = (
    Path(__file__).parents[1] / "unit" / "rtc" / "offers" / "chromium_viewer_hidden_behind_mdns.sdp"
)
VIEWER, OTHER, OPERATOR = "key-of-a-viewer", "key-of-another-viewer", "key-of-an-operator"
SPEC = {"source": "test:?size=320x180&fps=15&audio=0", "operations": []}
SMALL = (f'webrtc.addresses=["{LOOPBACK}"]', "publish.start=none", "access.restrict=on")
BEHIND_PROXY = 'http.trusted_proxies=["127.0.0.1"]'
STRANGER = {"X-Forwarded-For": "203.0.113.9"}


class HttpSession:
    """A session as a page has it."""

    def __init__(self, api: Any, path: str, sdp: str, **sent: Any) -> None:
        headers = {"Content-Type": "application/sdp", **sent.pop("headers", {})}
        answer = api.ask("POST", path, body=sdp.encode(), headers=headers, **sent)
        assert answer.status == 201, answer.data
        self.answer_sdp = answer.data.decode()
        self.path = answer.headers["Location"]


def offer_to(api: Any, path: str, key: str) -> Any:
    """Return what takes an offer there, for a peer of tests/webrtc.py."""
    return partial(HttpSession, api, path, key=key)


@contextlib.contextmanager
def running(folder: Path, *settings: str) -> Iterator[RunningApi]:
    with RunningApi(folder, *SMALL, *settings) as api:
        made = api.ask("POST", "/v1/jobs", {"id": "one", "spec": SPEC, "start": True})
        assert made.status == 201, made.data
        api.wait_frames("one")
        yield api


@contextlib.contextmanager
def listening_inside() -> Iterator[socket.socket]:
    """Something in the network behind livefuse that hears UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind((LOOPBACK, 0))
        heard.setblocking(False)
        yield heard


@pytest.fixture
def inside():
    with listening_inside() as heard:
        yield heard


def name(inside: socket.socket) -> str:
    return f"a=candidate:9 1 udp 2130706431 {LOOPBACK} {inside.getsockname()[1]} typ host\r\n"


def has_heard(inside: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        return bool(inside.recv(2048))
    return False


def check_is_heard(api: Any, path: str, key: str, inside: socket.socket) -> None:
    """Offer from this machine, and see that what the offer names is checked."""
    HttpSession(api, path, OFFER.read_bytes().decode() + name(inside), key=key)
    wait_for(lambda: has_heard(inside), 10, "a check of connectivity")


def test_no_packet_goes_where_an_offer_points_inside_and_its_peer_connects_all_the_same(
    tmp_path, inside
):
    """All of its candidates are left out, its own too: it is found by its own checks."""
    path = "/v1/jobs/one/whep"
    with running(tmp_path, BEHIND_PROXY) as api:

        def answer(sdp: str) -> Any:
            return HttpSession(api, path, sdp + name(inside), key=VIEWER, headers=STRANGER)

        with Watcher(answer, has_sound=False) as watcher:
            wait_for(lambda: len(watcher.counters) > 5, 20, "pictures")
            whep: Any = api.manager.get_running("one").get_peers("whep")
            (viewer,) = whep._viewers
            (transport,) = viewer.session._peer._list_transports()
            named = transport._connection.remote_candidates
            assert {candidate.type for candidate in named} == {"prflx"}
            fragment = f"a=mid:0\r\n{name(inside)}".encode()
            headers = {"Content-Type": "application/trickle-ice-sdpfrag", **STRANGER}
            patched = api.ask(
                "PATCH", watcher.session.path, body=fragment, headers=headers, key=VIEWER
            )
            assert patched.status == 204, patched.data
            assert transport._connection.remote_candidates == named
            time.sleep(0.5)
            assert not has_heard(inside)


def test_who_is_on_this_machine_names_this_machine(tmp_path, inside):
    """And so the test before would have heard something."""
    with running(tmp_path) as api:
        check_is_heard(api, "/v1/jobs/one/whep", VIEWER, inside)


def test_one_key_has_not_all_places(tmp_path):
    """(C74) Of four places two; the others are for others, and for operators all."""
    few = ("webrtc.max_viewers=4", "http.max_viewers=4", "limits.event_streams=4")
    offer = OFFER.read_bytes()

    def watch(api, key):
        headers = {"Content-Type": "application/sdp"}
        return api.ask("POST", "/v1/jobs/one/whep", body=offer, headers=headers, key=key)

    with running(tmp_path, *few) as api, contextlib.ExitStack() as links:

        def look(path, key):
            link = http.client.HTTPConnection(LOOPBACK, api.server.port, timeout=10)
            links.callback(link.close)
            link.request("GET", f"/v1/jobs/one/{path}?key={key}")
            return links.enter_context(link.getresponse())  # kept: else it hangs up

        for path in ("events", "live.flv"):
            assert [look(path, VIEWER).status for _ in range(2)] == [200, 200]
            refused = look(path, VIEWER)
            assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
            assert b"this key's already" in refused.read()
            assert [look(path, key).status for key in (OTHER, OPERATOR)] == [200, 200]
            assert b"this key" not in (full := look(path, OPERATOR)).read()
            assert full.status == 503
        assert [watch(api, VIEWER).status for _ in range(2)] == [201, 201]
        refused = watch(api, VIEWER)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        assert "limits.key_share" in refused.value["hint"]
        assert [watch(api, key).status for key in (OTHER, OPERATOR)] == [201, 201]
        assert watch(api, OPERATOR).status == 503
        links.close()
        seats = (api.server._api.watchers, api.server._api.players)
        wait_for(lambda: not any(places.taken for places in seats), 10, "places are given back")
