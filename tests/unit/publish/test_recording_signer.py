"""Recordings signed by C2PA at their end, by the real library; and recordings that cannot be."""

import fcntl
import stat
import subprocess
import sys
import threading
from dataclasses import replace

import msgspec
import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config, MarkConfig, RecordConfig, SafetyConfig
from livefuse.errors import ConfigError
from livefuse.job.outputs import create_outputs
from livefuse.job.spec import JobSpec
from livefuse.publish import c2pa_child, recording_signer
from livefuse.publish.c2pa_child import Task
from livefuse.publish.c2pa_read import read_c2pa
from livefuse.publish.record import FileOutput
from livefuse.publish.recording_signer import SIGNED, UNSIGNED, RecordingSigner
from livefuse.safety.c2pa_chain import load_c2pa_chain
from livefuse.telemetry import Telemetry
from tests.marked import JOB, mark_media, read_marks, read_metadata
from tests.streams import make_media, read_back

NOW_S = SystemClock().epoch_s()


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    return load_c2pa_chain(SafetyConfig(folder=str(tmp_path_factory.mktemp("safety"))), NOW_S)


def list_names(folder):
    return [path.name for path in folder.iterdir()]


class Signing:
    """A signer, and what it counted."""

    def __init__(self, chain, rule="auto", max_mb=1024):
        self.counted: list[str] = []
        config = MarkConfig(c2pa=rule, c2pa_max_mb=max_mb)
        self.signer = RecordingSigner(config, lambda: (chain.chain, chain.key), self.counted.append)


def record(path, media, signer, *, close_s=30.0):
    output = FileOutput(path, RecordConfig(queue_packets=1000), lossless=True, signer=signer)
    output.open(media.streams)
    for packet in media.packets:
        output.send(packet)
    output.close(close_s)
    return output


@pytest.fixture(scope="module")
def signed(chain, tmp_path_factory):
    path = tmp_path_factory.mktemp("signed") / "out.mp4"
    signing = Signing(chain)
    output = record(path, mark_media(make_media()), signing.signer)
    assert output.status().error == ""
    assert signing.counted == [SIGNED]
    return path


def test_a_recording_of_generated_pictures_is_signed_when_it_is_closed(signed, chain):
    report = read_c2pa(signed)
    assert (report.state, report.faults) == ("valid", ())
    assert report.job == f"{JOB.number:08x}"
    assert report.install_id == JOB.keys.install_id
    assert report.signer == "livefuse recordings"
    assert read_c2pa(signed, chain.root).state == "trusted"
    assert list_names(signed.parent) == ["out.mp4"]


def test_all_else_of_it_is_as_before(signed):
    """Pictures, sound, their times, the other marks; and it can be sought in."""
    media = make_media()
    found = read_back(signed)
    assert len(found.pictures) == len(media.video)
    assert len(found.of("audio")) == len(media.audio)
    assert [mark.verdict for mark in read_marks(signed)] == ["valid", "valid"]
    assert "AI-modified" in read_metadata(signed)["comment"]
    probe = ["ffprobe", "-v", "error", "-read_intervals", "1.2%+#1", "-select_streams", "v"]
    probe += ["-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", str(signed)]
    told = subprocess.run(probe, capture_output=True, text=True, check=True).stdout
    assert told.startswith("1.0") and ",K" in told


def test_one_flipped_bit_is_told(signed, chain, tmp_path):
    data = bytearray(signed.read_bytes())
    data[len(data) * 3 // 4] ^= 1
    changed = tmp_path / "changed.mp4"
    changed.write_bytes(data)
    report = read_c2pa(changed, chain.root)
    assert report.state == "invalid"
    assert "assertion.bmffHash.mismatch" in report.faults


def test_a_copy_by_ffmpeg_has_lost_it(signed, tmp_path):
    copy = tmp_path / "copy.mp4"
    command = ["ffmpeg", "-v", "error", "-i", str(signed), "-c", "copy", str(copy)]
    subprocess.run(command, check=True)
    assert read_c2pa(copy).state == "none"
    assert [mark.verdict for mark in read_marks(copy)] == ["valid", "valid"]


def test_anothers_root_makes_nothing_trusted(signed, tmp_path):
    other = load_c2pa_chain(SafetyConfig(folder=str(tmp_path / "other")), NOW_S)
    report = read_c2pa(signed, other.root)
    assert (report.state, report.faults) == ("valid", ("signingCredential.untrusted",))


@pytest.mark.parametrize("name", ["plain.mp4", "marked.mkv", "marked.flv", "marked.ts"])
def test_what_is_not_generated_or_not_mp4_is_left_alone(chain, tmp_path, name):
    signing = Signing(chain)
    media = make_media()
    path = tmp_path / name
    record(path, media if name.startswith("plain") else mark_media(media), signing.signer)
    assert signing.counted == []
    assert len(read_back(path).pictures) == len(media.video)


def test_off_is_off(chain, tmp_path):
    signing = Signing(chain, "off")
    record(tmp_path / "out.mp4", mark_media(make_media()), signing.signer)
    assert signing.counted == []
    assert read_c2pa(tmp_path / "out.mp4").state == "none"


def check_whole_but_unsigned(path, signing, output, words):
    media = make_media()
    assert signing.counted == [UNSIGNED]
    status = output.status()
    assert status.state == "closed"
    assert words in status.error
    assert "whole" in status.error
    assert len(read_back(path).pictures) == len(media.video)
    assert read_c2pa(path).state == "none"
    assert list_names(path.parent) == [path.name]


def test_a_chain_that_cannot_be_had_leaves_the_recording_whole(tmp_path):
    signing = Signing(None)

    def fail():
        raise ConfigError("the signing key is damaged", hint="restore it")

    signing.signer._load_chain = fail
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), signing.signer)
    check_whole_but_unsigned(path, signing, output, "damaged")


def test_a_key_that_does_not_fit_leaves_the_recording_whole(chain, tmp_path, tmp_path_factory):
    other = load_c2pa_chain(SafetyConfig(folder=str(tmp_path_factory.mktemp("s"))), NOW_S)
    signing = Signing(other._replace(chain="no certificate"))
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), signing.signer)
    check_whole_but_unsigned(path, signing, output, "")
    assert "PRIVATE" not in output.status().error


def test_a_child_that_dies_leaves_the_recording_whole(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(recording_signer, "_MODULE", "livefuse.no_such_module")
    signing = Signing(chain)
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), signing.signer)
    check_whole_but_unsigned(path, signing, output, "died")


def test_a_child_that_takes_too_long_is_ended(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(recording_signer, "_LEAST_S", 0)
    signing = Signing(chain)
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), signing.signer)
    check_whole_but_unsigned(path, signing, output, "longer than 0 s")


def test_one_that_needs_more_memory_than_is_free_is_left_as_it_is(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(recording_signer, "read_free_memory_bytes", lambda: 100 << 20)
    signing = Signing(chain)
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), signing.signer)
    check_whole_but_unsigned(path, signing, output, "100 MB are free")


def test_one_that_is_too_large_is_left_as_it_is(chain, tmp_path):
    signing = Signing(chain, max_mb=1)
    path = tmp_path / "out.mp4"
    media = make_media()
    padding = b"\x00\x00\x01\x0c" + b"\xff" * (2 << 20)  # filler: no picture
    first = replace(media.video[0], data=media.video[0].data + padding)
    media = mark_media(replace(media, video=[first, *media.video[1:]]))
    output = record(path, media, signing.signer)
    check_whole_but_unsigned(path, signing, output, "2 MB, more than the 1 MB")


def test_closing_waits_no_longer_than_it_may(chain, tmp_path, monkeypatch):
    """A signature that takes its time holds nobody up, and comes all the same."""
    may_go_on = threading.Event()
    run_child = recording_signer._run_child

    def run_later(task):
        assert may_go_on.wait(30)
        return run_child(task)

    monkeypatch.setattr(recording_signer, "_run_child", run_later)
    signing = Signing(chain)
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), signing.signer, close_s=3.0)
    assert output.status().state == "closed"
    assert output._signing.is_alive()
    assert read_c2pa(path).state == "none"  # whole meanwhile
    may_go_on.set()
    output._signing.join(30)
    assert read_c2pa(path, chain.root).state == "trusted"


def run_child(task):
    command = [sys.executable, "-m", "livefuse.publish.c2pa_child"]
    ended = subprocess.run(
        command, input=msgspec.msgpack.encode(task), capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode()


def create_task(chain, path):
    return Task(
        path=str(path),
        copy=str(path.with_name(".copy.mp4")),
        chain=chain.chain,
        key=chain.key,
        job="0",
        install_id="0",
        version="0",
        limit_s=60,
    )


def test_the_childs_own_work(chain, tmp_path):
    """Rights stay; one that another livefuse writes is left; one that has gone is told."""
    path = tmp_path / "out.mp4"
    output = record(path, mark_media(make_media()), None)
    assert output.status().error == ""
    path.chmod(0o640)
    with path.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "another livefuse" in run_child(create_task(chain, path))
    assert run_child(create_task(chain, path)) == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_c2pa(path, chain.root).state == "trusted"
    assert "No such file" in run_child(create_task(chain, tmp_path / "gone.mp4"))
    assert list_names(tmp_path) == ["out.mp4"]


def test_a_full_disk_is_told_before_anything_is_written(chain, tmp_path, monkeypatch):
    path = tmp_path / "out.mp4"
    path.write_bytes(bytes(1000))

    class Full:
        f_bavail, f_frsize = 10, 100

    monkeypatch.setattr("os.statvfs", lambda _folder: Full())
    assert "no room" in c2pa_child.sign(create_task(chain, path))
    assert list_names(tmp_path) == ["out.mp4"]


def test_a_recording_that_has_become_another_is_not_written_over(chain, tmp_path, monkeypatch):
    path = tmp_path / "out.mp4"
    path.write_bytes(b"one")
    task = create_task(chain, path)

    def write_signed(task):
        (tmp_path / ".copy.mp4").write_bytes(b"signed")
        path.unlink()
        path.write_bytes(b"another")

    monkeypatch.setattr(c2pa_child, "_write_signed", write_signed)
    assert "another file" in c2pa_child.sign(task)
    assert path.read_bytes() == b"another"
    assert list_names(tmp_path) == ["out.mp4"]


def test_the_key_is_not_shown(chain, tmp_path):
    assert "PRIVATE" not in repr(create_task(chain, tmp_path / "out.mp4"))


def test_require_refuses_what_could_not_be_signed(chain, tmp_path, monkeypatch):
    signing = Signing(chain, "require")
    with pytest.raises(ConfigError) as caught:
        FileOutput(tmp_path / "out.mkv", RecordConfig(), signer=signing.signer)
    assert ".mp4" in caught.value.hint
    FileOutput(tmp_path / "out.mp4", RecordConfig(), signer=signing.signer)
    monkeypatch.setattr(recording_signer, "is_installed", lambda: False)
    with pytest.raises(ConfigError) as caught:
        FileOutput(tmp_path / "out.mp4", RecordConfig(), signer=signing.signer)
    assert "livefuse[c2pa]" in caught.value.hint


def test_auto_without_the_package_leaves_recordings_unsigned(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(recording_signer, "is_installed", lambda: False)
    signing = Signing(chain)
    output = record(tmp_path / "out.mp4", mark_media(make_media()), signing.signer)
    assert (signing.counted, output.status().error) == ([], "")


def test_a_job_signs_with_its_installs_chain(tmp_path):
    path = tmp_path / "out.mp4"
    safety = SafetyConfig(folder=str(tmp_path / "safety"))
    telemetry = Telemetry(SystemClock())
    spec = JobSpec(source="demo:", targets=(str(path),), operations=(), mode="every_frame")
    fanout = create_outputs(spec, Config(safety=safety), telemetry, lambda: None)
    media = mark_media(make_media())
    fanout.open(media.streams)
    for packet in media.packets:
        fanout.send(packet)
    fanout.close(30)
    assert telemetry.counts() == {SIGNED: 1}
    assert read_c2pa(path, load_c2pa_chain(safety, NOW_S).root).state == "trusted"


def test_a_job_that_must_sign_refuses_another_container(tmp_path):
    spec = JobSpec(source="demo:", targets=(str(tmp_path / "out.ts"),), operations=())
    config = Config(mark=MarkConfig(c2pa="require"))
    with pytest.raises(ConfigError):
        create_outputs(spec, config, Telemetry(SystemClock()), lambda: None)


@pytest.mark.parametrize("data", [b"", b"hello world" * 10])
def test_what_is_no_recording_is_told(tmp_path, data):
    path = tmp_path / "bad.mp4"
    path.write_bytes(data)
    assert read_c2pa(path).state in ("invalid", "none")
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(ConfigError):
        read_c2pa(path)
    with pytest.raises(FileNotFoundError):
        read_c2pa(tmp_path / "gone.mp4")
