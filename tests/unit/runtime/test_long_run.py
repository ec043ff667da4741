"""Many frames through real steps with networks that cost nothing: memory, sessions, failures."""

import gc
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import psutil
import pytest

from livefuse.clock import ManualClock
from livefuse.config import BlurConfig, Config, ModelsConfig, TrackConfig
from livefuse.face import Box, Detection
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.detect_step import DetectStep
from livefuse.pipeline.analysis.track import FaceTracker
from livefuse.pipeline.steps import STEPS, Pipeline
from livefuse.runtime.registry import load_registry
from livefuse.token import create_token
from tests.faces import create_services, share_sessions

SIZE = (160, 90)
TICKS = 3000
OPERATIONS = ("detect", "align", "blur")


class RandomDetector:
    """Zero to eight faces out of eight places, anew at each look."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def detect(self, frame, *, light=False):
        found = []
        for place in self.random.permutation(8)[: self.random.integers(0, 9)]:
            x, y = 5 + 38 * (place % 4), 5 + 42 * (place // 4)
            side = self.random.uniform(15, 25)
            marks = np.array([(0.3, 0.4), (0.7, 0.4), (0.5, 0.6), (0.35, 0.8), (0.65, 0.8)])
            box = Box(x, y, x + side, y + 1.3 * side)
            points = (marks * (side, 1.3 * side) + (x, y)).astype(np.float32)
            found.append(Detection(box, 0.9, points))
        return found


class FakeMesh:
    """A face mesh network that says the same of every crop."""

    input_names = ("input_1",)
    output_names = ("mesh", "score")

    def __init__(self):
        from livefuse.pipeline.topology import UV

        self.model = load_registry(ModelsConfig()).get_model("facemesh_468")
        points = np.column_stack([UV * 150 + 20, np.zeros(len(UV))]).astype(np.float32)
        self.mesh = points.reshape(1, 1, 1, -1)

    def run(self, feeds):
        return [self.mesh.copy(), np.full((1, 1, 1, 1), 9.0, np.float32)]


class FakeSessions:
    """Counts what is asked for."""

    def __init__(self):
        self.asked = 0

    def get(self, name, threads=1):
        self.asked += 1
        return FakeMesh()


def draw_scene(seed):
    """Return the planes of a picture of 40 grey blocks."""
    blocks = np.random.default_rng(seed).integers(30, 220, (5, 8), np.uint8)
    luma = blocks.repeat(SIZE[1] // 5, axis=0).repeat(SIZE[0] // 8, axis=1)
    planes = np.full((SIZE[1] * 3 // 2, SIZE[0]), 128, np.uint8)
    planes[: SIZE[1]] = luma
    return planes


def create_pipeline():
    """Return a pipeline whose networks cost nothing, and its sessions."""
    config = Config(track=TrackConfig(hold_frames=0), blur=BlurConfig(style="mosaic"))

    def create_detect(context):
        tracker = FaceTracker(RandomDetector(), config.track, every_n=1, min_score=0.5)
        return DetectStep(tracker)

    STEPS["detect"] = create_detect
    sessions = FakeSessions()
    return Pipeline(config, sessions, ManualClock(), create_services()), sessions  # type: ignore[arg-type] # a fake


@pytest.fixture
def pipeline(monkeypatch):
    monkeypatch.setitem(STEPS, "detect", STEPS["detect"])
    made, sessions = create_pipeline()
    yield made, sessions
    made.close()


def measure_long_run():
    """Return what is held after 1,000 and 1,500 frames (see `run`), and what was seen."""
    made, sessions = create_pipeline()
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    light_token = create_token(("detect", "blur"), now_epoch_s=0.0)
    made.prepare(token)
    scenes = [draw_scene(seed) for seed in range(4)]
    frame = create_frame(*SIZE)
    process, seen = psutil.Process(), set()

    def run(first, count):
        """Return the objects, blocks of memory and bytes held after frame `first + count`."""
        for turn in range(first, first + count):
            frame.buffer[:] = scenes[turn // 2 % 4]  # a cut lets the faces go
            frame.pts = turn * TICKS
            outcome = made.process(frame, token if turn % 10 == 0 else light_token)
            assert outcome.vouched, outcome.error
            seen.add(len(outcome.faces))
        gc.collect()
        blocks = sys.getallocatedblocks()
        return len(gc.get_objects()), blocks, process.memory_info().rss

    run(0, 500)
    held = [run(first, 500) for first in range(500, 1500, 500)]
    return held, seen, sessions.asked


def test_memory_is_flat_whatever_faces_come_and_go():
    """(C29) 1,500 frames, 0 to 8 faces at random; nothing grows after the 500th.

    In a process of its own: in this one other tests have left memory that comes and goes.
    """
    alone = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=alone) as pool:
        held, seen, asked = pool.submit(measure_long_run).result(timeout=100)
    objects, blocks, rss = zip(*held, strict=True)
    assert seen == set(range(9))
    assert asked == 1
    # What a track, a face or a token leaves behind would be 500 objects here, or 500 arrays, which
    # the collector does not count: a week of 128 bytes for each frame is 2 GB.
    assert objects[-1] - objects[0] < 200, objects
    assert blocks[-1] - blocks[0] < 400, blocks
    assert rss[-1] - rss[0] < 4 << 20, rss


def test_a_step_that_fails_on_every_frame_never_shows_one(pipeline, monkeypatch):
    """(C21) covered, counted, never vouched for, and the token says which step."""
    made, _ = pipeline

    class Broken:
        def prepare(self, token):
            pass

        def run(self, state):
            raise RuntimeError("driver gone")

        def reset(self):
            pass

    monkeypatch.setitem(STEPS, "align", lambda context: Broken())
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    frame = create_frame(*SIZE)
    picture = np.random.default_rng(0).integers(16, 235, frame.buffer.shape, np.uint8)
    for turn in range(20):
        frame.buffer[:] = picture
        frame.pts = turn * TICKS
        outcome = made.process(frame, token)
        assert not outcome.vouched
        assert outcome.covered_whole
        assert outcome.error == "align: driver gone"
        assert outcome.token.state == "align_failed"
        assert np.abs(frame.y.astype(int) - picture[: SIZE[1]]).mean() > 20
    assert made.failures == 20


def test_garbage_of_a_network_covers_the_frame(monkeypatch):
    """A result that cannot be used is a failed step, not a frame without a face."""
    from livefuse.errors import ModelError
    from livefuse.runtime.network import Network
    from tests.faces import create_face_frame, create_pipeline

    sessions = share_sessions()
    mesh = sessions.get(Config().align.model)
    made = create_pipeline()
    token = create_token(OPERATIONS, now_epoch_s=0.0)
    made.prepare(token)
    assert made.process(create_face_frame(), token).vouched

    def forward(self, feeds):
        outputs = self._call(feeds)
        if self is mesh:
            outputs[0] = np.full_like(outputs[0], np.nan)
        return outputs

    monkeypatch.setattr(Network, "_forward", forward)
    with pytest.raises(ModelError, match="cannot be used: it is not finite"):
        mesh.run({mesh.input_names[0]: np.zeros((1, 192, 192, 3), np.float32)})
    outcome = made.process(create_face_frame(pts=TICKS), token)
    assert (outcome.vouched, outcome.covered_whole) == (False, True)
    assert "not finite" in outcome.error
    made.close()
