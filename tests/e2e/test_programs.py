"""`livefuse.job_manager` in scripts of people's own (R45), run as they would run them."""

import re

import av
import pytest

from tests.contract.repo import ROOT
from tests.faces import ASTRONAUT
from tests.programs import AS_WRITTEN, STOP, run_python, run_script
from tests.wire.servers import NginxRtmp, RtspServer

pytestmark = [pytest.mark.e2e, pytest.mark.wire, pytest.mark.timeout(120)]

README = (ROOT / "README.md").read_text("utf-8")


def test_a_file_is_written_to_its_end_though_the_script_ends(short_clip, tmp_path):
    """R45, as written: its last line starts the job, and the process goes on until it is over."""
    text = AS_WRITTEN.format(sources=["avatar:robot"], target=str(short_clip), output="out.mp4")
    done = run_script(text, tmp_path)
    assert done.returncode == 0, done.stderr
    with av.open(str(short_clip)) as wanted, av.open(str(tmp_path / "out.mp4")) as got:
        assert len(list(got.demux(video=0))) >= len(list(wanted.demux(video=0)))


def test_rtsp_in_and_rtmp_out_with_an_enrolled_picture(face_clip, tmp_path):
    """R45: the picture is named by its path; what was agreed of it is found by its content."""
    enroll = ["-m", "livefuse", "faces", "enroll", str(ASTRONAUT), "--name", "eileen"]
    done = run_python([*enroll, "--consent", "Eileen Collins, tests, 30d"], tmp_path)
    assert done.returncode == 0, done.stderr
    with RtspServer(face_clip) as rtsp, NginxRtmp() as nginx:
        text = AS_WRITTEN.format(
            sources=[str(ASTRONAUT)], target=rtsp.url, output=nginx.url("script")
        )
        done = run_script(text + STOP, tmp_path)
    assert done.returncode == 0, done.stderr
    steps, end = done.stdout.splitlines()[-2:]
    for step in ("detect", "align", "swap", "enhance"):
        assert step in steps
    assert " True face_" in steps
    assert end == "True stopped"


def test_a_picture_that_nobody_consented_to_is_refused_in_words(tmp_path):
    text = AS_WRITTEN.format(sources=[str(ASTRONAUT)], target="test:", output="out.mp4")
    done = run_script(text, tmp_path)
    assert done.returncode == 1
    assert "ConsentError: no face" in done.stderr
    assert "livefuse faces enroll" in done.stderr
    assert not (tmp_path / "out.mp4").exists()


def test_the_example_of_the_readme(face_clip, tmp_path):
    """Word for word, but for the two addresses."""
    (block,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    with RtspServer(face_clip) as rtsp, NginxRtmp() as nginx:
        text = block.replace("rtsp://127.0.0.1:8554/cam", rtsp.url)
        text = text.replace("rtmp://127.0.0.1/live/key", nginx.url("readme"))
        assert text.count(rtsp.url) == text.count(nginx.url("readme")) == 1
        done = run_script(text + STOP, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True stopped"
