"""A log that is gone, cut or swapped with its head is found by what lies outside of its folder."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from livefuse.clock import ManualClock
from livefuse.safety import audit_anchor
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_anchor import ANCHOR_FILE, Anchor
from livefuse.safety.audit_check import verify_audit
from livefuse.safety.audit_head import Head
from livefuse.safety.audit_records import BROKEN, AuditKey
from livefuse.safety.keys import KeyRing


@pytest.fixture
def log(tmp_path):
    """Three records; `older` beside it is how the log was after two."""
    log = AuditLog(tmp_path / "safety", ManualClock())
    log.append("job.started", job="a")
    log.append("job.failed", job="a")
    shutil.copytree(log.folder, tmp_path / "older")
    log.append("job.started", job="b")
    return log


def verify(log, *, with_keys=True):
    home = log.folder.parent
    return verify_audit(log.folder, KeyRing(home, ManualClock()) if with_keys else None)


def list_faults(log):
    report = verify(log)
    assert report.is_whole == (not report.faults)
    return [fault.how for fault in report.faults]


def swap(log, tmp_path):
    shutil.rmtree(log.folder)
    shutil.copytree(tmp_path / "older", log.folder)


def test_a_whole_log_has_an_anchor_for_its_owner_only(log):
    report = verify(log)
    assert report.is_whole
    assert report.anchor == "good"
    path = log.folder.parent / ANCHOR_FILE
    assert path.stat().st_mode & 0o077 == 0
    anchor = msgspec.json.decode(path.read_bytes(), type=Anchor)
    assert (anchor.sequence, anchor.hash) == (report.sequence, report.hash)


def test_a_folder_that_is_removed_is_told(log):
    newest = verify(log).hash
    shutil.rmtree(log.folder)
    (fault,) = verify(log).faults
    assert (fault.how, fault.sequence) == ("gone", 3)
    assert "a log of 3 records was here" in fault.text
    assert newest in fault.text
    assert verify(log).notes == []


def test_lines_and_head_that_are_removed_are_told(log):
    """The folder is there, and all that was in it is not."""
    for path in log.folder.iterdir():
        path.unlink()
    assert list_faults(log) == ["gone"]


def test_what_is_logged_next_goes_on_from_there_and_says_so(log):
    shutil.rmtree(log.folder)
    log.append("job.started", job="c")
    lines = (log.folder / "audit.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line) for line in lines]
    assert [record["sequence"] for record in records] == [4, 5]
    assert records[0]["event"] == BROKEN
    assert records[0]["facts"] == {"how": "the log was gone", "sealed": 3}
    assert list_faults(log) == ["told", "deleted"]


def test_an_older_copy_is_told_with_its_own_head(log, tmp_path):
    swap(log, tmp_path)
    (fault,) = verify(log).faults
    assert fault.how == "older copy"
    assert "records up to 3 were logged" in fault.text
    log.append("job.started", job="c")
    assert list_faults(log) == ["deleted", "told"]


def test_an_older_copy_that_was_gone_on_with_is_told(log, tmp_path):
    """Two records more by the store's own keys: the numbers fit again, the hashes do not."""
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "older", elsewhere / "audit")
    shutil.copy(log.folder.parent / "keys.json", elsewhere)
    (elsewhere / "keys.json").chmod(0o600)
    other = AuditLog(elsewhere, ManualClock())
    other.append("job.started", job="x")
    other.append("job.started", job="y")
    shutil.rmtree(log.folder)
    shutil.copytree(other.folder, log.folder)
    assert "older copy" in list_faults(log)


def test_an_end_cut_off_with_its_head_is_told(log, tmp_path):
    """The lines of now but the last, and the head of then."""
    lines = (log.folder / "audit.jsonl").read_bytes().splitlines(keepends=True)
    (log.folder / "audit.jsonl").write_bytes(b"".join(lines[:2]))
    shutil.copy(tmp_path / "older" / "head.json", log.folder)
    assert list_faults(log) == ["older copy"]


@pytest.mark.parametrize("what", ["missing", "damaged", "another's"])
def test_an_anchor_that_is_not_ours_is_told(log, tmp_path, what):
    path = log.folder.parent / ANCHOR_FILE
    if what == "missing":
        path.unlink()
    elif what == "damaged":
        path.write_bytes(b"{")
    else:
        AuditLog(tmp_path / "other", ManualClock()).append("job.started")
        shutil.copy(tmp_path / "other" / ANCHOR_FILE, path)
    assert list_faults(log) == ["foreign anchor"]
    log.append("job.started", job="c")
    assert list_faults(log) == ["told"]


def test_an_anchor_that_could_not_be_written_is_behind_and_no_fault(log, monkeypatch):
    """A disc that is full to the last byte; what has been logged stands."""

    def fail(path, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(audit_anchor, "write_whole", fail)
        log.append("job.failed", job="b")
    assert list_faults(log) == []
    log.append("job.started", job="c")
    assert list_faults(log) == []
    assert verify(log).sequence == 5


def test_a_log_of_before_there_were_anchors_is_whole_and_gets_one(tmp_path):
    """Its head has the seal of then: without the word that there is an anchor."""
    log = AuditLog(tmp_path, ManualClock())
    log.append("job.started", job="a")
    (tmp_path / ANCHOR_FILE).unlink()
    head = msgspec.json.decode((log.folder / "head.json").read_bytes())
    assert "anchored" not in head
    assert list_faults(log) == []
    assert verify(log).anchor == "missing"
    log.append("job.failed", job="a")
    assert list_faults(log) == []
    assert verify(log).anchor == "good"


def test_a_heads_seal_is_what_it_was():
    """The bytes under the seal of a head without an anchor are those of earlier versions."""
    key = AuditKey("00000000", b"secret")
    head = Head(first=1, sequence=2, hash="ab").close(key)
    assert head.seal == key.seal("head", '{"first":1,"sequence":2,"hash":"ab","seal":""}')


def test_keys_may_change_under_it(log):
    ring = KeyRing(log.folder.parent, ManualClock())
    old = ring.get_current()[0]
    ring.rotate()
    ring.retire(old)
    assert verify(log).anchor == "retired"
    log.append("job.started", job="c")
    assert verify(log).anchor == "good"
    assert verify(log).is_whole


def test_a_copy_has_no_anchor_and_is_whole(log, tmp_path):
    copy = shutil.copytree(log.folder, tmp_path / "copy" / "audit")
    assert verify_audit(copy, KeyRing(log.folder.parent, ManualClock())).is_whole
    named = shutil.copytree(tmp_path / "older", log.folder.parent / "audit-of-monday")
    assert verify_audit(named, KeyRing(log.folder.parent, ManualClock())).is_whole


def test_a_whole_store_put_back_is_its_limit(log, tmp_path):
    """Said in the module: only who keeps the newest hash elsewhere finds it."""
    backup = shutil.copytree(log.folder.parent, tmp_path / "backup")
    log.append("job.failed", job="b")
    shutil.rmtree(log.folder.parent)
    shutil.copytree(backup, log.folder.parent)
    assert list_faults(log) == []
