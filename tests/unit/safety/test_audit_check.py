"""Whatever is done to the files of an audit log is found, and said where."""

from __future__ import annotations

import shutil

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.errors import AuditError
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_check import verify_audit
from livefuse.safety.audit_read import AuditQuery, open_view, read_audit
from livefuse.safety.audit_records import AuditKey, AuditRecord
from livefuse.safety.keys import KeyRing

_COUNT = 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A log of eight records, and its keys."""
    folder = tmp_path_factory.mktemp("audit")
    log = AuditLog(folder, ManualClock())
    for number in range(_COUNT):
        log.append("job.started", who="cli", job=f"j{number % 3}", facts={"number": number})
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "safety")
    return tmp_path / "safety"


def verify(folder):
    return verify_audit(folder / "audit", KeyRing(folder, ManualClock()))


def get_lines(folder):
    return (folder / "audit" / "audit.jsonl").read_bytes().splitlines(keepends=True)


def put_lines(folder, lines):
    (folder / "audit" / "audit.jsonl").write_bytes(b"".join(lines))


def list_faults(folder):
    report = verify(folder)
    assert report.is_whole == (not report.faults)
    return [(fault.how, fault.line, fault.sequence) for fault in report.faults]


def test_a_whole_log_is_whole(folder):
    report = verify(folder)
    assert report.is_whole
    assert (report.records, report.first, report.sequence, report.head) == (8, 1, 8, "good")
    assert report.faults == []
    assert report.notes == []


def test_an_edit(folder):
    lines = get_lines(folder)
    lines[3] = lines[3].replace(b'"who":"cli"', b'"who":"bob"')
    put_lines(folder, lines)
    assert list_faults(folder) == [("edited", 4, 4)]


def test_an_edit_with_its_hash_made_right(folder):
    lines = get_lines(folder)
    record = msgspec.json.decode(lines[3], type=AuditRecord)
    record = msgspec.structs.replace(record, who="bob")
    record = msgspec.structs.replace(record, hash=record.digest())
    lines[3] = record.encode() + b"\n"
    put_lines(folder, lines)
    assert list_faults(folder) == [("edited", 5, 5)]


def test_a_chain_that_was_written_anew_from_there_on(folder):
    """Every hash is right; only the head, and the keys, know better."""
    records = [msgspec.json.decode(line, type=AuditRecord) for line in get_lines(folder)]
    records[3] = msgspec.structs.replace(records[3], who="bob")
    key = AuditKey("00000000", b"guessed")
    for index in range(3, _COUNT):
        records[index] = records[index].close(index + 1, records[index - 1].hash, key)
    put_lines(folder, [record.encode() + b"\n" for record in records])
    assert list_faults(folder) == [("edited", 8, 8)]
    head = msgspec.json.decode((folder / "audit" / "head.json").read_bytes())
    head["hash"] = records[-1].hash
    (folder / "audit" / "head.json").write_bytes(msgspec.json.encode(head))
    assert list_faults(folder) == [("foreign head", 8, 8), ("older copy", 8, 8)]


def test_a_deletion(folder):
    lines = get_lines(folder)
    del lines[2:4]
    put_lines(folder, lines)
    assert list_faults(folder) == [("deleted", 3, 5)]


def test_the_beginning_deleted(folder):
    put_lines(folder, get_lines(folder)[2:])
    assert [how for how, _, _ in list_faults(folder)] == ["deleted"]


def test_two_lines_swapped(folder):
    lines = get_lines(folder)
    lines[2], lines[3] = lines[3], lines[2]
    put_lines(folder, lines)
    assert list_faults(folder) == [("re-ordered", 3, 4), ("re-ordered", 4, 3)]


def test_the_end_cut_off(folder):
    put_lines(folder, get_lines(folder)[:-2])
    assert list_faults(folder) == [("cut off", 6, 6)]


def test_everything_cut_off(folder):
    (folder / "audit" / "audit.jsonl").unlink()
    assert list_faults(folder) == [("cut off", 0, 0)]


@pytest.mark.parametrize("what", ["missing", "damaged", "another's"])
def test_a_head_that_is_not_ours(folder, what, tmp_path):
    head = folder / "audit" / "head.json"
    if what == "missing":
        head.unlink()
    elif what == "damaged":
        head.write_bytes(head.read_bytes()[:-9])
    else:
        AuditLog(tmp_path / "other", ManualClock()).append("job.started")
        shutil.copy(tmp_path / "other" / "audit" / "head.json", head)
    assert [how for how, _, _ in list_faults(folder)] == ["foreign head"]


def test_a_copy_without_keys_is_checked_but_for_its_seals(folder):
    report = verify_audit(folder / "audit", None)
    assert report.is_whole
    assert report.head == "unchecked"
    put_lines(folder, get_lines(folder)[:-1])
    assert not verify_audit(folder / "audit", None).is_whole


def test_keys_may_be_changed_and_retired(folder):
    ring = KeyRing(folder, ManualClock())
    old = ring.get_current()[0]
    ring.rotate()
    AuditLog(folder, ManualClock()).append("job.stopped")
    ring.retire(old)
    assert verify(folder).head == "good"
    AuditLog(folder, ManualClock()).append("job.started")
    assert verify(folder).is_whole


def test_a_key_that_is_retired_too_early_is_told_and_no_fault(folder):
    ring = KeyRing(folder, ManualClock())
    old = ring.get_current()[0]
    ring.rotate()
    ring.retire(old)
    assert verify(folder).head == "retired"
    AuditLog(folder, ManualClock()).append("job.started")
    report = verify(folder)
    assert report.is_whole
    assert report.head == "good"
    assert "retired" in report.notes[0]


def test_nothing_yet(tmp_path):
    report = verify(tmp_path)
    assert report.is_whole
    assert report.notes == ["nothing has been logged yet"]
    assert read_audit(tmp_path / "audit", AuditQuery()) == []


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "audit" / "audit.jsonl").mkdir(parents=True)
    with pytest.raises(AuditError, match="cannot be read"):
        verify(tmp_path)


_WHERE = st.integers(0, _COUNT - 1)


@st.composite
def changes(draw):
    """What somebody does to the lines of the file, as a function."""
    kind = draw(st.sampled_from(["byte", "delete", "swap", "repeat", "cut", "insert"]))
    one, other, offset = draw(_WHERE), draw(_WHERE), draw(st.integers(0, 10_000))
    value = draw(st.integers(0, 255))

    def change(lines):
        data = b"".join(lines)
        if kind == "byte":
            at = offset % len(data)
            return data[:at] + bytes([value]) + data[at + 1 :]
        if kind == "cut":
            return data[: offset % len(data)]
        if kind == "delete":
            del lines[min(one, other) : max(one, other) + 1]
        elif kind == "swap":
            lines[one], lines[other] = lines[other], lines[one]
        elif kind == "repeat":
            lines.insert(one, lines[other])
        else:
            lines.insert(one, bytes([value]) * (offset % 300) + b"\n")
        return b"".join(lines)

    return change


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(changes(), min_size=1, max_size=3))
def test_random_changes_are_all_found(whole, folder, done):
    """(R52)"""
    path = folder / "audit" / "audit.jsonl"
    original = (whole / "audit" / "audit.jsonl").read_bytes()
    data = original
    for change in done:
        if data:
            data = change((data.splitlines(keepends=True) + [b""] * _COUNT)[: max(_COUNT, 8)])
    path.write_bytes(data)
    assert verify(folder).is_whole == (data == original)


def test_reading_by_job_time_and_event(tmp_path):
    clock = ManualClock()
    log = AuditLog(tmp_path, clock)
    for event, job in [("job.created", "a"), ("job.started", "a"), ("key.created", "")] * 2:
        log.append(event, job=job)
        clock.advance(10 * NS_PER_S)
    folder = tmp_path / "audit"

    def list_numbers(limit=1000, **wanted):
        return [record.sequence for record in read_audit(folder, AuditQuery(**wanted), limit)]

    assert list_numbers() == [1, 2, 3, 4, 5, 6]
    assert list_numbers(job="a") == [1, 2, 4, 5]
    assert list_numbers(event="job.started") == [2, 5]
    assert list_numbers(event="job", limit=3) == [2, 4, 5]
    assert list_numbers(event="jo") == []
    assert list_numbers(since_epoch_s=1_700_000_000 + 35) == [5, 6]
    assert list_numbers(limit=0) == []
    assert list_numbers(limit=2) == [5, 6]


def test_reading_leaves_out_what_was_altered(folder):
    lines = get_lines(folder)
    lines[3] = lines[3].replace(b"cli", b"bob")
    put_lines(folder, lines)
    assert [record.sequence for record in read_audit(folder / "audit", AuditQuery())] == [
        1,
        2,
        3,
        5,
        6,
        7,
        8,
    ]


@given(st.binary(max_size=200), st.integers(1, 40))
def test_backwards_is_forwards_from_the_end(tmp_path_factory, data, block_bytes):
    folder = tmp_path_factory.getbasetemp() / "backwards"
    folder.mkdir(exist_ok=True)
    data = data.replace(b"\x00", b"\n")
    (folder / "audit.jsonl").write_bytes(data)
    with open_view(folder, None) as view:
        lines = list(view.read_backwards("audit.jsonl", block_bytes))
        assert lines[::-1] == data.split(b"\n")[:-1]
        assert b"".join(view.read_lines("audit.jsonl")) == data
