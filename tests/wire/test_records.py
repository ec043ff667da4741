"""Signed records and metadata through what stands between livefuse and a viewer."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest

from livefuse.clock import SystemClock
from livefuse.config import RecordConfig, RtmpConfig
from livefuse.publish.h264 import split_nals
from livefuse.publish.record import FileOutput
from livefuse.publish.rtmp import RtmpOutput
from livefuse.publish.sei import hash_slices, insert_nal, is_record
from livefuse.safety.mark_keys import JobMarks, make_mark_keys
from tests.marked import JOB, PUBLIC, create_stamp, mark_media, read_marks, read_metadata
from tests.streams import LiveFeed, make_media
from tests.wire.servers import NginxRtmp, require, wait_until

pytestmark = pytest.mark.wire
QUICK = RtmpConfig(stall_ms=800, connect_timeout_ms=3000, backoff_min_ms=100, backoff_max_ms=400)


def record(path, media):
    output = FileOutput(path, RecordConfig(queue_packets=1000), lossless=True)
    output.open(media.streams)
    for packet in media.packets:
        output.send(packet)
    output.close(10)
    assert output.status().error == ""
    return path


def run_ffmpeg(source, target, *options):
    require("ffmpeg")
    command = ["ffmpeg", "-v", "error", "-y", "-i", str(source), *options, str(target)]
    subprocess.run(command, check=True, timeout=30)
    return target


def list_verdicts(path, keys=None):
    return [mark.verdict for mark in read_marks(path, keys)]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    media = mark_media(make_media(90))
    return {s: record(folder / f"out{s}", media) for s in (".flv", ".mp4", ".mkv", ".ts")}


CHAINS = [
    (".flv", "a.mp4"),
    (".flv", "a.ts", "b.mp4"),
    (".mp4", "a.flv"),
    (".mp4", "a.ts", "b.flv", "c.mkv"),
    (".mkv", "a.mp4"),
    (".ts", "a.mkv", "b.ts"),
]


@pytest.mark.parametrize("chain", CHAINS, ids="->".join)
def test_records_survive_every_remuxing(originals, tmp_path, chain):
    path = originals[chain[0]]
    for name in chain[1:]:
        path = run_ffmpeg(path, tmp_path / name, "-c", "copy")
    assert list_verdicts(path) == ["valid"] * 3
    has_metadata = not {".ts"} & {chain[0], *(name[1:] for name in chain[1:])}
    assert ("comment" in read_metadata(path)) == has_metadata


def test_records_survive_segments_and_fragments(originals, tmp_path):
    fragments = ("-c", "copy", "-movflags", "frag_keyframe+empty_moov")
    assert list_verdicts(run_ffmpeg(originals[".flv"], tmp_path / "f.mp4", *fragments)) == (
        ["valid"] * 3
    )
    playlist = run_ffmpeg(
        originals[".mp4"], tmp_path / "list.m3u8", "-c", "copy", "-hls_time", "1", "-f", "hls"
    )
    segments = sorted(tmp_path.glob("list*.ts"))
    assert len(segments) == 3
    assert [list_verdicts(segment) for segment in segments] == [["valid"]] * 3
    assert list_verdicts(playlist) == ["valid"] * 3


def test_ffprobe_sees_what_the_container_says(originals):
    require("ffprobe")
    for suffix in (".flv", ".mp4", ".mkv"):
        command = ["ffprobe", "-v", "error", "-show_format", "-show_streams", "-of", "json"]
        shown = subprocess.run(
            [*command, str(originals[suffix])], capture_output=True, check=True, timeout=20
        )
        assert shown.stderr == b""
        told = json.loads(shown.stdout)
        tags = {name.lower(): text for name, text in told["format"]["tags"].items()}
        assert json.loads(tags["aigc"])["Label"] == "1"
        assert tags["title"] == "AI-modified video"
        assert f"install={JOB.keys.install_id}" in tags["comment"]
        assert [stream["codec_type"] for stream in told["streams"]] == ["video", "audio"]


def test_encoding_again_loses_them(originals, tmp_path):
    path = run_ffmpeg(originals[".mp4"], tmp_path / "again.mp4", "-c:v", "libx264", "-c:a", "copy")
    assert set(list_verdicts(path)) == {"missing"}


def test_taken_out_they_are_missing(originals, tmp_path):
    filtered = ("-c", "copy", "-bsf:v", "filter_units=remove_types=6")
    path = run_ffmpeg(originals[".mp4"], tmp_path / "bare.mp4", *filtered)
    assert list_verdicts(path) == ["missing"] * 3


def replace_records(media, change):
    """Return `media` with the record of each keyframe passed through `change`."""
    video = []
    for packet in media.video:
        if packet.is_keyframe:
            nals = [nal for nal in split_nals(packet.data) if not is_record(nal)]
            bare = b"".join(b"\x00\x00\x00\x01" + nal for nal in nals)
            record_nal = next(nal for nal in split_nals(packet.data) if is_record(nal))
            video.append(replace(packet, data=insert_nal(bare, change(record_nal))))
        else:
            video.append(packet)
    return replace(media, video=video)


def test_records_of_another_video_are_told_as_pasted_by_way_of_a_file(originals, tmp_path):
    """What a forger would do: take the records off our video and put them on theirs."""
    records = [
        next(nal for nal in split_nals(packet.data) if is_record(nal))
        for packet in mark_media(make_media(90)).video
        if packet.is_keyframe
    ]
    other = mark_media(make_media(60, interval_s=0.5))  # other pictures from the second on
    left = iter([*records, records[0]])
    pasted = replace_records(other, lambda _own: next(left))
    flv = run_ffmpeg(record(tmp_path / "o.mp4", pasted), tmp_path / "o.flv", "-c", "copy")
    verdicts = list_verdicts(flv)
    assert len(verdicts) == 4
    assert set(verdicts[1:]) == {"pasted"}


def test_a_flipped_bit_is_told_as_altered_by_way_of_a_file(tmp_path):
    def flip(nal):
        return nal[:60] + bytes((nal[60] ^ 0x40,)) + nal[61:]

    altered = replace_records(mark_media(make_media(90)), flip)
    path = run_ffmpeg(record(tmp_path / "a.mkv", altered), tmp_path / "a.ts", "-c", "copy")
    assert list_verdicts(path) == ["altered"] * 3


def test_a_stream_signed_anew_is_another_installs(tmp_path):
    thief = JobMarks("main", make_mark_keys())
    path = record(tmp_path / "a.mp4", mark_media(make_media(90), thief))
    assert list_verdicts(path) == ["other_install"] * 3
    assert {mark.install_id for mark in read_marks(path)} == {thief.keys.install_id}
    assert list_verdicts(path, [*PUBLIC, thief.keys.public_key]) == ["valid"] * 3


class LateJob:
    """A feed through RTMP that generates faces once `generate` is called."""

    def __init__(self, url):
        self._stamp = create_stamp()
        self._generates = False
        self._outputs: list[RtmpOutput] = []
        self.feed = LiveFeed(self._send)
        self._output = RtmpOutput(url, QUICK, SystemClock(), self.feed.encoder.force_keyframe)

    def _send(self, packet):
        if self._generates:
            packet = self._stamp.stamp(packet, SystemClock().epoch_s())
        for output in self._outputs:
            output.send(packet)

    def __enter__(self):
        self.feed.__enter__()
        self._output.open(self.feed.streams)
        self._outputs.append(self._output)
        self._output.wait_connected()
        self.wait_sent(20)
        return self

    def __exit__(self, *_):
        self._output.close(3)
        self.feed.__exit__()

    def wait_sent(self, count):
        end = self._output.status().packets + count
        wait_until(lambda: self._output.status().packets >= end, 10, "packets")

    def generate(self):
        self._generates = True
        self.feed.encoder.force_keyframe()


@pytest.mark.timeout(60)
def test_a_server_hands_records_and_metadata_on(tmp_path):
    """A job that generates from some point on: viewers who come after that are told."""
    require("nginx", "ffmpeg")
    far = tmp_path / "far.flv"
    with NginxRtmp(is_recording=True, copies_metadata=True) as server:
        url = server.url("main")
        with LateJob(url) as job:
            job.generate()
            job.wait_sent(15)
            viewer = subprocess.Popen(
                ["ffmpeg", "-v", "error", "-y", "-i", url, "-t", "2", "-c", "copy", str(far)]
            )
            try:
                while viewer.poll() is None:
                    job.generate()  # a keyframe
                    job.wait_sent(8)
            finally:
                viewer.kill()
        wait_until(lambda: not server.is_publishing("main"), 5, "end of publishing")
        recorded = list_verdicts(server.recording_path("main"))
    assert recorded[0] == "missing"  # from before
    assert set(recorded[1:]) == {"valid"}
    verdicts = list_verdicts(far)
    assert len(verdicts) >= 2
    assert set(verdicts) == {"valid"}
    assert f"install={JOB.keys.install_id}" in read_metadata(far)["comment"]


def test_the_hash_is_that_of_the_slices_alone(originals):
    """The same through FLV, MP4, Matroska and TS, whatever a muxer does to the other units."""
    marks = [read_marks(path) for path in originals.values()]
    hashes = [[mark.record.slices for mark in found if mark.record] for found in marks]
    assert all(one == hashes[0] for one in hashes)
    keyframes = [packet for packet in make_media(90).video if packet.is_keyframe]
    assert hashes[0] == [hash_slices(split_nals(packet.data)) for packet in keyframes]
