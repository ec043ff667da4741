"""Keys of the API: hashed, private, revoked at once for every process, logged."""

import hashlib
import json
import stat
import subprocess
import sys
import threading

import pytest

from livefuse.control.commands.keys import parse_length_s
from livefuse.control.keys import MAX_KEYS, PREFIX, KeyStore, hash_key, parse_role
from livefuse.errors import AuditError, ConfigError, JobCapacityError, JobNotFoundError
from livefuse.safety.audit import AuditLog


class FakeClock:
    def __init__(self, now_epoch_s=1_800_000_000.0):
        self.now = now_epoch_s

    def epoch_s(self):
        return self.now

    def now_ns(self):
        return int(self.now * 1e9)


class DeafAudit(AuditLog):
    """A log whose disc is full."""

    def append(self, event, *, who="", job="", facts=None):
        raise AuditError("the disc is full")


class HeldAudit(AuditLog):
    """A log that keeps what it is told."""

    def __init__(self, folder, clock):
        super().__init__(folder, clock)
        self.told = []

    def append(self, event, *, who="", job="", facts=None):
        self.told.append((event, who, dict(facts or {})))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def audit(tmp_path, clock):
    return HeldAudit(tmp_path, clock)


@pytest.fixture
def store(tmp_path, clock, audit):
    return KeyStore(tmp_path, clock, audit)


def test_a_key_opens_as_its_role_and_is_kept_as_a_hash_alone(store, tmp_path):
    key, secret = store.create("streamer", "obs of anna")
    caller = store.find_caller(secret)
    assert (caller.key_id, caller.role, caller.name) == (key.key_id, "streamer", "obs of anna")
    assert secret.startswith(PREFIX)
    assert len(secret) == len(PREFIX) + 43  # 256 bits
    assert key.digest == hashlib.sha256(secret.encode()).hexdigest()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("given", ["", "lfk_", "x" * 5000, "\udcff", "中文"])
def test_nothing_else_opens(store, given):
    _, secret = store.create("viewer")
    for wrong in (given, secret[:-1], secret + "A", secret.upper(), hash_key(secret)):
        assert store.find_caller(wrong) is None


def test_another_process_revokes_and_the_daemon_refuses_at_once(store, tmp_path):
    """No restart, no waiting: the file is looked at with each request."""
    key, secret = store.create("operator", "leaving")
    assert store.find_caller(secret)
    settings = ["--set", f"safety.folder={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "livefuse", "keys", "revoke", "leaving", *settings],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert key.key_id in done.stdout
    assert store.find_caller(secret) is None


def test_the_command_line_makes_a_key_that_a_running_daemon_takes(store, tmp_path):
    settings = ["--set", f"safety.folder={tmp_path}"]
    run = [sys.executable, "-m", "livefuse", "keys"]
    made = subprocess.run(
        [*run, "create", "--role", "viewer", "--name", "wall", "--expires", "90d", *settings],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    caller = store.find_caller(made.stdout.strip())
    assert (caller.role, caller.name) == ("viewer", "wall")
    assert made.stdout.strip() not in made.stderr
    shown = subprocess.run(
        [*run, "list", *settings], capture_output=True, text=True, timeout=30, check=True
    )
    assert "wall" in shown.stdout
    assert made.stdout.strip() not in shown.stdout


def test_a_key_that_has_expired_opens_no_more(store, clock):
    key, secret = store.create("viewer", expires_epoch_s=clock.now + 60)
    assert store.find_caller(secret)
    clock.now += 61
    assert store.find_caller(secret) is None
    assert key.get_state(clock.now) == "expired"


def test_the_first_key_is_made_once(store, tmp_path, clock, audit):
    secret = store.ensure_first_key()
    assert store.find_caller(secret).role == "operator"
    assert store.ensure_first_key() == ""
    assert KeyStore(tmp_path, clock, audit).ensure_first_key() == ""
    store.revoke("first")
    assert store.ensure_first_key() == ""  # revoked on purpose: it does not come back


def test_two_starts_at_once_make_one_first_key(tmp_path, clock, audit):
    made = []
    stores = [KeyStore(tmp_path, clock, audit) for _ in range(8)]
    threads = [
        threading.Thread(target=lambda s=s: made.append(s.ensure_first_key())) for s in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([key for key in made if key]) == 1


def test_who_made_and_revoked_it_is_logged_without_the_key(store, audit):
    key, secret = store.create("viewer", "wall", who="anna")
    store.revoke(key.key_id, who="bert")
    store.revoke("wall", who="bert")  # it is already
    assert [(event, who) for event, who, _ in audit.told] == [
        ("key.created", "anna"),
        ("key.revoked", "bert"),
    ]
    assert audit.told[0][2]["key"] == key.key_id
    assert secret not in json.dumps(audit.told)
    assert key.digest not in json.dumps(audit.told)


def test_what_cannot_be_logged_is_not_done(tmp_path, clock, store):
    key, secret = store.create("viewer", "wall")
    deaf = KeyStore(tmp_path, clock, DeafAudit(tmp_path, clock))
    with pytest.raises(AuditError):
        deaf.create("operator")
    with pytest.raises(AuditError):
        deaf.revoke(key.key_id)
    assert [one.key_id for one in store.list_keys()] == [key.key_id]
    assert store.find_caller(secret)


def test_a_real_log_takes_it(tmp_path, clock):
    """The log's own keys lie in the same folder: no lock waits for itself."""
    KeyStore(tmp_path, clock).create("viewer")
    assert "key.created" in (tmp_path / "audit" / "audit.jsonl").read_text()


def test_names_are_taken_once_until_revoked(store):
    store.create("viewer", "wall")
    with pytest.raises(ConfigError, match="already"):
        store.create("viewer", " wall ")
    store.revoke("wall")
    key, _ = store.create("streamer", "wall")
    assert store.revoke("wall").key_id == key.key_id


@pytest.mark.parametrize("name", ["a\x00b", "x" * 65, "a\u202eb"])
def test_names_that_would_spoil_a_list_are_refused(store, name):
    with pytest.raises(ConfigError, match="no name"):
        store.create("viewer", name)


def test_there_is_an_end_to_keys(store):
    first, _ = store.create("viewer", "gone")
    store.revoke("gone")
    many = [store._add("viewer", "", "", "")[0] for _ in range(MAX_KEYS - 1)]
    store.create("viewer")  # takes the place of the revoked one
    assert first.key_id not in {key.key_id for key in store.list_keys()}
    assert many[0].key_id in {key.key_id for key in store.list_keys()}
    with pytest.raises(JobCapacityError):
        store.create("viewer")
    assert len(store.list_keys()) == MAX_KEYS


@pytest.mark.parametrize("held", [b"", b"{}x", b'{"keys":[{"key_id":1}]}', b"\xff\xfe"])
def test_a_damaged_file_lets_nobody_in(store, held):
    _, secret = store.create("operator")
    (store.folder / "keys.json").write_bytes(held)
    assert store.find_caller(secret) is None
    with pytest.raises(ConfigError, match="damaged"):
        store.create("viewer")


def test_a_file_that_others_can_write_lets_nobody_in(store):
    _, secret = store.create("operator")
    path = store.folder / "keys.json"
    path.chmod(0o666)
    path.touch()
    fresh = KeyStore(store.folder.parent, store._clock, store._audit)
    assert fresh.find_caller(secret) is None


def test_uses_are_written_seldom(store, clock):
    key, secret = store.create("viewer")
    assert store.list_uses() == {}
    store.find_caller(secret)
    for thread in threading.enumerate():
        if thread.name == "livefuse-keys":
            thread.join(5)
    first = store.list_uses()[key.key_id]
    clock.now += 30
    store.find_caller(secret)
    assert store.list_uses()[key.key_id] == first


def test_who_is_not_there_cannot_be_revoked(store):
    with pytest.raises(JobNotFoundError):
        store.revoke("nobody")


def test_roles_and_lengths_are_read():
    assert parse_role(" Viewer ") == "viewer"
    with pytest.raises(ConfigError, match="viewer, streamer, operator"):
        parse_role("admin")
    assert parse_length_s("90d") == 90 * 86_400
    for wrong in ("", "0d", "90", "d", "999999y", "-1d", "1.5h"):
        with pytest.raises(ConfigError):
            parse_length_s(wrong)


def test_a_key_is_asked_for_by_its_id(store, clock):
    """As sessions know it that were opened with it."""
    key, _ = store.create("viewer", "wall", expires_epoch_s=clock.now + 60)
    assert store.opens(key.key_id)
    assert not store.opens("nobody")
    clock.now += 61
    assert not store.opens(key.key_id)
    other, _ = store.create("streamer")
    store.revoke(other.key_id)
    assert not store.opens(other.key_id)
    (store.folder / "keys.json").write_text("{")
    assert not store.opens(other.key_id)
    assert store.list_stopping() == []


def test_jobs_of_a_key_stop_with_it_or_later_or_not(store, audit):
    """A key that is revoked may be revoked again, to stop what it has made."""
    first, second, third = (store.create("streamer", name)[0] for name in ("a", "b", "c"))
    assert not store.revoke("a").stops_jobs
    assert store.revoke("b", stops_jobs=True).stops_jobs
    assert store.list_stopping() == [second.key_id]
    revoked = store.revoke(first.key_id).revoked
    assert store.revoke(first.key_id, stops_jobs=True).revoked == revoked
    assert store.revoke(first.key_id).stops_jobs
    assert store.list_stopping() == [first.key_id, second.key_id]
    assert store.opens(third.key_id)
    told = [facts.get("jobs") for event, _, facts in audit.told if event == "key.revoked"]
    assert told == [None, "stop", "stop"]
