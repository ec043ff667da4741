"""The audit log is written: whole records, one chain, whatever happens meanwhile."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import AuditConfig
from livefuse.errors import AuditError, get_exit_code, get_http_status
from livefuse.safety import audit, audit_files
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_check import verify_audit
from livefuse.safety.audit_read import AuditQuery, read_audit
from livefuse.safety.audit_records import MAX_LINE_BYTES, NO_HASH, parse_line
from livefuse.safety.keys import KeyRing
from tests.contract.repo import ROOT


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def log(tmp_path, clock):
    return AuditLog(tmp_path, clock)


def check(log, clock=None):
    return verify_audit(log.folder, KeyRing(log.folder.parent, clock or ManualClock()))


def read_lines(log):
    return [json.loads(line) for line in (log.folder / "audit.jsonl").read_bytes().splitlines()]


def test_each_line_names_the_one_before(log):
    log.append("job.created", who="cli", job="main")
    log.append("job.started", who="cli", job="main", facts={"operations": ["detect", "swap"]})
    first, second = read_lines(log)
    assert (first["sequence"], first["previous"]) == (1, NO_HASH)
    assert (second["sequence"], second["previous"]) == (2, first["hash"])
    assert second["time"] == "2023-11-14T22:13:20.000+00:00"
    assert second["facts"] == {"operations": ["detect", "swap"]}
    assert check(log).is_whole


def test_secrets_never_come_in(log):
    """(C76)"""
    log.append(
        "job.started",
        who="rtsp://u:p@h/cam",
        job="main",
        facts={
            "source": "rtsp://u:p@h/cam",
            "outputs": ["rtmp://live.example/app/KEY123", "srt://h:1?passphrase=open"],
            "reason": "cannot reach rtmp://live.example/app/KEY123: refused",
        },
    )
    text = (log.folder / "audit.jsonl").read_text()
    assert not any(secret in text for secret in ("u:p", "KEY123", "open"))
    assert "live.example/app/***" in text


def test_only_its_owner_can_read_it(log):
    log.append("daemon.started")
    modes = {path.stat().st_mode & 0o077 for path in (log.folder, *log.folder.iterdir())}
    assert modes == {0}


def test_a_clock_that_goes_back_breaks_nothing(log, clock):
    log.append("job.started", job="a")
    clock.advance(-3600 * NS_PER_S)
    log.append("job.stopped", job="a")
    assert [line["time"][11:13] for line in read_lines(log)] == ["22", "21"]
    assert check(log).is_whole


def test_what_is_too_much_is_cut_and_still_a_record(log):
    facts = {f"fact {n}": ["\x00\ud800 \U0001f600" * 900] * 90 for n in range(90)}
    log.append("e" * 900, who="w" * 900, job="j" * 900, facts=facts)
    log.append("numbers", facts={"nan": float("nan"), "big": 2**80, "yes": True, "half": 0.5})
    line = (log.folder / "audit.jsonl").read_bytes().splitlines()[0]
    assert len(line) <= MAX_LINE_BYTES
    assert parse_line(line) is not None
    assert read_lines(log)[1]["facts"] == {
        "nan": "nan",
        "big": str(2**80),
        "yes": True,
        "half": 0.5,
    }
    assert check(log).is_whole


class TestRotation:
    @pytest.fixture
    def fill(self, tmp_path, clock, monkeypatch):
        """Write records into files of some 2 KB."""

        def fill(count, keep_files=0):
            log = AuditLog(tmp_path, clock, AuditConfig(rotate_mb=1, keep_files=keep_files))
            for _ in range(count):
                log.append("job.started", job="a", facts={"filling": "x" * 400})
            return log

        make_way = AuditLog._make_way
        monkeypatch.setattr(  # a megabyte of records takes too long
            AuditLog,
            "_make_way",
            lambda self, last, more: make_way(self, last, more + (1 << 20) - 2048),
        )
        return fill

    def test_the_chain_goes_through_all_files(self, fill):
        log = fill(12)
        files = [*audit_files.list_full_files(log.folder), log.folder / "audit.jsonl"]
        assert len(files) >= 4
        ends = [json.loads(path.read_bytes().splitlines()[-1])["hash"] for path in files]
        begins = [json.loads(path.read_bytes().splitlines()[0])["previous"] for path in files]
        assert begins == [NO_HASH, *ends[:-1]]
        assert check(log).is_whole
        assert check(log).records == 12
        assert [r.sequence for r in read_audit(log.folder, AuditQuery(), 7)] == list(range(6, 13))

    def test_the_oldest_go_when_only_so_many_are_kept(self, fill):
        log = fill(24, keep_files=2)
        full = audit_files.list_full_files(log.folder)
        assert len(full) == 2
        report = check(log)
        assert report.is_whole
        assert report.first > 1
        assert report.sequence == 24
        # And one more that somebody takes is missed.
        full[0].unlink()
        assert [fault.how for fault in check(log).faults] == ["deleted"]

    def test_a_file_out_of_the_middle_is_missed(self, fill):
        log = fill(16)
        audit_files.list_full_files(log.folder)[1].unlink()
        assert [fault.how for fault in check(log).faults] == ["deleted"]


class TestPowerCuts:
    def test_a_torn_line_is_set_aside_and_told(self, log):
        log.append("job.started", job="a")
        torn = b'{"sequence":2,"time":"2023-'
        with (log.folder / "audit.jsonl").open("ab") as file:
            file.write(torn)
        assert check(log).is_whole
        assert "torn" in check(log).notes[0]
        log.append("job.stopped", job="a")
        lines = read_lines(log)
        assert [line["event"] for line in lines] == ["job.started", "audit.mended", "job.stopped"]
        assert lines[1]["facts"] == {
            "bytes": len(torn),
            "how": "torn",
            "kept_in": "torn-000000000001",
        }
        assert (log.folder / "torn-000000000001").read_bytes() == torn
        assert check(log).is_whole

    def test_a_line_that_the_head_does_not_know_yet_counts(self, log):
        log.append("job.started", job="a")
        head = (log.folder / "head.json").read_bytes()
        log.append("job.stopped", job="a")
        (log.folder / "head.json").write_bytes(head)  # its writer was killed in between
        assert check(log).is_whole
        assert check(log).sequence == 2
        log.append("job.started", job="b")
        assert [line["event"] for line in read_lines(log)][1:] == ["job.stopped", "job.started"]
        assert check(log).is_whole

    def test_a_line_written_in_that_manner_by_somebody_else_does_not(self, log):
        log.append("job.started", job="a")
        head = (log.folder / "head.json").read_bytes()
        log.append("job.stopped", job="a")
        (log.folder / "head.json").write_bytes(head)
        path = log.folder / "audit.jsonl"
        first, second = path.read_bytes().splitlines()
        record = parse_line(second)
        assert record is not None
        path.write_bytes(first + b"\n")
        # Whoever has no key can make the hashes right, and not the seal.
        from livefuse.safety.audit_records import AuditKey

        forged = record.close(2, record.previous, AuditKey(record.seal[:8], b"guessed"))
        path.write_bytes(first + b"\n" + forged.encode() + b"\n")
        # The anchor, which lies elsewhere, knows the second line as it was.
        assert [fault.how for fault in check(log).faults] == ["added", "older copy"]
        log.append("job.started", job="b")
        assert "audit.broken" in [line["event"] for line in read_lines(log)]
        assert not check(log).is_whole

    def test_what_was_cut_off_stays_told(self, log):
        for job in "abc":
            log.append("job.started", job=job)
        path = log.folder / "audit.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
        log.append("job.started", job="d")
        log.append("job.started", job="e")
        assert [line["sequence"] for line in read_lines(log)] == [1, 2, 4, 5, 6]
        assert [fault.how for fault in check(log).faults] == ["deleted", "told"]


_WRITER = """
import sys
from pathlib import Path
from livefuse.clock import SystemClock
from livefuse.safety.audit import AuditLog
log = AuditLog(Path(sys.argv[1]), SystemClock())
for number in range(int(sys.argv[3])):
    log.append("job.started", job=sys.argv[2], facts={"number": number})
    print(number, flush=True)
"""


def start_writer(folder, job, count):
    command = [sys.executable, "-c", _WRITER, str(folder), job, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_two_processes_write_one_chain(tmp_path, log):
    writers = [start_writer(tmp_path, job, 200) for job in ("a", "b")]
    for writer in writers:
        writer.communicate(timeout=50)
    report = check(log)
    assert report.is_whole
    assert report.sequence == report.records == 400
    for job in ("a", "b"):
        numbers = [record.facts["number"] for record in read_audit(log.folder, AuditQuery(job=job))]
        assert numbers == list(range(200))


def test_threads_write_one_chain(log):
    threads = [
        threading.Thread(target=lambda: [log.append("x", job="a") for _ in range(10)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert check(log).is_whole
    assert check(log).records == 40


def test_kill_9_loses_nothing_that_was_answered(tmp_path, log):
    for round_ in range(3):
        writer = start_writer(tmp_path, f"round {round_}", 100_000)
        assert writer.stdout is not None
        answered = [int(writer.stdout.readline()) for _ in range(15)]
        time.sleep(0.003 * round_)
        writer.send_signal(signal.SIGKILL)
        answered += [int(line) for line in writer.communicate()[0].split()]
        report = check(log)
        assert report.is_whole, report.faults
        kept = [
            r.facts["number"] for r in read_audit(log.folder, AuditQuery(job=f"round {round_}"))
        ]
        assert kept[: len(answered)] == answered
        assert len(kept) - len(answered) in (0, 1)
    log.append("daemon.started")
    assert check(log).is_whole


class TestFullDisc:
    """(C78) What cannot be logged is not done."""

    def test_it_is_refused_in_words_and_the_log_stays_whole(self, log, monkeypatch):
        log.append("job.started", job="a")

        def is_full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        for name in ("add_bytes", "write_head"):
            with monkeypatch.context() as patch:
                patch.setattr(audit, name, is_full)
                with pytest.raises(AuditError, match="No space left") as caught:
                    log.append("job.started", job="b")
            assert caught.value.retryable
            assert caught.value.hint
            assert (get_exit_code(caught.value), get_http_status(caught.value)) == (43, 503)
            assert log.is_full
            assert check(log).is_whole
        log.append("job.started", job="c")
        assert not log.is_full
        assert [line["job"] for line in read_lines(log)] == ["a", "c"]

    def test_an_end_is_told_from_what_was_kept_for_that(self, log, monkeypatch):
        log.append("job.started", job="a")
        add_bytes = audit_files.add_bytes

        def add_while_there_is_room(path, data):
            if (log.folder / audit_files.RESERVE_FILE).exists():
                raise OSError(errno.ENOSPC, "full")
            return add_bytes(path, data)

        monkeypatch.setattr(audit, "add_bytes", add_while_there_is_room)
        with pytest.raises(AuditError):
            log.append("job.started", job="b")
        log.owe("job.stopped", job="a")
        assert log.is_full
        assert [line["event"] for line in read_lines(log)] == ["job.started", "job.stopped"]

    def test_what_is_owed_comes_later_with_the_time_it_had(self, log, clock, monkeypatch):
        log.append("job.started", job="a")

        def is_full(*_):
            raise OSError(errno.ENOSPC, "full")

        with monkeypatch.context() as patch:
            patch.setattr(audit, "add_bytes", is_full)
            log.owe("job.failed", job="a")
            assert not log.probe()
        clock.advance(60 * NS_PER_S)
        assert log.probe()
        log.append("job.started", job="a")
        assert [(line["event"], line["time"][14:16]) for line in read_lines(log)] == [
            ("job.started", "13"),
            ("job.failed", "13"),
            ("audit.resumed", "14"),
            ("job.started", "14"),
        ]

    def test_a_file_that_may_not_grow_any_more(self, tmp_path, log):
        """The kernel's own refusal, in the middle of a line."""
        log.append("job.started", job="a")
        program = (
            "import resource, sys\n"
            "from pathlib import Path\n"
            "from livefuse.clock import SystemClock\n"
            "from livefuse.errors import AuditError\n"
            "from livefuse.safety.audit import AuditLog\n"
            "log = AuditLog(Path(sys.argv[1]), SystemClock())\n"
            "size = (log.folder / 'audit.jsonl').stat().st_size + 100\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
            "try:\n"
            "    log.append('job.started', job='b')\n"
            "except AuditError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        assert "File too large" in done.stdout
        assert [line["job"] for line in read_lines(log)] == ["a"]
        report = check(log)
        assert report.is_whole
        assert report.notes == []

    def test_a_folder_that_cannot_be(self, tmp_path, clock):
        (tmp_path / "audit").write_text("a file is in the way")
        log = AuditLog(tmp_path, clock)
        with pytest.raises(AuditError, match="audit"):
            log.append("job.started")
        assert not log.probe()

    def test_keys_that_others_can_read(self, log):
        log.append("job.started")
        (log.folder.parent / "keys.json").chmod(0o644)
        with pytest.raises(AuditError, match="others"):
            log.append("job.stopped")

    def test_a_process_that_was_halted_holds_up_no_end(self, log, monkeypatch):
        log.append("job.started", job="a")
        monkeypatch.setattr(audit, "LOCK_S", 0.05)
        monkeypatch.setattr(audit, "_SHORT_LOCK_S", 0.05)
        with audit_files.lock_log(log.folder):
            log.owe("job.stopped", job="a")
            with pytest.raises(AuditError, match="another process"):
                log.append("job.started", job="b")
        assert log.probe()
        events = [line["event"] for line in read_lines(log)]
        assert events == ["job.started", "job.stopped", "audit.resumed"]
