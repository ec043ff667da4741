"""A picture laid over a face: it turns, grows and moves with the head."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.errors import ConfigError
from livefuse.geometry import (
    Ellipse,
    Similarity,
    clip_box,
    create_matrix,
    create_similarity,
    get_bounds,
)
from livefuse.pipeline.planes import Scratch, blend_plane, convert_colour

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour, Frame

_MAX_SIDE: Final = 512
_CHANNELS_WITH_ALPHA: Final = 4


class _Sheet(NamedTuple):
    """The picture as planes of one size, values ready to be laid onto frames of one colour."""

    planes: tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]
    alpha: NDArray[np.uint8]


class PictureStyle:
    """Lays a PNG or JPEG over faces; what is transparent shows the blurred face below."""

    def __init__(self, path: str) -> None:
        """Load the picture.

        Raises:
            ConfigError: it is missing or not a picture.
        """
        self._bgra = load_picture(path)
        self._sheet: _Sheet | None = None
        self._colour: Colour | None = None

    def lay(self, frame: Frame, ellipse: Ellipse, scratch: Scratch) -> None:
        """Draw the picture in place, as large as it takes to cover `ellipse` whole."""
        if self._sheet is None or frame.colour != self._colour:
            self._colour = frame.colour
            self._sheet = _create_sheet(self._bgra, frame.colour)
        height, width = self._sheet.alpha.shape
        scale = max(2 * ellipse.half_width / width, 2 * ellipse.half_height / height)
        drawn = ellipse._replace(half_width=scale * width / 2, half_height=scale * height / 2)
        corner = create_similarity(scale, ellipse.roll_rad, 0.0, 0.0)
        x = ellipse.x - corner.a * (width - 1) / 2 + corner.b * (height - 1) / 2
        y = ellipse.y - corner.b * (width - 1) / 2 - corner.a * (height - 1) / 2
        self._lay_planes(frame, corner._replace(tx=x, ty=y), drawn, scratch)

    def _lay_planes(
        self, frame: Frame, place: Similarity, drawn: Ellipse, scratch: Scratch
    ) -> None:
        if self._sheet is None:
            return
        reach = math.hypot(drawn.half_width, drawn.half_height)
        bounds = get_bounds(Ellipse(drawn.x, drawn.y, reach, reach, 0.0))
        box = clip_box(bounds, frame.width, frame.height)
        x0, y0 = int(box.x0) // 2 * 2, int(box.y0) // 2 * 2
        x1, y1 = math.ceil(box.x1 / 2) * 2, math.ceil(box.y1 / 2) * 2
        if x1 <= x0 or y1 <= y0:
            return
        for index, plane in enumerate((frame.y, frame.u, frame.v)):
            step = 2 if index else 1
            middle = (step - 1) / 2  # a chroma px lies between two luma px
            here = Similarity(
                place.a / step,
                place.b / step,
                (place.tx - x0 - middle) / step,
                (place.ty - y0 - middle) / step,
            )
            part = plane[y0 // step : y1 // step, x0 // step : x1 // step]
            cover = scratch.get("painted", *part.shape)
            mask = scratch.get("mask", *part.shape)
            size, matrix = (part.shape[1], part.shape[0]), create_matrix(here)
            cv2.warpAffine(
                self._sheet.planes[index],
                matrix,
                size,
                dst=cover,
                flags=cv2.INTER_LINEAR,
                borderMode=cv2.BORDER_REPLICATE,
            )
            cv2.warpAffine(self._sheet.alpha, matrix, size, dst=mask, flags=cv2.INTER_LINEAR)
            blend_plane(part, cover, mask, scratch)


def load_picture(path: str) -> NDArray[np.uint8]:
    """Return the picture at `path` as BGRA (height, width, 4), at most 512 px a side.

    Raises:
        ConfigError: no path, no such file, or not a picture.
    """
    if not path:
        raise ConfigError(
            "blur.style is picture, but no picture is named", hint="set blur.picture to a PNG file"
        )
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ConfigError(
            f"cannot read the picture {path} ({reason})", hint="check the path in blur.picture"
        ) from None
    picture = _decode_picture(data)
    if picture is None:
        raise ConfigError(
            f"{path} is not a picture that can be read", hint="use a PNG or a JPEG file"
        )
    shrink = _MAX_SIDE / max(picture.shape[:2])
    if shrink < 1.0:
        size = tuple(max(1, round(side * shrink)) for side in picture.shape[1::-1])
        return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    return picture


def _decode_picture(data: bytes) -> NDArray[np.uint8] | None:
    if not data:
        return None
    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        return None
    if picture is None:
        return None
    if picture.dtype == np.uint16:
        picture = np.asarray(picture // 256)
    return _add_alpha(np.asarray(picture, np.uint8))


def _add_alpha(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if picture.ndim == 2:  # noqa: PLR2004 - grey has no channels
        return np.asarray(cv2.cvtColor(picture, cv2.COLOR_GRAY2BGRA), np.uint8)
    if picture.shape[2] == _CHANNELS_WITH_ALPHA:
        return picture
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2BGRA), np.uint8)


def _create_sheet(bgra: NDArray[np.uint8], colour: Colour) -> _Sheet:
    blue, green, red, alpha = (np.ascontiguousarray(bgra[:, :, i]) for i in range(4))
    y, u, v = convert_colour((red, green, blue), colour)
    return _Sheet((y, u, v), alpha)
