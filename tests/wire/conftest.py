"""Servers for the wire tests, one of each for a module."""

from __future__ import annotations

import pytest

from tests.wire.servers import NginxRtmp, RtspServer


@pytest.fixture(scope="module")
def nginx():
    """An RTMP server that also records what it gets."""
    with NginxRtmp(is_recording=True) as server:
        yield server


@pytest.fixture(scope="module")
def rtsp_face(face_clip):
    """The face clip over RTSP; each client sees it from its first frame."""
    with RtspServer(face_clip) as server:
        yield server
