"""Containers say that their pictures are generated, once they are."""

import io
import json

import av
import pytest

from livefuse.config import HttpConfig, RecordConfig, load_config
from livefuse.control.mark_reader import MarkReader
from livefuse.publish.container_mark import ContainerMark, find_container_mark
from livefuse.publish.flv import LiveStream
from livefuse.publish.flv_writer import FlvWriter
from livefuse.publish.late_mark import LateMark
from livefuse.publish.record import FileOutput
from tests.marked import JOB, mark_media, read_marks, read_metadata
from tests.streams import make_media, read_back

LATER = ContainerMark(0, "0" * 16)
SAID = ContainerMark(JOB.number, JOB.keys.install_id).build_fields()


def record(path, media, *, lossless=True):
    output = FileOutput(path, RecordConfig(queue_packets=1000), lossless=lossless)
    output.open(media.streams)
    for packet in media.packets:
        output.send(packet)
    output.close(10)
    assert output.status().error == ""


def check(metadata):
    assert metadata["title"] == SAID["title"]
    assert metadata["comment"] == f"AI-modified job={JOB.number:08x} install={JOB.keys.install_id}"
    label = json.loads(metadata["aigc"])
    assert label["Label"] == "1"
    assert JOB.keys.install_id in label["ContentProducer"]
    assert label["ProduceID"] == f"{JOB.number:08x}"


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".flv"])
def test_a_recording_says_so_and_each_keyframe_has_its_record(tmp_path, suffix, lossless):
    path = tmp_path / f"out{suffix}"
    media = make_media()
    record(path, mark_media(media), lossless=lossless)
    check(read_metadata(path))
    assert [mark.verdict for mark in read_marks(path)] == ["valid", "valid"]
    assert len(read_back(path).pictures) == len(media.video)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".flv", ".ts"])
def test_one_that_shows_nothing_generated_does_not(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    record(path, make_media())
    assert not {"aigc", "comment", "title"} & read_metadata(path).keys()
    assert [mark.verdict for mark in read_marks(path)] == ["missing", "missing"]


@pytest.mark.parametrize("first", [1, 30])
def test_an_mp4_says_so_from_when_it_is_generated(tmp_path, first):
    """A swap that is patched in while a recording runs; once it has said so, it stays."""
    path = tmp_path / "out.mp4"
    media = make_media()
    record(path, mark_media(media, first=first))
    check(read_metadata(path))
    verdicts = [mark.verdict for mark in read_marks(path)]
    assert verdicts[0] == "missing"
    assert verdicts[-1] == "valid"
    assert len(read_back(path).pictures) == len(media.video)
    assert path.read_bytes().count(b"udta") == 1


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_marks_of_a_recording_that_was_generated_later_are_read(tmp_path, suffix):
    """Matroska's header is silent; the records tell."""
    path = tmp_path / f"out{suffix}"
    record(path, mark_media(make_media(), first=1))
    config = load_config(None, (f"safety.folder={tmp_path}",))
    report = MarkReader(config, ()).read(str(path), 2.0)
    assert report.sei.verdicts == {"valid": 1, "missing": 1}
    if suffix == ".mp4":
        check({name.lower(): text for name, text in report.metadata.items()})
    else:
        assert report.metadata == {}


class TestLateMark:
    """The header of an MP4 before its first fragment is out, and after."""

    HEADER = b"moov....udta" + b"".join(text.encode() for text in LATER.build_fields().values())

    @pytest.fixture
    def file(self, tmp_path):
        with (tmp_path / "x.mp4").open("wb+", buffering=0) as file:
            yield file

    def read(self, file):
        file.seek(0)
        return file.read()

    @pytest.mark.parametrize("is_early", [True, False])
    def test_it_is_hidden_until_it_is_told(self, file, is_early):
        late = LateMark(file)
        assert late.hide() == LATER.build_fields()
        assert late.write(b"ftyp") == 4
        mark = ContainerMark(JOB.number, "")  # of an install without keys: fewer letters
        if is_early:
            late.reveal(mark)
        assert late.write(self.HEADER) == len(self.HEADER)
        assert late.write(b"moof") == 4
        if not is_early:
            assert self.read(file) == b"ftyp" + self.HEADER.replace(b"udta", b"free") + b"moof"
            late.reveal(mark)
        found = self.read(file)
        assert len(found) == len(self.HEADER) + 8
        assert found.startswith(b"ftypmoov....udta")
        assert f"job={JOB.number:08x} install=   ".encode() in found
        assert b'"livefuse"' in found

    def test_what_is_no_header_passes(self, file):
        late = LateMark(file)
        late.hide()
        late.write(b"ftyp")
        late.write(b"udta of somebody's")
        assert self.read(file) == b"ftypudta of somebody's"


def test_a_transport_stream_has_the_records_alone(tmp_path):
    path = tmp_path / "out.ts"
    record(path, mark_media(make_media()))
    assert [mark.verdict for mark in read_marks(path)] == ["valid", "valid"]
    assert "aigc" not in read_metadata(path)


def test_sound_before_the_first_picture_is_not_lost(tmp_path):
    path = tmp_path / "out.mp4"
    media = make_media()
    output = FileOutput(path, RecordConfig(queue_packets=1000), lossless=True)
    output.open(media.streams)
    for packet in [*media.audio, *mark_media(media).video]:
        output.send(packet)
    output.close(10)
    found = read_back(path)
    assert len(found.of("audio")) == len(media.audio)
    assert len(found.pictures) == len(media.video)


def test_only_sound_makes_a_file_too(tmp_path):
    path = tmp_path / "out.mkv"
    media = make_media()
    output = FileOutput(path, RecordConfig(queue_packets=1000), lossless=True)
    output.open(media.streams)
    for packet in media.audio[:5]:
        output.send(packet)
    output.close(10)
    assert output.status().error == ""
    assert len(read_back(path, decode=False).of("audio")) == 5


def test_new_metadata_comes_once_before_the_first_marked_keyframe():
    media = mark_media(make_media(), first=1)  # the second keyframe is the first that has one
    writer = FlvWriter(media.streams)
    assert b"AI-modified" not in writer.build_header()
    said = [b"onMetaData" in writer.write(packet) for packet in media.packets]
    keyframes = [p.kind == "video" and p.is_keyframe for p in media.packets]
    second = [i for i, is_keyframe in enumerate(keyframes) if is_keyframe][1]
    assert [i for i, is_said in enumerate(said) if is_said] == [second]
    assert b"AI-modified job=" in writer.build_header()


def test_metadata_in_the_midst_of_a_stream_troubles_no_reader():
    media = mark_media(make_media(), first=1)
    writer = FlvWriter(media.streams)
    data = writer.build_header() + b"".join(map(writer.write, media.packets))
    found = read_back(data, "flv")
    assert len(found.pictures) == len(media.video)
    with av.open(io.BytesIO(data), mode="r", format="flv") as container:
        assert sum(packet.size > 0 for packet in container.demux()) == len(media.packets)
        assert [stream.type for stream in container.streams] == ["video", "audio"]


def test_who_comes_later_is_told_by_the_header():
    """One of two viewers comes when new metadata has gone by."""
    media = mark_media(make_media())
    stream = LiveStream("flv", HttpConfig(viewer_queue_bytes=4_000_000), lambda: None)
    stream.open(media.streams)
    early = stream.subscribe(lambda: None)
    for packet in media.packets[:20]:
        stream.send(packet)
    late = stream.subscribe(lambda: None)
    for packet in media.packets[20:]:
        stream.send(packet)
    for viewer, headers in ((early, 2), (late, 1)):
        data = viewer.read() or b""
        assert data.count(b"onMetaData") == headers
        assert data.count(b"AI-modified job=") == 1
        assert data.index(b"AI-modified job=") < 2000


def test_only_marked_keyframes_say_anything():
    media = mark_media(make_media())
    said = [find_container_mark(packet) for packet in media.packets]
    assert {mark for mark in said if mark} == {ContainerMark(JOB.number, JOB.keys.install_id)}
    assert sum(mark is not None for mark in said) == sum(p.is_keyframe for p in media.video)
