"""What `livefuse mark read` says of a recording's C2PA signature."""

import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config, MarkConfig, RecordConfig, SafetyConfig
from livefuse.control.mark_reader import MarkReader
from livefuse.control.mark_report import MarkReport, Signature, tell
from livefuse.publish import c2pa_read
from livefuse.publish.record import FileOutput
from livefuse.publish.recording_signer import RecordingSigner
from livefuse.safety.c2pa_chain import load_c2pa_chain
from tests.marked import JOB, mark_media
from tests.streams import make_media


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    return Config(safety=SafetyConfig(folder=str(tmp_path_factory.mktemp("safety"))))


@pytest.fixture(scope="module")
def recording(install, tmp_path_factory):
    chain = load_c2pa_chain(install.safety, SystemClock().epoch_s())
    signer = RecordingSigner(MarkConfig(), lambda: (chain.chain, chain.key), lambda _count: None)
    path = tmp_path_factory.mktemp("signed") / "out.mp4"
    media = mark_media(make_media())
    output = FileOutput(path, RecordConfig(queue_packets=1000), lossless=True, signer=signer)
    output.open(media.streams)
    for packet in media.packets:
        output.send(packet)
    output.close(60)
    assert output.status().error == ""
    return path


def test_the_signature_is_one_of_the_marks(install, recording):
    report = MarkReader(install, ()).read(str(recording), 1.0)
    assert report.signature == Signature(
        state="trusted", job=f"{JOB.number:08x}", install=JOB.keys.install_id
    )
    assert "the file's signature" in report.survived
    said = next(line for line in tell(report) if "C2PA" in line)
    assert "by this install" in said
    assert f"job {JOB.number:08x}" in said


def test_a_changed_file_and_anothers_are_told(install, recording, tmp_path):
    data = bytearray(recording.read_bytes())
    data[-len(data) // 4] ^= 1
    changed = tmp_path / "changed.mp4"
    changed.write_bytes(data)
    found = MarkReader(install, ())._read_signature(str(changed))
    assert found is not None
    assert (found.state, found.is_ours) == ("invalid", False)
    other = Config(safety=SafetyConfig(folder=str(tmp_path / "other")))
    found = MarkReader(other, ())._read_signature(str(recording))
    assert found is not None
    assert (found.state, found.is_ours) == ("valid", True)


def test_what_cannot_be_signed_is_not_spoken_of(install, tmp_path):
    reader = MarkReader(install, ())
    for url in ("rtmp://host/app/key", str(tmp_path / "out.mkv")):
        assert reader._read_signature(url) is None
    assert not any("C2PA" in note for note in reader._notes)


def test_without_the_package_it_is_said(install, recording, monkeypatch):
    monkeypatch.setattr(c2pa_read, "is_installed", lambda: False)
    reader = MarkReader(install, ())
    assert reader._read_signature(str(recording)) is None
    assert any("not installed" in note for note in reader._notes)


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        (Signature(state="none"), "none"),
        (Signature(state="invalid", faults=["assertion.bmffHash.mismatch"]), "bmffHash"),
        (Signature(state="valid"), "foreign"),
        (Signature(state="valid", job="0a", install="1b"), "not this install's"),
    ],
)
def test_each_state_has_its_sentence(signature, words):
    report = MarkReport(source="x.mp4", seconds=1.0, windows=1, signature=signature)
    said = next(line for line in tell(report) if "C2PA" in line)
    assert words in said
    assert ("the file's signature" in report.survived) == bool(signature.job)
