"""The certificates of recordings: made once, for one purpose, renewed in time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from livefuse.config import SafetyConfig
from livefuse.errors import ConfigError
from livefuse.safety.c2pa_chain import C2PA_FILE, load_c2pa_chain, read_c2pa_root

NOW = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
YEAR_S = timedelta(days=365).total_seconds()


@pytest.fixture
def config(tmp_path):
    return SafetyConfig(folder=str(tmp_path / "safety"))


@pytest.fixture
def path(config, tmp_path):
    load_c2pa_chain(config, NOW)
    return tmp_path / "safety" / C2PA_FILE


def parse(chain):
    leaf, root = x509.load_pem_x509_certificates(chain.chain.encode())
    return leaf, root


def test_it_is_made_once_and_for_its_owner_only(config):
    assert read_c2pa_root(config) == ""
    chain = load_c2pa_chain(config, NOW)
    assert load_c2pa_chain(config, NOW + YEAR_S) == chain
    assert read_c2pa_root(config) == chain.root
    assert (Path(config.folder) / C2PA_FILE).stat().st_mode & 0o777 == 0o600


def test_the_leaf_is_of_the_profile_that_c2pa_asks_for(config):
    leaf, root = parse(load_c2pa_chain(config, NOW))
    leaf.verify_directly_issued_by(root)
    get = leaf.extensions.get_extension_for_class
    assert get(x509.BasicConstraints).value.ca is False
    assert get(x509.KeyUsage).value.digital_signature
    assert not get(x509.KeyUsage).value.key_cert_sign
    assert list(get(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.EMAIL_PROTECTION]
    issuer_id = get(x509.AuthorityKeyIdentifier).value.key_identifier
    subject = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert issuer_id == subject.key_identifier
    assert root.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert leaf.not_valid_before_utc.timestamp() < NOW < leaf.not_valid_after_utc.timestamp()
    assert leaf.not_valid_after_utc <= root.not_valid_after_utc


def test_a_leaf_that_grows_old_is_followed_by_another_of_the_same_root(config):
    before = load_c2pa_chain(config, NOW)
    after = load_c2pa_chain(config, NOW + 12 * YEAR_S)
    assert after.root == before.root
    assert after.key != before.key
    assert load_c2pa_chain(config, NOW + 12 * YEAR_S) == after


def test_the_key_is_not_shown(config):
    chain = load_c2pa_chain(config, NOW)
    assert "PRIVATE" in chain.key
    assert "PRIVATE" not in repr(chain)


def test_a_file_that_others_can_read_is_refused(config, path):
    path.chmod(0o644)
    with pytest.raises(ConfigError) as caught:
        load_c2pa_chain(config, NOW)
    assert "chmod 600" in caught.value.hint


def test_damage_is_told_and_nothing_is_written_over(config, path, tmp_path):
    whole = msgspec.json.decode(path.read_bytes())
    other = SafetyConfig(folder=str(tmp_path / "other"))
    load_c2pa_chain(other, NOW)
    foreign = msgspec.json.decode((tmp_path / "other" / C2PA_FILE).read_bytes())
    for damage in (
        b"",
        msgspec.json.encode({**whole, "leaf": "no certificate"}),
        msgspec.json.encode({**whole, "leaf_key": foreign["leaf_key"]}),
        msgspec.json.encode({**whole, "leaf": foreign["leaf"]}),
        msgspec.json.encode({**whole, "root_key": whole["root"]}),
    ):
        path.write_bytes(damage)
        with pytest.raises(ConfigError) as caught:
            load_c2pa_chain(config, NOW)
        assert "damaged" in str(caught.value)
        assert "PRIVATE" not in str(caught.value) + caught.value.hint
        assert path.read_bytes() == damage
