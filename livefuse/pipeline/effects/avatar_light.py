"""How a drawn avatar is lit: by the wearer's own light, and by its own gloss.

The wearer's light is the low band of his skin's luma, features and hair left out, so that a lamp
from the left lights the avatar from the left. Gloss is a picture of light seen on a ball
("matcap"): what a normal's direction shows, turning with the head.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.canonical import CANONICAL
from livefuse.pipeline.effects.avatar_shape import HEIGHT_PX, WIDTH_PX, to_texture
from livefuse.pipeline.effects.mesh_regions import EYE_RINGS
from livefuse.pipeline.topology import BROW_LEFT, BROW_RIGHT, LIPS_OUTER, OVAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

BALL_PX: Final = 64
_DARKEST, _BRIGHTEST = 0.35, 1.4
_ALL_DARKEST, _ALL_BRIGHTEST = 0.35, 1.12
_NORMAL_LUMA: Final = 170.0
_MEAN_POWER: Final = 0.7
_EMA: Final = 0.1
_HAIR: Final = (0.45, 0.25)  # of the mean luma: from here on a px may be skin, and over how much
_DARKEST_SIDE: Final = 0.25
_WIDE: Final = 3.0  # times the sigma, where no skin is near
_LITTLE: Final = 0.02
_SKIN_COARSER: Final = 4
_SKIN_MARGIN_PX: Final = 4
_BLACK, _SPAN = 16.0, 219.0  # limited range


class Ball(NamedTuple):
    """Light on a ball, float32 (BALL_PX, BALL_PX) each: luma's gain, and luma added (0..255)."""

    gain: Values
    added: Values


class Gloss(NamedTuple):
    """A material. `form`: how much turned-away parts darken; `wearer`: power of his light.

    `sigma` is that of the wearer's low band in face widths. A spot is a light: its direction x, y
    (as seen on the ball, -1..1), its size and luma.
    """

    form: float
    wearer: float
    sigma: float
    spots: tuple[tuple[float, float, float, float], ...] = ()
    rim: float = 0.0


@cache
def get_skin() -> Values:
    """Return where the wearer's skin is in a drawing's frame, float32 0..1, a quarter as fine."""
    mask = np.zeros((HEIGHT_PX // _SKIN_COARSER, WIDTH_PX // _SKIN_COARSER), np.uint8)
    for part, value in (
        (OVAL, 255),
        (EYE_RINGS[0], 0),
        (EYE_RINGS[1], 0),
        (BROW_LEFT, 0),
        (BROW_RIGHT, 0),
        (LIPS_OUTER, 0),
    ):
        places = to_texture(CANONICAL[np.asarray(part)]) / _SKIN_COARSER
        hull = np.rint(np.asarray(cv2.convexHull(places))[:, 0] * 16).astype(np.int32)
        cv2.fillPoly(mask, [hull], value, cv2.LINE_8, 4)
        # A little less than the oval, a little more than each feature.
        edge = 2 * _SKIN_MARGIN_PX if value else _SKIN_MARGIN_PX
        cv2.polylines(mask, [hull], isClosed=True, color=0, thickness=edge, shift=4)
    skin = np.asarray(cv2.GaussianBlur(mask, (0, 0), 1.0), np.float32) * np.float32(1 / 255)
    skin.setflags(write=False)
    return skin


def create_ball(gloss: Gloss) -> Ball:
    """Return what a ball of this material looks like. Light falls from above, a little left."""
    axis = (np.arange(BALL_PX, dtype=np.float32) + 0.5) / BALL_PX * 2 - 1
    x, y = np.meshgrid(axis, axis)
    square = np.minimum(x * x + y * y, 1.0)
    z = np.sqrt(1 - square)
    facing = -0.25 * x - 0.45 * y + 0.86 * z
    gain = np.maximum(1 + gloss.form * (facing - 0.8), _DARKEST_SIDE)
    added = np.zeros_like(x)
    for at_x, at_y, size, luma in gloss.spots:
        apart = (x - at_x) ** 2 + (y - at_y) ** 2
        added += luma * np.exp(-apart / (2 * size * size))
    added += gloss.rim * np.clip((0.45 - z) / 0.45, 0, 1) ** 2
    return Ball(gain.astype(np.float32), added.astype(np.float32))


def look_up(ball: Ball, normals: Values) -> tuple[Values, Values]:
    """Return gain and added luma for (rows, columns, 2) normals as they point on the picture."""
    places = np.clip((normals + 1) * (BALL_PX / 2) - 0.5, 0, BALL_PX - 1).astype(np.float32)
    none = None
    gain = cv2.remap(ball.gain, places, none, cv2.INTER_LINEAR)  # type: ignore[call-overload]  # the stubs forbid the None that a joint map needs
    added = cv2.remap(ball.added, places, none, cv2.INTER_LINEAR)  # type: ignore[call-overload]  # as above
    return np.asarray(gain, np.float32), np.asarray(added, np.float32)


class WearerLight:
    """One wearer's light through time."""

    def __init__(self) -> None:
        self._mean = 0.0

    def measure(
        self, luma: NDArray[np.uint8], skin: Values, gloss: Gloss, face_px: float
    ) -> Values:
        """Return a gain, float32 like `luma` (any small picture of the face's region).

        `skin` is 0..1 of the same size; `face_px` is the face's width in its px.
        """
        bright = (luma.astype(np.float32) - _BLACK) * (255 / _SPAN)
        total = float(skin.sum())
        if total < 1.0:
            return np.full(luma.shape, self._lift(), np.float32)
        rough = float((bright * skin).sum()) / total
        low, over = _HAIR
        weight = skin * np.clip((bright - low * rough) / (over * rough + 1.0), 0.0, 1.0)
        mean = float((bright * weight).sum()) / max(float(weight.sum()), 1.0)
        self._mean = mean if self._mean <= 0.0 else self._mean + _EMA * (mean - self._mean)
        found = _blur_weighted(bright, weight, gloss.sigma * face_px, mean)
        share = np.clip(found / max(mean, 1.0), _DARKEST, _BRIGHTEST)
        return np.asarray(share**gloss.wearer * self._lift(), np.float32)

    def _lift(self) -> float:
        if self._mean <= 0.0:
            return 1.0
        lift: float = (max(self._mean, 1.0) / _NORMAL_LUMA) ** _MEAN_POWER
        return min(max(lift, _ALL_DARKEST), _ALL_BRIGHTEST)


def _blur_weighted(values: Values, weight: Values, sigma_px: float, rest: float) -> Values:
    """Return the Gaussian mean of `values` by `weight`; far from any weight a wider one, `rest`."""
    product = values * weight
    sigma = max(sigma_px, 0.5)
    near, near_weight = (
        cv2.GaussianBlur(p, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
        for p in (product, weight)
    )
    side = 2 * round(_WIDE * sigma) + 1
    wide, wide_weight = (
        cv2.blur(p, (side, side), borderType=cv2.BORDER_REPLICATE) for p in (product, weight)
    )
    far = (wide + np.float32(_LITTLE * rest)) / (wide_weight + np.float32(_LITTLE))
    return np.asarray((near + _LITTLE * far) / (near_weight + _LITTLE), np.float32)
