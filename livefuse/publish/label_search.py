"""Is the visible label in a picture? Looked for at all sizes, wherever it stands, also mirrored."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.config import MarkConfig
from livefuse.frame import create_frame
from livefuse.publish.mark import Label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane = NDArray[np.uint8]

MIN_SCORE: Final = 0.7
"""Of a normed correlation coefficient: labels have 0.87 and more, other pictures up to 0.4."""
_WORK_PX: Final = 360
_MIN_LETTER_PX: Final = 5  # smaller ones can be read by nobody
_SHARES: Final = tuple(0.03 * 1.07**i for i in range(31))
"""The letters' height against the picture's shorter side: 0.05 to 0.2 where it is whole."""
_FINE: Final = tuple(1 + i / 100 for i in range(-3, 4))
_TEMPLATE: Final = (1280, 720)
_TEMPLATE_SHARE: Final = 0.12
_PAPER: Final = 100


class LabelFound(NamedTuple):
    """How well the best place fits (-1..1) and how high the letters are against the picture."""

    score: float
    share: float
    is_mirrored: bool

    @property
    def is_label(self) -> bool:
        """Whether it is the label."""
        return self.score >= MIN_SCORE


def find_label(luma: NDArray[np.float32] | Plane) -> LabelFound:
    """Return the best place in a picture or a mean of some. Takes half a second."""
    picture = np.asarray(np.clip(luma, 0, 255), np.uint8)
    factor = min(_WORK_PX / min(picture.shape), 1.0)
    if factor < 1:
        small = cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        picture = np.asarray(small, np.uint8)
    best = LabelFound(-1.0, 0.0, is_mirrored=False)
    for is_mirrored in (False, True):
        side = np.ascontiguousarray(picture[:, ::-1]) if is_mirrored else picture
        best = max(best, _search(side, _SHARES, is_mirrored=is_mirrored))
        if best.is_label:
            break
    side = np.ascontiguousarray(picture[:, ::-1]) if best.is_mirrored else picture
    shares = [best.share * factor for factor in _FINE]
    return max(best, _search(side, shares, is_mirrored=best.is_mirrored))


def _search(
    picture: Plane, shares: tuple[float, ...] | list[float], *, is_mirrored: bool
) -> LabelFound:
    best = LabelFound(-1.0, 0.0, is_mirrored=is_mirrored)
    for share in shares:
        factor = share / _TEMPLATE_SHARE * min(picture.shape) / min(_TEMPLATE)
        if share * min(picture.shape) < _MIN_LETTER_PX:
            continue
        label = cv2.resize(
            _draw_template(), None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA
        )
        if label.shape[0] > picture.shape[0] or label.shape[1] > picture.shape[1]:
            break
        scores = cv2.matchTemplate(picture, label, cv2.TM_CCOEFF_NORMED)
        best = max(best, LabelFound(float(scores.max()), share, is_mirrored))
    return best


@cache
def _draw_template() -> Plane:
    """Return the label on grey paper, large, cut out."""
    frame = create_frame(*_TEMPLATE)
    frame.y.fill(_PAPER)
    Label(MarkConfig(height=_TEMPLATE_SHARE)).draw(frame)
    rows, columns = np.nonzero(frame.y != _PAPER)
    return frame.y[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1].copy()
