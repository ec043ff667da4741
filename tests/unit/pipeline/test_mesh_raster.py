"""The map from a frame's px to the texture's, by known shapes and by broken meshes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.pipeline.effects.mesh_normals import compute_normals, compute_visibility
from livefuse.pipeline.effects.mesh_raster import (
    GridBox,
    create_view,
    measure_yaw,
    paint_triangles,
    spread_over_uv,
)
from livefuse.pipeline.effects.mesh_regions import UV_PX, get_regions
from livefuse.pipeline.effects.mesh_render import compute_rim


def create_mesh(face_px=260.0, centre=(640.0, 360.0), yaw=0.0, count=468):
    """Return a face made of the UV map itself, bulging towards the camera."""
    flat = (UV_PX - 256) / 512
    bulge = 0.45 * (1 - (2 * flat[:, 0]) ** 2)
    x, y, z = flat[:, 0] * 0.95, flat[:, 1] * 1.25, -0.6 * bulge
    x, z = x * np.cos(yaw) + z * np.sin(yaw), z * np.cos(yaw) - x * np.sin(yaw)
    mesh = np.column_stack([x, y, z]) * face_px
    mesh[:, :2] += centre
    return np.vstack([mesh, np.zeros((count - 468, 3))]).astype(np.float32)


def test_each_point_is_mapped_to_its_own_place_in_the_texture():
    view = create_view(create_mesh(), 1280, 720)
    assert view is not None
    scale_x, scale_y = view.scale
    for point in (4, 50, 280, 152, 10, 33, 263, 205):
        x = round(float((view.points[point, 0] + 0.5) * scale_x - 0.5))
        y = round(float((view.points[point, 1] + 0.5) * scale_y - 0.5))
        # One px of the grid is six of the texture here.
        assert np.abs(view.uv[y, x] - UV_PX[point]).max() < 7.0, point


def test_a_triangle_is_filled_with_the_plane_through_its_corners():
    flat = np.array([[1.0, 1.0], [13.0, 2.0], [3.0, 11.0]], np.float32)
    values = np.column_stack([2 * flat[:, 0] - flat[:, 1], flat[:, 1]]).astype(np.float32)
    box = GridBox(0, 0, 16, 16, 16, 16)
    painted = paint_triangles(flat, values, np.array([[0, 1, 2]], np.int32), box)
    assert painted is not None
    inside, layers = painted
    y, x = np.nonzero(inside)
    assert 45 < y.size < 75
    assert np.allclose(layers[y, x, 0], 2 * x - y, atol=1e-3)
    assert np.allclose(layers[y, x, 1], y, atol=1e-3)
    assert not layers[inside == 0].any()


def test_the_nearer_of_two_triangles_is_seen():
    flat = np.array([[0, 0], [15, 0], [0, 15]] * 2, np.float32)
    values = np.repeat(np.array([[1.0], [2.0]], np.float32), 3, axis=0)
    order = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
    painted = paint_triangles(flat, values, order, GridBox(0, 0, 16, 16, 16, 16))
    assert painted is not None
    assert painted[1][3, 3, 0] == 2.0


def test_neighbouring_triangles_leave_no_gaps():
    inside, _ = spread_over_uv(np.ones((468, 1), np.float32))
    known = get_regions().inside > 0
    assert (inside[known] > 0).mean() > 0.995


def test_normals_of_a_plane_face_the_camera():
    plane = np.column_stack([UV_PX, np.zeros(468)]).astype(np.float32)
    assert np.allclose(compute_normals(plane), (0, 0, 1), atol=1e-5)
    assert np.allclose(compute_visibility(plane), 1.0)


def test_skin_that_turns_away_fades_at_the_oval_only():
    seen = compute_visibility(create_mesh(yaw=np.radians(60)))
    far = UV_PX[:, 0] > 480 if seen[UV_PX[:, 0] > 480].mean() < 0.5 else UV_PX[:, 0] < 32
    assert seen[far].mean() < 0.2
    assert seen[4] == 1.0  # the tip of the nose


@pytest.mark.parametrize("degrees", [-40, 0, 25])
def test_yaw_is_read_from_the_mesh(degrees):
    assert abs(measure_yaw(create_mesh(yaw=np.radians(degrees)))) == pytest.approx(
        abs(np.radians(degrees)), abs=0.02
    )


def _break(kind):
    mesh = create_mesh()
    if kind in _SPOILS:
        row, column, value = _SPOILS[kind]
        mesh[row, column] = value
    elif kind == "tiny":
        mesh = create_mesh(face_px=9)
    elif kind == "mirrored":
        mesh[:, 0] = 1280 - mesh[:, 0]
    elif kind == "short":
        mesh = mesh[:68]
    return mesh


_SPOILS = {
    "nan": (7, 1, np.nan),
    "infinite": (7, 2, np.inf),
    "far": (7, 0, 1e7),
    "outside": (slice(None), 0, 3000.0),
    "one point": (slice(None), slice(None), 300.0),
}


@pytest.mark.parametrize("kind", [*_SPOILS, "tiny", "mirrored", "short"])
def test_a_mesh_that_cannot_be_a_face_is_none(kind):
    assert create_view(_break(kind), 1280, 720) is None


@settings(max_examples=40, deadline=None)
@given(
    st.floats(10, 2000),
    st.floats(-300, 1600),
    st.floats(-300, 1000),
    st.floats(-1.5, 1.5),
    st.sampled_from([468, 478]),
)
def test_any_place_gives_a_box_in_the_frame_or_none(face_px, x, y, yaw, count):
    view = create_view(create_mesh(face_px, (x, y), yaw, count), 1280, 720)
    if view is None:
        return
    x0, y0, x1, y1, columns, rows = view.box
    assert 0 <= x0 < x1 <= 1280
    assert 0 <= y0 < y1 <= 720
    assert not (x0 % 2 or y0 % 2 or x1 % 2 or y1 % 2)
    assert view.uv.shape == (rows, columns, 2)
    assert np.isfinite(view.uv).all()
    shown = view.uv[view.inside > 0]
    assert shown.min() > -1.0
    assert shown.max() < 513.0
    rim = compute_rim(view)
    assert rim.min() >= 0.0
    corners = np.ix_([0, -1], [0, -1])
    if not view.inside[corners].any():  # all of them beside the mesh, none in its open mouth
        assert not rim[corners].any()
