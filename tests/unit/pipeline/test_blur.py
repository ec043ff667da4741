import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.config import BlurConfig
from livefuse.errors import ConfigError
from livefuse.face import Face, Track
from livefuse.frame import Colour
from livefuse.geometry import measure_radius, scale_ellipse
from livefuse.pipeline.effects.blur import FaceBlur, must_blur
from livefuse.pipeline.planes import convert_colour
from livefuse.token import Parameters, Token
from tests.unit.pipeline.scenes import create_detection, draw_head, draw_noise

STYLES = ["gaussian", "mosaic", "solid", "picture"]


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A PNG of a red disc on nothing."""
    path = tmp_path_factory.mktemp("pictures") / "disc.png"
    image = np.zeros((120, 100, 4), np.uint8)
    cv2.ellipse(image, (50, 60), (48, 58), 0, 0, 360, (0, 0, 255, 255), -1)
    assert cv2.imwrite(str(path), image)
    return str(path)


def create_track(x=320.0, y=160.0, scale=0.4, roll=0.0):
    found = create_detection(x, y, scale, roll)
    return Track(1, found.box, found.landmarks5, 0.9, roll)


def create_blur(style, picture="", **config):
    return FaceBlur(BlurConfig(style=style, picture=picture, **config))


def get_grid(plane, step):
    rows, columns = np.mgrid[0 : plane.shape[0], 0 : plane.shape[1]]
    points = np.stack([columns.reshape(-1), rows.reshape(-1)], axis=1)
    return (points * step + (step - 1) / 2).astype(np.float32)


def check_outside(before, after, covers, reach):
    """Every px outside all masks is what it was, bit for bit."""
    for plane, old, step in (
        (after.y, before.y, 1),
        (after.u, before.u, 2),
        (after.v, before.v, 2),
    ):
        outside = np.ones(plane.size, bool)
        for cover in covers:
            grown = scale_ellipse(cover, reach, reach)
            grown = grown._replace(
                half_width=grown.half_width + 3, half_height=grown.half_height + 3
            )
            outside &= measure_radius(grown, get_grid(plane, step)) > 1
        changed = (plane != old).reshape(-1)
        assert not (changed & outside).any()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("roll", [0.0, 0.6, -1.2])
def test_the_face_is_hidden_and_nothing_else(style, roll, picture):
    frame, _ = draw_head(roll=roll)
    before, _ = draw_head(roll=roll)
    covers = create_blur(style, picture).cover(frame, [create_track(roll=roll)])
    reach = 1.6 if style == "picture" else 1.15
    check_outside(before, frame, covers, reach)
    marks = create_track(roll=roll).landmarks5
    assert measure_radius(covers[0], marks).max() < 0.8
    inside = (measure_radius(covers[0], get_grid(frame.y, 1)) < 0.98).reshape(frame.y.shape)
    detail = cv2.Laplacian(before.y, cv2.CV_32F)[inside].std()
    if style != "mosaic":
        assert cv2.Laplacian(frame.y, cv2.CV_32F)[inside].std() < detail / 3
    assert (frame.y[inside] != before.y[inside]).mean() > 0.9


def test_the_cover_rolls_with_the_head():
    frame, _ = draw_head()
    (upright,) = create_blur("solid").cover(frame, [create_track()])
    (rolled,) = create_blur("solid").cover(frame, [create_track(roll=0.7)])
    assert rolled.roll_rad - upright.roll_rad == pytest.approx(0.7, abs=0.01)
    assert rolled.half_height == pytest.approx(upright.half_height, rel=0.15)
    # Higher than the face's middle, along the head: towards the upper right when it leans there.
    assert rolled.x > upright.x


@pytest.mark.parametrize("style", ["gaussian", "mosaic"])
def test_few_cells_are_left_of_a_face(style):
    frame, _ = draw_head(1280, 720, x=640, y=320, scale=1.0)
    (cover,) = create_blur(style).cover(frame, [create_track(640, 320, 1.0)])
    row = frame.y[320, int(cover.x - cover.half_width) : int(cover.x + cover.half_width)]
    if style == "mosaic":
        assert len(np.flatnonzero(np.diff(row.astype(int)))) <= 12
    else:
        spectrum = np.abs(np.fft.rfft(row - row.mean()))
        assert spectrum[12:].max() < 0.08 * spectrum.max()


def test_strength_leaves_fewer_cells():
    values = []
    for strength in (0.0, 0.5, 1.0):
        frame, _ = draw_head()
        create_blur("mosaic", strength=strength).cover(frame, [create_track()])
        values.append(len(np.unique(frame.y[120:200, 290:350])))
    assert values[0] > values[1] > values[2]


def test_the_rim_is_soft():
    frame = draw_noise(640, 360)
    frame.buffer.fill(235)
    create_blur("solid", colour="#000000", feather=0.3).cover(frame, [create_track()])
    row = frame.y[160].astype(int)
    assert row.min() == 16
    assert np.abs(np.diff(row)).max() < 60
    assert len(np.unique(row)) > 8


@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
@pytest.mark.parametrize("full", [False, True])
def test_a_solid_cover_has_its_colour_in_every_matrix(matrix, full):
    frame, _ = draw_head()
    frame.colour = Colour(matrix, full)
    create_blur("solid", colour="#ff0000").cover(frame, [create_track()])
    weights = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}[matrix]
    luma, u, v = weights[0], -weights[0] / (2 - 2 * weights[1]), 0.5
    gain, chroma, black = (255, 255, 0) if full else (219, 224, 16)
    wanted = [black + gain * luma, 128 + chroma * u, min(128 + chroma * v, 255)]
    got = [frame.y[160, 320], frame.u[80, 160], frame.v[80, 160]]
    assert np.abs(np.subtract(got, wanted)).max() <= 1


def test_grey_has_no_colour_cast():
    for matrix in ("bt601", "bt709"):
        y, u, v = convert_colour((128, 128, 128), Colour(matrix, full_range=True))
        assert (y, u, v) == (128, 128, 128)


@pytest.mark.parametrize("style", STYLES)
def test_a_flat_picture_takes_no_cast_from_gaussian_or_mosaic(style, picture):
    frame = draw_noise(640, 360)
    frame.y[:], frame.u[:], frame.v[:] = 120, 90, 160
    create_blur(style, picture).cover(frame, [create_track()])
    if style in ("gaussian", "mosaic"):
        for plane, value in ((frame.y, 120), (frame.u, 90), (frame.v, 160)):
            assert np.abs(plane.astype(int) - value).max() <= 1


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STYLES),
    st.tuples(st.floats(-80, 400), st.floats(-80, 300), st.floats(0.02, 3.0), st.floats(-3.1, 3.1)),
    st.sampled_from([(320, 240), (34, 50), (2, 2), (426, 238)]),
)
def test_any_place_size_and_roll_is_covered_without_touching_the_rest(picture, style, place, size):
    frame, before = draw_noise(*size), draw_noise(*size)
    covers = create_blur(style, picture).cover(frame, [create_track(*place)])
    assert len(covers) == 1
    check_outside(before, frame, covers, 2.2 if style == "picture" else 1.15)


@pytest.mark.parametrize("amount", range(9))
def test_any_number_of_faces(amount):
    frame = draw_noise(640, 360)
    tracks = [create_track(60 + 70 * index, 120 + 10 * index, 0.2) for index in range(amount)]
    assert len(create_blur("gaussian").cover(frame, tracks)) == amount
    same = draw_noise(640, 360)
    assert np.array_equal(frame.buffer, same.buffer) == (amount == 0)


def test_a_picture_turns_with_the_head_and_hides_below_what_is_transparent(picture):
    frame, _ = draw_head()
    create_blur("picture", picture).cover(frame, [create_track()])
    assert frame.v[80, 160] > 200
    clear = str(picture).replace("disc", "clear")
    cv2.imwrite(clear, np.zeros((50, 50, 4), np.uint8))
    shown, _ = draw_head()
    blurred, _ = draw_head()
    create_blur("picture", clear).cover(shown, [create_track()])
    create_blur("gaussian").cover(blurred, [create_track()])
    assert np.array_equal(shown.buffer, blurred.buffer)


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_and_jpeg_pictures_do_too(tmp_path, channels):
    path = tmp_path / "flat.jpg"
    shape = (800, 600) if channels == 1 else (800, 600, 3)
    cv2.imwrite(str(path), np.full(shape, 255, np.uint8))
    frame, _ = draw_head()
    create_blur("picture", str(path)).cover(frame, [create_track()])
    assert frame.y[160, 320] >= 230


def test_a_picture_that_cannot_be_had_is_told_at_the_start(tmp_path):
    text = tmp_path / "text.png"
    text.write_text("no picture", "utf-8")
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    for path, words in (
        ("", "no picture is named"),
        (str(tmp_path / "missing.png"), "No such file"),
        (str(text), "not a picture"),
        (str(empty), "not a picture"),
    ):
        with pytest.raises(ConfigError, match=words):
            create_blur("picture", path)


@pytest.mark.parametrize("whom", ["auto", "all", "chosen", "others"])
@pytest.mark.parametrize("chosen", [True, False])
def test_who_is_not_known_yet_is_covered_whoever_is_meant(whom, chosen):
    token = Token(request_id="r", parameters=Parameters(blur_whom=whom))
    _, detection = draw_head()
    track = Track(1, detection.box, detection.landmarks5, 1.0, 0.0)
    assert must_blur(Face(track, chosen=chosen, is_doubtful=True), token)
    known = must_blur(Face(track, chosen=chosen), token)
    assert known == (whom == "all" or (whom == "others") != chosen)
