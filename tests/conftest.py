"""Fixtures for all tests."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests.media import make_clip

# Faces, keys and consents of whoever runs the tests are left alone, by child processes too. Before
# any test module is read: some copy the environment.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="livefuse-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

# What a machine does beside the tests is no fault of what is tested.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

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
