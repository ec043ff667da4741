"""The consent gate: no face is shown that nobody lent, and none for longer than it was lent."""

import threading
import time
from base64 import b64encode
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import SafetyConfig
from livefuse.errors import ConfigError, ConsentError, RefusedError, TokenError
from livefuse.safety import faces as faces_module
from livefuse.safety.consent import Terms
from livefuse.safety.embeddings import FaceEmbedder
from livefuse.safety.faces import FaceStore
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.intern import intern_source

CONSENT = "Anna Berger, my live streams, 90d"
DAY_NS = 86_400 * NS_PER_S


def draw(seed=0, size=(96, 80)):
    rng = np.random.default_rng(seed)
    done, data = cv2.imencode(".png", rng.integers(0, 256, (*size[::-1], 3), np.uint8))
    assert done
    return data.tobytes()


def accept(_rgb):
    """A checker that is content with any picture."""


def refuse(_rgb):
    raise RefusedError("there are 2 faces in the picture", hint="crop it")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(tmp_path, clock):
    return FaceStore(SafetyConfig(folder=str(tmp_path / "safety")), clock)


@pytest.fixture
def record(store):
    return store.enroll(draw(), CONSENT, check=accept, name="Anna")


def list_files(store):
    return sorted(
        str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file()
    )


def test_nothing_is_made_before_it_is_needed(store):
    assert store.list_records() == ()
    assert store.list_gallery() == ()
    assert not store.is_allowed("face_0123456789ab")
    with pytest.raises(ConsentError):
        store.load_source("face_0123456789ab")
    assert not store.folder.exists()


def test_a_face_that_was_lent_is_given_out(store, record):
    """R54"""
    source = store.load_source(record.face_id)
    assert (source.face_id, source.kind) == (record.face_id, "photo")
    assert source.digest == record.picture_sha256
    assert source.picture_rgb.shape == (80, 96, 3)
    assert store.is_allowed(record.face_id)
    assert store.resolve("anna") == store.resolve(record.face_id) == record.face_id


def test_what_is_kept_is_private_and_sealed(store, record):
    """R9"""
    for path in store.folder.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    sealed = (store.folder / "faces" / record.face_id / "picture").read_bytes()
    assert b"PNG" not in sealed
    assert draw()[40:80] not in sealed


@pytest.mark.parametrize("consent", ["", "Anna", "Anna, streams", "Anna, streams, 2020-01-01"])
def test_nothing_is_kept_without_a_whole_consent(store, consent):
    """C78"""
    with pytest.raises(ConsentError):
        store.enroll(draw(), consent, check=accept)
    assert not store.folder.exists()


def test_nothing_is_kept_of_a_picture_that_is_refused(store):
    """C68"""
    with pytest.raises(RefusedError, match="2 faces"):
        store.enroll(draw(), CONSENT, check=refuse)
    with pytest.raises(RefusedError, match="PNG, JPEG or WebP"):
        store.enroll(b"no picture", CONSENT, check=accept)
    assert not store.folder.exists()


def test_a_consent_ends_on_its_day(store, record, clock):
    """R54"""
    clock.advance(90 * DAY_NS)
    assert store.is_allowed(record.face_id)
    clock.advance(NS_PER_S)
    assert not store.is_allowed(record.face_id)
    with pytest.raises(ConsentError, match="consent for Anna ended on 2024-02-12") as told:
        store.load_source(record.face_id)
    assert "enroll" in told.value.hint
    assert store.list_records()[0].get_state(clock.epoch_s()) == "expired"


def test_a_revoked_consent_is_noticed_by_another_store_at_once(store, record, clock):
    """Design, section 7: a running job stops showing the face."""
    other = FaceStore(SafetyConfig(folder=str(store.folder)), clock)
    assert other.is_allowed(record.face_id)
    revoked = store.revoke("Anna")
    assert not other.is_allowed(record.face_id)
    with pytest.raises(ConsentError, match="revoked on 2023-11-14"):
        other.load_source(record.face_id)
    assert list_files(store) == [
        ".lock",
        "faces/.lock",
        f"faces/{record.face_id}/record.json",
        "keys.json",
    ]
    assert revoked.consent_sha256 == record.consent_sha256
    clock.advance(NS_PER_S)
    assert store.revoke("Anna").revoked == revoked.revoked


def test_why_a_face_may_not_be_shown_is_said_without_its_name(store, record, clock):
    """For whoever watches a job, and need not know whose face it shows."""

    def explain(*asked):
        words, colon, fate = store.explain_refusal(*asked).partition(": ")
        assert fate == "pictures are covered" * bool(colon)
        return words

    assert explain("avatar:fox") == explain(record.face_id) == ""
    assert explain("face_0123456789ab") == "the source face was removed"
    terms = Terms(jobs=("show-*",))
    lent = store.enroll(draw(1), "Ben Carl, one show, 2d", check=accept, terms=terms).face_id
    assert explain(lent, "show-1") == ""
    assert explain(lent, "news") == "the consent for the source face is not for this job"
    store.revoke(record.face_id)
    assert explain(record.face_id) == "the consent for the source face was revoked on 2023-11-14"
    clock.advance(5 * DAY_NS)
    assert explain(lent, "show-1").startswith("the consent for the source face ended on 2023-11-1")


def test_a_removed_face_is_gone(store, record):
    assert store.is_allowed(record.face_id)
    assert store.remove("Anna") == record.face_id
    assert not store.is_allowed(record.face_id)
    assert store.list_records() == ()
    assert list_files(store) == [".lock", "faces/.lock", "keys.json"]
    for use in (store.resolve, store.load_source, store.remove):
        with pytest.raises(ConsentError, match="is enrolled"):
            use(record.face_id)


def test_asking_costs_little(store, record):
    """It is asked once a second while frames run."""
    store.is_allowed(record.face_id)
    started = time.thread_time()
    for _ in range(500):
        store.is_allowed(record.face_id)
    asking = time.thread_time() - started
    path = store.folder / "faces" / record.face_id / "record.json"
    started = time.thread_time()
    for _ in range(500):
        path.read_bytes()
    assert asking < 5 * (time.thread_time() - started)


def test_the_same_picture_gets_the_new_consent(store, record, clock):
    store.revoke("Anna")
    clock.advance(NS_PER_S)
    again = store.enroll(draw(), "Anna Berger, my birthday, 10d", check=accept)
    assert (again.face_id, again.name) == (record.face_id, "Anna")
    assert again.consent_sha256 != record.consent_sha256
    assert store.is_allowed(again.face_id)
    assert store.load_source(again.face_id).digest == record.picture_sha256
    assert len(store.list_records()) == 1
    assert record.consent_sha256 in again.history[0]
    assert "revoked" in again.history[0]


def test_another_persons_consent_does_not_take_the_place_of_one_that_holds(store, record):
    with pytest.raises(RefusedError, match="enrolled already as Anna"):
        store.enroll(draw(), "Bert Berger, my streams, 10d", check=accept)
    assert store.check_consent(record.face_id) == record


def test_names_are_one_person_s_each(store, record):
    store.enroll(draw(1), CONSENT, check=accept)
    with pytest.raises(RefusedError, match=f"taken by {record.face_id}"):
        store.enroll(draw(2), CONSENT, check=accept, name="ANNA")
    assert len(store.list_records()) == 2


@pytest.mark.parametrize(
    "name", ["face_1", "avatar:fox", "a,b", "a/b", "a:b", "x" * 65, "a\\b", "a\x07b"]
)
def test_a_name_is_not_the_like_of_an_id_a_list_or_a_path(store, name):
    with pytest.raises(RefusedError, match="name"):
        store.enroll(draw(), CONSENT, check=accept, name=name)


@pytest.mark.parametrize("name", ["A", "王小明", "Anna Berger", "x" * 64])
def test_other_names_are_fine(store, name):
    assert store.resolve(store.enroll(draw(), CONSENT, check=accept, name=name).name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Bob", "faces list"),
        ("me.png", "faces enroll PICTURE"),
        ("/home/anna/me.png", "faces enroll PICTURE"),
        ("face_0123456789ab", "faces list"),
        ("../../etc", "faces enroll"),
        ("", "faces list"),
    ],
)
def test_who_is_not_enrolled_is_said(store, record, name, words):
    """C78: a file's path is no way around the gate."""
    with pytest.raises(ConsentError, match=words):
        store.resolve(name)
    assert not store.is_allowed(name)
    with pytest.raises(ConsentError, match="is enrolled"):
        store.load_source(name)


def test_drawn_faces_need_nobody_s_consent(store):
    assert store.resolve("avatar:fox") == "avatar:fox"
    assert store.is_allowed("avatar:fox")
    with pytest.raises(ConsentError, match="drawn"):
        store.revoke("avatar:fox")
    assert not store.folder.exists()


def rewrite(store, record, **changes):
    path = store.folder / "faces" / record.face_id / "record.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, **changes)))


def test_a_record_that_was_rewritten_is_refused(store, record):
    longer = msgspec.structs.replace(record.consent, until="2033-01-01T00:00:00+00:00")
    rewrite(store, record, consent=longer)
    assert not store.is_allowed(record.face_id)
    with pytest.raises(ConsentError, match="altered"):
        store.load_source(record.face_id)
    # Whoever mends the hash as well has a record that opens no picture.
    rewrite(store, record, consent=longer, consent_sha256=longer.digest)
    with pytest.raises(ConsentError, match="cannot be used"):
        store.load_source(record.face_id)


def test_a_picture_that_was_exchanged_is_refused(store, record):
    other = store.enroll(draw(1), CONSENT, check=accept)
    folder = store.folder / "faces"
    (folder / record.face_id / "picture").write_bytes(
        (folder / other.face_id / "picture").read_bytes()
    )
    with pytest.raises(ConsentError, match=r"picture of Anna cannot be used.*altered"):
        store.load_source(record.face_id)


@pytest.mark.parametrize("text", ["", "{}", "null", "\xff"])
def test_a_damaged_record_allows_nothing_and_can_be_removed(store, record, text):
    (store.folder / "faces" / record.face_id / "record.json").write_text(text)
    assert not store.is_allowed(record.face_id)
    assert store.list_records() == ()
    assert store.list_damaged() == (record.face_id,)
    with pytest.raises(ConsentError, match=f"faces remove {record.face_id}"):
        store.load_source(record.face_id)
    store.remove(record.face_id)
    assert store.list_damaged() == ()


def test_what_failed_halfway_allows_nothing(store, record, monkeypatch):
    def fail(_record):
        raise ConfigError("the disk is full")

    monkeypatch.setattr(store._shelf, "write_record", fail)
    with pytest.raises(ConfigError, match="full"):
        store.enroll(draw(), "Anna Berger, other things, 10d", check=accept)
    with pytest.raises(ConsentError, match="cannot be used"):
        store.load_source(record.face_id)


def test_rotated_keys_seal_faces_anew_and_old_ones_can_go(store, record):
    """R9"""
    (first,) = store.keys.list_keys()
    second, changed = store.rotate_keys()
    assert changed == 1
    store.retire_key(first.key_id)
    assert store.load_source(record.face_id).digest == record.picture_sha256
    with pytest.raises(TokenError, match="rotate first"):
        store.retire_key(second)


def test_faces_are_bounded(store, record, monkeypatch):
    monkeypatch.setattr(faces_module, "MAX_FACES", 1)
    with pytest.raises(RefusedError, match="remove some"):
        store.enroll(draw(1), CONSENT, check=accept)
    store.enroll(draw(), CONSENT, check=accept)


def test_threads_that_enroll_at_once_lose_nothing(store):
    def enroll(seed):
        store.enroll(draw(seed), CONSENT, check=accept)

    threads = [threading.Thread(target=enroll, args=(seed % 3,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = store.list_records()
    assert len(records) == 3
    assert all(store.is_allowed(record.face_id) for record in records)


@pytest.mark.parametrize(
    ("data", "folder"),
    [("/data", "/data/livefuse"), ("", "/home/anna/.local/share/livefuse"), ("x", None)],
)
def test_the_folder_is_where_the_desktop_keeps_data(monkeypatch, data, folder):
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.setenv("XDG_DATA_HOME", data)
    expected = folder or "/home/anna/.local/share/livefuse"
    assert str(find_safety_folder(SafetyConfig())) == expected
    assert str(find_safety_folder(SafetyConfig(folder="~/f"))) == "/home/anna/f"


# The gallery.


class Network:
    """An embedder that counts."""

    def __init__(self, model="small", length=4):
        self.asked = 0
        self.model, self.length = model, length
        self.embedder = FaceEmbedder(model, self.embed)

    def embed(self, rgb):
        self.asked += 1
        vector = np.full(self.length, float(rgb.mean()), np.float32)
        return vector / np.linalg.norm(vector)


def open_with(store, clock, network):
    return FaceStore(SafetyConfig(folder=str(store.folder)), clock, embedder=network.embedder)


def test_the_gallery_knows_those_whose_consent_holds(store, clock):
    """R24"""
    network = Network()
    store = open_with(store, clock, network)
    anna = store.enroll(draw(), CONSENT, check=accept, name="Anna")
    other = store.enroll(draw(1), "Bob, tests, 1d", check=accept)
    assert {known.person for known in store.list_gallery()} == {"Anna", other.face_id}
    assert [known.embedding.shape for known in store.list_gallery()] == [(4,), (4,)]
    assert network.asked == 2
    clock.advance(2 * DAY_NS)
    assert [known.person for known in store.list_gallery()] == ["Anna"]
    store.revoke(anna.face_id)
    assert store.list_gallery() == ()


def test_embeddings_are_kept_sealed_and_made_again_by_another_network(store, clock, record):
    first, second = Network(), Network("large", 8)
    assert len(open_with(store, clock, first).list_gallery()) == 1
    path = store.folder / "faces" / record.face_id / "embedding"
    assert b"small" not in path.read_bytes()
    assert len(open_with(store, clock, first).list_gallery()) == 1
    assert first.asked == 1
    store = open_with(store, clock, second)
    for _ in range(3):
        assert store.list_gallery()[0].embedding.shape == (8,)
    assert second.asked == 1


def test_a_face_that_the_network_cannot_read_is_left_out_and_not_asked_for_again(store, clock):
    asked = []

    def embed(_rgb):
        asked.append(1)
        raise RefusedError("no face", hint="")

    store.enroll(draw(), CONSENT, check=accept)
    store = FaceStore(
        SafetyConfig(folder=str(store.folder)), clock, embedder=FaceEmbedder("small", embed)
    )
    assert store.list_gallery() == store.list_gallery() == ()
    assert len(asked) == 1


# Inline pictures.


def test_an_inline_picture_becomes_the_id_of_the_face_it_is(store, record):
    """R5"""
    text = b64encode(draw()).decode()
    assert intern_source(text, store) == record.face_id
    assert intern_source("data:image/png;base64," + text, store) == record.face_id


def test_an_inline_picture_needs_a_consent_too(store, record):
    """C78"""
    text = b64encode(draw(1)).decode()
    with pytest.raises(ConsentError, match="nobody has consented"):
        intern_source(text, store)
    with pytest.raises(ConsentError, match="nobody has consented"):
        intern_source(text, store, consent=CONSENT)  # nobody looked at it
    with pytest.raises(RefusedError, match="2 faces"):
        intern_source(text, store, consent=CONSENT, check=refuse)
    assert len(store.list_records()) == 1
    face_id = intern_source(text, store, consent=CONSENT, check=accept)
    assert store.is_allowed(face_id)
    assert intern_source(text, store) == face_id
    store.revoke(face_id)
    with pytest.raises(ConsentError, match="revoked"):
        intern_source(text, store)


def test_no_file_is_left_open(store, record):
    here = Path("/proc/self/fd")
    if not here.is_dir():
        pytest.skip("no /proc")
    before = len(list(here.iterdir()))
    for _ in range(20):
        store.revoke("Anna")
        store.enroll(draw(), CONSENT, check=accept)
    assert len(list(here.iterdir())) <= before + 1


def test_a_consent_that_ends_while_a_network_looks_at_the_face_is_obeyed(store, clock, record):
    """Nothing of the face is given out, and nothing is left beside its record."""

    def embed(_picture):
        store.revoke(record.face_id)
        return np.ones(4, np.float32) / 2

    late = FaceStore(
        SafetyConfig(folder=str(store.folder)), clock, embedder=FaceEmbedder("late", embed)
    )
    assert late.list_gallery() == ()
    assert not (store.folder / "faces" / record.face_id / "embedding").exists()
