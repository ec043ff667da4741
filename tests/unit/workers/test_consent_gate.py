"""From the folder of faces to the frame: a swap needs a consent, and ends with it."""

import numpy as np
import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.config import Config, SafetyConfig
from livefuse.errors import ConsentError
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.safety.cover import cover_frame
from livefuse.safety.faces import FaceStore
from livefuse.token import create_token
from tests.faces import ASTRONAUT, create_face_frame, share_sessions

SECONDS = 5


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(tmp_path, clock):
    return FaceStore(SafetyConfig(folder=str(tmp_path)), clock)


@pytest.fixture
def pipeline(store, clock):
    services = Services(
        cover=cover_frame,
        cover_loading=cover_frame,
        load_source=store.load_source,
        list_gallery=store.list_gallery,
        is_allowed=store.is_allowed,
        explain_refusal=store.explain_refusal,
    )
    pipeline = Pipeline(Config(), share_sessions(), clock, services, every_frame=True)
    yield pipeline
    pipeline.close()


def create_swap(clock, face_id):
    return create_token(
        ["detect", "align", "swap"], now_epoch_s=clock.epoch_s(), source_face=face_id
    )


def test_a_swap_without_a_consent_is_not_prepared(pipeline, clock):
    """C78"""
    for face_id in ("face_0123456789ab", "Anna", str(ASTRONAUT.name)):
        with pytest.raises(ConsentError, match="is enrolled"):
            pipeline.prepare(create_swap(clock, face_id))


@pytest.mark.parametrize("end", ["revoke", "expire"])
def test_a_running_swap_is_covered_within_seconds_of_its_consent_s_end(pipeline, store, clock, end):
    """R54; design, section 7"""
    record = store.enroll(
        ASTRONAUT.read_bytes(), "Eileen Collins, tests, 1d", check=lambda _rgb: None
    )
    token = create_swap(clock, record.face_id)
    pipeline.prepare(token)
    pts = 0

    def show():
        nonlocal pts
        pts += 3000
        frame = create_face_frame(120, (320, 240), pts=pts)
        bare = frame.buffer.copy()
        outcome = pipeline.process(frame, token)
        return outcome, float(np.abs(frame.y.astype(int) - bare[:240]).mean())

    outcome, _ = show()
    assert outcome.vouched, outcome.error
    if end == "expire":
        clock.advance(86_400 * NS_PER_S)
    else:
        store.revoke(record.face_id)
    clock.advance(SECONDS * NS_PER_S)
    for _ in range(2):
        outcome, changed = show()
        assert (outcome.covered_whole, outcome.reason, outcome.vouched) == (
            True,
            "no_consent",
            False,
        )
        assert changed > 5.0
        how = "ended on 2023-11-15" if end == "expire" else "was revoked on 2023-11-14"
        assert outcome.error == f"the consent for the source face {how}: pictures are covered"
    # A new consent for the same picture is noticed as well.
    store.enroll(ASTRONAUT.read_bytes(), "Eileen Collins, tests, 1d", check=lambda _rgb: None)
    clock.advance(SECONDS * NS_PER_S)
    assert show()[0].vouched
