"""Files: every container whole, nothing overwritten, nothing half-written, a full disc survived."""

from __future__ import annotations

import io
import itertools
import os
import threading
import time

import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import RecordConfig
from livefuse.errors import ConfigError, PublishConnectError
from livefuse.packet import Packet
from livefuse.publish import record
from livefuse.publish.base import FILE_SUFFIXES
from livefuse.publish.record import FileOutput
from livefuse.publish.record_file import check_writable, has_room
from livefuse.whole_file import WholeFile, lock_file
from tests.streams import FPS, make_media, read_back


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


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


class FillingDisc:
    """The disk under all files of the test: full while `is_full`."""

    def __init__(self, monkeypatch):
        self.is_full = False
        monkeypatch.setattr(WholeFile, "write", self._make_write())
        monkeypatch.setattr(record, "has_room", lambda _path: not self.is_full)
        monkeypatch.setattr(record, "_RETRY_MIN_MS", 10)
        monkeypatch.setattr(record, "_RETRY_MAX_MS", 20)

    def _make_write(self):
        def write(file, data):
            if self.is_full:
                raise OSError(28, "No space left on device")
            return io.FileIO.write(file, data)

        return write


@pytest.mark.parametrize("suffix", FILE_SUFFIXES)
def test_a_live_recording_goes_on_in_another_file_when_there_is_room_again(
    tmp_path, suffix, monkeypatch
):
    disc = FillingDisc(monkeypatch)
    media = make_media(120)
    output = FileOutput(tmp_path / f"out{suffix}", RecordConfig())
    output.open(media.streams)
    early = [p for p in media.packets if p.dts < 2 * 90_000]
    _send_all(output, early)
    wait_for(lambda: output.status().packets == len(early))
    disc.is_full = True
    _send_all(output, [p for p in media.packets if p.dts >= 2 * 90_000])
    wait_for(lambda: output.status().state == "refused")
    assert "No space left on device" in output.status().error
    dropped = output.status().dropped
    _send_all(output, media.packets[:5])
    assert output.status().dropped == dropped + 5, "drop rather than buffer"
    disc.is_full = False
    wait_for(lambda: output.status().url.endswith(f"out-2{suffix}"))
    _send_all(output, media.packets)
    output.close(5)
    status = output.status()
    assert (status.state, status.error, status.reconnects) == ("closed", "", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out-2{suffix}", f"out{suffix}"]
    second = read_back(tmp_path / f"out-2{suffix}")
    assert second.packets[0].is_keyframe
    assert len(second.pictures) == 120
    first = read_back(tmp_path / f"out{suffix}")
    assert len(first.pictures) >= 40


def test_a_disk_that_was_full_from_the_start_gets_the_first_name(tmp_path, monkeypatch):
    disc = FillingDisc(monkeypatch)
    disc.is_full = True
    media = make_media()
    output = FileOutput(tmp_path / "out.flv", RecordConfig())
    output.open(media.streams)
    _send_all(output, media.packets)
    wait_for(lambda: output.status().state == "refused")
    assert list(tmp_path.iterdir()) == [], "a file that got nothing is taken away"
    disc.is_full = False
    wait_for(lambda: not output._has_failed)
    _send_all(output, media.packets)
    output.close(5)
    assert [path.name for path in tmp_path.iterdir()] == ["out.flv"]
    assert output.status().packets == len(media.packets)


def test_room_is_tried_by_writing(tmp_path):
    assert has_room(tmp_path / "out.mkv")
    assert list(tmp_path.iterdir()) == []
    assert not has_room(tmp_path / "gone" / "out.mkv")


def test_a_write_is_whole_or_an_error(tmp_path):
    """A disk that is nearly full takes a part of what it is given, and says so only by a count."""

    class Stingy(io.FileIO):
        def write(self, data):
            return super().write(bytes(data)[:3])

    class StingyFile(WholeFile, Stingy):
        """Its writes go through both."""

    with StingyFile(tmp_path / "x", "x") as file:
        assert file.write(b"0123456789") == 10
    assert (tmp_path / "x").read_bytes() == b"0123456789"


def test_a_disk_that_hangs_is_called_stalled(tmp_path, monkeypatch):
    go_on = threading.Event()

    class HangingDisk:
        def write(self, packet):
            go_on.wait(20)

        def close(self):
            pass

    monkeypatch.setattr(record, "open_file_muxer", lambda *_: HangingDisk())
    clock = ManualClock()
    output = FileOutput(tmp_path / "out.mkv", RecordConfig(), clock=clock)
    media = make_media()
    output.open(media.streams)
    output.send(media.video[0])
    wait_for(lambda: not len(output._queue))
    go_on.set()
    wait_for(lambda: output.status().state == "live")
    go_on.clear()
    _send_all(output, media.video[1:10])
    clock.advance(6 * NS_PER_S)
    status = output.status()
    assert (status.state, status.connected) == ("stalled", False)
    assert "out.mkv takes no more data (for 5 s)" in status.error
    clock.advance(2 * NS_PER_S)
    assert output.status().state_s == 2.0
    go_on.set()
    wait_for(lambda: output.status().state == "live")
    assert output.status().error == ""
    output.close(5)


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


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "out.mkv")
    with pytest.raises(PublishConnectError, match="not a plain file"):
        check_writable(tmp_path / "out.mkv", overwrite=True)
