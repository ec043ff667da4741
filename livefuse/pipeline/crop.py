"""Square crops of faces, read straight from a frame's planes: only the face's region is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.geometry import Similarity, create_matrix
from livefuse.pipeline.planes import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame

_MAX_SHRINK: Final = 2.0  # a bilinear warp that shrinks by more than this skips px


class CropReader:
    """Warps the planes into a small I420 picture and turns that into RGB. One thread.

    By BT.601's matrix, or BT.709's where that matters (`exact`): networks do not see the
    difference, and OpenCV has the first ready.
    """

    def __init__(self, size: int) -> None:
        """Make crops of `size` x `size` px; `size` is a multiple of 4."""
        self.size = size
        self._buffer = np.empty((size * 3 // 2, size), np.uint8)
        flat = self._buffer.reshape(-1)
        self._y = self._buffer[:size]
        half = size // 2
        self._u = flat[size * size : size * size + half * half].reshape(half, half)
        self._v = flat[size * size + half * half :].reshape(half, half)
        self._rgb = np.empty((size, size, 3), np.uint8)
        self._scratch = Scratch()

    def read(self, frame: Frame, to_crop: Similarity) -> NDArray[np.uint8]:
        """Return RGB (size, size, 3), kept: valid until the next call.

        `to_crop` takes px of the frame to px of the crop; outside the frame its edge is repeated.
        """
        self.read_planes(frame, to_crop)
        cv2.cvtColor(self._buffer, cv2.COLOR_YUV2RGB_I420, dst=self._rgb)
        return self._rgb

    def read_planes(
        self, frame: Frame, to_crop: Similarity
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        """Return Y (size, size), U and V (half of it), kept and otherwise as `read`."""
        a, b, tx, ty = to_crop
        # Chroma px lie between two luma px: x_luma = 2 x_chroma + 0.5, in frame and crop alike.
        chroma = Similarity(a, b, (tx + 0.5 * (a - b) - 0.5) / 2, (ty + 0.5 * (a + b) - 0.5) / 2)
        self._warp(frame.y, to_crop, self._y)
        self._warp(frame.u, chroma, self._u)
        self._warp(frame.v, chroma, self._v)
        return self._y, self._u, self._v

    def _warp(
        self, plane: NDArray[np.uint8], transform: Similarity, out: NDArray[np.uint8]
    ) -> None:
        """Warp what of `plane` the crop shows, halved by area first while it is much larger."""
        x0, y0, region = _cut_region(plane, transform, out.shape[0])
        moved = transform._replace(
            tx=transform.a * x0 - transform.b * y0 + transform.tx,
            ty=transform.b * x0 + transform.a * y0 + transform.ty,
        )
        level = 0
        while moved.scale * _MAX_SHRINK < 1.0 and min(region.shape) >= 4:  # noqa: PLR2004 - two px of the half
            height, width = region.shape[0] // 2, region.shape[1] // 2
            half = self._scratch.get(f"half{level}", height, width)
            cv2.resize(
                region[: 2 * height, : 2 * width],
                (width, height),
                dst=half,
                interpolation=cv2.INTER_AREA,
            )
            # x = 2 x_half + 0.5
            a, b, tx, ty = moved
            moved = Similarity(2 * a, 2 * b, tx + 0.5 * (a - b), ty + 0.5 * (a + b))
            region, level = half, level + 1
        cv2.warpAffine(
            region,
            create_matrix(moved),
            (out.shape[1], out.shape[0]),
            dst=out,
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )


def _cut_region(
    plane: NDArray[np.uint8], transform: Similarity, size: int
) -> tuple[int, int, NDArray[np.uint8]]:
    """Return the part of `plane` that a crop of `size` shows, at least one px, and its corner."""
    a, b, tx, ty = transform
    square = a * a + b * b
    corners = np.array([(0, 0), (size, 0), (0, size), (size, size)], np.float64) - (tx, ty)
    x = (a * corners[:, 0] + b * corners[:, 1]) / square
    y = (a * corners[:, 1] - b * corners[:, 0]) / square
    height, width = plane.shape
    x0 = min(max(int(x.min()) - 2, 0), width - 1)
    y0 = min(max(int(y.min()) - 2, 0), height - 1)
    x1 = max(min(int(x.max()) + 3, width), x0 + 1)
    y1 = max(min(int(y.max()) + 3, height), y0 + 1)
    return x0, y0, plane[y0:y1, x0:x1]
