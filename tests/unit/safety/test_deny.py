"""The deny gallery: whose face no source picture may show; a verdict has a score, of k of n."""

import threading
import time

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import ManualClock
from livefuse.config import RefuseConfig, SafetyConfig
from livefuse.errors import AuditError, ConfigError, ModelError, RefusedError
from livefuse.safety import deny as deny_module
from livefuse.safety.audit import AuditLog
from livefuse.safety.audit_records import parse_line
from livefuse.safety.deny import judge_looks
from livefuse.safety.embeddings import FaceEmbedder
from livefuse.safety.faces import FaceStore

CONSENT = "Anna Berger, my live streams, 90d"
LOOKS = 6


def draw(level, seed=0):
    """A picture by whose mean the embedder below tells people apart."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(-3, 4, (80, 96, 3))
    done, data = cv2.imencode(".png", np.clip(noise + level, 0, 255).astype(np.uint8))
    assert done
    return data.tobytes()


def accept(_rgb):
    """A checker that is content with any picture."""


class Network:
    """People are as alike as their pictures are bright; six looks, which waver a little."""

    def __init__(self, model="small"):
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        self.embedder = FaceEmbedder(model, self.embed, self.embed_looks, lambda: 0.924)

    def embed(self, rgb):
        return self.embed_looks(rgb)[0]

    def embed_looks(self, rgb):
        assert self.gate.wait(30)
        self.asked += 1
        angles = float(rgb.mean()) / 60 + np.linspace(0, 0.05, LOOKS)
        return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


class Home:
    """A safety folder, and stores on it as several processes have them."""

    def __init__(self, path):
        self.path, self.clock = path, ManualClock()
        self.network = Network()
        self.audit = AuditLog(path, self.clock)
        self.store = self.open()

    def open(self, network=None, audit=True, **refuse):
        network = network or self.network
        return FaceStore(
            SafetyConfig(folder=str(self.path)),
            self.clock,
            embedder=network.embedder,
            refuse=RefuseConfig(**refuse),
            audit=self.audit if audit else None,
        )

    def list_logged(self, event="refusal.face"):
        path = self.path / "audit" / "audit.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [r for line in lines if (r := parse_line(line)) is not None and r.event == event]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "safety")


@pytest.fixture
def anna(home):
    return home.store.enroll(draw(60), CONSENT, check=accept, name="Anna")


def wait_for(answer, ask):
    """Ask, as a running job does once a second, until the answer comes."""
    end = time.monotonic() + 10
    while ask() is not answer:
        assert time.monotonic() < end, "the answer stays"
        time.sleep(0.01)


def test_a_denied_face_is_not_enrolled(home):
    """R53, C75"""
    denied = home.store.deny(draw(60, seed=1), "Anna", check=accept)
    with pytest.raises(RefusedError, match=r"6 of 6 looks agree, likeness 1\.000") as told:
        home.store.enroll(draw(60), CONSENT, check=accept)
    assert "deny --list" in told.value.hint
    assert home.store.list_records() == ()
    (logged,) = home.list_logged()
    assert logged.facts["denied"] == denied.denied_id
    assert logged.facts["agreeing"] == logged.facts["looks"] == LOOKS
    assert logged.facts["score"] > logged.facts["threshold"] == 0.924
    assert home.store.enroll(draw(200), CONSENT, check=accept), "somebody else is"


def test_a_face_that_is_denied_later_is_shown_no_more(home, anna):
    """R53: at once for what starts, in this process and in another."""
    worker, daemon = home.open(), home.open()
    assert worker.load_source(anna.face_id).face_id == anna.face_id
    assert worker.is_allowed(anna.face_id, "show")
    denied = daemon.deny(draw(60, seed=1), "Anna", check=accept)
    for store in (worker, daemon, home.open()):
        with pytest.raises(RefusedError, match="denied here"):
            store.load_source(anna.face_id, "show")
    assert not home.open().is_allowed(anna.face_id, "show"), "a new process knows at once"
    wait_for(False, lambda: worker.is_allowed(anna.face_id, "show"))
    assert daemon.undeny("anna") == denied.denied_id
    wait_for(True, lambda: worker.is_allowed(anna.face_id, "show"))
    assert home.open().load_source(anna.face_id)
    events = [home.list_logged(event) for event in ("face.denied", "face.allowed")]
    assert [len(found) for found in events] == [1, 1]


def test_a_running_job_is_judged_beside_its_frames(home, anna):
    """Whoever asks once a second never waits for a network; the log says whose job it was."""
    slow = Network()
    worker = home.open(slow)
    assert worker.is_allowed(anna.face_id, "show")
    home.open(Network("other")).deny(draw(60, seed=1), "Anna", check=accept)
    assert worker.is_allowed(anna.face_id, "show"), "the first verdict: nobody waits for it"
    wait_for(False, lambda: worker.is_allowed(anna.face_id, "show"))
    slow.gate.clear()  # from here on a question that waited for the network would never end
    home.open(Network("other")).deny(draw(200), "Bert", check=accept)
    assert not worker.is_allowed(anna.face_id, "show"), "the old answer holds meanwhile"
    slow.gate.set()
    wait_for(False, lambda: worker.is_allowed(anna.face_id, "show"))
    assert {record.job for record in home.list_logged()} == {"show"}
    assert {record.who for record in home.list_logged()} == {"livefuse"}


def test_nobody_is_judged_while_nobody_is_denied(home, anna):
    store = home.open()
    asked = home.network.asked
    assert store.is_allowed(anna.face_id)
    assert store.load_source(anna.face_id)
    assert home.network.asked == asked
    assert home.list_logged() == []


def test_another_network_looks_at_the_denied_picture_again(home, anna):
    home.store.deny(draw(60, seed=1), "Anna", check=accept)
    other = Network("large")
    store = home.open(other)
    with pytest.raises(RefusedError, match="denied here"):
        store.load_source(anna.face_id)
    assert other.asked == 2  # the denied picture, and hers
    with pytest.raises(RefusedError, match="denied here"):
        store.load_source(anna.face_id)
    assert other.asked == 2


def test_a_list_that_cannot_be_read_allows_nobody(home, anna):
    """Fail closed: whoever is denied must not be shown for want of a file."""
    denied = home.store.deny(draw(200), "Bert", check=accept)
    folder = home.path / "denied" / denied.denied_id
    (folder / "record.json").write_text("{}")
    store = home.open()
    assert not store.is_allowed(anna.face_id)
    with pytest.raises(ConfigError, match=f"deny --remove {denied.denied_id}"):
        store.load_source(anna.face_id)
    assert store.undeny(denied.denied_id)
    wait_for(True, lambda: store.is_allowed(anna.face_id))


def test_without_a_network_nobody_can_tell(home, anna):
    home.store.deny(draw(200), "Bert", check=accept)
    blind = FaceStore(SafetyConfig(folder=str(home.path)), home.clock)
    assert not blind.is_allowed(anna.face_id)
    with pytest.raises(RefusedError, match="cannot be compared"):
        blind.load_source(anna.face_id)
    with pytest.raises(ModelError):
        blind.deny(draw(30), "Carl", check=accept)


def test_the_margin_makes_it_stricter(home, anna):
    home.store.deny(draw(75), "Twin", check=accept)  # 0.25 rad apart: cosine 0.97
    with pytest.raises(RefusedError, match="denied here"):
        home.open().load_source(anna.face_id)
    assert home.open(face_margin=0.05).load_source(anna.face_id)
    home.store.undeny("Twin")
    home.store.deny(draw(96), "Cousin", check=accept)  # 0.6 rad: 0.83
    assert home.open().load_source(anna.face_id)
    with pytest.raises(RefusedError, match="denied here"):
        home.open(face_margin=-0.15).load_source(anna.face_id)


def test_a_refusal_that_cannot_be_logged_is_one_all_the_same(home, anna, monkeypatch):
    home.store.deny(draw(60, seed=1), "Anna", check=accept)

    def fail(*_arguments, **_facts):
        raise AuditError("the disc is full")

    monkeypatch.setattr(home.audit, "append", fail)
    store = home.open()
    with pytest.raises(AuditError, match="full"):
        store.load_source(anna.face_id)
    assert not store.is_allowed(anna.face_id)


def test_what_is_kept_is_private_and_sealed_and_follows_the_keys(home):
    """R9"""
    denied = home.store.deny(draw(60), "Anna", check=accept)
    folder = home.path / "denied"
    for path in (folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    for part in ("picture", "embedding"):
        sealed = (folder / denied.denied_id / part).read_bytes()
        assert b"PNG" not in sealed
        assert b"small" not in sealed
    (first,) = home.store.keys.list_keys()
    _, changed = home.store.rotate_keys()
    assert changed == 2
    home.store.retire_key(first.key_id)
    with pytest.raises(RefusedError, match="denied here"):
        home.open().enroll(draw(60), CONSENT, check=accept)


def test_the_same_picture_is_denied_once_and_names_are_checked(home, monkeypatch):
    one = home.store.deny(draw(60), "Anna", check=accept)
    again = home.store.deny(draw(60), "Anna B", check=accept)
    assert (again.denied_id, again.name) == (one.denied_id, "Anna B")
    assert [r.name for r in home.store.denied.list_records()] == ["Anna B"]
    with pytest.raises(RefusedError, match="name"):
        home.store.deny(draw(60), "a/b", check=accept)
    with pytest.raises(RefusedError, match="no face 'nobody' is denied"):
        home.store.undeny("nobody")
    monkeypatch.setattr(deny_module, "MAX_DENIED", 1)
    with pytest.raises(RefusedError, match="remove some"):
        home.store.deny(draw(200), "Bert", check=accept)


# The verdict.


def turn(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


@pytest.mark.parametrize(("off", "is_denied"), [(0, True), (1, True), (2, False), (6, False)])
def test_five_of_six_looks_must_agree(off, is_denied):
    """C75"""
    looks = turn(*[1.5] * off, *[0.0] * (6 - off))
    verdict = judge_looks(looks, [("deny_a", turn(0.1, 0.0, 0.1))], 0.924)
    assert verdict is not None
    assert (verdict.is_denied, verdict.agreeing, verdict.looks) == (is_denied, 6 - off, 6)


def test_the_likest_of_the_denied_counts():
    denied = [("deny_a", turn(1.0)), ("deny_b", turn(0.2)), ("deny_c", turn(0.5))]
    verdict = judge_looks(turn(*[0.0] * 6), denied, 0.924)
    assert verdict is not None
    assert (verdict.denied_id, verdict.is_denied) == ("deny_b", True)
    assert verdict.score == pytest.approx(np.cos(0.2), abs=1e-6)
    assert judge_looks(turn(0.0), [], 0.924) is None


@given(st.integers(1, 12), st.integers(0, 12))
def test_one_look_suffices_where_there_is_one_and_never_fewer_than_five_sixths(count, agreeing):
    agreeing = min(agreeing, count)
    looks = turn(*[0.0] * agreeing, *[1.5] * (count - agreeing))
    verdict = judge_looks(looks, [("deny_a", turn(0.0))], 0.924)
    assert verdict is not None
    assert verdict.is_denied == (6 * agreeing >= 5 * count)
