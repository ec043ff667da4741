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

from livefuse.pipeline.effects.mesh_lowband import blur, blur_by_mask, blur_weighted
from livefuse.pipeline.effects.mesh_raster import MIN_FACE_PX, compute_normals, spread_over_uv
from livefuse.pipeline.effects.mesh_regions import (
    POINTS,
    SIDES,
    UV_SIDE,
    get_regions,
    get_rows_columns,
    smooth_step,
)
from livefuse.pipeline.effects.mesh_skin import find_skin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

LUMA_RGB: Final = np.array([0.299, 0.587, 0.114], np.float32)
LOW_SIGMA_PX: Final = 0.12 * UV_SIDE
_MAX_FACE_PX, _SHRUNK_FACE_PX = 410.0, 358.0
_MIN_LEVEL: Final = 14.0  # mean of the face, 0..255: darker holds no face
_FLOOR: Final = 4.0  # added to both sides of the division: noise in the dark stays small
_SHRINK: Final = 8
_EXTEND_SIGMA_PX: Final = 4.0
_FOREHEAD_UV_Y: Final = 95


@dataclass(slots=True, frozen=True, eq=False)
class DetailTexture:
    """A face without its light.

    `detail` is float32 (512, 512, 3) RGB about 1. `mask` is float32 0..1, (512, 512): what of the
    UV map is known. `tint_rgb` is the skin's colour over its luma, `saturation` the skin's
    (max - min) / max.
    """

    detail: Values
    mask: Values
    tint_rgb: Values
    saturation: float


def build_texture(
    picture_rgb: NDArray[np.uint8], mesh: NDArray[np.float32]
) -> DetailTexture | None:
    """Return the detail texture of the face whose `mesh` (px) lies in `picture_rgb`.

    None: the mesh is not a face in this picture, or the face is too small or too dark.
    """
    points = np.asarray(mesh[:POINTS], np.float32)
    if not _is_usable(points, picture_rgb):
        return None
    known, unwrapped, trust = _unwrap(picture_rgb, points)
    regions = get_regions()
    weight = regions.skin * trust
    if float((unwrapped.mean(axis=2) * weight).sum() / max(weight.sum(), 1.0)) < _MIN_LEVEL:
        return None
    low = _find_low(unwrapped, weight)
    unwrapped, trust = _fill_by_mirror(unwrapped, low, trust, trust, gain=0.0)
    low = _find_low(unwrapped, regions.skin * trust)
    skin = find_skin(unwrapped, low)
    low = _find_low(unwrapped, regions.skin * trust * skin)
    rows, _ = get_rows_columns()
    unwrapped, skin = _fill_by_mirror(
        unwrapped, low, skin, skin * (rows > _FOREHEAD_UV_Y), gain=0.15
    )
    low = _find_low(unwrapped, regions.skin * trust * skin)
    detail = (unwrapped + _FLOOR) / (low + _FLOOR)
    detail = 1 + (detail - 1) * (skin * np.minimum(1, 1.5 * trust))[:, :, None]
    detail = _soften(_calm_chroma(detail))
    return _finish(detail, low, known)


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
    picture = small[:, :, :3] / np.maximum(share, np.float32(1e-4))[:, :, None]
    sigma = LOW_SIGMA_PX / _SHRINK
    low = blur_weighted(picture, share, sigma, 2 * int(2.6 * sigma) + 1, 0.02)
    return np.asarray(cv2.resize(low, (UV_SIDE, UV_SIDE), interpolation=cv2.INTER_CUBIC))


def _fill_by_mirror(
    unwrapped: Values, low: Values, known: Values, usable: Values, *, gain: float
) -> tuple[Values, Values]:
    """Take px from the other half where it is known better by more than `gain`, lit as here.

    Returns the new picture and how well it is known. The middle stays: a seam would show.
    """
    _, columns = get_rows_columns()
    mirrored = usable[:, ::-1]
    off_middle = smooth_step(20, 40, np.abs(columns - UV_SIDE / 2))
    share = smooth_step(gain, gain + 0.3, mirrored - known) * off_middle
    other = (unwrapped / np.maximum(low, 1.0))[:, ::-1] * low
    filled = unwrapped + (np.clip(other, 0, 255) - unwrapped) * share[:, :, None]
    return np.asarray(filled, np.float32), np.maximum(known, share * mirrored)


def _calm_chroma(detail: Values) -> Values:
    """Take colour out of the skin's light and dark spots, and the low colours out of all skin.

    Without this a source with white highlights leaves blue-grey patches.
    """
    regions = get_regions()
    luma = detail @ LUMA_RGB
    chroma = detail - luma[:, :, None]
    on_skin = chroma - blur_by_mask(chroma, regions.skin, 0.04 * UV_SIDE)
    neutral = 1 - 0.75 * smooth_step(1.02, 1.16, luma)
    neutral *= 1 - 0.8 * (1 - smooth_step(0.78, 0.95, luma))
    on_skin = np.clip(on_skin * neutral[:, :, None], -0.10, 0.10)
    rows, _ = get_rows_columns()
    brows = 1 - 0.3 * (1 - smooth_step(160, 172, rows))
    on_features = np.clip(chroma, -0.28, 0.28) * brows[:, :, None]
    feature = blur(regions.features, 3.0)[:, :, None]
    chroma = on_features * feature + on_skin * (1 - feature)
    return np.asarray(luma[:, :, None] + chroma, np.float32)


def _soften(detail: Values) -> Values:
    """Bend the highlights down, and the skin's shadows (folds, beard) up."""
    top = detail.max(axis=2)
    bent = np.where(top > 1.16, 1.16 + 0.35 * (top - 1.16), top)  # noqa: PLR2004 - knee
    detail = detail * (bent / np.maximum(top, 1e-3))[:, :, None]
    mean = detail.mean(axis=2)
    bent = np.where(mean < 0.88, 0.88 - 0.40 * (0.88 - mean), mean)  # noqa: PLR2004 - knee
    skin = blur(get_regions().skin, 2.0)
    gain = 1 + (bent / np.maximum(mean, 1e-3) - 1) * skin
    return np.asarray(detail * gain[:, :, None], np.float32)


def _finish(detail: Values, low: Values, known: Values) -> DetailTexture:
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
    )
    for array in (texture.detail, texture.mask, texture.tint_rgb):
        array.setflags(write=False)
    return texture
