"""The source of the mesh swap: a photo without its light, and its variants."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import cv2
import numpy as np
import pytest

from livefuse.frame import Colour
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.mesh_mend import LUMA_RGB
from livefuse.pipeline.effects.mesh_regions import draw_polygons, get_regions
from livefuse.pipeline.effects.mesh_texture import build_texture
from livefuse.pipeline.effects.mesh_variant import (
    LUMA_ONE,
    TINT_ONE,
    VariantStore,
    build_variant,
    create_key,
)
from livefuse.pipeline.topology import LIPS_OUTER
from tests.sheets._people import create_other_person, find_mesh, place_photo, relight


@pytest.fixture(scope="module")
def photo():
    bgr = place_photo(260, (560, 600))
    return bgr, find_mesh(bgr)


@pytest.fixture(scope="module")
def texture(photo):
    return build(*photo)


def build(bgr, mesh):
    return build_texture(np.ascontiguousarray(bgr[:, :, ::-1]), mesh)


def test_plain_skin_is_one_and_features_are_darker(texture):
    luma = texture.detail @ LUMA_RGB
    regions = get_regions()
    skin = (regions.skin > 0) & (regions.alpha > 0.9)
    assert abs(float(luma[skin].mean()) - 1) < 0.03
    assert float(luma[skin].std()) < 0.08
    assert luma[draw_polygons(LIPS_OUTER) > 0].mean() < 0.92
    other = build(*create_other_person())
    assert (other.detail @ LUMA_RGB)[120:165, 150:220].min() < 0.75
    assert texture.detail.dtype == np.float32
    assert np.isfinite(texture.detail).all()
    assert not texture.detail.flags.writeable


@pytest.mark.parametrize(("light", "most"), [("window", 0.04), ("dim", 0.04), ("cold", 0.03)])
def test_the_light_of_the_photo_does_not_come_along(photo, texture, light, most):
    bgr, mesh = photo
    other = build(relight(bgr, light), mesh)
    shown = get_regions().alpha > 0.5
    difference = np.abs((other.detail - texture.detail) @ LUMA_RGB)[shown]
    assert float(difference.mean()) < most


def test_a_fringe_becomes_plain_skin(texture):
    # The astronaut's fringe covers the top of the forehead.
    assert np.abs(texture.detail[62:84, 200:312] - 1).max() < 0.12


def test_hair_over_one_cheek_is_filled_from_the_other(photo, texture):
    bgr, mesh = photo
    hairy = bgr.copy()
    strand = np.rint(mesh[[454, 447, 345, 352, 376, 401, 361, 323], :2]).astype(np.int32)
    cv2.fillPoly(hairy, [cv2.convexHull(strand)], (18, 22, 30))
    found = build(hairy, mesh)
    assert (found.detail @ LUMA_RGB)[215:330, 380:430].min() > 0.75


def test_a_grey_photo_has_no_colour(photo):
    bgr, mesh = photo
    grey = build(relight(bgr, "mono"), mesh)
    assert grey.saturation < 0.01
    assert float(np.abs(grey.detail - grey.detail.mean(axis=2, keepdims=True)).max()) < 0.01


def _spoil(bgr, mesh, kind):
    mesh = mesh.copy()
    if kind == "dark":
        bgr = np.full_like(bgr, 5)
    elif kind == "tiny":
        mesh *= 0.05
    elif kind == "nan":
        mesh[3] = np.nan
    elif kind == "elsewhere":
        mesh[:, 0] += 900
    elif kind == "points":
        mesh = mesh[:106]
    return bgr, mesh


@pytest.mark.parametrize("kind", ["dark", "tiny", "nan", "elsewhere", "points"])
def test_what_is_no_source_is_none(photo, kind):
    bgr, mesh = photo
    assert build(*_spoil(bgr, mesh, kind)) is None


def test_a_face_that_is_cut_off_by_the_edge_is_still_a_source(photo):
    bgr, mesh = photo
    x = int(mesh[4, 0]) + 40
    cut = build(bgr[:, :x], mesh)
    assert cut is not None
    # The half that the picture lacks comes from the half that it has.
    assert np.isfinite(cut.detail).all()
    assert (cut.detail @ LUMA_RGB)[300:330, 330:380].std() < 0.1


@pytest.mark.parametrize("colour", [Colour("bt601"), Colour("bt709"), Colour("bt709", True)])
def test_planes_give_what_colours_would(texture, colour):
    """out = D T per colour, and the same from luma and differences in the planes."""
    variant = build_variant(texture, create_key(0.0, 1.0, 1.0, colour)).astype(np.float64)
    red, blue = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}[colour.matrix]
    weights = np.array([red, 1 - red - blue, blue])
    low = 150.0 * texture.tint_rgb / float(texture.tint_rgb @ LUMA_RGB)
    y_low = float(low @ weights)
    luma, chroma = (1.0, 1.0) if colour.full_range else (219 / 255, 224 / 255)
    u_low = (low[2] - y_low) / (2 - 2 * blue) * chroma
    v_low = (low[0] - y_low) / (2 - 2 * red) * chroma
    out = texture.detail * low
    y = out @ weights
    expected = np.dstack(
        [
            y * luma,
            (out[:, :, 2] - y) / (2 - 2 * blue) * chroma,
            (out[:, :, 0] - y) / (2 - 2 * red) * chroma,
        ]
    )
    d_y = variant[:, :, 0] / LUMA_ONE
    p_u, p_v = (variant[:, :, i] / TINT_ONE - 128 / TINT_ONE for i in (1, 2))
    y_plane = y_low * luma
    found = np.dstack([d_y * y_plane, d_y * u_low + y_plane * p_u, d_y * v_low + y_plane * p_v])
    shown = get_regions().alpha > 0.2
    assert float(np.abs(found - expected)[shown].max()) < 1.5


def test_no_colour_and_less_contrast_are_variants_too(texture):
    colour = Colour("bt601")
    flat = build_variant(texture, create_key(0.0, 0.5, 0.0, colour))
    full = build_variant(texture, create_key(0.0, 1.0, 1.0, colour))
    shown = get_regions().alpha > 0.5
    # What is left of colour is what the source's own skin has, as the low band brings it.
    assert flat[shown][:, 0].std() < 0.6 * full[shown][:, 0].std()
    assert np.ptp(flat[shown][:, 1]) <= np.ptp(full[shown][:, 1])


class _Later(Executor):
    """Runs nothing until told."""

    def __init__(self):
        self.work = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future[np.ndarray] = Future()
        self.work.append((future, fn, args))
        return future

    def run(self):
        for future, fn, args in self.work:
            future.set_result(fn(*args))
        self.work.clear()


def test_a_variant_is_built_aside_and_the_old_one_stays(texture):
    aside = _Later()
    store = VariantStore(texture, aside)
    key = create_key(1.0, 1.0, 1.0, Colour("bt601"))
    assert store.get(key) is None
    assert store.get(key) is None
    assert len(aside.work) == 1
    assert store.get_first(Colour("bt601")) is not None
    aside.run()
    assert store.get(key) is store.get_first(Colour("bt601"))


def test_variants_are_bounded(texture, monkeypatch):
    monkeypatch.setattr(
        "livefuse.pipeline.effects.mesh_variant.build_variant",
        lambda *_: np.zeros((2, 2, 4), np.uint8),
    )
    store = VariantStore(texture, InlineExecutor())
    for step in range(40):
        assert store.get(create_key(step / 2, 1.0, 1.0, Colour())) is not None
    assert len(store._kept) == 12
    waiting = VariantStore(texture, _Later())
    for step in range(40):
        waiting.get(create_key(step / 2, 1.0, 1.0, Colour()))
    assert len(waiting._pending) == 2
