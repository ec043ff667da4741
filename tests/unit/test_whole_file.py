"""One writer to a file, and nothing that is waited for or destroyed while it is opened."""

import os

import pytest

from livefuse.whole_file import lock_file, open_locked


def test_a_new_file_has_the_rights_that_were_asked_for(tmp_path):
    with open_locked(tmp_path / "a", overwrite=False, mode=0o600) as file:
        file.write(b"x")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        open_locked(tmp_path / "a", overwrite=False)


def test_what_is_there_stays_until_it_is_written_over(tmp_path):
    (tmp_path / "a").write_bytes(b"before")
    open_locked(tmp_path / "a", overwrite=True).close()
    assert (tmp_path / "a").read_bytes() == b"before"


def test_a_file_has_one_writer(tmp_path):
    with open_locked(tmp_path / "a", overwrite=True) as first:
        with pytest.raises(BlockingIOError):
            open_locked(tmp_path / "a", overwrite=True)
        first.write(b"mine")
    with open_locked(tmp_path / "a", overwrite=True) as second:
        assert lock_file(second)
    assert (tmp_path / "a").read_bytes() == b"mine"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a plain file"):
        open_locked(tmp_path / "pipe", overwrite=True)
