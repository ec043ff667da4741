"""The source of a mesh swap: a photo, unwrapped to UV and divided by its own light.

What remains is detail: 1 is plain skin; brows, lips, nose, wrinkles and moles lie above or below.
Light, skin colour and shadows of the photo are gone; those of the wearer take their place.
Built once per source, 0.2 to 0.4 s. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_lids import measure_eyes
from livefuse.pipeline.effects.mesh_lowband import blur, blur_by_mask, blur_weighted
from livefuse.pipeline.effects.mesh_mend import (
    LUMA_RGB,
    calm_chroma,
    even_sides,
    feather_known,
    fill_by_mirror,
    flatten_patches,
    mend_lips,
    soften_extremes,
)
from livefuse.pipeline.effects.mesh_normals import compute_normals
from livefuse.pipeline.effects.mesh_raster import MIN_FACE_PX, spread_over_uv
from livefuse.pipeline.effects.mesh_regions import (
    POINTS,
    SIDES,
    UV_SIDE,
    get_regions,
    smooth_step,
)
from livefuse.pipeline.effects.mesh_skin import find_skin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

LOW_SIGMA_PX: Final = 0.12 * UV_SIDE
_MAX_FACE_PX, _SHRUNK_FACE_PX = 410.0, 358.0
_MIN_LEVEL: Final = 14.0  # mean of the face, 0..255: darker holds no face
_FLOOR: Final = 4.0  # added to both sides of the division: noise in the dark stays small
_SHRINK: Final = 8
_EXTEND_SIGMA_PX: Final = 4.0


@dataclass(slots=True, frozen=True, eq=False)
class DetailTexture:
    """A face without its light.

    `detail` is float32 (512, 512, 3) RGB about 1. `mask` is float32 0..1, (512, 512): what of the
    UV map is known. `tint_rgb` is the skin's colour over its luma, `saturation` the skin's
    (max - min) / max, `eyes_open` how far the left and the right eye are open, as
    `mesh_lids.measure_eyes` says.
    """

    detail: Values
    mask: Values
    tint_rgb: Values
    saturation: float
    eyes_open: tuple[float, float]


def build_texture(
    picture_rgb: NDArray[np.uint8], mesh: NDArray[np.float32]
) -> DetailTexture | None:
    """Return the detail texture of the face whose `mesh` (px) lies in `picture_rgb`.

    None: the mesh is not a face in this picture, or the face is too small or too dark.
    """
    points = np.asarray(mesh[:POINTS], np.float32)
    if not _is_usable(points, picture_rgb):
        return None
    covered, unwrapped, trust = _unwrap(picture_rgb, points)
    regions = get_regions()
    weight = regions.skin * trust
    if float((unwrapped.mean(axis=2) * weight).sum() / max(weight.sum(), 1.0)) < _MIN_LEVEL:
        return None
    bare = find_skin(unwrapped, lambda mask: _find_low(unwrapped, weight * mask))
    known = trust * bare
    low = _find_low(unwrapped, regions.skin * known)
    unwrapped, known = fill_by_mirror(unwrapped, low, known)
    low = _find_low(unwrapped, regions.skin * known)
    detail = even_sides((unwrapped + _FLOOR) / (low + _FLOOR), known)
    detail = flatten_patches(detail, known)
    detail = 1 + (detail - 1) * feather_known(known)[:, :, None]
    detail = soften_extremes(calm_chroma(mend_lips(detail)))
    return _finish(detail, low, covered, measure_eyes(points))


def _is_usable(points: Values, picture: NDArray[np.uint8]) -> bool:
    if points.shape != (POINTS, 3) or not np.isfinite(points).all():
        return False
    if picture.ndim != 3 or picture.shape[2] != 3:  # noqa: PLR2004 - height, width, RGB
        return False
    height, width = picture.shape[:2]
    middle = points[:, :2].mean(axis=0)
    in_picture = 0 <= middle[0] < width and 0 <= middle[1] < height
    small = float(np.linalg.norm(points[SIDES[1]] - points[SIDES[0]])) < MIN_FACE_PX
    return bool(in_picture) and not small and np.abs(points).max() < 4 * max(width, height)


def _unwrap(picture: NDArray[np.uint8], points: Values) -> tuple[Values, Values, Values]:
    """Return the mask of the UV map, the face in it (RGB 0..255) and how well each px is seen."""
    face_px = float(np.linalg.norm(points[SIDES[1]] - points[SIDES[0]]))
    if face_px > _MAX_FACE_PX:
        scale = _SHRUNK_FACE_PX / face_px
        size = (round(picture.shape[1] * scale), round(picture.shape[0] * scale))
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
        points = np.asarray((points + 0.5) * scale - 0.5, np.float32)
    facing = compute_normals(points)[:, 2]
    inside, layers = spread_over_uv(np.column_stack([points[:, :2], facing]))
    known = (inside > 0).astype(np.float32)
    unwrapped = cv2.remap(
        picture.astype(np.float32),
        np.ascontiguousarray(layers[:, :, 0]),
        np.ascontiguousarray(layers[:, :, 1]),
        cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    # The holes take the colour of their edge: else a dark line rings them.
    unwrapped = np.clip(np.asarray(unwrapped, np.float32), 0, 255) * known[:, :, None]
    spread = blur_by_mask(unwrapped, known, _EXTEND_SIGMA_PX)
    unwrapped = np.where(known[:, :, None] > 0, unwrapped, spread)
    trust = smooth_step(0.12, 0.42, blur(layers[:, :, 2] * known, 6.0))
    in_frame = _find_in_frame(layers, picture.shape)
    return known, np.asarray(unwrapped, np.float32), np.asarray(trust * in_frame, np.float32)


def _find_in_frame(layers: Values, shape: tuple[int, ...]) -> Values:
    """Return 1 where the px lies in the picture, softly 0 where the face is cut off."""
    x, y = layers[:, :, 0], layers[:, :, 1]
    inside = (x >= 0) & (y >= 0) & (x <= shape[1] - 1) & (y <= shape[0] - 1)
    eroded = cv2.erode(inside.astype(np.float32), np.ones((9, 9), np.uint8))
    return blur(np.asarray(eroded, np.float32), 3.0)


def _find_low(unwrapped: Values, weight: Values) -> Values:
    """Return the low band (512, 512, 3), worked at an eighth of the size."""
    side = UV_SIDE // _SHRINK
    weighted = np.dstack([unwrapped * weight[:, :, None], weight])
    small = np.asarray(cv2.resize(weighted, (side, side), interpolation=cv2.INTER_AREA), np.float32)
    share = small[:, :, 3]
    picture = np.asarray(small[:, :, :3] / np.maximum(share, 1e-4)[:, :, None], np.float32)
    sigma = LOW_SIGMA_PX / _SHRINK
    low = blur_weighted(picture, share, sigma, 2 * int(2.6 * sigma) + 1, 0.02)
    return np.asarray(cv2.resize(low, (UV_SIDE, UV_SIDE), interpolation=cv2.INTER_CUBIC))


def _finish(
    detail: Values, low: Values, known: Values, eyes_open: tuple[float, float]
) -> DetailTexture:
    skin = get_regions().skin > 0
    light = low[skin]
    top = np.maximum(light.max(axis=1), 1.0)
    mean = light.mean(axis=0)
    tint = mean / max(float(mean @ LUMA_RGB), 1.0)
    texture = DetailTexture(
        detail=np.ascontiguousarray(detail, np.float32),
        mask=known,
        tint_rgb=np.asarray(tint, np.float32),
        saturation=float(((top - light.min(axis=1)) / top).mean()),
        eyes_open=eyes_open,
    )
    for array in (texture.detail, texture.mask, texture.tint_rgb):
        array.setflags(write=False)
    return texture
