"""`livefuse mark read` from outside: what a run wrote, before and after another encode."""

import json
import os
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SECRET = "hunter2hunter2"


def livefuse(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "livefuse", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with marked.mp4, of the keys in `safety`, and bare.mp4 without a mark."""
    folder = tmp_path_factory.mktemp("marks")
    for name, more in (("marked", ["--source-face", "avatar:robot"]), ("bare", [])):
        done = livefuse(
            "run", "--from", "demo:?size=640x360&frames=40", "--to", f"{name}.mp4", *more,
            "--mode", "every_frame",
            "--quiet", "--set", "http.enabled=false", "--set", f"safety.folder={folder / 'safety'}",
            folder=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return folder


def read(folder, name, *more, safety="safety"):
    keys = f"safety.folder={folder / safety}"
    return livefuse("mark", "read", name, "--set", keys, *more, folder=folder)


def encode_again(source, target):
    """Write the pictures at a lower rate, without a word of what the container said."""
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream("libx264", rate=30, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        stream.bit_rate = 500_000
        for frame in old.decode(video=0):
            pixels = np.asarray(frame.to_ndarray(format="yuv420p"), np.uint8)
            picture = av.VideoFrame.from_ndarray(pixels, format="yuv420p")
            new.mux(stream.encode(picture))
        new.mux(stream.encode(None))


def test_all_marks_of_a_file_are_told(folder):
    done = read(folder, "marked.mp4", "--job", "main")
    assert done.returncode == 0, done.stderr
    assert "invisible mark: job main (bf28cd64) by this install" in done.stdout
    assert "signed with a key that is known here" in done.stdout
    assert "visible label: seen" in done.stdout
    assert "container metadata: " in done.stdout
    assert done.stderr == ""


def test_after_another_encode_the_picture_still_tells(folder):
    encode_again(folder / "marked.mp4", folder / "again.mp4")
    done = read(folder, "again.mp4", "--json", "--job", "other")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["survived"] == ["the invisible mark", "the visible label"]
    assert told["luma"][0]["job"] == {"number": "bf28cd64", "name": None}
    assert told["sei"]["verdicts"] == {"missing": told["sei"]["keyframes"]}


def test_another_install_does_not_know_the_mark(folder):
    livefuse(
        "run", "--from", "demo:?size=160x120&frames=2", "--to", "x.mp4", "--quiet",
        "--source-face", "avatar:robot", "--mode", "every_frame", "--set", "http.enabled=false",
        "--set", f"safety.folder={folder / 'theirs'}", folder=folder,
    )  # fmt: skip
    told = json.loads(read(folder, "marked.mp4", "--json", safety="theirs").stdout)
    assert told["luma"] == []
    assert list(told["sei"]["verdicts"]) == ["other_install"]
    assert told["label"]["windows"] > 0


def test_a_file_without_marks_ends_with_one(folder):
    done = read(folder, "bare.mp4")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "no mark was found"


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["nowhere.mp4"], 13, "nowhere.mp4"),
        (["camera:"], 2, "neither a file nor a stream"),
        (["marked.mp4", "--seconds", "0"], 2, "seconds"),
        ([f"rtmp://127.0.0.1:9/live/{SECRET}"], 11, "refused"),
        ([], 2, "SOURCE"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(folder, arguments, code, word):
    done = livefuse("mark", "read", *arguments, folder=folder)
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert word in line
    assert SECRET not in line
    assert done.stdout == ""
