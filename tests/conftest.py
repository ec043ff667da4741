"""Fixtures for all tests."""

from __future__ import annotations

import pytest

from tests.media import make_clip

pytest_plugins = ["tests.plugins.blocked_loop"]


@pytest.fixture(scope="session")
def face_clip(tmp_path_factory):
    """An MP4 of 12 s, 640x360 at 30 fps: a face that moves and speaks, counter, flash and beep."""
    return make_clip(tmp_path_factory.mktemp("clips") / "face.mp4", 12.0)


@pytest.fixture(scope="session")
def short_clip(tmp_path_factory):
    """The same for 3 s, for tests that need no more."""
    return make_clip(tmp_path_factory.mktemp("clips") / "short.mp4", 3.0)


@pytest.fixture(scope="session")
def bars_clip(tmp_path_factory):
    """An MP4 of 3 s, 640x360 at 30 fps, without any face."""
    return make_clip(tmp_path_factory.mktemp("clips") / "bars.mp4", 3.0, face=False)
