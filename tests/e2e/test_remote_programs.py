"""`livefuse.job_manager` in scripts with LIVEFUSE_URL: jobs run in a `livefuse run` there (R45)."""

import contextlib
import os
import re
import subprocess
import sys

import av
import pytest

from tests.contract.repo import ROOT
from tests.faces import ASTRONAUT
from tests.programs import AS_WRITTEN, STOP, run_python, run_script
from tests.wire.servers import NginxRtmp, RtspServer, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.wire, pytest.mark.timeout(120)]

SMALL = ("--set", "ingest.canvas=320x180", "--set", "http.port=0", "--set", "grpc.port=0")
WORKER = [sys.executable, "-m", "livefuse", "run", "--from", "test:?size=320x180"]


@contextlib.contextmanager
def serving(folder, *settings):
    """A `livefuse run` in a process of its own: its address, key and all, and what it said."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "private")}
    command = [*WORKER, "--operations", "none", *SMALL, *settings]
    with subprocess.Popen(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            said, found = "", None
            for line in process.stdout or ():
                said += line
                if found := re.search(r"http://\S+\?key=\S+", said):
                    break
            assert found, f"it ended: {said}"
            yield found[0], said
        finally:
            process.terminate()
            process.communicate(timeout=20)


def test_as_written_with_an_enrolled_picture_and_real_servers(face_clip, tmp_path):
    """R45: not a word of the script is another one; the picture is found there by its digest."""
    enroll = ["-m", "livefuse", "faces", "enroll", str(ASTRONAUT), "--name", "eileen"]
    done = run_python([*enroll, "--consent", "Eileen Collins, tests, 30d"], tmp_path)
    assert done.returncode == 0, done.stderr
    with RtspServer(face_clip) as rtsp, NginxRtmp() as nginx, serving(tmp_path) as (url, _):
        text = AS_WRITTEN.format(
            sources=[str(ASTRONAUT)], target=rtsp.url, output=nginx.url("script")
        )
        away = {"LIVEFUSE_URL": url, "XDG_DATA_HOME": str(tmp_path / "elsewhere")}
        done = run_script(text + STOP, tmp_path, **away)
        assert done.returncode == 0, done.stderr
        steps, end = done.stdout.splitlines()[-2:]
        for step in ("detect", "align", "swap", "enhance"):
            assert step in steps
        assert " True face_" in steps
        assert end == "True stopped"


def test_a_script_ends_and_its_job_goes_on_there(short_clip, tmp_path):
    with serving(tmp_path) as (url, _):
        text = AS_WRITTEN.format(sources=["avatar:robot"], target=str(short_clip), output="o.mp4")
        key = url.partition("?key=")[2]
        away = {"LIVEFUSE_URL": url.partition("/?")[0], "LIVEFUSE_KEY": key}
        done = run_script(text, tmp_path, **away)
        assert done.returncode == 0, done.stderr
        rest = (
            "from livefuse import job_manager\n(job,) = set(job_manager.list_jobs()) - {'main'}\n"
        )
        rest += "print(job_manager.wait_job(job, 60))\njob_manager.delete_job(job)\n"
        rest += "print(job_manager.list_jobs())"
        done = run_script(rest, tmp_path, **away)
        assert done.stdout.splitlines() == ["True", "['main']"], done.stderr
    with av.open(str(short_clip)) as wanted, av.open(str(tmp_path / "out/o.mp4")) as got:
        assert len(list(got.demux(video=0))) >= len(list(wanted.demux(video=0)))


def test_what_fails_there_is_told_here_as_it_would_be_here(tmp_path):
    """C76: no key is told."""
    with serving(tmp_path) as (url, _):
        text = AS_WRITTEN.format(sources=[str(ASTRONAUT)], target="test:", output="out.mp4")
        done = run_script(text, tmp_path, LIVEFUSE_URL=url)
        assert "livefuse.errors.ConsentError: no face" in done.stderr
        text = AS_WRITTEN.format(sources=[], target="rtsp://127.0.0.1:9/x", output="out.mp4")
        text = text.replace("'face_swapper', ", "")
        done = run_script(text, tmp_path, LIVEFUSE_URL=url)
        assert "livefuse.errors.IngestConnectError" in done.stderr
        done = run_script(text, tmp_path, LIVEFUSE_URL=url, LIVEFUSE_KEY="not-the-key")
        assert "livefuse.errors.DaemonAuthError: the key" in done.stderr
        assert "not-the-key" not in done.stderr
    key = url.partition("?key=")[2]
    done = run_script(text, tmp_path, LIVEFUSE_URL=url)
    assert "livefuse.errors.DaemonError: http://127.0.0.1" in done.stderr
    assert key not in done.stderr


def test_the_same_worker_serves_grpc(tmp_path):
    """R46."""
    rpc = pytest.importorskip("tests.rpc", reason="the extra grpc is not installed")
    with serving(tmp_path, "--set", "grpc.enabled=true") as (url, said):
        (port,) = re.findall(r"gRPC: 127\.0\.0\.1:(\d+)", said)
        with rpc.Client(int(port), url.partition("?key=")[2]) as client:
            wait_until(lambda: client.GetJob(job_id="main").statistics["frames_out"] > 5, 30, "x")
            assert next(client.WatchJob(job_id="main")).status["job"] == "main"


def test_grpc_without_http_is_refused_in_words(tmp_path):
    settings = ["--set", "http.enabled=false", "--set", "grpc.enabled=true", "--to", "out.ts"]
    done = run_python([*WORKER[1:], *SMALL, *settings], tmp_path)
    assert done.returncode == 2
    assert "gRPC asks the HTTP API" in done.stderr
