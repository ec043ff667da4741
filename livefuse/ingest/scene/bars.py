"""The picture of `test:`: colour bars, a grey ramp, a disc that moves, digits for people."""

from __future__ import annotations

from math import cos, sin
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.frame import create_frame
from livefuse.ingest.scene.drawing import WHITE, draw_digits, fill_box

if TYPE_CHECKING:
    from livefuse.frame import Frame

# White, yellow, cyan, green, magenta, red, blue at 75 %: Y, Cb, Cr in BT.709, limited range.
_BARS: Final = (
    (180, 128, 128),
    (168, 44, 136),
    (145, 147, 44),
    (133, 63, 52),
    (63, 193, 204),
    (51, 109, 212),
    (28, 212, 120),
)
_DISC_YUV: Final = (210, 90, 150)


class BarsPicture:
    """Draws the picture of any moment into a frame of the given size."""

    def __init__(self, width: int, height: int) -> None:
        self._base = create_frame(width, height)
        for index, colour in enumerate(_BARS):
            left, right = (width * i // len(_BARS) for i in (index, index + 1))
            fill_box(self._base, (left, 0, right + 1, height * 3 // 4), colour)
        ramp = np.linspace(16, WHITE, width).astype(np.uint8)
        self._base.y[height * 3 // 4 & ~1 :] = ramp
        self._base.u[height * 3 // 8 :] = 128
        self._base.v[height * 3 // 8 :] = 128

    def draw(self, frame: Frame, time_s: float, number: int) -> None:
        """Draw the moment `time_s`; `number` is written for people."""
        np.copyto(frame.buffer, self._base.buffer)
        width, height = frame.width, frame.height
        radius = height // 9
        x = width * (0.5 + 0.32 * cos(time_s * 1.3))
        y = height * (0.5 + 0.22 * sin(time_s * 2.1))
        planes = ((frame.y, 1), (frame.u, 2), (frame.v, 2))
        for (plane, share), level in zip(planes, _DISC_YUV, strict=True):
            centre = (round(x / share), round(y / share))
            cv2.circle(plane, centre, radius // share, level, cv2.FILLED)
        place = (width // 32, height * 15 // 16)
        draw_digits(frame, f"{number:06d}  {time_s:8.2f} s", *place, height // 14)
