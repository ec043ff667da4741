"""What is generated leaves with its marks, through a real server as into a file."""

from __future__ import annotations

import json
import subprocess
import sys

import av
import cv2
import numpy as np
import pytest

from livefuse.config import MarkConfig, SafetyConfig
from livefuse.frame import create_frame
from livefuse.mark_ids import number_job
from livefuse.publish.c2pa_read import read_c2pa
from livefuse.publish.mark import Label
from livefuse.publish.sei import UUID
from livefuse.safety.c2pa_chain import read_c2pa_root
from livefuse.safety.mark_keys import load_mark_keys
from tests.bench.full import make_face_clip
from tests.marked import read_marks, read_metadata
from tests.wire.servers import NginxRtmp, require

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

RUN = [sys.executable, "-m", "livefuse", "run", "--set", "http.enabled=false", "--quiet"]
AVATAR = ["--source-face", "avatar:robot"]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return make_face_clip(tmp_path_factory.mktemp("marks") / "face.mp4", 4, (640, 360), 130)


def list_side_data(frame):
    """Every entry: PyAV 19 gives them by slices only, PyAV 18 by iterating only."""
    try:
        return list(frame.side_data[:])
    except TypeError:
        return list(frame.side_data)


def has_record(frame):
    return any(
        entry.type.name == "SEI_UNREGISTERED" and bytes(entry)[:16] == UUID
        for entry in list_side_data(frame)
    )


def read_frames(path):
    with av.open(str(path)) as container:
        return [
            (frame.key_frame, has_record(frame), frame.to_ndarray(format="gray"))
            for frame in container.decode(video=0)
        ]


def find_label(gray):
    """Return how well the label is seen in its corner, -1..1."""
    height, width = gray.shape
    frame = create_frame(width, height)
    frame.y.fill(100)
    Label(MarkConfig()).draw(frame)
    rows, columns = np.nonzero(frame.y != 100)
    template = frame.y[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    corner = gray[rows.min() - 4 : rows.max() + 5, columns.min() - 4 : columns.max() + 5]
    return float(cv2.matchTemplate(corner, template, cv2.TM_CCOEFF_NORMED).max())


@pytest.fixture(scope="module")
def swapped(clip, tmp_path_factory):
    """A folder with out.mkv and out.mp4 of one job."""
    folder = tmp_path_factory.mktemp("swapped")
    targets = ["--to", str(folder / "out.mkv"), "--to", str(folder / "out.mp4")]
    subprocess.run([*RUN, "--from", str(clip), *targets, *AVATAR], check=True, timeout=90)
    return folder


def test_a_swap_is_labelled_and_each_keyframe_says_so(swapped):
    """(R51) Every frame, and the records are signed by this install."""
    out = swapped / "out.mkv"
    frames = read_frames(out)
    assert len(frames) == 120
    assert min(find_label(gray) for _, _, gray in frames[::10]) > 0.7
    keyframes = [record for is_key, record, _ in frames if is_key]
    assert keyframes
    assert all(keyframes)
    assert not any(record for is_key, record, _ in frames if not is_key)
    marks = read_marks(out, [load_mark_keys(SafetyConfig()).public_key])
    assert {mark.verdict for mark in marks} == {"valid"}
    assert {mark.record.job for mark in marks if mark.record} == {number_job("main")}
    assert json.loads(read_metadata(out)["aigc"])["Label"] == "1"


def test_a_recording_is_signed_by_the_time_the_command_returns(swapped):
    out = swapped / "out.mp4"
    report = read_c2pa(out, read_c2pa_root(SafetyConfig()))
    keys = load_mark_keys(SafetyConfig())
    assert report.state == "trusted"
    assert (report.install_id, report.job) == (keys.install_id, f"{number_job('main'):08x}")
    assert {mark.verdict for mark in read_marks(out, [keys.public_key])} == {"valid"}
    assert len(read_frames(out)) == 120
    assert {path.name for path in swapped.iterdir()} == {"out.mkv", "out.mp4"}


def test_a_server_hands_the_marks_on(clip, tmp_path):
    """(R51)"""
    require("nginx")
    out = tmp_path / "far.mkv"
    with NginxRtmp() as server:
        far = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-y", "-rw_timeout", "20000000", "-i", server.url("out"),
             "-t", "5", "-c", "copy", str(out)]
        )  # fmt: skip
        try:
            subprocess.run(
                [*RUN, "--from", "demo:", "--to", server.url("out"), *AVATAR, "--for", "8"],
                check=True, timeout=90,
            )  # fmt: skip
            far.wait(30)
        finally:
            far.kill()
    frames = read_frames(out)
    assert min(find_label(gray) for _, _, gray in frames[::10]) > 0.7
    assert all(record for is_key, record, _ in frames if is_key)


def test_what_is_not_generated_is_not_marked(clip, tmp_path):
    out = tmp_path / "plain.mkv"
    subprocess.run([*RUN, "--from", str(clip), "--to", str(out)], check=True, timeout=90)
    frames = read_frames(out)
    assert max(find_label(gray) for _, _, gray in frames[::10]) < 0.5
    assert not any(record for _, record, _ in frames)
