"""Consents as they are recorded: whose, for which jobs, by which evidence; old ones still open."""

import hashlib

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import SafetyConfig
from livefuse.errors import ConsentError, RefusedError
from livefuse.safety.actor import act_as
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_records import parse_line
from livefuse.safety.consent import Terms, parse_consent
from livefuse.safety.embeddings import FaceEmbedder
from livefuse.safety.evidence import MAX_EVIDENCE_BYTES, describe_evidence
from livefuse.safety.faces import FaceStore

CONSENT = "Anna Berger, my live streams, 90d"
DAY_NS = 86_400 * NS_PER_S


def draw(seed=0):
    rng = np.random.default_rng(seed)
    done, data = cv2.imencode(".png", rng.integers(0, 256, (80, 96, 3), np.uint8))
    assert done
    return data.tobytes()


def accept(_rgb):
    """A checker that is content with any picture."""


def embed(rgb):
    vector = np.asarray([rgb.mean(), 1.0], np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def audit(tmp_path, clock):
    return AuditLog(tmp_path, clock)


@pytest.fixture
def store(tmp_path, clock, audit):
    return FaceStore(
        SafetyConfig(folder=str(tmp_path)), clock, embedder=FaceEmbedder("m", embed), audit=audit
    )


def list_logged(audit):
    lines = (audit.folder / "audit.jsonl").read_bytes().splitlines()
    return [record for line in lines if (record := parse_line(line)) is not None]


# The terms.


def test_a_consent_says_for_which_jobs_and_by_which_evidence(store, audit):
    """R54"""
    evidence = describe_evidence(b"a signed form", "/home/anna/form.pdf")
    terms = Terms(jobs=("show-*", "main"), evidence=evidence, enrolled_by="cli:anna")
    with act_as("cli"):
        record = store.enroll(draw(), CONSENT, check=accept, name="Anna", terms=terms)
    assert record.consent.evidence == evidence
    assert (evidence.name, evidence.size_bytes) == ("form.pdf", 13)
    assert evidence.sha256 == hashlib.sha256(b"a signed form").hexdigest()
    assert store.get_record("anna") == record
    for job in ("show-1", "show-", "main"):
        assert store.check_source(record.face_id, job) == record
        assert store.is_allowed(record.face_id, job)
    for job in ("main2", "Show-1", "other", ""):
        assert not store.is_allowed(record.face_id, job)
        with pytest.raises(ConsentError, match=r"for the jobs show-\*, main, not for"):
            store.load_source(record.face_id, job)
    assert store.is_allowed(record.face_id)  # nobody asks for which job
    (logged,) = list_logged(audit)
    assert (logged.event, logged.who) == ("face.enrolled", "cli")
    assert logged.facts["jobs"] == ["show-*", "main"]
    assert logged.facts["evidence_sha256"] == evidence.sha256
    assert logged.facts["consent_sha256"] == record.consent_sha256


@pytest.mark.parametrize(
    "jobs", [("a/b",), ("",), ("x" * 65,), ("a b",), tuple("abcdefghijklmnopq")]
)
def test_patterns_of_jobs_are_checked(jobs):
    with pytest.raises(ConsentError, match="jobs") as told:
        parse_consent(CONSENT, 1.7e9, Terms(jobs=jobs))
    assert told.value.hint


def test_the_terms_are_part_of_what_was_agreed(store):
    plain = parse_consent(CONSENT, 1.7e9)
    others = [
        Terms(jobs=("main",)),
        Terms(evidence=describe_evidence(b"form", "form.pdf")),
        Terms(enrolled_by="cli:anna"),
    ]
    digests = {parse_consent(CONSENT, 1.7e9, terms).digest for terms in others}
    assert len(digests | {plain.digest}) == 4
    record = store.enroll(draw(), CONSENT, check=accept, terms=others[0])
    path = store.folder / "faces" / record.face_id / "record.json"
    wider = msgspec.structs.replace(record.consent, jobs=())
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, consent=wider)))
    with pytest.raises(ConsentError, match="altered"):
        store.load_source(record.face_id, "other")


def test_evidence_is_a_file_with_something_in_it():
    with pytest.raises(ConsentError, match="empty"):
        describe_evidence(b"", "form.pdf")
    with pytest.raises(ConsentError, match="32 MiB"):
        describe_evidence(bytes(MAX_EVIDENCE_BYTES + 1), "form.pdf")
    assert describe_evidence(b"x", "..\\a\x07b" + "c" * 200).name == "ab" + "c" * 98


# Old and new records.


def test_a_record_of_before_there_were_terms_still_opens(store, clock):
    """Version 1: the hash is over who, what for, until and the text alone."""
    record = store.enroll(draw(), CONSENT, check=accept, name="Anna")
    consent = record.consent
    old_consent = (
        f'{{"who":"{consent.who}","scope":"{consent.scope}","until":"{consent.until}",'
        f'"text":"{consent.text}"}}'
    )
    assert hashlib.sha256(old_consent.encode()).hexdigest() == record.consent_sha256
    old = (
        f'{{"face_id":"{record.face_id}","name":"Anna","consent":{old_consent},'
        f'"created":"{record.created}","picture_sha256":"{record.picture_sha256}",'
        f'"consent_sha256":"{record.consent_sha256}","revoked":"","history":[],"version":1}}'
    )
    path = store.folder / "faces" / record.face_id / "record.json"
    path.write_text(old)
    assert store.load_source(record.face_id, "any").face_id == record.face_id
    assert store.check_consent(record.face_id) == record
    assert record.version == 2
    store.revoke("Anna")
    assert msgspec.json.decode(path.read_bytes())["version"] == 2


def test_a_record_of_a_newer_livefuse_is_not_guessed_at(store):
    record = store.enroll(draw(), CONSENT, check=accept)
    path = store.folder / "faces" / record.face_id / "record.json"
    path.write_text(path.read_text().replace('"version": 2', '"version": 3'))
    with pytest.raises(ConsentError, match="newer livefuse"):
        store.load_source(record.face_id)
    assert not store.is_allowed(record.face_id)


# The picture, only as long as it is needed.


def test_a_picture_can_be_forgotten_at_once(store):
    record = store.enroll(
        draw(), CONSENT, check=accept, name="Anna", terms=Terms(forget_picture=True)
    )
    assert not list(store.folder.rglob("picture"))
    assert [known.person for known in store.list_gallery()] == ["Anna"]
    with pytest.raises(RefusedError, match="picture of Anna was not kept, and a swap or puppet"):
        store.load_source(record.face_id)
    again = store.enroll(draw(), CONSENT, check=accept)
    assert store.load_source(again.face_id).digest == record.picture_sha256


def test_nothing_can_be_forgotten_where_nothing_else_is_kept(tmp_path, clock):
    """safety.forget_picture, and a store that has no network."""
    blind = FaceStore(SafetyConfig(folder=str(tmp_path), forget_picture=True), clock)
    with pytest.raises(RefusedError, match="nothing would be kept"):
        blind.enroll(draw(), CONSENT, check=accept)
    config = SafetyConfig(folder=str(tmp_path), forget_picture=True)
    store = FaceStore(config, clock, embedder=FaceEmbedder("m", embed))
    assert not store.enroll(draw(), CONSENT, check=accept).has_picture


def test_what_has_expired_is_deleted_after_a_week(store, clock, audit):
    """The record stays, as evidence; a consent that is renewed in time keeps its picture."""
    gone = store.enroll(draw(), "Anna, tests, 10d", check=accept, name="Anna")
    kept = store.enroll(draw(1), "Bert, tests, 90d", check=accept, name="Bert")
    clock.advance(16 * DAY_NS)
    assert store.forget_expired() == ()
    clock.advance(2 * DAY_NS)
    assert store.forget_expired() == (gone.face_id,)
    assert store.forget_expired() == ()
    folder = store.folder / "faces"
    assert [path.name for path in (folder / gone.face_id).iterdir()] == ["record.json"]
    assert store.load_source(kept.face_id)
    assert store.get_record("Anna").get_state(clock.epoch_s()) == "expired"
    (logged,) = [record for record in list_logged(audit) if record.event == "face.forgotten"]
    assert logged.facts["face"] == gone.face_id
    renewed = store.enroll(draw(), "Anna, tests, 10d", check=accept)
    assert (renewed.face_id, renewed.name) == (gone.face_id, "Anna")
    assert store.load_source(gone.face_id)


# Names.


@pytest.mark.parametrize(
    ("consent", "name"), [(CONSENT, "Elon Musk"), ("习近平, tests, 9d", ""), (CONSENT, "ТRUМР")]
)
def test_a_public_figure_is_not_enrolled_by_name(store, audit, consent, name):
    """R53"""
    with pytest.raises(RefusedError, match="names a public figure"):
        store.enroll(draw(), consent, check=accept, name=name)
    assert store.list_records() == ()
    assert [record.event for record in list_logged(audit)] == ["refusal.prompt"]


def test_revoking_never_waits_for_the_log(store, audit, monkeypatch):
    """What takes a right away is done though the disc is full; what gives one is not."""
    record = store.enroll(draw(), CONSENT, check=accept)

    def fail(*_arguments, **_facts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("livefuse.safety.audit.add_bytes", fail)
    assert store.revoke(record.face_id).revoked
    assert not store.is_allowed(record.face_id)
    with pytest.raises(Exception, match="audit log"):
        store.enroll(draw(1), CONSENT, check=accept)
    assert len(store.list_records()) == 1
