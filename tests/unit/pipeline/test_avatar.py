import itertools

import msgspec
import numpy as np
import pytest

from livefuse.errors import ConfigError
from livefuse.face import Box, Face, SourceFace, Track
from livefuse.frame import Colour
from livefuse.pipeline.canonical import CANONICAL, fit_head, fit_pose
from livefuse.pipeline.effects.avatar import (
    AVATARS,
    AvatarSwapper,
    check_avatar,
    get_drawing,
    is_avatar,
)
from livefuse.pipeline.effects.avatar_eyes import find_gazes
from livefuse.pipeline.effects.avatar_light import WearerLight, create_ball, get_skin
from livefuse.pipeline.effects.avatar_portrait import draw_portrait
from livefuse.pipeline.effects.avatar_render import AvatarRenderer, Wearer
from livefuse.pipeline.effects.avatar_shape import (
    HEIGHT_PX,
    WIDTH_PX,
    Ring,
    compute_normals,
    create_shape,
)
from livefuse.pipeline.effects.avatar_view import place_mesh
from livefuse.pipeline.state import FrameState
from livefuse.pipeline.topology import EYE_LEFT, EYE_RIGHT, LIPS_INNER, OVAL, TRIANGLES
from livefuse.token import create_token
from tests.faces import analyse, create_face_frame, create_pipeline, read_bgr
from tests.unit.pipeline.scenes import draw_noise

SIZE = (640, 480)
FACE_PX = 200.0
CENTRE = (320.0, 260.0)


def create_mesh(face_px=FACE_PX, *, irises=None, shift=(0.0, 0.0)):
    """Return the canonical face in the middle of the frame, eyes open, with irises there."""
    rest = CANONICAL.copy()
    for eye in (EYE_LEFT, EYE_RIGHT):
        middle = rest[eye[[0, 8]], 1].mean()
        rest[eye, 1] = middle + (rest[eye, 1] - middle) * 1.5
    mesh = rest * np.float32(face_px) + np.array([*CENTRE, 0], np.float32)
    mesh[:, :2] += np.array(shift, np.float32)
    if irises is None:
        return mesh
    extra = []
    for eye in (EYE_LEFT, EYE_RIGHT):
        middle = mesh[eye[[0, 8]]].mean(axis=0) + np.array([*irises, 0], np.float32)
        extra.append(np.repeat(middle[None], 5, axis=0))
    return np.concatenate([mesh, *extra]).astype(np.float32)


def create_face(mesh):
    box = Box(220, 150, 420, 370)
    return Face(Track(1, box, np.zeros((5, 2), np.float32), 0.9, 0.0), mesh=mesh)


def create_token_of(name, **parameters):
    token = create_token(["detect", "align", "swap"], now_epoch_s=0.0)
    changed = msgspec.structs.replace(token.parameters, **parameters)
    return msgspec.structs.replace(token, source_face=f"avatar:{name}", parameters=changed)


def create_swapper(name="robot"):
    swapper = AvatarSwapper()
    swapper.prepare_by_id(f"avatar:{name}")
    return swapper


def copy_planes(frame):
    return frame.y.copy(), frame.u.copy(), frame.v.copy()


def draw(name, mesh, frame=None, **arguments):
    frame = frame or draw_noise(*SIZE)
    assert AvatarRenderer(get_drawing(name)).draw(frame, mesh, Wearer(), **arguments)
    return frame


@pytest.mark.parametrize("name", AVATARS)
def test_an_avatar_covers_the_face_and_nothing_far_from_it(name):
    frame = draw_noise(*SIZE)
    before = copy_planes(frame)
    state = FrameState(frame, create_token_of(name))
    mesh = create_mesh(irises=(0.0, 0.0))
    assert create_swapper(name).swap(state, create_face(mesh))
    # The mesh's own points are painted over: all but none of their px is what it was.
    points = np.rint(mesh[:468, :2]).astype(int)
    same = frame.y[points[:, 1], points[:, 0]] == before[0][points[:, 1], points[:, 0]]
    assert same.mean() < 0.05
    reach = 0.9 * FACE_PX
    rows, columns = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    far = (abs(columns - CENTRE[0]) > reach) | (rows - CENTRE[1] > reach)
    assert (frame.y[far] == before[0][far]).all()
    assert (frame.u[far[::2, ::2]] == before[1][far[::2, ::2]]).all()
    assert (frame.v[far[::2, ::2]] == before[2][far[::2, ::2]]).all()


@pytest.mark.parametrize("name", AVATARS)
def test_no_strip_of_forehead_stays(name):
    """The mesh ends below the hairline; the ring beyond it covers what is above."""
    frame = draw_noise(*SIZE)
    before = frame.y.copy()
    draw(name, create_mesh(), frame)
    top = round(CENTRE[1] + CANONICAL[10, 1] * FACE_PX)
    strip = np.s_[top - 8 : top, 300:340]
    assert np.mean(frame.y[strip] == before[strip]) < 0.1


def test_blend_ratio_0_is_the_input_bit_for_bit():
    frame = draw_noise(*SIZE)
    before = frame.buffer.copy()
    state = FrameState(frame, create_token_of("fox", blend_ratio=0.0))
    assert not create_swapper("fox").swap(state, create_face(create_mesh()))
    np.testing.assert_array_equal(frame.buffer, before)


def test_the_default_ratio_lets_nothing_of_the_wearer_through():
    dark, bright = draw_noise(*SIZE), draw_noise(*SIZE)
    dark.y[:] = np.where(dark.y > 128, 80, 130)
    bright.y[:] = np.where(bright.y > 128, 130, 80)
    for frame in (dark, bright):
        create_swapper().swap(
            FrameState(frame, create_token_of("robot")), create_face(create_mesh())
        )
    # On the bridge of the nose both show the avatar: light differs, pattern does not.
    x, y = (round(v) for v in create_mesh()[6, :2])
    part = np.s_[y - 8 : y + 9, x - 6 : x + 7]
    ratio = (dark.y[part].astype(float) - 16) / (bright.y[part].astype(float) - 16)
    assert ratio.std() < 0.05


def spoil(mesh, kind):
    spoilt = mesh.copy()
    match kind:
        case "nan":
            spoilt[100] = np.nan
        case "infinite":
            spoilt[3, 2] = np.inf
        case "far":
            spoilt += 1e6
        case "outside":
            spoilt[:, 0] += 3000
        case "point":
            spoilt[:] = spoilt[0]
        case "tiny":
            spoilt = spoilt / 40
        case "few":
            spoilt = spoilt[:100]
        case _:
            pytest.fail(kind)
    return spoilt


@pytest.mark.parametrize("kind", ["nan", "infinite", "far", "outside", "point", "tiny", "few"])
def test_a_mesh_that_is_no_face_leaves_the_frame_as_it_was(kind):
    frame = draw_noise(*SIZE)
    before = frame.buffer.copy()
    state = FrameState(frame, create_token_of("robot"))
    assert not create_swapper().swap(state, create_face(spoil(create_mesh(), kind)))
    assert not create_swapper().swap(state, create_face(None))
    np.testing.assert_array_equal(frame.buffer, before)


@pytest.mark.parametrize("seed", range(6))
def test_odd_meshes_never_raise(seed):
    rng = np.random.default_rng(seed)
    frame = draw_noise(*SIZE)
    mesh = create_mesh(irises=(0, 0))
    odd = [
        mesh * np.array([-1, 1, 1], np.float32) + np.array([640, 0, 0], np.float32),
        mesh + rng.normal(0, 60, mesh.shape).astype(np.float32),
        mesh * np.array([1, 1, 0], np.float32),
        mesh + np.array([-260, -200, 0], np.float32),
        mesh * np.float32(3),
    ][seed % 5]
    renderer = AvatarRenderer(get_drawing(list(AVATARS)[seed % 3]))
    renderer.draw(frame, np.asarray(odd, np.float32), Wearer())
    assert frame.y.shape == (480, 640)


def find_lamp(frame, mesh, eye):
    """Return the middle of an eye's bright px and how many there are."""
    low, high = mesh[eye, :2].min(axis=0) - 4, mesh[eye, :2].max(axis=0) + 4
    x0, y0 = low.astype(int).tolist()
    x1, y1 = high.astype(int).tolist()
    lamp = frame.y[y0:y1, x0:x1] > 185
    if not lamp.any():
        return None, 0
    rows, columns = np.nonzero(lamp)
    return (columns.mean() + x0, rows.mean() + y0), int(lamp.sum())


def test_the_eyes_look_where_the_wearer_looks():
    places = {}
    for look in (-8.0, 0.0, 8.0):
        mesh = create_mesh(irises=(look, 0.0))
        frame = draw("robot", mesh)
        places[look] = [find_lamp(frame, mesh, eye)[0][0] for eye in (EYE_LEFT, EYE_RIGHT)]
    for eye in (0, 1):
        assert places[-8.0][eye] < places[0.0][eye] - 4
        assert places[8.0][eye] > places[0.0][eye] + 4


def test_without_irises_the_eyes_look_straight_ahead():
    mesh = create_mesh()
    normals = np.zeros((468, 3), np.float32)
    normals[:, 2] = 1.0
    for gaze, eye in zip(find_gazes(mesh, None, normals), (EYE_LEFT, EYE_RIGHT), strict=True):
        np.testing.assert_allclose(gaze.iris, mesh[eye[[0, 8]], :2].mean(axis=0), atol=1e-3)
        assert gaze.facing == 1.0


def test_a_gaze_stays_within_the_eye_and_turned_eyes_are_not_painted():
    mesh = create_mesh(irises=(300.0, -200.0))
    normals = np.zeros((468, 3), np.float32)
    gazes = find_gazes(mesh, mesh[468:, :2], normals)
    for gaze in gazes:
        middle = gaze.outline[[0, 8]].mean(axis=0)
        assert np.hypot(*(gaze.iris - middle)) <= 0.33 * gaze.width_px
        assert gaze.facing == 0.0


def test_a_blink_closes_the_avatars_eyes():
    mesh = create_mesh(irises=(0.0, 0.0))
    is_open = find_lamp(draw("robot", mesh), mesh, EYE_LEFT)[1]
    closed = mesh.copy()
    for eye in (EYE_LEFT, EYE_RIGHT):
        closed[eye[1:8], :2] = closed[eye[:8:-1], :2]
    assert is_open > 40
    assert find_lamp(draw("robot", closed), mesh, EYE_LEFT)[1] < is_open / 8


@pytest.mark.parametrize("name", ["porcelain", "fox"])
def test_an_open_mouth_is_dark_and_the_wearers_is_not_seen(name):
    mesh = create_mesh()
    mesh[LIPS_INNER[11:], 1] += 24
    white = draw_noise(*SIZE)
    white.y[:] = 200
    frame = draw(name, mesh, white)
    x, y = mesh[[13, 14], :2].mean(axis=0).astype(int)
    assert frame.y[y - 2 : y + 3, x - 3 : x + 4].max() < 110


def test_a_closed_mouth_leaves_no_gap():
    """The mesh has no triangles between the lips."""
    frame = draw_noise(*SIZE)
    frame.y[:] = 235
    mesh = create_mesh()
    draw("porcelain", mesh, frame)
    x, y = mesh[[13, 14], :2].mean(axis=0).astype(int)
    assert frame.y[y - 3 : y + 4, x - 10 : x + 11].max() < 200


def test_the_wearers_light_lies_on_the_avatar():
    left = draw_noise(*SIZE)
    left.y[:] = np.linspace(190, 60, SIZE[0]).astype(np.uint8)[None, :]
    right = draw_noise(*SIZE)
    right.y[:] = left.y[:, ::-1]
    draw("porcelain", create_mesh(), left)
    draw("porcelain", create_mesh(), right)
    cheek = [(create_mesh()[i, :2]).astype(int) for i in (50, 280)]
    from_left = [float(left.y[y - 5 : y + 6, x - 5 : x + 6].mean()) for x, y in cheek]
    from_right = [float(right.y[y - 5 : y + 6, x - 5 : x + 6].mean()) for x, y in cheek]
    assert from_left[0] > 1.15 * from_right[0]
    assert from_right[1] > 1.15 * from_left[1]


def test_dark_hair_does_not_count_as_shadow():
    light = WearerLight()
    gloss = get_drawing("porcelain").gloss
    luma = np.full((80, 60), 150, np.uint8)
    skin = np.ones((80, 60), np.float32)
    plain = light.measure(luma, skin, gloss, 50.0)
    luma[:20] = 25  # a fringe
    fringe = WearerLight().measure(luma, skin, gloss, 50.0)
    assert np.abs(fringe[30:] / plain[30:] - 1).max() < 0.1
    assert fringe.min() > 0.7 * plain.min()


def test_light_without_any_skin_is_plain():
    found = WearerLight().measure(
        np.full((10, 10), 90, np.uint8),
        np.zeros((10, 10), np.float32),
        get_drawing("fox").gloss,
        8.0,
    )
    assert (found == 1.0).all()


def test_a_hand_before_the_face_stays():
    frame = draw_noise(*SIZE)
    before = frame.y.copy()
    face = create_face(create_mesh())
    face.occlusion = np.zeros((64, 64), np.uint8)
    face.occlusion[32:] = 255
    face.occlusion_box = Box(220.0, 160.0, 420.0, 360.0)
    assert create_swapper().swap(FrameState(frame, create_token_of("robot")), face)
    np.testing.assert_array_equal(frame.y[270:350, 230:410], before[270:350, 230:410])
    assert np.mean(frame.y[200:250, 270:370] == before[200:250, 270:370]) < 0.1


def test_an_avatar_at_rest_does_not_swim():
    """Landmark noise of .1 px moves nothing that an eye would see (C63)."""
    rng = np.random.default_rng(2)
    renderer, wearer = AvatarRenderer(get_drawing("porcelain")), Wearer()
    pictures = []
    for _ in range(6):
        frame = draw_noise(*SIZE)
        mesh = create_mesh(irises=(0.0, 0.0))
        mesh += rng.normal(0, 0.1, mesh.shape).astype(np.float32)
        renderer.draw(frame, mesh, wearer)
        pictures.append(frame.y[200:330, 240:400].astype(np.float32))
    steps = [np.abs(b - a).mean() for a, b in itertools.pairwise(pictures)]
    assert np.mean(steps) < 1.5


def test_a_face_on_the_edge_of_two_sizes_keeps_its_texture():
    renderer, wearer = AvatarRenderer(get_drawing("robot")), Wearer()
    levels = []
    for face_px in (200, 204, 199, 205, 201, 150, 149):
        renderer.draw(draw_noise(*SIZE), create_mesh(face_px), wearer)
        levels.append(wearer.level)
    assert len(set(levels[:5])) == 1
    assert levels[-1] == levels[0] + 1


def test_each_avatar_has_names_a_portrait_and_a_known_mesh():
    for name, avatar in AVATARS.items():
        assert avatar.name_en
        assert not avatar.name_zh.isascii()
        portrait, mesh = draw_portrait(get_drawing(name))
        height, width = portrait.shape[:2]
        assert mesh.shape == (468, 3)
        assert (mesh[:, :2] > 0).all()
        assert (mesh[:, :2] < (width, height)).all()


def test_an_unknown_avatar_is_told_with_the_nearest():
    assert is_avatar("avatar:robto")
    assert not is_avatar("face_1")
    assert check_avatar("avatar:robot") == "robot"
    with pytest.raises(ConfigError, match="did you mean avatar:robot"):
        check_avatar("avatar:robto")
    with pytest.raises(ConfigError, match="avatar:porcelain"):
        AvatarSwapper().prepare_by_id("avatar:")


def test_a_source_names_the_avatar():
    swapper = AvatarSwapper()
    swapper.prepare(SourceFace("avatar:fox", np.zeros((4, 4, 3), np.uint8), "0", "drawing"))
    frame = draw_noise(*SIZE)
    assert swapper.swap(FrameState(frame, create_token_of("fox")), create_face(create_mesh()))
    swapper.reset()


def test_an_unprepared_swapper_says_no():
    frame = draw_noise(*SIZE)
    state = FrameState(frame, create_token_of("fox"))
    assert not AvatarSwapper().swap(state, create_face(create_mesh()))


@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
def test_colours_follow_the_frames_matrix(matrix):
    frame = draw_noise(*SIZE)
    frame.colour = Colour(matrix)
    mesh = create_mesh()
    draw("fox", mesh, frame)
    x, y = mesh[9, :2].astype(int)
    u, v = int(frame.u[y // 2, x // 2 + 14]), int(frame.v[y // 2, x // 2 + 14])
    assert v > 145  # orange
    assert u < 110


def test_shapes_extend_the_face_outwards():
    shape = create_shape((Ring(0.1, 0.05, 0.03, 0.05), Ring(0.2, 0.1, 0.06, 0.1)))
    assert shape.rest.shape == (468 + 72, 3)
    np.testing.assert_array_equal(shape.rest[:468], CANONICAL)
    middle = CANONICAL[OVAL, :2].mean(axis=0)
    radii = [
        np.linalg.norm(shape.rest[468 + 36 * k : 504 + 36 * k, :2] - middle, axis=1) for k in (0, 1)
    ]
    assert (radii[1] > radii[0]).all()
    a, b, c = (shape.rest[shape.triangles[len(TRIANGLES) :, i], :2] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    assert (area > 0).all()


def test_what_lies_beyond_the_face_moves_with_it():
    shape = get_drawing("fox").shape
    points, pose = shape.place(create_mesh())
    moved, _ = shape.place(create_mesh(shift=(30.0, -20.0)))
    np.testing.assert_allclose(
        moved - points, np.broadcast_to([30, -20, 0], points.shape), atol=0.05
    )
    assert pose.scale == pytest.approx(FACE_PX, rel=0.01)


def test_normals_point_to_the_camera():
    shape = get_drawing("robot").shape
    placed = place_mesh(shape, create_mesh(), *SIZE)
    assert placed is not None
    nose, left = placed.normals[4], placed.normals[234]
    assert nose[2] > 0.7
    assert left[0] < -0.5
    flat = compute_normals(shape.rest * np.array([1, 1, 0], np.float32), shape.triangles)
    assert np.abs(flat[:, 2]).min() > 0.99


def test_poses_are_found_and_undone():
    rng = np.random.default_rng(0)
    angle = 0.4
    turn = np.array(
        [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]],
        np.float32,
    )
    points = CANONICAL @ turn.T * np.float32(150) + np.array([200, 100, 5], np.float32)
    pose = fit_head(points)
    assert pose.scale == pytest.approx(150, rel=1e-4)
    np.testing.assert_allclose(pose.rotation, turn, atol=1e-4)
    np.testing.assert_allclose(pose.undo(points), CANONICAL, atol=1e-4)
    np.testing.assert_allclose(pose.apply(np.asarray(CANONICAL)), points, atol=0.02)
    with pytest.raises(ValueError, match="coincide"):
        fit_pose(np.ones((5, 3), np.float32), rng.normal(0, 1, (5, 3)).astype(np.float32))


def test_drawings_are_whole():
    for name in AVATARS:
        drawing = get_drawing(name)
        assert drawing.rgba.shape == (HEIGHT_PX, WIDTH_PX, 4)
        assert drawing.rgba[0, 0, 3] == 0
        places = np.rint(drawing.shape.texture[:468]).astype(int)
        assert (drawing.rgba[places[:, 1], places[:, 0], 3] == 255).all()
        ball = create_ball(drawing.gloss)
        assert ball.gain.min() > 0.1
    skin = get_skin()
    assert 0.1 < skin.mean() < 0.5
    assert not skin.flags.writeable


def test_a_real_face_becomes_a_fox():
    token = create_token_of("fox")
    pipeline = create_pipeline(every_frame=True)
    pipeline.prepare(token)
    frame = create_face_frame(200, (960, 540))
    before = read_bgr(frame)
    mesh = analyse(create_face_frame(200, (960, 540))).faces[0].mesh
    outcome = pipeline.process(frame, token)
    assert outcome.vouched, outcome.error
    after = read_bgr(frame)
    x, y = mesh[151, :2].astype(int)
    blue, green, red = after[y - 4 : y + 5, x + 24 : x + 32].reshape(-1, 3).mean(axis=0)
    assert red > 1.4 * green > 1.4 * blue
    np.testing.assert_array_equal(after[:, :200], before[:, :200])


def test_a_drawing_has_no_skin_to_make_up():
    operations = ("detect", "align", "swap", "beautify", "enhance")
    pictures = []
    for beautify in ({}, {"lips": 0.8, "smooth": 0.8}):
        token = create_token(operations, now_epoch_s=0.0)
        parameters = msgspec.structs.replace(token.parameters, beautify=beautify)
        token = msgspec.structs.replace(token, source_face="avatar:robot", parameters=parameters)
        pipeline = create_pipeline(every_frame=True)
        pipeline.prepare(token)
        frame = create_face_frame(150, SIZE)
        assert pipeline.process(frame, token).vouched
        pictures.append(frame.buffer.copy())
    np.testing.assert_array_equal(*pictures)
