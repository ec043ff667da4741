"""A pipeline whose swap and enhance are networks: whole frames, from detect to the end."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.faces import create_face_frame, create_pipeline, create_services, read_picture
from tests.standins import install_standins

OPERATIONS = ("detect", "align", "swap", "enhance", "blur")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    names = ("hyperswap_1a_256", "gfpgan_1.4", "w600k_r50", "xseg_1")
    return SessionCache(install_standins(folder, *names))


@pytest.fixture
def pipeline(sessions):
    config = Config()
    config = msgspec.structs.replace(
        config,
        models=sessions._config,
        swap=msgspec.structs.replace(config.swap, model="hyperswap_1a_256"),
        enhance=msgspec.structs.replace(config.enhance, model="gfpgan_1.4", every_n=2),
        mask=msgspec.structs.replace(config.mask, occluder="xseg_1"),
    )
    picture = np.ascontiguousarray(read_picture()[:300, 60:400][:, ::-1])
    services = create_services({"me": picture})
    pipeline = create_pipeline(config, services=services, every_frame=True, sessions=sessions)
    pipeline.prepare(create_job_token())
    yield pipeline
    pipeline.close()


def create_job_token(**changes):
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    return msgspec.structs.replace(token, source_face="me", **changes)


def test_a_frame_tells_what_was_done_and_no_session_is_made(sessions, pipeline):
    """R6, R31: after the first frame nothing is loaded, with faces or without."""
    token = create_job_token()
    created = sessions.created
    for index in range(5):
        size = (640, 360) if index % 2 else (1280, 720)
        outcome = pipeline.process(create_face_frame(150, size, pts=3000 * index), token)
        assert outcome.vouched, outcome.error
        did = {entry.state: entry.reason for entry in outcome.token.log}
        assert did["swap"] == "swapped 1"
        assert did["enhance"].startswith("enhanced 1")
        assert did["blur"] == "covered 0"  # the one face is the swap's
    assert sessions.created == created


def test_the_same_frames_give_the_same_pixels(pipeline, sessions):
    """R62: a replay repeats to the bit."""

    def play():
        results = []
        for index in range(4):
            frame = create_face_frame(180, (640, 480), place=(0.5 + 0.01 * index, 0.5))
            frame.pts = 3000 * index
            pipeline.process(frame, create_job_token())
            results.append(frame.buffer.copy())
        for name in OPERATIONS:
            pipeline._get_step(name).reset()
        pipeline._pts = 0
        return results

    first, second = play(), play()
    for one, other in zip(first, second, strict=True):
        assert (one == other).all()


def test_garbage_from_a_swapper_covers_the_frame(pipeline, sessions, monkeypatch):
    """A result that is not a number is refused, and nothing of the picture is shown."""
    network = sessions.get("hyperswap_1a_256")

    class Garbage:
        def run(self, names, feeds):
            return [np.full((1, 3, 256, 256), np.nan, np.float32)]

    monkeypatch.setattr(network, "_session", Garbage())
    frame = create_face_frame(200, (640, 480))
    before = frame.y.copy()
    outcome = pipeline.process(frame, create_job_token())
    assert not outcome.vouched
    assert outcome.covered_whole
    assert "hyperswap_1a_256" in outcome.error
    assert np.abs(frame.y.astype(np.int16) - before).mean() > 5


def test_blend_of_nought_and_no_restorer_leave_every_px(pipeline):
    """R19, R20."""
    token = create_job_token()
    changed = msgspec.structs.replace(token.parameters, blend_ratio=0.0, enable_gfpgan=False)
    frame = create_face_frame(200, (640, 480))
    before = frame.buffer.copy()
    outcome = pipeline.process(frame, msgspec.structs.replace(token, parameters=changed))
    assert outcome.vouched
    assert (frame.buffer == before).all()
