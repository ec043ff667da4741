"""HTTPS, limits and revoked keys, over real sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import time

import pytest

from livefuse.control.api.caller import Caller, Role
from tests.apis import KEY, RunningApi
from tests.wire.servers import find_program, require, wait_until

pytestmark = pytest.mark.wire
SPEC = {"source": "test:?size=160x120&fps=5", "operations": []}


def make_certificate(folder, name):
    require("openssl")
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    command = [find_program("openssl") or "", "req", "-x509", "-newkey", "ec", "-nodes"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", str(key)]
    command += ["-out", str(certificate), "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return certificate, key


def fetch(port, context, path="/healthz", **headers):
    link = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
    try:
        link.request("GET", path, headers=headers)
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


@pytest.fixture
def secure(tmp_path):
    """An API by TLS, its certificate `old`, and another one, `new`, beside it."""
    made = {name: make_certificate(tmp_path, name) for name in ("old", "new")}
    used = tmp_path / "used.pem", tmp_path / "used.key"
    for path, source in zip(used, made["old"], strict=True):
        path.write_bytes(source.read_bytes())
    settings = (f"http.tls_cert={used[0]}", f"http.tls_key={used[1]}")
    with RunningApi(tmp_path / "api", *settings) as api:
        trusts = {
            name: ssl.create_default_context(cafile=str(paths[0])) for name, paths in made.items()
        }
        yield api.server, trusts, used, made["new"]


def test_a_new_certificate_is_taken_while_it_runs(secure):
    server, trusts, used, new = secure
    assert server.base_url == f"https://127.0.0.1:{server.port}"
    assert fetch(server.port, trusts["old"]) == (200, b"ok\n")
    with pytest.raises(ssl.SSLError):
        fetch(server.port, trusts["new"])
    for path, source in zip(reversed(used), reversed(new), strict=True):
        beside = path.with_suffix(".beside")
        beside.write_bytes(source.read_bytes())
        beside.replace(path)
    assert fetch(server.port, trusts["new"]) == (200, b"ok\n")
    used[0].write_bytes(b"half of a certi")
    assert fetch(server.port, trusts["new"]) == (200, b"ok\n")  # the one before stays


def test_old_ciphers_and_plain_http_are_turned_away(secure):
    server, trusts, _, _ = secure
    status, data = fetch(server.port, trusts["old"], "/v1/jobs", Authorization=f"Bearer {KEY}")
    assert (status, json.loads(data)) == (200, {"jobs": []})
    outdated = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outdated.check_hostname, outdated.verify_mode = False, ssl.CERT_NONE
    outdated.set_ciphers("AES128-SHA:AES256-SHA:@SECLEVEL=0")
    outdated.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, outdated)
    with socket.create_connection(("127.0.0.1", server.port), 5) as plain:
        plain.settimeout(5)
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert not plain.recv(100).startswith(b"HTTP/1.1 2")


class Keys:
    """Keys that can be revoked, as a daemon's."""

    def __init__(self):
        self.held: dict[str, Role] = {"key-that-stays": "operator", "key-that-goes": "viewer"}

    def find(self, given):
        role = self.held.get(given)
        return None if role is None else Caller(given, role, given)


def test_a_revoked_key_is_refused_and_its_streams_end_within_two_seconds(tmp_path):
    keys = Keys()
    with RunningApi(tmp_path, find_caller=keys.find) as api:
        stays = "key-that-stays"
        made = api.ask("POST", "/v1/jobs", {"id": "one", "spec": SPEC, "start": True}, key=stays)
        assert made.status == 201
        links = [http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=10) for _ in "ab"]
        for link, path in zip(links, ("live.flv", "events"), strict=True):
            wait_until(lambda: api.ask("GET", "/v1/jobs/one/status", key=stays).status == 200, 10)
            link.request("GET", f"/v1/jobs/one/{path}?key=key-that-goes")
        answers = [link.getresponse() for link in links]
        assert [answer.status for answer in answers] == [200, 200]
        del keys.held["key-that-goes"]
        assert api.ask("GET", "/v1/jobs", key="key-that-goes").status == 401
        began = time.monotonic()
        for answer in answers:
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                while answer.read1(65536):
                    pass
                raise ConnectionError
        assert time.monotonic() - began < 2.5
        for link in links:
            link.close()
        assert api.ask("GET", "/v1/jobs", key=stays).status == 200


def test_who_asks_too_often_is_told_when_to_come_back(tmp_path):
    settings = ("limits.key_requests_per_s=2", "limits.wrong_keys_per_min=2")
    with RunningApi(tmp_path, *settings) as api:
        seen = [api.ask("GET", "/v1/jobs", key="key-of-a-viewer") for _ in range(12)]
        refused = [answer for answer in seen if answer.status == 429]
        assert len(refused) >= 2
        assert refused[0].headers["Retry-After"] == "1"
        assert refused[0].headers["Content-Type"] == "application/problem+json"
        assert api.ask("GET", "/v1/jobs", key="key-of-a-streamer").status == 200
        wrong = [api.ask("GET", "/v1/jobs", key=f"wrong{n}").status for n in range(4)]
        assert wrong == [401, 401, 429, 429]
        assert api.ask("GET", "/v1/jobs", key="key-of-an-operator").status == 200


def test_one_address_has_not_all_connections(tmp_path):
    """Seen through a proxy, which is how one machine can play two."""
    settings = ('http.trusted_proxies=["127.0.0.1"]', "limits.connections_per_address=3")
    with RunningApi(tmp_path, *settings) as api:
        links = []

        def knock(address):
            link = http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=10)
            link.request("GET", "/healthz", headers={"X-Forwarded-For": address})
            links.append(link)
            answer = link.getresponse()
            answer.read()
            return answer.status

        assert [knock("192.0.2.9") for _ in range(4)] == [200, 200, 200, 429]
        assert knock("192.0.2.8") == 200
        links[0].close()
        wait_until(lambda: knock("192.0.2.9") == 200, 5, "room again")
        for link in links:
            link.close()


def test_the_public_name_is_answered_to_and_its_page_may_change_things(tmp_path):
    settings = ("http.public_host=live.example", 'http.trusted_proxies=["127.0.0.1"]')
    with RunningApi(tmp_path, *settings) as api:
        own = {"Host": "live.example", "Origin": "https://live.example"}
        assert api.ask("POST", "/v1/jobs", {"id": "a"}, headers=own).status == 201
        foreign = {"Host": "live.example", "Origin": "https://evil.example"}
        assert api.ask("POST", "/v1/jobs", {"id": "b"}, headers=foreign).status == 403
        assert api.ask("GET", "/v1/jobs", headers={"Host": "evil.example"}).status == 403
        plain = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "http"}
        assert api.ask("GET", "/v1/jobs", headers=plain).status == 403
