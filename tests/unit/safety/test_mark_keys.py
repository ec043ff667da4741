"""The keys of marks: one set for each install, whoever asks first."""

import json
import subprocess
import sys
import threading

import pytest
from cryptography.exceptions import InvalidSignature

from livefuse.config import SafetyConfig
from livefuse.errors import ConfigError
from livefuse.mark_ids import identify_key
from livefuse.safety.mark_keys import (
    MARK_KEY_FILE,
    REPLAY_KEYS,
    JobMarks,
    load_mark_keys,
    make_mark_keys,
)

_ASK = """
import sys
from livefuse.config import SafetyConfig
from livefuse.safety.mark_keys import load_mark_keys
sys.stdin.readline()
print(load_mark_keys(SafetyConfig(folder=sys.argv[1])).install_id)
"""


@pytest.fixture
def config(tmp_path):
    return SafetyConfig(folder=str(tmp_path / "safety"))


@pytest.fixture
def path(config, tmp_path):
    load_mark_keys(config)
    return tmp_path / "safety" / MARK_KEY_FILE


def test_keys_are_made_once_and_stay(config, path):
    keys = load_mark_keys(config)
    assert load_mark_keys(config).public_key == keys.public_key
    assert load_mark_keys(config).luma_key == keys.luma_key
    assert keys.install_id == identify_key(keys.public_key).hex()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_two_installs_differ(config, tmp_path):
    other = load_mark_keys(SafetyConfig(folder=str(tmp_path / "other")))
    keys = load_mark_keys(config)
    assert (keys.public_key, keys.luma_key) != (other.public_key, other.luma_key)
    assert keys.install_id != other.install_id
    assert make_mark_keys().install_id not in (keys.install_id, other.install_id)


def test_threads_that_start_together_get_the_same_keys(config):
    barrier = threading.Barrier(8)
    found = []

    def ask():
        barrier.wait()
        found.append(load_mark_keys(config).install_id)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_processes_that_start_together_get_the_same_keys(tmp_path, config):
    """Workers of one daemon start at the same moment: no key may be lost."""
    folder = str(tmp_path / "safety")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _ASK, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    found = {child.communicate()[0].strip() for child in children}
    assert found == {load_mark_keys(config).install_id}


def test_what_is_signed_can_be_verified(config):
    keys = load_mark_keys(config)
    signature = keys.signing.sign(b"a record")
    keys.signing.public_key().verify(signature, b"a record")
    with pytest.raises(InvalidSignature):
        make_mark_keys().signing.public_key().verify(signature, b"a record")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(config, path, mode):
    path.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        load_mark_keys(config)
    assert str(path) in str(caught.value)
    assert "chmod 600" in caught.value.hint


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b'{"luma": -1, "signing": "AAAA", "version": 1}',
        b'{"luma": 1, "signing": "AAAA", "version": 1}',
        b'{"luma": 1, "signing": "no base64!", "version": 1}',
        b'{"luma": 1, "signing": "", "version": 2}',
    ],
)
def test_a_damaged_file_is_told_without_quoting_it(config, path, damage):
    path.write_bytes(damage)
    with pytest.raises(ConfigError) as caught:
        load_mark_keys(config)
    assert "damaged" in str(caught.value)
    assert "backup" in caught.value.hint
    assert path.read_bytes() == damage  # nothing was made in its place


def test_half_a_file_is_damage_and_no_secret_is_told(config, path):
    whole = path.read_bytes()
    secret = json.loads(whole)["signing"]
    path.write_bytes(whole[:-4])
    with pytest.raises(ConfigError) as caught:
        load_mark_keys(config)
    assert secret not in str(caught.value) + caught.value.hint


def test_a_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "safety").write_text("")
    with pytest.raises(ConfigError):
        load_mark_keys(SafetyConfig(folder=str(tmp_path / "safety")))


def test_secrets_are_not_shown(config):
    keys = load_mark_keys(config)
    assert str(keys.luma_key) not in repr(keys)
    assert str(keys.luma_key) not in repr(JobMarks("job", keys))


def test_a_replay_has_the_same_keys_everywhere():
    assert REPLAY_KEYS.install_id == "445862729b65aeef"
    assert REPLAY_KEYS.luma_key == 0x6C69766566757365
    assert JobMarks("job", REPLAY_KEYS).number == 0xFBD8E0F8
