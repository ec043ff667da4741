"""What a source photo lacks or shows too much of, mended in UV: the steps of build_texture.

`unwrapped` and `low` are RGB 0..255, `detail` is RGB about 1 (plain skin), all float32
(512, 512, 3); `known` 0..1 says how well each px was seen as skin or feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_lowband import blur, blur_by_mask
from livefuse.pipeline.effects.mesh_regions import (
    UV_SIDE,
    draw_polygons,
    get_regions,
    get_rows_columns,
    smooth_step,
)
from livefuse.pipeline.topology import LIPS_OUTER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

LUMA_RGB: Final = np.array([0.299, 0.587, 0.114], np.float32)
_BETTER_BY: Final = 0.15  # the other half is taken where it is known better by this
_EVEN_SIGMA_PX: Final = 9.0
_EVEN_SHARE: Final = 0.75
_PATCH_SIGMA_PX: Final = 0.045 * UV_SIDE
_PATCH_SHARE: Final = 0.45
_HIGHLIGHT, _HIGHLIGHT_KEPT = 1.16, 0.35
_SHADOW, _SHADOW_KEPT = 0.88, 0.40
_FEATHER_PX: Final = (2.0, 30.0)


def fill_by_mirror(unwrapped: Values, low: Values, known: Values) -> tuple[Values, Values]:
    """Take px from the other half where it is known better, lit as here.

    Returns the new picture and how well it is known. The middle stays: a seam would show.
    """
    _, columns = get_rows_columns()
    mirrored = known[:, ::-1]
    off_middle = smooth_step(20, 40, np.abs(columns - UV_SIDE / 2))
    share = smooth_step(_BETTER_BY, _BETTER_BY + 0.3, mirrored - known) * off_middle
    other = (unwrapped / np.maximum(low, 1.0))[:, ::-1] * low
    filled = unwrapped + (np.clip(other, 0, 255) - unwrapped) * share[:, :, None]
    return np.asarray(filled, np.float32), np.maximum(known, share * mirrored)


def even_sides(detail: Values, known: Values) -> Values:
    """Take out of the skin most of the difference between left and right that is broad.

    Faces are nearly even, light is not: what differs over a px or two is a mole, what differs
    over a cheek is a shadow beside the nose.
    """
    both = get_regions().skin * known
    both = both * both[:, ::-1]
    log = np.log(np.maximum(detail @ LUMA_RGB, 0.05))
    odd = (log - log[:, ::-1]) / 2
    odd = blur_by_mask(odd[:, :, None], both, _EVEN_SIGMA_PX)[:, :, 0]
    gain = np.exp(-_EVEN_SHARE * odd * blur(both, 3.0))
    return np.asarray(detail * gain[:, :, None], np.float32)


def flatten_patches(detail: Values, known: Values) -> Values:
    """Take some of the broad light and dark out of the skin that the low band was too wide for."""
    skin = get_regions().skin * known
    luma = detail @ LUMA_RGB
    broad = blur_by_mask(np.log(np.maximum(luma, 0.05))[:, :, None], skin, _PATCH_SIGMA_PX)
    gain = np.exp(-_PATCH_SHARE * broad[:, :, 0] * blur(skin, 2.0))
    return np.asarray(detail * gain[:, :, None], np.float32)


def feather_known(known: Values) -> Values:
    """Return `known` with a wide soft edge on the skin: no line where a fringe began."""
    sure = (known > 0.5).astype(np.uint8)  # noqa: PLR2004 - more known than not
    distance = np.asarray(cv2.distanceTransform(sure, cv2.DIST_L2, 5), np.float32)
    wide = smooth_step(*_FEATHER_PX, distance)
    feature = blur(get_regions().features, 3.0)
    return np.asarray(known * (wide + (1 - wide) * feature), np.float32)


def mend_lips(detail: Values) -> Values:
    """Give lips that show teeth or gloss the colour of the lips around."""
    lips = draw_polygons(LIPS_OUTER, grow_px=2)
    luma = detail @ LUMA_RGB
    usual = float(np.median(luma[lips > 0]))
    bright = smooth_step(0.06, 0.16, luma - usual)
    plain = blur_by_mask(detail, lips * (1 - bright) ** 2, 6.0)
    share = blur(lips, 1.0) * bright
    return np.asarray(detail + (plain - detail) * share[:, :, None], np.float32)


def calm_chroma(detail: Values) -> Values:
    """Take colour out of the skin's light and dark spots, and the low colours out of all skin.

    Without this a source with white highlights leaves blue-grey patches.
    """
    regions = get_regions()
    luma = detail @ LUMA_RGB
    chroma = detail - luma[:, :, None]
    on_skin = chroma - blur_by_mask(chroma, regions.skin, 0.04 * UV_SIDE)
    neutral = 1 - 0.75 * smooth_step(1.02, 1.16, luma)
    dark = 1 - 0.8 * (1 - smooth_step(0.78, 0.95, luma))
    on_skin = np.clip(on_skin * (neutral * dark)[:, :, None], -0.10, 0.10)
    rows, _ = get_rows_columns()
    brows = 1 - 0.3 * (1 - smooth_step(160, 172, rows))
    on_features = np.clip(chroma * neutral[:, :, None], -0.28, 0.28) * brows[:, :, None]
    feature = blur(regions.features, 3.0)[:, :, None]
    chroma = on_features * feature + on_skin * (1 - feature)
    return np.asarray(luma[:, :, None] + chroma, np.float32)


def soften_extremes(detail: Values) -> Values:
    """Bend the highlights down, and the skin's shadows (folds, beard) up."""
    top = detail.max(axis=2)
    bent = np.where(top > _HIGHLIGHT, _HIGHLIGHT + _HIGHLIGHT_KEPT * (top - _HIGHLIGHT), top)
    detail = detail * (bent / np.maximum(top, 1e-3))[:, :, None]
    mean = detail.mean(axis=2)
    bent = np.where(mean < _SHADOW, _SHADOW - _SHADOW_KEPT * (_SHADOW - mean), mean)
    gain = 1 + (bent / np.maximum(mean, 1e-3) - 1) * blur(get_regions().skin, 2.0)
    return np.asarray(detail * gain[:, :, None], np.float32)
