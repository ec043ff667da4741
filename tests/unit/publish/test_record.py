"""Files: every container whole, nothing overwritten, nothing half-written, a full disc survived."""

from __future__ import annotations

import itertools
import threading

import pytest

from livefuse.config import RecordConfig
from livefuse.errors import ConfigError, PublishConnectError
from livefuse.packet import Packet
from livefuse.publish import record
from livefuse.publish.base import FILE_SUFFIXES
from livefuse.publish.record import FileOutput
from livefuse.publish.record_file import check_writable, lock_file
from tests.streams import FPS, make_media, read_back


def _write(path, media, packets=None, *, lossless=True, config=None):
    output = FileOutput(path, config or RecordConfig(), lossless=lossless)
    output.open(media.streams)
    for packet in packets if packets is not None else media.packets:
        output.send(packet)
    output.close(10)
    return output.status()


@pytest.mark.parametrize("suffix", FILE_SUFFIXES)
def test_every_container_holds_every_picture_in_step_with_the_sound(tmp_path, suffix):
    media = make_media()
    path = tmp_path / f"out{suffix}"
    status = _write(path, media)
    assert (status.state, status.dropped, status.error) == ("closed", 0, "")
    assert status.packets == len(media.packets)
    found = read_back(path)
    assert len(found.pictures) == len(media.video)
    whole = (len(media.video) - 1) / FPS
    assert found.pictures[-1] - found.pictures[0] == pytest.approx(whole, abs=0.002)
    wanted = (media.audio[0].pts - media.video[0].pts) / 90_000
    distance = found.of("audio")[0].pts_s - found.pictures[0]
    assert distance == pytest.approx(wanted, abs=0.025)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_times_that_repeat_or_step_back_are_no_fault(tmp_path, suffix):
    """C38."""
    media = make_media(with_audio=False)
    stamps = [0, 3000, 3000, 3010, 1000, 93_000, 90_000, 96_000]
    packets = [
        Packet("video", p.data, t, t, 3000, p.is_keyframe)
        for p, t in zip(media.video, stamps, strict=False)
    ]
    path = tmp_path / f"out{suffix}"
    assert _write(path, media, packets).error == ""
    found = [read.dts for read in read_back(path).packets]
    assert len(found) == len(stamps)
    assert all(a < b for a, b in itertools.pairwise(found))


def test_sound_before_the_first_picture_is_kept_when_nothing_may_be_lost(tmp_path):
    media = make_media()
    packets = [*media.audio[:10], *media.video, *media.audio[10:]]
    assert _write(tmp_path / "out.mkv", media, packets).dropped == 0


def test_live_it_starts_at_a_keyframe(tmp_path):
    media = make_media()
    status = _write(tmp_path / "out.flv", media, media.video[5:], lossless=False)
    assert status.dropped == 25
    assert status.packets == 30


def test_a_job_that_never_sends_leaves_no_file(tmp_path):
    path = tmp_path / "out.mp4"
    output = FileOutput(path, RecordConfig())
    assert list(tmp_path.iterdir()) == []
    output.open(make_media().streams)
    output.close(5)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "out.mp4"
    path.write_bytes(b"mine")
    with pytest.raises(PublishConnectError, match="already") as caught:
        FileOutput(path, RecordConfig())
    assert "overwrite" in caught.value.hint
    assert path.read_bytes() == b"mine"
    media = make_media()
    _write(path, media, config=RecordConfig(overwrite=True))
    assert path.stat().st_size > 1000


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(PublishConnectError, match="folder") as caught:
            FileOutput(folder / "out.mp4", RecordConfig())
        assert caught.value.hint
    with pytest.raises(PublishConnectError, match="is a folder"):
        (tmp_path / "x.mp4").mkdir()
        FileOutput(tmp_path / "x.mp4", RecordConfig())


def test_a_container_that_nobody_knows_is_refused_with_the_choices(tmp_path):
    with pytest.raises(ConfigError, match="avi") as caught:
        FileOutput(tmp_path / "out.avi", RecordConfig())
    assert ".mkv" in caught.value.hint


class FullDisc:
    """A file that takes 20 kB, then says what the system says."""

    def __init__(self):
        self.size = 0

    def write(self, data):
        self.size += len(data)
        if self.size > 20_000:
            raise OSError(28, "No space left on device")
        return len(data)

    def flush(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _send_all(output, packets):
    for packet in packets:
        output.send(packet)


@pytest.mark.parametrize("suffix", FILE_SUFFIXES)
def test_a_full_disc_is_told_and_blocks_nobody(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(FileOutput, "_open_file", lambda _self: FullDisc())
    media = make_media(120)
    # Lossless, and far more than the queue holds: a sender must not wait for a dead writer.
    output = FileOutput(tmp_path / f"out{suffix}", RecordConfig(queue_packets=10), lossless=True)
    output.open(media.streams)
    thread = threading.Thread(target=_send_all, args=(output, media.packets * 2), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    output.close(5)
    status = output.status()
    assert status.state == "refused"
    assert "No space left on device" in status.error
    assert status.dropped > 0


def test_a_lossless_file_makes_its_sender_wait(tmp_path, monkeypatch):
    media = make_media()
    gate = threading.Event()
    original = FileOutput._open_file

    def open_late(self):
        gate.wait(10)
        return original(self)

    monkeypatch.setattr(FileOutput, "_open_file", open_late)
    output = FileOutput(tmp_path / "out.flv", RecordConfig(queue_packets=5), lossless=True)
    output.open(media.streams)
    thread = threading.Thread(target=_send_all, args=(output, media.packets), daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    gate.set()
    thread.join(10)
    output.close(10)
    assert output.status().packets == len(media.packets)


def test_a_file_that_is_not_finished_in_time_is_not_called_closed(tmp_path, monkeypatch):
    go_on = threading.Event()

    class SlowDisk:
        def write(self, packet):
            go_on.wait(20)

        def close(self):
            pass

    monkeypatch.setattr(record, "open_file_muxer", lambda *_: SlowDisk())
    media = make_media()
    output = FileOutput(tmp_path / "out.mkv", RecordConfig(), lossless=True)
    output.open(media.streams)
    for packet in media.packets[:3]:
        output.send(packet)
    output.close(0.1)
    status = output.status()
    go_on.set()
    assert (status.state, status.connected) == ("stalled", False)
    assert "out.mkv could not be finished in 0.1 s" in status.error


def test_two_do_not_write_one_file(tmp_path):
    """Both would be destroyed: the second is refused in words, and may when the first is done."""
    path = tmp_path / "out.mkv"
    with path.open("wb") as first:
        assert lock_file(first)
        with pytest.raises(PublishConnectError, match="another livefuse is writing"):
            check_writable(path, overwrite=True)
    check_writable(path, overwrite=True)
