import cv2
import msgspec
import numpy as np
import pytest

from livefuse.config import Config, PuppetConfig
from livefuse.errors import ConfigError, RefusedError
from livefuse.face import Box, Face, SourceFace, Track
from livefuse.frame import Colour
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.canonical import CANONICAL, fit_head
from livefuse.pipeline.effects.avatar import get_drawing
from livefuse.pipeline.effects.avatar_portrait import draw_portrait
from livefuse.pipeline.effects.puppet import AvatarPuppet, PhotoPuppet, carry_irises
from livefuse.pipeline.effects.puppet_bust import close_mouth, create_bust
from livefuse.pipeline.effects.puppet_motion import (
    Motion,
    MotionReader,
    create_head_move,
    create_rest,
    measure_opening,
    move_portrait,
)
from livefuse.pipeline.effects.puppet_stage import create_stage, fit_portrait
from livefuse.pipeline.puppet_step import PuppetStep
from livefuse.pipeline.source_keeper import SourceKeeper
from livefuse.pipeline.state import FrameState
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER, OVAL, TRIANGLES
from livefuse.token import create_token
from tests.faces import (
    create_face_frame,
    create_pipeline,
    create_services,
    read_bgr,
    read_picture,
)
from tests.unit.pipeline.scenes import draw_noise

SIZE = (640, 360)
DT_S = 1 / 30


def create_mesh(face_px=120.0, centre=(320.0, 190.0), *, gap=0.0, closed=0.0, turn=(0, 0, 0)):
    """Return a face, (468, 3) px, that does what is said."""
    rest = CANONICAL.copy()
    for upper, lower in zip(LIPS_INNER[1:10].tolist(), LIPS_INNER[:10:-1].tolist(), strict=True):
        rest[[upper, lower], 1] = rest[[upper, lower], 1].mean()
    rest[LIPS_INNER[11:], 1] += gap
    for eye in (EYE_LEFT, EYE_RIGHT):
        upper, lower = rest[eye[1:8]], rest[eye[:8:-1]]
        upper[:, 1] -= 0.02
        rest[eye[1:8]] = upper + (lower - upper) * np.float32(closed)
    rotation = cv2.Rodrigues(np.array(turn, np.float64))[0].astype(np.float32)
    mesh = rest @ rotation.T * np.float32(face_px)
    return np.asarray(mesh + np.array([*centre, 0], np.float32), np.float32)


def create_photo(width=300, height=400):
    """Return a striped picture with a known mesh: no face is needed to see where px go."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[:, :, 0] = (np.arange(width)[None, :] * 5) % 200 + 20
    picture[:, :, 1] = (np.arange(height)[:, None] * 3) % 200 + 20
    picture[:, :, 2] = 120
    source = SourceFace("face_1", picture, "0" * 64)
    return source, create_mesh(110.0, (width / 2, height / 2))


def create_puppet(**config):
    source, mesh = create_photo()
    return PhotoPuppet(source, mesh, PuppetConfig(**config))


def create_face(mesh, track_id=1, width=120):
    box = Box(260, 120, 260 + width, 270)
    return Face(Track(track_id, box, np.zeros((5, 2), np.float32), 0.9, 0.0), mesh=mesh)


class Recorder:
    """A puppet that remembers what it was told."""

    is_drawn = False

    def __init__(self):
        self.motions = []
        self.wearers = []

    def show(self, frame, motion, wearer):
        self.motions.append(motion)
        self.wearers.append(wearer)
        frame.buffer[:] = 77
        return create_mesh()


def create_step(puppet):
    keeper = SourceKeeper(InlineExecutor(), lambda face_id: puppet)
    keeper.set_source("")
    return PuppetStep(keeper)


def create_state(*faces, frame=None, **parameters):
    token = create_token(["detect", "align", "puppet"], now_epoch_s=0.0)
    token = msgspec.structs.replace(
        token, parameters=msgspec.structs.replace(token.parameters, **parameters)
    )
    return FrameState(frame or draw_noise(*SIZE), token, faces=list(faces))


def read_motion(reader, *meshes):
    motion = create_rest()
    for mesh in meshes:
        motion = reader.read(mesh, DT_S)
    return motion


# The whole picture.


def test_no_px_of_the_wearers_picture_stays():
    shown = []
    for seed in (1, 2):
        frame = draw_noise(*SIZE, seed=seed)
        create_puppet().show(frame, create_rest(), create_mesh())
        shown.append(frame.buffer.copy())
    np.testing.assert_array_equal(*shown)


def test_a_moving_portrait_shows_nothing_of_him_but_an_open_mouth():
    reader = MotionReader()
    moved = create_mesh(turn=(0.0, 0.2, 0.05), centre=(350, 180))
    motion = read_motion(reader, create_mesh(), moved)
    shown = []
    for seed in (1, 2):
        frame = draw_noise(*SIZE, seed=seed)
        create_puppet().show(frame, motion, moved)
        shown.append(frame.buffer.copy())
    np.testing.assert_array_equal(*shown)
    still = draw_noise(*SIZE)
    create_puppet().show(still, create_rest(), None)
    assert np.abs(still.buffer.astype(int) - shown[0]).mean() > 1.0


def test_the_inside_of_his_open_mouth_comes_along():
    reader = MotionReader()
    mouth_open = create_mesh(gap=0.12)
    motion = read_motion(reader, *[create_mesh()] * 3, mouth_open)
    assert motion.gap > 0.08
    shown = []
    for luma in (60, 190):
        frame = draw_noise(*SIZE)
        frame.y[:] = 120
        x, y = mouth_open[LIPS_INNER, :2].mean(axis=0).astype(int)
        frame.y[y - 20 : y + 21, x - 40 : x + 41] = luma
        face = create_puppet().show(frame, motion, mouth_open)
        x, y = face[LIPS_INNER, :2].mean(axis=0).astype(int)
        shown.append(float(frame.y[y - 1 : y + 2, x - 3 : x + 4].mean()))
    assert shown[1] > shown[0] + 60


def test_at_rest_the_portrait_is_as_it_was_given():
    source, mesh = create_photo()
    stage = create_stage(source.picture_rgb, mesh, *SIZE, Colour())
    frame = draw_noise(*SIZE)
    shown = create_puppet().show(frame, create_rest(), None)
    np.testing.assert_array_equal(frame.y, stage.planes[0])
    np.testing.assert_array_equal(frame.u, stage.planes[1])
    np.testing.assert_array_equal(frame.v, stage.planes[2])
    np.testing.assert_allclose(shown, stage.mesh, atol=1e-3)


def test_beyond_the_rings_the_portrait_is_still():
    motion = create_rest()._replace(turn=np.array([0, 0, 0.3], np.float32))
    moved, still = draw_noise(*SIZE), draw_noise(*SIZE)
    puppet = PhotoPuppet(create_photo(640, 360)[0], create_mesh(60.0, (320, 180)), PuppetConfig())
    puppet.show(still, create_rest(), None)
    puppet.show(moved, motion, None)
    changed = moved.y != still.y
    assert changed[150:210, 290:350].mean() > 0.5
    assert not changed[:, :150].any()
    assert not changed[:, 490:].any()


@pytest.mark.parametrize(
    ("size", "frame"), [((300, 400), SIZE), ((800, 450), SIZE), ((400, 300), (360, 640))]
)
def test_a_portrait_fills_the_frame_or_stands_in_its_own_blur(size, frame):
    source, mesh = create_photo(*size)
    fit = fit_portrait(size, mesh, *frame)
    stage = create_stage(source.picture_rgb, mesh, frame[0], frame[1], Colour())
    assert stage.planes[0].shape == (frame[1], frame[0])
    assert stage.planes[0].min() > 20  # no black bar
    assert fit.scale >= min(frame[0] / size[0], frame[1] / size[1]) - 1e-6
    face_px = np.linalg.norm(stage.mesh[454] - stage.mesh[234])
    assert face_px <= max(0.42 * frame[1], 110 * min(frame[0] / size[0], frame[1] / size[1])) + 1
    assert (stage.mesh[:, 0] > 0).all()
    assert (stage.mesh[:, 0] < frame[0]).all()


def test_a_new_size_of_frames_gets_its_own_stage():
    puppet = create_puppet()
    for size in ((640, 360), (320, 240), (640, 360)):
        frame = draw_noise(*size)
        puppet.show(frame, create_rest(), None)
        other = draw_noise(*size, seed=5)
        puppet.show(other, create_rest(), None)
        np.testing.assert_array_equal(frame.buffer, other.buffer)


# What he does.


def test_a_turn_is_taken_over_in_part_and_limited():
    portrait = create_mesh()
    pose = fit_head(portrait)
    for angle, most in ((0.1, 0.081), (1.2, np.radians(18.1))):
        motion = create_rest()._replace(turn=np.array([0, angle, 0], np.float32))
        head = create_head_move(pose, motion, 0.8)
        seen = float(np.linalg.norm(cv2.Rodrigues(head.rotation.astype(np.float64))[0]))
        assert 0.9 * most < seen <= most
    turned = create_rest()._replace(turn=np.array([0, 1.2, 0], np.float32))
    none = create_head_move(pose, turned, 0.0)
    np.testing.assert_allclose(none.apply(portrait), portrait, atol=1e-3)


def test_the_head_turns_about_the_neck():
    portrait = create_mesh()
    motion = create_rest()._replace(turn=np.array([0, 0, 0.2], np.float32))
    moved, _ = move_portrait(portrait, fit_head(portrait), motion, expression=0.7, turn=1.0)
    shift = np.linalg.norm(moved[:, :2] - portrait[:, :2], axis=1)
    assert shift[10] > 1.6 * shift[152]


def test_an_expression_is_carried_over_into_the_portraits_own_frame():
    reader = MotionReader()
    motion = read_motion(reader, create_mesh(), create_mesh(gap=0.1))
    portrait = create_mesh(200.0, (300, 200), turn=(0, 0, 0.5))
    moved, _ = move_portrait(
        portrait, fit_head(portrait), motion._replace(turn=np.zeros(3, np.float32),
                                                      shift=np.zeros(2, np.float32), growth=0.0),
        expression=0.5, turn=0.8,
    )  # fmt: skip
    down = moved[14, :2] - portrait[14, :2]
    length = float(np.hypot(*down))
    assert 6 < length < 14
    # Along the portrait's own "down", which is turned by .5 rad.
    assert float(down @ [-np.sin(0.5), np.cos(0.5)]) > 0.9 * length


def test_a_blink_closes_the_portraits_eyes_whatever_they_measure():
    reader = MotionReader()
    motion = read_motion(reader, *[create_mesh()] * 3, create_mesh(closed=1.0))
    assert motion.closed == (1.0, 1.0)
    wide = create_mesh()
    wide[EYE_LEFT[1:8], 1] -= 8
    moved, _ = move_portrait(wide, fit_head(wide), motion, expression=0.7, turn=0.0)
    for eye in (EYE_LEFT, EYE_RIGHT):
        assert measure_opening(moved, eye) < 0.12 * measure_opening(wide, eye) + 1e-3


def test_a_wink_closes_one():
    reader = MotionReader()
    wink = create_mesh()
    wink[EYE_LEFT] = create_mesh(closed=1.0)[EYE_LEFT]
    motion = read_motion(reader, *[create_mesh()] * 2, wink)
    assert motion.closed[0] == 1.0
    assert motion.closed[1] == 0.0


def test_the_face_at_rest_is_learnt_from_the_best_frame():
    """He begins with an open mouth and closed eyes; later he rests, and that becomes the rest."""
    reader = MotionReader()
    odd = create_mesh(gap=0.1, closed=0.8)
    assert np.abs(read_motion(reader, odd).expression).max() < 1e-4
    motion = read_motion(reader, *[create_mesh()] * 60)
    assert np.abs(motion.expression).max() < 0.005
    motion = read_motion(reader, *[odd] * 10)
    assert motion.expression[14, 1] > 0.05
    assert min(motion.closed) > 0.5


def test_eyes_that_are_closed_from_the_beginning_are_closed():
    assert read_motion(MotionReader(), create_mesh(closed=1.0)).closed == (1.0, 1.0)


def test_the_rest_face_follows_in_time():
    """A window that runs: what was best half a minute ago does not hold for ever."""
    reader = MotionReader()
    read_motion(reader, create_mesh())
    tired = create_mesh(gap=0.02)
    motion = create_rest()
    for _ in range(300):
        motion = reader.read(tired, 0.1)
    assert np.abs(motion.expression).max() < 0.003


def test_where_he_sits_does_not_matter_only_how_he_moves():
    reader = MotionReader()
    motion = read_motion(reader, *[create_mesh(70.0, (500, 100))] * 3)
    assert np.abs(motion.shift).max() < 1e-3
    assert abs(motion.growth) < 1e-3
    assert np.abs(motion.turn).max() < 1e-3


def test_relaxing_leads_back_to_rest():
    reader = MotionReader()
    read_motion(reader, create_mesh(), create_mesh(gap=0.1, turn=(0, 0.3, 0)))
    sizes = [float(np.abs(reader.relax().turn).max()) for _ in range(40)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 1e-3
    reader.reset()
    assert np.abs(reader.relax().turn).max() == 0.0


def test_motion_fades_whole():
    motion = Motion(
        np.ones((468, 3), np.float32), np.ones(3, np.float32), np.ones(2, np.float32), 1, (1, 1), 1
    ).fade(0.5)
    assert motion.growth == motion.gap == motion.closed[1] == 0.5
    assert motion.expression.max() == motion.turn.max() == motion.shift.max() == 0.5


# The mesh.


def test_the_bust_is_one_sheet():
    still, triangles = create_bust(create_mesh())
    assert still.shape == (468 + 3 * len(OVAL), 3)
    assert triangles.max() == len(still) - 1
    a, b, c = (still[triangles[len(TRIANGLES) + 18 :, i], :2] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    assert (area >= 0).all()


def test_the_mouth_is_closed_by_triangles_between_the_lips():
    triangles = close_mouth()
    assert triangles.shape == (18, 3)
    mesh = create_mesh(gap=0.1)[:, :2].astype(np.float64)
    a, b, c = (mesh[triangles[:, i]] for i in range(3))
    area = np.abs(np.cross(np.pad(b - a, ((0, 0), (0, 1))), np.pad(c - a, ((0, 0), (0, 1))))[:, 2])
    polygon = cv2.contourArea(mesh[LIPS_INNER].astype(np.float32))
    assert area.sum() / 2 == pytest.approx(polygon, rel=0.02)


def test_irises_are_carried_over_by_each_eye():
    wearer = np.concatenate([create_mesh(), np.zeros((10, 3), np.float32)])
    for first, eye in ((468, EYE_LEFT), (473, EYE_RIGHT)):
        wearer[first : first + 5] = wearer[eye[[0, 8]]].mean(axis=0) + np.array([5, 0, 0])
    face = create_mesh(240.0, (200, 150))
    carried = carry_irises(np.asarray(wearer, np.float32), face)
    assert carried is not None
    middle = face[EYE_LEFT[[0, 8]], :2].mean(axis=0)
    np.testing.assert_allclose(carried[468, :2] - middle, [10, 0], atol=0.1)
    assert carry_irises(create_mesh(), face) is None


@pytest.mark.parametrize("seed", range(4))
def test_odd_motions_never_raise(seed):
    rng = np.random.default_rng(seed)
    motion = Motion(
        rng.normal(0, 0.5, (468, 3)).astype(np.float32),
        rng.normal(0, 3, 3).astype(np.float32),
        rng.normal(0, 10, 2).astype(np.float32),
        float(rng.normal(0, 5)),
        (1.0, 0.3),
        0.4,
    )
    wearer = create_mesh() + rng.normal(0, 200, (468, 3)).astype(np.float32)
    frame = draw_noise(*SIZE)
    shown = create_puppet().show(frame, motion, np.asarray(wearer, np.float32))
    assert shown.shape == (468, 3)
    AvatarPuppet(get_drawing("robot"), PuppetConfig()).show(frame, motion, wearer)


# Avatars.


def test_an_avatar_moves_on_its_own_shoulders():
    reader = MotionReader()
    wearer = create_mesh(gap=0.1, turn=(0, 0.3, 0))
    motion = read_motion(reader, *[create_mesh()] * 3, wearer)
    puppet = AvatarPuppet(get_drawing("fox"), PuppetConfig())
    rest, moved = draw_noise(*SIZE), draw_noise(*SIZE, seed=9)
    puppet.show(rest, create_rest(), None)
    puppet.show(moved, motion, wearer)
    difference = np.abs(rest.y.astype(int) - moved.y)
    assert difference[100:260, 220:420].mean() > 3
    assert difference[:, :120].max() == 0
    assert difference[330:, :].max() == 0


def test_a_drawn_portrait_has_an_avatar_on_it():
    picture, mesh = draw_portrait(get_drawing("porcelain"))
    x, y = mesh[5, :2].astype(int)
    assert picture[y, x].min() > 140
    assert picture.shape == (720, 1280, 3)


# The step.


def test_without_a_face_the_portrait_rests_and_no_cover_is_needed():
    """A face was just lost: the whole picture is another already (never bare)."""
    puppet = Recorder()
    state = create_state()
    state.cover_reason = "lost_face"
    create_step(puppet).run(state)
    assert state.did == "at rest"
    assert state.cover_reason == ""
    assert state.faces == []
    assert (state.frame.buffer == 77).all()
    assert np.abs(puppet.motions[0].turn).max() == 0.0


def test_without_a_portrait_all_is_covered():
    step = create_step(None)
    state = create_state(create_face(create_mesh()))
    step.run(state)
    assert state.cover_reason == "no_portrait"


@pytest.mark.parametrize("blend_ratio", [0.0, 0.0019])
def test_a_blend_of_nought_is_the_input_bit_for_bit(blend_ratio):
    """Below what a mark is put on for nothing is shown: no ratio shows a portrait unmarked."""
    state = create_state(create_face(create_mesh()), blend_ratio=blend_ratio)
    assert not state.token.parameters.shows_source
    before = state.frame.buffer.copy()
    create_step(create_puppet()).run(state)
    assert state.did == "off"
    np.testing.assert_array_equal(state.frame.buffer, before)


def test_afterwards_the_pictures_face_is_the_portraits():
    puppet = Recorder()
    state = create_state(create_face(create_mesh()), create_face(None, track_id=2))
    create_step(puppet).run(state)
    assert len(state.faces) == 1
    shown = state.faces[0]
    assert shown.is_replaced
    assert shown.track.track_id == 1
    np.testing.assert_allclose(shown.mesh, create_mesh())
    assert shown.track.box.width == pytest.approx(np.ptp(create_mesh()[:, 0]), abs=0.01)


def test_one_wearer_keeps_the_portrait():
    puppet = Recorder()
    step = create_step(puppet)
    one, other = create_mesh(), create_mesh(centre=(100.0, 100.0))
    step.run(create_state(create_face(one)))
    step.run(create_state(create_face(other, track_id=2, width=300), create_face(one)))
    assert puppet.wearers[-1] is one
    step.run(create_state(create_face(other, track_id=2)))
    assert puppet.wearers[-1] is other
    step.reset()


def test_a_mesh_that_is_not_finite_counts_as_no_face():
    puppet = Recorder()
    bad = create_mesh()
    bad[5] = np.nan
    create_step(puppet).run(create_state(create_face(bad)))
    assert puppet.wearers == [None]


def run_pipeline(face_id, frames, services=None, config=None):
    token = create_token(["detect", "align", "puppet"], now_epoch_s=0.0)
    token = msgspec.structs.replace(token, source_face=face_id)
    pipeline = create_pipeline(config, services=services, every_frame=True)
    pipeline.prepare(token)
    outcomes = [pipeline.process(frame, token) for frame in frames]
    assert all(outcome.vouched for outcome in outcomes), outcomes[-1].error
    return outcomes


def test_a_photo_moves_in_a_whole_pipeline():
    services = create_services({"face_1": read_picture()})
    frames = [
        create_face_frame(150, SIZE, roll=roll, pts=3000 * i)
        for i, roll in enumerate((0.0, 0.0, 0.15))
    ]
    outcomes = run_pipeline("face_1", frames, services)
    assert len(outcomes[-1].faces) == 1
    assert frames[-1].is_generated
    first, last = read_bgr(frames[1]), read_bgr(frames[2])
    assert np.abs(first.astype(int) - last).mean() > 1


def test_an_avatar_puppet_in_a_whole_pipeline():
    config = msgspec.structs.replace(Config(), puppet=PuppetConfig(turn=1.0))
    frames = [create_face_frame(150, SIZE), draw_noise(*SIZE)]
    frames[1].pts = 3000
    outcomes = run_pipeline("avatar:robot", frames, config=config)
    assert not outcomes[1].covered_whole


def test_a_picture_without_a_face_is_refused_before_the_first_frame():
    services = create_services({"face_1": np.full((200, 200, 3), 127, np.uint8)})
    token = create_token(["detect", "align", "puppet"], now_epoch_s=0.0)
    pipeline = create_pipeline(services=services, every_frame=True)
    with pytest.raises(RefusedError, match="face"):
        pipeline.prepare(msgspec.structs.replace(token, source_face="face_1"))
    with pytest.raises(ConfigError, match="source"):
        pipeline.prepare(token)
    with pytest.raises(ConfigError, match="avatar"):
        pipeline.prepare(msgspec.structs.replace(token, source_face="avatar:nobody"))
