"""Meshes: calm, quick, on the face that they are said to be of."""

import dataclasses
import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from livefuse.config import AlignConfig, Config, Rung
from livefuse.errors import ConfigError, ModelError
from livefuse.face import Box, Face
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.align import AlignStep, is_agreed
from livefuse.pipeline.analysis.facemesh import (
    FaceMesh,
    MeshCrop,
    create_crop_by_box,
    create_crop_by_mesh,
    follow_crop,
)
from livefuse.pipeline.analysis.pose import compute_pose, measure_width
from livefuse.pipeline.landmarks import convert_mesh_to_5
from livefuse.pipeline.state import FrameState
from livefuse.token import create_token
from tests.faces import analyse, create_face_frame, create_pipeline, share_sessions

OPERATIONS = ("detect", "align")
TOKEN = create_token(OPERATIONS, now_epoch_s=0.0)


@pytest.fixture(scope="module")
def seen():
    """A frame with a face 200 px wide, and that face."""
    frame = create_face_frame(200, (640, 480))
    return frame, analyse(frame).faces[0]


@pytest.fixture
def step():
    config = AlignConfig()
    return AlignStep(FaceMesh(share_sessions().get(config.model, config.threads)), config)


def align(step, frame, track, **more):
    state = FrameState(frame, TOKEN, faces=[Face(track)], **more)
    step.run(state)
    return state.faces[0]


def run_clip(frames):
    """Return the mesh of the one face in each of `frames`, by a live pipeline."""
    pipeline = create_pipeline()
    pipeline.prepare(TOKEN)
    meshes = []
    for frame in frames:
        state = pipeline.begin(frame, TOKEN)
        for name in OPERATIONS:
            pipeline.run_step(state, name)
        assert not state.error
        meshes.append(state.faces[0].mesh)
    return np.array(meshes)


def add_noise(frame, seed, sigma=2.0):
    noise = np.random.default_rng(seed).normal(0.0, sigma, frame.buffer.shape)
    frame.buffer[:] = np.clip(np.rint(frame.buffer + noise), 0, 255).astype(np.uint8)
    return frame


def test_a_still_head_in_noise_keeps_its_landmarks_within_half_a_px():
    """(C63) sigma 2, a face of 300 px: deviation < 0.5 px for every point."""
    frames = [add_noise(create_face_frame(300, (640, 560), pts=3000 * i), i) for i in range(18)]
    meshes = run_clip(frames)[6:, :468, :2]
    deviation = meshes.std(axis=0)
    assert np.median(deviation) < 0.15
    assert deviation.max() < 0.5


def test_fast_motion_is_followed_within_a_frame():
    """(C63) 20 px a frame, a fifteenth of the face: the mesh lags by less than one frame."""
    x = [20.0 * max(0, i - 6) for i in range(16)]
    frames = [
        add_noise(
            create_face_frame(300, (960, 560), place=((330 + at) / 960, 0.5), pts=3000 * i), i
        )
        for i, at in enumerate(x)
    ]
    middle = run_clip(frames)[:, :468, 0].mean(axis=1)
    behind = np.array(x) - (middle - middle[:6].mean())
    assert behind[7:].max() < 20.0 * 0.6
    assert np.abs(behind[12:]).max() < 20.0 * 0.3


def test_pose_and_five_points_come_with_the_mesh(seen):
    _, face = seen
    yaw, pitch, roll = face.pose_rad
    assert abs(yaw) < 0.15
    assert abs(pitch) < 0.35
    assert abs(roll) < 0.15
    assert np.array_equal(face.landmarks[5], convert_mesh_to_5(face.mesh))


@pytest.mark.parametrize(
    ("yaw", "pitch", "roll"), [(0.5, 0.0, 0.0), (0.0, 0.4, 0.0), (0.0, 0.0, -0.8), (-0.4, 0.2, 2.5)]
)
def test_pose_tells_how_a_mesh_was_turned(seen, yaw, pitch, roll):
    mesh = seen[1].mesh.astype(np.float64)
    mesh -= mesh.mean(axis=0)
    rest = compute_pose(mesh)
    # First made upright and frontal, then turned: pitch about x, yaw about y, roll about z.
    mesh = mesh @ turn(*rest)
    mesh = mesh @ turn(yaw, pitch, roll).T
    assert compute_pose(mesh) == pytest.approx((yaw, pitch, roll), abs=0.02)


def turn(yaw, pitch, roll):
    """Return the rotation of a head: x right, y down, z away; the nose points to -z."""
    cy, sy = math.cos(yaw), math.sin(yaw)
    cp, sp = math.cos(pitch), math.sin(pitch)
    cr, sr = math.cos(roll), math.sin(roll)
    about_y = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cp, sp], [0, -sp, cp]])
    about_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def test_a_crop_stays_until_the_face_has_moved_enough():
    kept = MeshCrop(100.0, 100.0, 200.0, 0.1)
    for near in (
        kept._replace(x=103.9),
        kept._replace(side=205.9),
        kept._replace(roll_rad=0.1 + math.radians(1.9)),
    ):
        assert follow_crop(kept, near) is kept
    moved = follow_crop(kept, MeshCrop(110.0, 100.0, 200.0, 0.1))
    assert moved.x == pytest.approx(107.0)
    assert follow_crop(kept, kept._replace(side=210.0)).side == pytest.approx(207.0)
    turned = follow_crop(kept._replace(roll_rad=3.1), kept._replace(roll_rad=-3.1))
    assert math.remainder(turned.roll_rad - 3.1, math.tau) == pytest.approx(0.7 * 0.0832, abs=1e-3)


def test_a_crop_by_a_mesh_is_level_and_holds_the_face(seen):
    mesh = seen[1].mesh
    crop = create_crop_by_mesh(mesh)
    placed = crop.to_crop()
    x = placed.a * mesh[:, 0] - placed.b * mesh[:, 1] + placed.tx
    y = placed.b * mesh[:, 0] + placed.a * mesh[:, 1] + placed.ty
    assert max(np.ptp(x[:468]), np.ptp(y[:468])) == pytest.approx(192 / 1.5, rel=0.01)
    assert abs(y[263] - y[33]) < 0.01
    assert (x.min() + x.max()) / 2 == pytest.approx(95.5, abs=2)


def test_a_mesh_that_drifted_onto_the_background_is_noticed(seen, step):
    frame, face = seen
    good = align(step, frame, face.track)
    kept = step._kept[face.track.track_id]
    kept.crop = kept.crop._replace(x=60.0, y=420.0, side=120.0)
    again = align(step, frame, face.track)
    assert np.abs(again.mesh - good.mesh)[:468, :2].max() < 3.0


def test_a_mesh_on_another_persons_face_is_noticed(step):
    """Both faces are real: only the track knows which is meant."""
    left = create_face_frame(150, (640, 480), place=(0.25, 0.5))
    right = create_face_frame(150, (640, 480), place=(0.75, 0.5))
    for one, other in ((left.y, right.y), (left.u, right.u), (left.v, right.v)):
        one[:, one.shape[1] // 2 :] = other[:, other.shape[1] // 2 :]
    faces = sorted(analyse(left).faces, key=lambda item: item.track.box.x0)
    assert len(faces) == 2
    mine, theirs = faces
    align(step, left, mine.track)
    step._kept[mine.track.track_id].crop = create_crop_by_mesh(theirs.mesh)
    again = align(step, left, mine.track)
    assert np.abs(again.mesh - mine.mesh)[:468, :2].max() < 5.0


def test_where_there_is_no_face_there_is_no_mesh(seen, step):
    _, face = seen
    blank = create_frame(640, 480)
    blank.y[:] = 120
    nobody = align(step, blank, face.track)
    assert nobody.mesh is None
    assert nobody.pose_rad == (0.0, 0.0, 0.0)
    assert 5 not in nobody.landmarks


class FakeMesh:
    """Says what it is told to: a mesh that lies right, and a score."""

    def __init__(self, mesh, score=0.9):
        self.mesh = mesh
        self.score = score
        self.crops = []

    def find(self, frame, crop):
        self.crops.append(crop)
        return self.mesh.copy(), self.score


def test_a_mesh_begins_surer_than_it_goes_on(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh, 0.4)
    step = AlignStep(fake, AlignConfig())
    assert align(step, frame, face.track).mesh is None
    fake.score = 0.6
    assert align(step, frame, face.track).mesh is not None
    fake.score = 0.4
    assert align(step, frame, face.track).mesh is not None
    fake.score = 0.2
    assert align(step, frame, face.track).mesh is None
    fake.score = 0.4
    assert align(step, frame, face.track).mesh is None


def test_a_followed_face_costs_one_run_of_the_network(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig())
    align(step, frame, face.track)
    assert len(fake.crops) == 2  # from the box, then from the mesh
    for _ in range(5):
        align(step, frame, face.track)
    assert len(fake.crops) == 7
    assert len(set(fake.crops[1:])) == 1  # the crop rests as the face does


HALF = Rung(name="half", align_share=0.5)


def move(track, x):
    box = track.box
    return dataclasses.replace(track, box=Box(box.x0 + x, box.y0, box.x1 + x, box.y1))


@pytest.mark.parametrize("spare", [{"rung": HALF}, {"is_late": True}])
def test_under_load_every_second_mesh_is_moved_with_its_face(seen, spare):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig(smooth_beta=1e6))
    for _ in range(3):
        align(step, frame, face.track)
    looks = len(fake.crops)
    moved = [align(step, frame, move(face.track, 2.0 * i), **spare).mesh for i in range(1, 9)]
    assert len(fake.crops) == looks + 4
    assert all(mesh is not None for mesh in moved)


def test_a_carried_mesh_goes_where_its_face_goes(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig(smooth_beta=1e6))
    align(step, frame, face.track)
    state = FrameState(frame, TOKEN, faces=[Face(move(face.track, 8.0))], rung=HALF)
    step.run(state)
    if "align" not in state.spared:  # its turn comes with the next frame
        state = FrameState(frame, TOKEN, faces=[Face(move(face.track, 8.0))], rung=HALF)
        step.run(state)
    assert "align" in state.spared
    mesh = state.faces[0].mesh
    assert mesh is not None
    shift = mesh[:, 0].mean() - face.mesh[:, 0].mean()
    assert 0.0 <= shift <= 8.5


def test_a_face_that_the_detector_lost_is_always_looked_for(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig())
    lost = dataclasses.replace(face.track, missed=1)
    for _ in range(4):
        align(step, frame, lost, rung=HALF)
    assert len(fake.crops) == 5


def test_faces_that_nobody_means_cost_nothing_once_effects_have_faded(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig())

    def run(*, chosen, operations=OPERATIONS):
        one = Face(face.track, chosen=chosen)
        token = create_token(operations, now_epoch_s=0.0)
        before = len(fake.crops)
        step.run(FrameState(frame, token, faces=[one]))
        assert (one.mesh is None) == (len(fake.crops) == before)
        return one.mesh is not None

    assert not run(chosen=False)
    assert run(chosen=True)
    lingering = [run(chosen=False) for _ in range(30)]
    assert all(lingering[:14])
    assert not any(lingering[16:])
    assert run(chosen=True)
    # Names are found by everybody's points.
    step.reset()
    assert run(chosen=False, operations=(*OPERATIONS, "identify"))


def test_a_jump_takes_the_crop_along(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig())
    align(step, frame, face.track)
    track, box = face.track, face.track.box
    far = Box(box.x0 + 60, box.y0, box.x1 + 60, box.y1)
    fake.mesh = face.mesh + np.array([60, 0, 0], np.float32)
    align(
        step,
        frame,
        replace(track, box=far, landmarks5=track.landmarks5 + np.array([60, 0], np.float32)),
    )
    assert fake.crops[-1].x - fake.crops[-2].x == pytest.approx(60.0, abs=0.1)


def test_a_cut_and_a_reset_begin_anew(seen):
    frame, face = seen
    for begin in (lambda step: step.reset(), lambda step: None):
        fake: Any = FakeMesh(face.mesh)
        step = AlignStep(fake, AlignConfig())
        align(step, frame, face.track)
        begin(step)
        align(step, frame, face.track, is_cut=True)
        assert len(fake.crops) == 4


def test_tracks_that_are_gone_are_forgotten(seen):
    frame, face = seen
    fake: Any = FakeMesh(face.mesh)
    step = AlignStep(fake, AlignConfig())
    for track_id in range(20):
        align(step, frame, replace(face.track, track_id=track_id))
    assert list(step._kept) == [19]


def test_a_held_track_lets_a_mesh_go_further_but_not_over_to_another_face(seen):
    _, face = seen
    away = replace(face.track, landmarks5=face.track.landmarks5 + np.float32(400))
    assert is_agreed(face.mesh, face.track)
    assert not is_agreed(face.mesh, away)
    assert not is_agreed(face.mesh, replace(away, missed=1))
    near = replace(face.track, landmarks5=face.track.landmarks5 + np.array([120, 0], np.float32))
    assert not is_agreed(face.mesh, near)
    assert is_agreed(face.mesh, replace(near, missed=1))
    middle = face.track.landmarks5.mean(axis=0)
    large = (face.track.landmarks5 - middle) * np.float32(2.5) + middle
    assert not is_agreed(face.mesh, replace(face.track, landmarks5=large))


def test_the_light_network_has_the_same_points_but_no_irises(seen):
    frame, face = seen
    mesh, score = FaceMesh(share_sessions().get("facemesh_468", 1)).find(
        frame, create_crop_by_mesh(face.mesh)
    )
    assert mesh.shape == (468, 3)
    assert face.mesh.shape == (478, 3)
    assert score > 0.9
    assert np.abs(mesh - face.mesh[:468])[:, :2].mean() < 0.03 * measure_width(mesh)


def test_a_model_of_another_kind_is_refused_in_words():
    align = msgspec.structs.replace(Config().align, model="blazeface_full_192")
    pipeline = create_pipeline(msgspec.structs.replace(Config(), align=align))
    with pytest.raises(ConfigError, match=r"not a face mesh.*align\.extra"):
        pipeline.prepare(TOKEN)


def test_irises_lie_within_their_eyes(seen):
    mesh = seen[1].mesh
    for iris, outer, inner in ((468, 33, 133), (473, 263, 362)):
        low, high = sorted((mesh[outer, 0], mesh[inner, 0]))
        assert low < mesh[iris, 0] < high


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_head_on_its_side_has_a_mesh_too(seen, turns):
    frame, face = seen
    mesh = FaceMesh(share_sessions().get("facemesh_attention_478", 1))
    height, width = frame.y.shape
    turned = create_frame(*((height, width) if turns % 2 else (width, height)))
    for name in ("y", "u", "v"):
        getattr(turned, name)[:] = np.rot90(getattr(frame, name), turns)
    # A picture turned to the left by quarters: its heads roll that far to the left.
    box = face.track.box
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    for _ in range(turns):
        x, y, width, height = y, width - x, height, width
    half = max(box.width, box.height) / 2
    roll = face.track.roll_rad - turns * math.pi / 2
    crop = create_crop_by_box(Box(x - half, y - half, x + half, y + half), roll)
    found, score = mesh.find(turned, crop)
    assert score > 0.9
    assert measure_width(found) == pytest.approx(measure_width(face.mesh), rel=0.06)


def test_a_crop_that_the_network_fails_on_is_given_up_for_the_faces_box(seen, step, monkeypatch):
    """The attention network refuses some pictures; a quick face leaves such a crop behind."""
    frame, face = seen
    assert align(step, frame, face.track).mesh is not None
    find, crops = FaceMesh.find, []

    def refuse(mesh, frame, crop):
        crops.append(crop)
        if len(crops) == 1 or crop == crops[0]:
            raise ModelError("invalid index found")
        return find(mesh, frame, crop)

    monkeypatch.setattr(FaceMesh, "find", refuse)
    assert align(step, frame, face.track).mesh is not None
    assert crops[1] == create_crop_by_box(face.track.box, face.track.roll_rad)
    crops.clear()
    align(step, frame, face.track)
    assert len(crops) == 3, "it was refused again, and looked for twice"


def test_a_network_that_fails_everywhere_fails_the_step(seen, step, monkeypatch):
    frame, face = seen
    align(step, frame, face.track)

    def fail(_mesh, _frame, _crop):
        raise ModelError("no device")

    monkeypatch.setattr(FaceMesh, "find", fail)
    with pytest.raises(ModelError, match="no device"):
        align(step, frame, face.track)
