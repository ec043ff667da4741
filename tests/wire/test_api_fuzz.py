"""The API under requests made from its own description, right and wrong, by a fixed seed.

Whatever comes: a described status, a body of the described type, every error a problem with a
sentence, and nothing above 500 but 502 and 503.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from livefuse.control.api.openapi import create_description
from livefuse.control.api.routes import ROUTES
from livefuse.control.api.views import Problem
from tests.apis import KEY, RunningApi

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

DESCRIPTION: Final = create_description()
PARTS: Final = DESCRIPTION["components"]["schemas"]
BUDGET_S: Final = 40.0
STREAMS: Final = ("/v1/jobs/{id}/events", "/v1/jobs/{id}/live.{kind:flv|ts}")
SECRET: Final = "s3cr3tk3yofmine"
FIXED: Final = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# What people and others write where a URL is asked for; nothing of it leads away from loopback.
URLS: Final = st.sampled_from(
    [
        "test:?size=160x90&fps=5",
        "test:?size=99999x99999",
        "test:?size=0x0&fps=0",
        "test:?fps=nan",
        "demo:?nonsense=1",
        "whip:",
        "camera:",
        "camera:/dev/zero",
        "/dev/zero",
        "/dev/stdin",
        "file:///proc/self/environ",
        "../../../etc/passwd.mp4",
        "~nobody-of-that-name/x.mp4",
        "out.mp4",
        "a/b/c.ts",
        ".mp4",
        "record\x00.mp4",
        "replay:/nothing",
        "env:HOME",
        f"rtmp://127.0.0.1:9/app/{SECRET}",
        f"rtsp://u:{SECRET}@127.0.0.1:9/x",
        "rtmp://[::1",
        "rtmp://127.0.0.1:99999999/x/y",
        "udp://127.0.0.1:0",
        "srt://127.0.0.1:9?mode=nonsense",
        "virtualcam:/dev/null",
        "://",
        ":",
        "\ud83d\ude00",
        "x" * 3000,
    ]
)
ANY_JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from([2**70, -1, 1e308, "", "\u0000", "avatar:fox", "detect"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["operations", "parameters", "blend_ratio", "beautify", "a", ""])
            | st.text(max_size=8),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


def follow(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that fit a schema as msgspec writes them; now and then one that does not."""
    if "$ref" in schema:
        return follow(PARTS[schema["$ref"].rpartition("/")[2]], depth)
    good = fit(schema, depth)
    return st.integers(0, 9).flatmap(lambda dice: ANY_JSON if depth and not dice else good)


def fit(schema: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - a table
    if "anyOf" in schema:
        return st.one_of([follow(one, depth + 1) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        fields = {name: follow(one, depth + 1) for name, one in schema["properties"].items()}
        needed = {name: fields.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional=fields)
    if kind == "array":
        inner = schema.get("items")
        one = follow(inner, depth + 1) if isinstance(inner, dict) else ANY_JSON
        return st.lists(one, max_size=3)
    if kind == "string":
        return fit_text(schema)
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", -1000), schema.get("maximum", 1000)
        return st.floats(low, high) if kind == "number" else st.integers(int(low), int(high))
    return {"boolean": st.booleans(), "null": st.none()}.get(str(kind), ANY_JSON)


def fit_text(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    if schema.get("maxLength") == 2048:
        return URLS
    faces = st.sampled_from(["avatar:fox", "avatar:nobody", "detect", "blur", "natural", ""])
    return faces | st.text(max_size=schema.get("maxLength", 40))


@st.composite
def make_request(draw) -> tuple[str, str, bytes, dict[str, str], Any]:
    """A request to one of the routes: method, path, body, headers, route."""
    route = draw(st.sampled_from([r for r in ROUTES if r.path not in STREAMS]))
    path = route.path
    strange = st.sampled_from(["none", "..", "%ff", "a/b", "x" * 300])
    job = draw(st.sampled_from(["running", "running", "submitted", "draft", ""])) or draw(strange)
    path = path.replace("{id}", quote(job, safe="%"))
    path = path.replace("{kind:whip|whep}", draw(st.sampled_from(["whip", "whep"])))
    for name in ("{output}", "{session}"):
        path = path.replace(name, quote(draw(st.text(min_size=1, max_size=12)), safe=""))
    query = {name: draw(st.text(max_size=30)) for name in route.query if draw(st.booleans())}
    headers = {"If-Match": draw(st.sampled_from(['"x"', "*", "", ",,"]))} if route.takes else {}
    body = b""
    if isinstance(route.takes, type):
        schema = PARTS[route.takes.__name__]
        body = json.dumps(draw(follow(schema) | ANY_JSON)).encode()
        headers["Content-Type"] = "application/json"
    elif route.takes is not None:
        types = [route.takes] if isinstance(route.takes, str) else list(route.takes)
        headers["Content-Type"] = draw(st.sampled_from([*types, "text/plain", "", "a/b; c=d"]))
        body = draw(
            ANY_JSON.map(lambda value: json.dumps(value).encode())
            | st.binary(max_size=200)
            | st.sampled_from([b"v=0\r\n", b"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"])
        )
    suffix = f"?{urlencode(query, errors='replace')}" if query else ""
    return route.method, path + suffix, body, headers, route


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with RunningApi(tmp_path_factory.mktemp("fuzz")) as running:
        spec = {"source": "test:?size=160x120&fps=5", "operations": []}
        for job, wish in (("submitted", {"spec": spec}), ("draft", {})):
            assert running.ask("POST", "/v1/jobs", {"id": job, **wish}).status == 201
        yield running


def keep_running(api) -> None:
    """See that the three jobs are as they are named, whatever was done to them."""
    spec = {"source": "test:?size=160x120&fps=5", "operations": []}
    states = {one["id"]: one["state"] for one in api.ask("GET", "/v1/jobs").value["jobs"]}
    wanted: dict[str, dict[str, Any]] = {
        "running": {"spec": spec, "start": True},
        "submitted": {"spec": spec},
        "draft": {},
    }
    for job in set(states) - set(wanted):
        api.ask("DELETE", f"/v1/jobs/{job}")
    for job, wish in wanted.items():
        state = states.get(job)
        if state not in (None, job):
            api.ask("DELETE", f"/v1/jobs/{job}")
        if state != job:
            assert api.ask("POST", "/v1/jobs", {"id": job, **wish}).status == 201


def send(api, method, path, body, headers) -> tuple[int, str, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=20)
    try:
        link.request(method, path, body, headers={"Authorization": f"Bearer {KEY}"} | headers)
        answer = link.getresponse()
        return answer.status, answer.headers.get_content_type(), answer.read()
    finally:
        link.close()


def check_answer(method: str, route, status: int, kind: str, data: bytes) -> None:
    """Hold an answer against the description."""
    assert SECRET.encode() not in data
    assert KEY.encode() not in data
    assert b"Traceback" not in data
    if status >= 400:
        assert kind == "application/problem+json", data
        problem = msgspec.json.decode(data, type=Problem)
        assert problem.status == status
        assert len(problem.detail) > 3
        assert status < 500 or status in (502, 503), problem
    if route is None or status in (404, 405):
        return  # a path or method that is none of the table's
    wanted = {route.status, 204} if route.method == "PATCH" else {route.status}
    assert status in {*wanted, 401, 403, *route.fails}, (method, route.path, status, data)
    if status == route.status and isinstance(route.gives, type):
        msgspec.json.decode(data, type=route.gives)


def test_requests_from_the_description(api):
    """No 5xx but 502 and 503, no undescribed status, bodies as described."""
    over_s = time.monotonic() + BUDGET_S
    seen: set[tuple[str, int]] = set()

    @settings(FIXED, max_examples=400)
    @given(asked=make_request())
    def ask(asked):
        if time.monotonic() > over_s:
            return
        method, path, body, headers, route = asked
        keep_running(api)
        status, kind, data = send(api, method, path, body, headers)
        check_answer(method, route, status, kind, data)
        seen.add((f"{method} {route.path}", status))

    ask()
    assert len({name for name, _ in seen}) > 15
    assert {200, 201, 204, 404, 409, 422} <= {status for _, status in seen}


def test_any_patch_leaves_a_token_that_is_one(api):
    """R12: whatever is sent, the token stays whole, and says so."""
    keep_running(api)
    over_s = time.monotonic() + BUDGET_S / 4
    path, kind = "/v1/jobs/running/token", {"Content-Type": "application/merge-patch+json"}
    route = next(r for r in ROUTES if r.method == "PATCH" and r.path.endswith("/token"))

    @settings(FIXED, max_examples=150)
    @given(patch=ANY_JSON | follow(DESCRIPTION["components"]["schemas"]["Token"]))
    def ask(patch):
        if time.monotonic() > over_s:
            return
        body = json.dumps(patch).encode()
        check_answer("PATCH", route, *send(api, "PATCH", path, body, kind))
        token = api.ask("GET", path)
        assert token.status == 200
        msgspec.json.decode(token.data, type=route.gives)

    ask()


async def make_offer() -> str:
    """A browser's offer: it would send its camera, or watch."""
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    peer.addTransceiver("video", "sendrecv")
    peer.addTransceiver("audio", "sendrecv")
    offer = await peer.createOffer()
    await peer.close()
    return offer.sdp


@st.composite
def spoil(draw, lines: list[str]) -> bytes:
    """The offer with some lines lost, doubled, cut, moved or replaced."""
    lines = list(lines)
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        lines[at : at + 1] = draw(
            st.sampled_from(
                [
                    [],
                    [line, line],
                    [line[: len(line) // 2]],
                    [line.replace("1", "99999999999")],
                    [line.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP")],
                    [line, "a=candidate:1 1 udp 1 127.0.0.1 9 typ host"],
                    ["m=application 9 UDP/DTLS/SCTP webrtc-datachannel"],
                    ["a=\u4e2d\u6587" * 20],
                    ["a=fingerprint:sha-256 00:11"],
                    ["a=rid:h send", "a=simulcast:send h"],
                ]
            )
        )
        lines = lines or ["v=0"]
    return "\r\n".join([*lines, ""]).encode()


def test_offers_that_are_spoilt_are_answered_or_refused(api):
    """No fault of ours, and nothing stays of those that were answered."""
    spec = {"source": "whip:", "operations": []}
    assert api.ask("POST", "/v1/jobs", {"id": "rtc", "spec": spec, "start": True}).status == 201
    lines = asyncio.run(make_offer()).splitlines()
    kind = {"Content-Type": "application/sdp"}
    over_s = time.monotonic() + BUDGET_S / 4
    seen: list[int] = []

    @settings(FIXED, max_examples=80)
    @given(sdp=spoil(lines), way=st.sampled_from(["whip", "whep"]))
    def ask(sdp, way):
        if time.monotonic() > over_s:
            return
        answer = api.ask("POST", f"/v1/jobs/rtc/{way}", body=sdp, headers=kind)
        assert answer.status in (201, 400, 406, 409, 422, 503), answer.data
        seen.append(answer.status)
        if answer.status == 201:
            assert api.ask("DELETE", answer.headers["Location"]).status == 200
        else:
            assert len(answer.value["detail"]) > 3

    ask()
    assert 201 in seen
    assert set(seen) & {406, 422}
    assert api.ask("DELETE", "/v1/jobs/rtc").status == 204
