"""`livefuse faces` and `livefuse token`, as typed: words, exit codes, one line when it fails."""

import hashlib
import io
import json
import sys

import cv2
import numpy as np
import pytest

from livefuse.control.cli import main
from livefuse.errors import EXIT_CODES, ConfigError, ConsentError, RefusedError, TokenError
from livefuse.ingest.scene.talking_head import load_portrait
from livefuse.safety.audit_records import parse_line
from tests.faces import ASTRONAUT

CONSENT = "Eileen Collins, my live streams, 90d"


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """A function that runs a command line in a home of its own: code, output, errors."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return run


def expect_one_line(done, code, *words):
    """Check that `done` ended in one line on standard error, with `code` and all `words`."""
    assert done[:2] == (code, ""), done
    (line,) = done[2].splitlines()
    assert line.startswith("livefuse: ")
    for word in words:
        assert word in line, line


def test_a_face_is_enrolled_listed_revoked_and_removed(run, tmp_path):
    """R54"""
    code, said, errors = run("faces", "enroll", ASTRONAUT, "--consent", CONSENT, "--name", "Eileen")
    assert (code, errors) == (0, "")
    assert "--source-face Eileen" in said
    face_id = said.split()[1]
    _, listed, _ = run("faces", "list")
    assert [word in listed for word in (face_id, "valid", "Eileen Collins: my live")] == [True] * 3
    assert run("faces", "revoke", "eileen")[0] == 0
    assert "revoked" in run("faces", "list")[1]
    assert not (tmp_path / "data" / "livefuse" / "faces" / face_id / "picture").exists()
    assert run("faces", "remove", face_id)[:2] == (0, f"removed {face_id}\n")
    assert "enroll PICTURE" in run("faces", "list")[2]


def test_a_refused_picture_leaves_nothing(run, tmp_path):
    """C68, C78"""
    consent, refused = EXIT_CODES[ConsentError], EXIT_CODES[RefusedError]
    empty = tmp_path / "grey.png"
    cv2.imwrite(str(empty), np.full((200, 200, 3), 128, np.uint8))
    enroll = ("faces", "enroll", ASTRONAUT, "--consent")
    expect_one_line(run(*enroll, "Eileen"), consent, "what for", "until when")
    expect_one_line(run(*enroll, "Eileen, streams, soon"), consent, "'soon'")
    expect_one_line(run(*enroll, CONSENT, "--name", "a/b"), refused, "name")
    expect_one_line(run("faces", "enroll", empty, "--consent", CONSENT), refused, "no face")
    photo = cv2.imread(str(ASTRONAUT))
    assert photo is not None
    head, two = photo[:260, 100:360], tmp_path / "two.png"
    cv2.imwrite(str(two), np.hstack([head, head[:, ::-1]]))
    expect_one_line(run("faces", "enroll", two, "--consent", CONSENT), refused, "2 faces", "crop")
    expect_one_line(run("faces", "enroll", __file__, "--consent", CONSENT), refused, "PNG")
    expect_one_line(
        run("faces", "enroll", "none.png", "--consent", CONSENT),
        EXIT_CODES[ConfigError],
        "none.png",
    )
    expect_one_line(run("faces", "enroll", ASTRONAUT), EXIT_CODES[ConfigError], "--consent")
    expect_one_line(run("faces", "revoke", "Bob"), consent, "Bob", "faces list")
    expect_one_line(run("faces", "remove", "Bob"), consent, "Bob")
    assert not (tmp_path / "data").exists()


def test_a_consent_for_some_jobs_with_its_evidence_is_shown(run, tmp_path):
    """R54"""
    form = tmp_path / "form.pdf"
    form.write_bytes(b"a signed form")
    enroll = ("faces", "enroll", ASTRONAUT, "--consent", CONSENT, "--name", "Eileen")
    code, _, errors = run(*enroll, "--jobs", "show-*", "--jobs", "main", "--evidence", form)
    assert (code, errors) == (0, "")
    _, shown, _ = run("faces", "show", "eileen")
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert lines["who"] == "Eileen Collins"
    assert lines["purpose"] == "my live streams"
    assert lines["jobs"] == "show-*, main"
    assert lines["evidence"].startswith("form.pdf, 13 bytes, SHA-256 ")
    assert hashlib.sha256(b"a signed form").hexdigest() in lines["evidence"]
    assert " by cli:" in lines["enrolled"]
    assert lines["picture"].endswith(", kept")
    empty, none = tmp_path / "empty", tmp_path / "none"
    empty.touch()
    expect_one_line(run(*enroll, "--evidence", empty), EXIT_CODES[ConsentError], "empty")
    expect_one_line(run(*enroll, "--evidence", none), EXIT_CODES[ConfigError], "evidence", "none")
    expect_one_line(run(*enroll, "--jobs", "a b"), EXIT_CODES[ConsentError], "names no jobs")
    expect_one_line(run("faces", "show", "Bob"), EXIT_CODES[ConsentError], "Bob")


def test_a_consent_for_other_jobs_is_none_for_this_one(run, tmp_path):
    """R54, C78"""
    run("faces", "enroll", ASTRONAUT, "--consent", CONSENT, "--name", "Eileen", "--jobs", "show-*")
    done = run("run", "--from", "demo:", "--to", tmp_path / "a.mp4", "--source-face", "eileen",
               "--set", "http.enabled=false", "--for", "1")  # fmt: skip
    assert done[0] == EXIT_CODES[ConsentError]
    assert "is for the jobs show-*, not for main" in done[2]
    assert not (tmp_path / "a.mp4").exists()


def test_a_face_without_its_picture_is_known_and_not_shown(run, tmp_path):
    enroll = ("faces", "enroll", ASTRONAUT, "--consent", CONSENT, "--name", "Eileen")
    code, said, _ = run(*enroll, "--forget-picture")
    assert code == 0
    assert "no swap or puppet" in said
    assert not list((tmp_path / "data").rglob("picture"))
    assert "not kept" in run("faces", "show", "eileen")[1]
    done = run("run", "--from", "demo:", "--to", tmp_path / "a.mp4", "--source-face", "eileen",
               "--set", "http.enabled=false", "--for", "1")  # fmt: skip
    assert done[0] == EXIT_CODES[RefusedError]
    assert "picture of Eileen was not kept" in done[2]


def test_a_denied_face_is_refused_until_it_is_let_go(run, tmp_path):
    """R53, C75: by the embedded network; the portrait of demo: is the same person's."""
    portrait = tmp_path / "portrait.png"
    cv2.imwrite(str(portrait), load_portrait())
    code, said, _ = run("faces", "deny", portrait, "--name", "Eileen")
    assert (code, said.split()[2]) == (0, "Eileen:")
    denied = said.split()[1]
    assert run("faces", "deny", "--list")[1].split()[::2] == [denied, "Eileen"]
    refused = EXIT_CODES[RefusedError]
    enroll = ("faces", "enroll", ASTRONAUT, "--consent", CONSENT)
    expect_one_line(run(*enroll), refused, "denied here", "6 of 6 looks", "likeness 0.9")
    assert run("faces", "deny", "--remove", "eileen")[1] == f"no longer denied: {denied}\n"
    assert run(*enroll)[0] == 0
    assert "nobody is denied" in run("faces", "deny", "--list")[2]
    expect_one_line(run("faces", "deny", "--remove", "eileen"), refused, "eileen")
    expect_one_line(run("faces", "deny"), EXIT_CODES[ConfigError], "one of a picture")
    expect_one_line(run("faces", "deny", __file__, "--name", "x"), refused, "PNG")


def test_names_of_public_figures_are_refused(run, tmp_path):
    """R53: of a face, of who consents, of a look; each is logged."""
    refused = EXIT_CODES[RefusedError]
    enroll = ("faces", "enroll", ASTRONAUT, "--consent")
    expect_one_line(run(*enroll, CONSENT, "--name", "Elon Musk"), refused, "name", "Elon Musk")
    expect_one_line(run(*enroll, "习近平, tests, 9d"), refused, "consent", "Xi Jinping")
    done = run("run", "--from", "demo:", "--to", tmp_path / "a.mp4", "--look", "Taylor_Swift")
    expect_one_line(done, refused, "the look names a public figure: Taylor Swift", "allow_names")
    log = tmp_path / "data" / "livefuse" / "audit" / "audit.jsonl"
    records = [parse_line(line) for line in log.read_bytes().splitlines()]
    assert [(r.event, r.who, r.facts["what"]) for r in records if r is not None] == [
        ("refusal.prompt", "cli", "the name"),
        ("refusal.prompt", "cli", "the consent"),
        ("refusal.prompt", "cli", "the look"),
    ]
    allowed = tmp_path / "allowed.txt"
    allowed.write_text("Elon Musk\n")
    done = run(*enroll, CONSENT, "--name", "Elon Musk", "--set", f"refuse.allow_names={allowed}")
    assert done[0] == 0


def test_a_token_is_sealed_and_opened(run, tmp_path):
    """R9"""
    plain = b'{"request_id":"a","operations":["detect"],"timestamp":4e9}'
    code, sealed, _ = run("token", "seal", "-", stdin=plain)
    assert code == 0
    assert sealed.startswith("lf1.")
    path = tmp_path / "sealed"
    path.write_text(sealed)
    code, opened, errors = run("token", "open", path)
    assert (code, errors) == (0, "")
    assert json.loads(opened)["request_id"] == "a"
    assert run("token", "open", "-", stdin=sealed.encode())[1] == opened
    assert run("token", "seal", "-", stdin=opened.encode())[0] == 0


def test_an_expired_token_can_be_looked_at(run):
    sealed = run("token", "seal", "-", stdin=b'{"request_id":"a"}')[1]
    code, opened, errors = run("token", "open", "-", stdin=sealed.encode())
    assert (code, json.loads(opened)["request_id"]) == (0, "a")
    assert "expired" in errors


def test_keys_rotate_and_retire(run):
    """R9"""
    sealed = run("token", "seal", "-", stdin=b'{"request_id":"a"}')[1].encode()
    code, said, _ = run("token", "rotate")
    assert code == 0
    old, new = (line.split()[0] for line in said.splitlines()[1:])
    assert run("token", "open", "-", stdin=sealed)[0] == 0
    code, said, _ = run("token", "rotate", "--retire", old)
    assert code == 0
    assert f"{old}  retired" in said
    expect_one_line(run("token", "open", "-", stdin=sealed), EXIT_CODES[TokenError], "retired")
    expect_one_line(run("token", "rotate", "--retire", new), EXIT_CODES[TokenError], "rotate")


def test_bad_tokens_end_in_one_line(run):
    wrong = EXIT_CODES[TokenError]
    expect_one_line(run("token", "seal", "-", stdin=b"{}"), wrong, "request_id")
    expect_one_line(
        run("token", "seal", "-", stdin=b'{"request_id":"a","operations":["blur"]}'),
        wrong,
        "detect,blur",
    )
    expect_one_line(run("token", "open", "-", stdin=b"\xff\xfe"), wrong, "lf1.")
    expect_one_line(run("token", "open", "nowhere"), EXIT_CODES[ConfigError], "nowhere")
    expect_one_line(run("token", "open"), EXIT_CODES[ConfigError], "FILE")


def test_the_schema_is_printed(run):
    """R12"""
    code, said, _ = run("token", "schema")
    assert code == 0
    assert json.loads(said)["$defs"]["Token"]["required"] == ["request_id"]
