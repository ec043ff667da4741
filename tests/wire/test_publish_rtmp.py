"""RTMP out against nginx: pushed and read back, stalled, restarted, refused; no secret anywhere."""

from __future__ import annotations

import itertools
import json
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livefuse.clock import SystemClock
from livefuse.config import AccessConfig, RecordConfig, RtmpConfig
from livefuse.errors import PublishConnectError, PublishError, PublishRejectedError
from livefuse.packet import StreamsInfo
from livefuse.publish.record import FileOutput
from livefuse.publish.rtmp import RtmpOutput
from tests.streams import FPS, LiveFeed, make_media, make_sound, read_back
from tests.wire.servers import HOST, NginxRtmp, find_free_port, require, wait_until

if TYPE_CHECKING:
    from livefuse.publish.base import Output

pytestmark = pytest.mark.wire
QUICK = RtmpConfig(stall_ms=800, connect_timeout_ms=3000, backoff_min_ms=100, backoff_max_ms=400)
SECRET = "geheimer-schluessel"


@pytest.fixture
def server():
    with NginxRtmp(is_recording=True) as nginx:
        yield nginx


def _open(url, streams, request_keyframe=lambda: None, config=QUICK):
    output = RtmpOutput(url, config, SystemClock(), request_keyframe)
    output.open(streams)
    return output


def _to_all(outputs):
    """Return what sends to whatever is in the list at that time."""

    def send(packet):
        for output in list(outputs):
            output.send(packet)

    return send


def _list_commands():
    """Return arguments and environment of our own children, as another user may see them."""
    seen = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            if int(stat.rpartition(")")[2].split()[1]) != os.getpid():
                continue
            seen.append((folder / "cmdline").read_bytes() + (folder / "environ").read_bytes())
        except OSError:
            continue
    return seen


def _say_nothing_secret(output):
    assert SECRET not in repr(output.status())
    commands = _list_commands()
    assert any(b"rtmp_child" in command for command in commands)
    assert not any(SECRET.encode() in command for command in commands)


def test_pictures_and_sound_arrive_in_step_and_strict_servers_can_read_them(server):
    """C42, C76."""
    media = make_media(90)
    url = server.url(SECRET)
    output = _open(url, media.streams, config=RtmpConfig(queue_packets=1000))
    output.wait_connected()
    _say_nothing_secret(output)
    for packet in media.packets:
        output.send(packet)
    wait_until(lambda: output.status().packets >= len(media.packets), 10, "all sent")
    output.close(3)
    wait_until(lambda: not server.is_publishing(SECRET), 5, "end of publishing")
    path = server.recording_path(SECRET)
    found = read_back(path)
    assert found.codecs == ["h264", "aac"]
    assert len(found.pictures) == 90
    whole = 89 / FPS
    assert found.pictures[-1] - found.pictures[0] == pytest.approx(whole, abs=0.002)
    distance = found.of("audio")[0].pts_s - found.pictures[0]
    assert abs(distance - (media.audio[0].pts - media.video[0].pts) / 90_000) < 0.01
    frames = _probe_frames(path)
    assert {frame["pict_type"] for frame in frames} == {"I", "P"}
    assert [i for i, frame in enumerate(frames) if frame["key_frame"]] == [0, 30, 60]


def _probe_frames(path):
    require("ffprobe")
    command = ["ffprobe", "-v", "error", "-select_streams", "v", "-show_frames"]
    command += ["-show_entries", "frame=pict_type,key_frame", "-of", "json", str(path)]
    shown = subprocess.run(command, capture_output=True, check=True, timeout=20)
    assert shown.stderr == b""
    frames: list[dict[str, object]] = json.loads(shown.stdout)["frames"]
    return frames


def test_a_picture_does_not_wait_for_sound_that_does_not_come(server):
    """Announced sound that is missing must not hold a picture back."""
    sound, info = make_sound(0.1)
    outputs: list[RtmpOutput] = []
    with LiveFeed(_to_all(outputs)) as feed:
        streams = StreamsInfo(feed.streams.video, info)
        output = _open(server.url("mute"), streams, feed.encoder.force_keyframe)
        outputs.append(output)
        output.wait_connected()
        wait_until(lambda: output.status().packets > 10, 5, "packets")
        before = server.count_bytes_in("mute")
        wait_until(lambda: server.count_bytes_in("mute") > before, 2, "bytes at the server")
        output.close(2)
    assert sound


def test_a_stalled_server_is_seen_the_sender_never_waits_and_it_comes_back(server, tmp_path):
    recorder = FileOutput(tmp_path / "also.mkv", RecordConfig())
    outputs: list[Output] = [recorder]
    with LiveFeed(_to_all(outputs), noisy=True) as feed:
        recorder.open(feed.streams)
        output = _open(server.url("stall"), feed.streams, feed.encoder.force_keyframe)
        outputs.append(output)
        output.wait_connected()
        wait_until(lambda: output.status().state == "live", 5, "live")
        server.pause()
        wait_until(lambda: output.status().state == "stalled", 10, "stalled")
        assert "takes no more data" in output.status().error
        assert output.status().connected is False
        server.resume()
        wait_until(lambda: output.status().state == "live", 8, "live again")
        assert output.status().reconnects == 1
        assert output.status().error == ""
        sent = output.status().packets
        wait_until(lambda: output.status().packets > sent + 10, 5, "going on")
        output.close(2)
    recorder.close(5)
    assert feed.longest_send_s < 0.25
    assert recorder.status().dropped == 0
    times = [read.dts for read in read_back(tmp_path / "also.mkv", decode=False).packets]
    assert all(b - a <= 40 for a, b in itertools.pairwise(times)), "the file has no hole"


def test_after_a_restart_a_keyframe_comes_first_and_time_goes_on(server, tmp_path):
    """C36: drop rather than buffer; the other output does not notice."""
    recorder = FileOutput(tmp_path / "also.mkv", RecordConfig())
    outputs: list[Output] = [recorder]
    with LiveFeed(_to_all(outputs)) as feed:
        recorder.open(feed.streams)
        output = _open(server.url("again"), feed.streams, feed.encoder.force_keyframe)
        outputs.append(output)
        output.wait_connected()
        # A connection that is cut sooner would be taken for a refusal.
        wait_until(lambda: output.status().packets > 60, 5, "first packets")
        server.stop()
        path = server.recording_path("again")
        first = read_back(path)
        path.rename(path.with_name("first.flv"))
        wait_until(lambda: "refused" in output.status().error, 5, "refused")
        dropped = output.status().dropped
        wait_until(lambda: output.status().dropped > dropped + 10, 5, "drops")
        server.start()
        wait_until(lambda: output.status().state == "live", 8, "live again")
        sent = output.status().packets
        wait_until(lambda: output.status().packets > sent + 15, 5, "going on")
        assert output.status().reconnects == 1
        output.close(2)
    recorder.close(5)
    wait_until(lambda: not server.is_publishing("again"), 5, "end of publishing")
    second = read_back(path)
    assert second.packets[0].is_keyframe
    assert second.corrupt == 0
    assert second.packets[0].dts > first.packets[-1].dts, "the job's own line goes on"
    assert recorder.status().dropped == 0


def _wait_refused(url, config=QUICK):
    output = _open(url, make_media().streams, config=config)
    try:
        with pytest.raises(PublishError) as caught:
            output.wait_connected()
        text = str(caught.value)
        assert SECRET not in text + repr(output.status())
        assert caught.value.hint
        assert output.status().connected is False
    finally:
        output.close(1)
    return caught.value


def test_a_port_where_nobody_listens():
    error = _wait_refused(f"rtmp://{HOST}:{find_free_port()}/live/{SECRET}")
    assert isinstance(error, PublishConnectError)
    assert "refused" in error.message


def test_a_host_that_does_not_exist():
    error = _wait_refused(
        f"rtmp://nobody.invalid/live/{SECRET}", RtmpConfig(connect_timeout_ms=10_000)
    )
    assert isinstance(error, PublishConnectError)
    assert "no such host" in error.message


def test_a_name_that_the_server_does_not_know(server):
    error = _wait_refused(f"rtmp://{HOST}:{server.port}/elsewhere/{SECRET}")
    assert isinstance(error, PublishRejectedError)


def test_a_key_that_somebody_else_uses(server):
    media = make_media()
    first = _open(server.url(SECRET), media.streams)
    first.wait_connected()
    error = _wait_refused(server.url(SECRET))
    first.close(2)
    assert isinstance(error, PublishRejectedError)
    assert "lready publishing" in error.message


def test_a_server_that_answers_nothing(server):
    server.pause()
    error = _wait_refused(server.url(SECRET))
    server.resume()
    assert isinstance(error, PublishConnectError)
    assert "does not answer" in error.message


def test_a_server_that_speaks_something_else(server):
    error = _wait_refused(f"rtmp://{HOST}:{server.http_port}/live/{SECRET}")
    assert isinstance(error, PublishRejectedError)


@pytest.fixture
def tls_server(tmp_path):
    """A TLS server of one's own certificate that hangs up after the handshake; told of each."""
    require("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key),
         "-out", str(certificate)],
        check=True, capture_output=True, timeout=20,
    )  # fmt: skip
    script = (
        "import socket, ssl, sys\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
        "context.load_cert_chain(sys.argv[1], sys.argv[2])\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "print(listener.getsockname()[1], flush=True)\n"
        "while True:\n"
        "    sock, _ = listener.accept()\n"
        "    try:\n"
        "        with context.wrap_socket(sock, server_side=True) as tls:\n"
        "            print('got', len(tls.recv(4096)), flush=True)\n"
        "    except OSError as error:\n"
        "        print('failed', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(certificate), str(key)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    yield int(process.stdout.readline()), certificate, process.stdout
    process.kill()
    process.wait(5)
    process.stdout.close()


def test_a_certificate_that_nobody_trusts_gets_no_key(tls_server):
    port, _, said = tls_server
    error = _wait_refused(f"rtmps://localhost:{port}/live/{SECRET}")
    assert isinstance(error, PublishConnectError)
    assert "certificate" in error.message
    assert said.readline().strip() in (b"failed", b"got 0"), "nothing was sent to it"


def test_a_certificate_that_is_trusted_is_accepted(tls_server, monkeypatch):
    port, certificate, said = tls_server
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert ssl.get_default_verify_paths().cafile == str(certificate)
    error = _wait_refused(f"rtmps://localhost:{port}/live/{SECRET}")
    assert "certificate" not in error.message  # this server speaks no RTMP, so far and no further
    assert said.readline().startswith(b"got 15")  # the handshake's 1537 bytes came


def _count_fds():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_closing_ends_child_thread_and_pipes(server):
    media = make_media()
    fds, threads = 0, 0
    for index in range(4):
        output = _open(server.url("often"), media.streams)
        output.wait_connected()
        for packet in media.packets:
            output.send(packet)
        output.close(2)
        output.send(media.packets[0])
        assert output.status().state == "closed"
        wait_until(lambda: not server.is_publishing("often"), 5, "end of publishing")
        if index == 0:  # from here on nothing may be left behind
            fds, threads = _count_fds(), threading.active_count()
    assert threading.active_count() == threads
    assert _count_fds() == fds
    assert not any(b"rtmp_child" in command for command in _list_commands())


def test_a_child_does_not_outlive_a_killed_parent(server, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, time\n"
        "from livefuse.clock import SystemClock\n"
        "from livefuse.config import RtmpConfig\n"
        "from livefuse.publish.rtmp import RtmpOutput\n"
        "from tests.streams import make_media\n"
        "output = RtmpOutput(sys.stdin.readline().strip(), RtmpConfig(), SystemClock(), print)\n"
        "output.open(make_media().streams)\n"
        "output.wait_connected()\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(server.url("orphan").encode() + b"\n")
    process.stdin.flush()
    while process.stdout.readline().strip() != b"ready":
        assert process.poll() is None
    assert server.is_publishing("orphan")
    process.kill()
    process.wait(5)
    wait_until(lambda: not server.is_publishing("orphan"), 5, "end of publishing")
    process.stdin.close()
    process.stdout.close()


def test_a_target_of_another_ones_job_is_dialled_by_the_address_that_was_judged(server):
    """The server still hears the name that it was asked by; one that may not be dialled is not."""
    media = make_media(30)
    url = server.url(SECRET).replace(HOST, "localhost")
    access = AccessConfig(restrict="on", networks=("127.0.0.0/8", "::1"))
    output = RtmpOutput(url, QUICK, SystemClock(), lambda: None, access)
    output.open(media.streams)
    output.wait_connected()
    output.close(2)
    refused = RtmpOutput(
        url, QUICK, SystemClock(), lambda: None, AccessConfig(restrict="on", networks=("public",))
    )
    refused.open(media.streams)
    with pytest.raises(PublishRejectedError, match="may dial"):
        refused.wait_connected(2)
    refused.close(2)
