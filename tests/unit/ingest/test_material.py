"""Something that is only looked at: luma in time, keyframes as bytes, and clear words."""

from __future__ import annotations

import numpy as np
import pytest

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import (
    ConfigError,
    IngestConnectError,
    IngestNotFoundError,
    IngestUnsupportedError,
)
from livefuse.ingest.material import Material
from tests.clips import write_clip, write_sound

SECRET = "geheim42"


def look(url, seconds=60.0):
    material = Material(str(url), IngestConfig(), SystemClock())
    glimpses = list(material.read(seconds))
    return material, glimpses, [luma for glimpse in glimpses for luma in glimpse.lumas]


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "flv"])
def test_all_pictures_come_with_their_times(tmp_path, suffix):
    _, glimpses, lumas = look(write_clip(tmp_path / f"a.{suffix}", frames=45, audio="aac"))
    assert len(lumas) == 45
    times = [time_s for time_s, _ in lumas]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(44 / 30, abs=0.01)
    assert {luma.shape for _, luma in lumas} == {(120, 160)}
    rising = [float(luma.mean()) for _, luma in lumas]
    assert rising[0] < rising[20] < rising[44]
    assert [bool(glimpse.unit) for glimpse in glimpses][:2] == [True, False]


def test_only_the_beginning_is_read(tmp_path):
    _, _, lumas = look(write_clip(tmp_path / "a.mp4", frames=90), seconds=1.0)
    assert 1.0 <= lumas[-1][0] < 1.3


def test_pictures_in_another_order_come_as_they_are_shown(tmp_path):
    path = write_clip(tmp_path / "a.mp4", frames=40, options={"bf": "3", "preset": "veryfast"})
    _, _, lumas = look(path)
    means = [float(luma.mean()) for _, luma in lumas]
    assert len(means) == 40
    assert means == sorted(means)


@pytest.mark.parametrize(
    ("codec", "pixels"), [("mjpeg", "yuvj420p"), ("libvpx", "yuv420p"), ("libx264", "yuv420p10le")]
)
def test_other_codecs_give_their_luma_too(tmp_path, codec, pixels):
    options = {} if codec == "libx264" else {"preset": ""}
    path = write_clip(
        tmp_path / "a.mkv", frames=10, codec=codec, pixel_format=pixels, options=options
    )
    _, glimpses, lumas = look(path)
    assert len(lumas) == 10
    assert lumas[0][1].dtype == np.uint8
    assert any(glimpse.unit for glimpse in glimpses) == (codec == "libx264")


def test_a_picture_file_is_one_picture():
    _, _, lumas = look("tests/data/astronaut.png")
    assert [luma.shape for _, luma in lumas] == [(512, 512)]


def test_what_is_left_of_a_damaged_file_counts(tmp_path):
    whole = write_clip(tmp_path / "a.ts", frames=60).read_bytes()
    path = tmp_path / "b.ts"
    path.write_bytes(whole[: len(whole) // 2])
    assert 5 < len(look(path)[2]) < 60


def test_what_the_container_says_is_kept_within_bounds(tmp_path):
    import av

    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as container:
        container.metadata.update({"title": "x" * 5000, "comment": "made"})
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        picture = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), "rgb24")
        container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    material, _, _ = look(path)
    assert material.metadata["comment"] == "made"
    assert len(material.metadata["title"]) == 400


def test_what_cannot_be_looked_at_is_told(tmp_path):
    for url in ("camera:", "demo:", "listen:rtmp://127.0.0.1:1/a/b", "whip:", "gopher://x/y", ""):
        with pytest.raises(ConfigError):
            Material(url, IngestConfig(), SystemClock())
    with pytest.raises(IngestNotFoundError):
        look(tmp_path / "missing.mp4")
    with pytest.raises(IngestUnsupportedError, match="no video"):
        look(write_sound(tmp_path / "song.m4a"))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(IngestUnsupportedError):
        look(broken)
    with pytest.raises(IngestConnectError) as caught:
        look(f"rtmp://127.0.0.1:9/live/{SECRET}")
    assert SECRET not in str(caught.value)


def test_it_is_closed_when_nobody_reads_on(tmp_path):
    material = Material(str(write_clip(tmp_path / "a.mp4")), IngestConfig(), SystemClock())
    reading = material.read(60.0)
    assert next(reading).unit
    reading.close()
    (tmp_path / "a.mp4").unlink()
