"""The folder of faces, consents and keys."""

import pytest

from livefuse.errors import ConfigError
from livefuse.safety.folder import make_private_folder


def test_all_that_is_made_is_its_owners_alone(tmp_path):
    """The first to come makes a folder within: the one around it holds the secrets."""
    make_private_folder(tmp_path / "livefuse" / "daemon" / "deep")
    for place in ("livefuse", "livefuse/daemon", "livefuse/daemon/deep"):
        assert (tmp_path / place).stat().st_mode & 0o777 == 0o700, place


def test_what_is_there_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a")
    make_private_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "file").touch()
    for place in ("file", "file/in"):
        with pytest.raises(ConfigError, match="cannot make the folder"):
            make_private_folder(tmp_path / place)
