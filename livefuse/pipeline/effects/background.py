"""What is behind the person: blurred, or another picture. Worked in the planes.

The blur is a mean of the background alone (each px weighs what it is background), so that nobody
glows or darkens into the wall behind. It is made at the small size and scaled up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import ConfigError
from livefuse.pipeline.planes import Scratch, blend_plane, convert_colour

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import BackgroundConfig
    from livefuse.frame import Colour, Frame

    Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]

_BOX: Final = 0.15  # of the picture's height at strength 1, twice over
# Before another picture what is half person shows as a ghost: the mask's rise is narrowed.
_SURE_FROM: Final = 0.3
_SURE_WIDTH: Final = 0.5
_WEIGHT: Final = 1.02  # a px that is surely person still counts for a fiftieth: no division by 0
_NARROW: Final = np.rint(
    255 * np.clip((np.arange(256) / 255 - _SURE_FROM) / _SURE_WIDTH, 0.0, 1.0)
).astype(np.uint8)


class Background:
    """Lays the new background. One instance for one thread."""

    def __init__(self, config: BackgroundConfig) -> None:
        """Make the style ready.

        Raises:
            ConfigError: style is picture, and its file is missing or not a picture.
        """
        self._strength = config.strength
        self._scratch = Scratch()
        self._picture: NDArray[np.uint8] | None = None
        if config.style == "picture" and config.strength > 0.0:
            self._picture = load_background(config.picture)
        self._fitted: Planes | None = None
        self._fitted_for: tuple[int, int, Colour] | None = None

    def lay(self, frame: Frame, small: Frame, person: NDArray[np.uint8]) -> None:
        """Replace in place what `person` leaves free.

        `small` shows `frame` in a smaller size, `person` is uint8 in that size, 255 is person;
        where it is 255 all about, the frame keeps its values bit for bit. Strength 0 does nothing.
        """
        if self._strength <= 0.0:
            return
        if self._picture is not None:
            planes = self._fit_picture(self._picture, frame)
            person = np.asarray(cv2.LUT(person, _NARROW), np.uint8)
        else:
            planes = self._blur(small, person)
        # Chroma px are as the small picture's luma mask scaled to their own size.
        free = cv2.bitwise_not(person)
        for index, plane in enumerate((frame.y, frame.u, frame.v)):
            height, width = plane.shape
            mask = self._scratch.get(f"mask{min(index, 1)}", height, width)
            if index < 2:  # noqa: PLR2004 - U and V share one mask
                cv2.resize(free, (width, height), dst=mask, interpolation=cv2.INTER_LINEAR)
            cover = planes[index]
            if cover.shape != plane.shape:
                wide = self._scratch.get("cover", height, width)
                cover = cv2.resize(cover, (width, height), dst=wide)  # type: ignore[assignment] # dst is uint8
            blend_plane(plane, cover, mask, self._scratch)

    def _blur(self, small: Frame, person: NDArray[np.uint8]) -> Planes:
        side = _BOX * self._strength * small.height
        weight = np.multiply(person, np.float32(-1 / 255), dtype=np.float32)
        weight += np.float32(_WEIGHT)
        luma = _blur_weighted(small.y, weight, side)
        half = np.asarray(cv2.resize(weight, (small.width // 2, small.height // 2)), np.float32)
        u, v = (_blur_weighted(plane, half, side / 2) for plane in (small.u, small.v))
        return luma, u, v

    def _fit_picture(self, picture: NDArray[np.uint8], frame: Frame) -> Planes:
        """Return the picture as planes that fill the frame; made once for a size."""
        key = (frame.width, frame.height, frame.colour)
        if self._fitted is None or self._fitted_for != key:
            self._fitted = create_planes(fill_frame(picture, *key[:2]), frame.colour)
            self._fitted_for = key
        return self._fitted


def _blur_weighted(
    plane: NDArray[np.uint8], weight: NDArray[np.float32], side: float
) -> NDArray[np.uint8]:
    """Return the mean over two boxes of `side` px, each px counted by its weight."""
    box = (2 * int(side / 2) + 1,) * 2
    total = cv2.multiply(plane, weight, dtype=cv2.CV_32F)
    for _ in range(2):
        total = cv2.blur(total, box, borderType=cv2.BORDER_REPLICATE)
        weight = cv2.blur(weight, box, borderType=cv2.BORDER_REPLICATE)  # type: ignore[assignment] # float32 stays
    return np.asarray(cv2.divide(total, weight, dtype=cv2.CV_8U), np.uint8)


def load_background(path: str) -> NDArray[np.uint8]:
    """Return the picture at `path` as BGR (height, width, 3).

    Raises:
        ConfigError: no path, no such file, or not a picture.
    """
    if not path:
        raise ConfigError(
            "background.style is picture, but no picture is named",
            hint="set background.picture to a PNG or JPEG file",
        )
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ConfigError(
            f"cannot read the picture {path} ({reason})",
            hint="check the path in background.picture",
        ) from None
    picture = _decode(data)
    if picture is None:
        raise ConfigError(
            f"{path} is not a picture that can be read", hint="use a PNG or a JPEG file"
        )
    return picture


def _decode(data: bytes) -> NDArray[np.uint8] | None:
    if not data:
        return None
    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        return None
    return None if picture is None else np.asarray(picture, np.uint8)


def fill_frame(picture: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Return the middle of `picture`, scaled so that it fills `width` x `height` without bars."""
    rows, columns = picture.shape[:2]
    scale = max(width / columns, height / rows)
    cut_width = min(max(round(width / scale), 1), columns)
    cut_height = min(max(round(height / scale), 1), rows)
    x, y = (columns - cut_width) // 2, (rows - cut_height) // 2
    way = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_CUBIC
    cut = picture[y : y + cut_height, x : x + cut_width]
    return np.asarray(cv2.resize(cut, (width, height), interpolation=way), np.uint8)


def create_planes(bgr: NDArray[np.uint8], colour: Colour) -> Planes:
    """Return Y, U, V (4:2:0, uint8) of a picture with even sides."""
    blue, green, red = (np.ascontiguousarray(bgr[..., i]) for i in range(3))
    luma = convert_colour((red, green, blue), colour)[0]
    height, width = luma.shape
    small = (width // 2, height // 2)
    half = [
        np.asarray(cv2.resize(plane, small, interpolation=cv2.INTER_AREA), np.uint8)
        for plane in (red, green, blue)
    ]
    _, u, v = convert_colour((half[0], half[1], half[2]), colour)
    return luma, u, v
