"""`livefuse mark key`: what is told of an install's keys, and what is not."""

import json
from functools import partial

import pytest

from livefuse.config import SafetyConfig
from livefuse.control.commands.mark import read
from livefuse.control.commands.mark_key import key, parse_public_key
from livefuse.errors import ConfigError
from livefuse.mark_ids import identify_key
from livefuse.publish.ts_writer import TsWriter
from livefuse.safety.c2pa_chain import load_c2pa_chain
from livefuse.safety.mark_keys import JobMarks, load_mark_keys, make_mark_keys
from tests.marked import mark_media
from tests.streams import make_media


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "safety")


def ask(folder, **options):
    key(settings=[f"safety.folder={folder}"], **options)


def test_the_public_key_and_its_name_are_told(folder, capsys):
    ask(folder)
    told = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    keys = load_mark_keys(SafetyConfig(folder=folder))
    assert told == {"install": keys.install_id, "public key": keys.public_key.hex()}
    assert identify_key(bytes.fromhex(told["public key"])).hex() == told["install"]


def test_nothing_secret_is_told(folder, capsys):
    chain = load_c2pa_chain(SafetyConfig(folder=folder), 1.8e9)
    ask(folder)
    ask(folder, json=True)
    ask(folder, root=True)
    out = capsys.readouterr().out
    keys = load_mark_keys(SafetyConfig(folder=folder))
    assert "PRIVATE" not in out
    assert keys.signing.private_bytes_raw().hex() not in out
    assert str(keys.luma_key) not in out
    assert chain.root in out


def test_json_has_the_root_once_there_is_one(folder, capsys):
    ask(folder, json=True)
    assert json.loads(capsys.readouterr().out)["c2pa_root"] == ""
    chain = load_c2pa_chain(SafetyConfig(folder=folder), 1.8e9)
    ask(folder, json=True)
    assert json.loads(capsys.readouterr().out)["c2pa_root"] == chain.root


def test_a_root_that_is_not_made_yet_is_told(folder):
    with pytest.raises(ConfigError):
        ask(folder, root=True)


def test_another_installs_key_verifies_its_records(folder, tmp_path, capsys):
    """A record of another install: unknown, until its public key is given."""
    path = tmp_path / "out.ts"
    theirs = JobMarks("main", make_mark_keys())
    media = mark_media(make_media(30), theirs)
    writer = TsWriter(media.streams)
    path.write_bytes(writer.build_header() + b"".join(map(writer.write, media.packets)))
    ask = partial(read, str(path), settings=[f"safety.folder={folder}"], json=True, seconds=1.0)
    assert ask() == 0
    assert json.loads(capsys.readouterr().out)["sei"]["verdicts"] == {"other_install": 1}
    ask(keys=[theirs.keys.public_key.hex()])
    told = json.loads(capsys.readouterr().out)["sei"]
    assert (told["verdicts"], told["installs"]) == ({"valid": 1}, [theirs.keys.install_id])


@pytest.mark.parametrize("text", ["", "ab", "x" * 64, "0" * 66, "é" * 64])
def test_what_is_no_public_key_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        parse_public_key(text)
    assert "livefuse mark key" in caught.value.hint
