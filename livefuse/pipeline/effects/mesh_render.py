"""Textures on a face mesh, brought into a frame's planes.

    view = create_view(mesh, frame.width, frame.height)          mesh_raster
    layers = renderer.warp(view, texture)                        texture px to frame px, one remap
    renderer.fade(view, layers, weights)                         what else speaks against showing
    renderer.open_holes(view, layers, outlines)                  eyes and mouth stay the wearer's
    renderer.lay(view, layers, frame)                            blend Y, U and V of the region

How a texture is lit is not decided here: whoever renders changes `layers` between the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.planes import Scratch, blend_plane
from livefuse.pipeline.topology import LIPS_INNER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.pipeline.effects.mesh_raster import MeshView

    Plane = NDArray[np.uint8]

_RIM_FROM, _RIM_OVER = 0.012, 0.03  # of the face's width
_HOLE_BLUR: Final = 0.006
_MIN_HOLE_BLUR_PX: Final = 0.6
_BYTES_PER_UV: Final = 8
_SHIFT: Final = 4  # fixed-point bits of OpenCV's drawing


class Layers(NamedTuple):
    """The box's px: `luma`, `alpha` (height, width), `u`, `v`, `half_alpha` half of that. uint8.

    They are kept buffers of the renderer: valid until its next `warp`.
    """

    luma: Plane
    alpha: Plane
    u: Plane
    v: Plane
    half_alpha: Plane


class MeshRenderer:
    """Warps and blends with kept buffers. One instance for one thread."""

    def __init__(self) -> None:
        self._scratch = Scratch()

    def warp(self, view: MeshView, texture: Plane) -> Layers:
        """Return `texture`, uint8 (512, 512, 4: luma, u, v, alpha), as `view` shows it.

        One bilinear remap of all four channels (as quick as of one). Outside the mesh alpha is
        unspecified: `fade` with `compute_rim` settles it.
        """
        box = view.box
        get = self._scratch.get
        grid = get("grid", box.height, box.width * _BYTES_PER_UV).view(np.float32)
        grid = grid.reshape(box.height, box.width, 2)
        warped = get("warped", box.height, box.width * 4).reshape(box.height, box.width, 4)
        cv2.resize(view.uv, (box.width, box.height), dst=grid, interpolation=cv2.INTER_LINEAR)
        cv2.remap(  # type: ignore[call-overload]  # the stubs forbid the None that a joint map needs
            texture, grid, None, cv2.INTER_LINEAR, dst=warped
        )
        rows, columns = box.height // 2, box.width // 2
        halved = get("halved", rows, columns * 4).reshape(rows, columns, 4)
        cv2.resize(warped, (columns, rows), dst=halved, interpolation=cv2.INTER_AREA)
        # Into kept planes: four fresh ones cost thirty times as much.
        full = [get(f"full{index}", box.height, box.width) for index in range(4)]
        half = [get(f"half{index}", rows, columns) for index in range(4)]
        cv2.split(warped, full)
        cv2.split(halved, half)
        return Layers(full[0], full[3], half[1], half[2], half[3])

    def fade(self, view: MeshView, layers: Layers, weights: Plane) -> None:
        """Multiply alpha by `weights`, uint8 of any coarser grid over the box, 255 keeps."""
        box = view.box
        full = self._scratch.get("weights", box.height, box.width)
        cv2.resize(weights, (box.width, box.height), dst=full, interpolation=cv2.INTER_LINEAR)
        cv2.multiply(layers.alpha, full, dst=layers.alpha, scale=1 / 255)

    def open_holes(
        self, view: MeshView, layers: Layers, outlines: Iterable[Sequence[int] | NDArray[np.int32]]
    ) -> None:
        """Take the polygons through these points out of alpha, softly, at full size.

        At full size because a closed lid or mouth is thinner than a px of the grid.
        """
        blur_px = max(_MIN_HOLE_BLUR_PX, _HOLE_BLUR * view.face_px)
        pad = int(3 * blur_px) + 2
        for outline in outlines:
            points = view.points[np.asarray(outline, np.int32), :2]
            x0, y0 = np.maximum(np.floor(points.min(axis=0)).astype(int) - pad, 0).tolist()
            x1, y1 = (np.ceil(points.max(axis=0)).astype(int) + pad + 1).tolist()
            part = layers.alpha[y0 : max(y1, 0), x0 : max(x1, 0)]
            if not part.size:
                continue
            keep = np.full(part.shape, 255, np.uint8)
            fixed = np.rint((points - (x0, y0)) * (1 << _SHIFT)).astype(np.int32)
            cv2.fillPoly(keep, [fixed], 0, cv2.LINE_AA, _SHIFT)
            cv2.GaussianBlur(keep, (0, 0), blur_px, dst=keep, borderType=cv2.BORDER_REPLICATE)
            cv2.multiply(part, keep, dst=part, scale=1 / 255)

    def lay(self, view: MeshView, layers: Layers, frame: Frame, amount: float = 1.0) -> None:
        """Blend the layers into the frame's planes, alpha times `amount` 0..1.

        Where alpha is 0 the planes keep their values bit for bit.
        """
        box = view.box
        if amount < 1.0:
            cv2.convertScaleAbs(layers.alpha, dst=layers.alpha, alpha=amount)
        _halve(layers.alpha, layers.half_alpha)
        full = np.s_[box.y0 : box.y1, box.x0 : box.x1]
        half = np.s_[box.y0 // 2 : box.y1 // 2, box.x0 // 2 : box.x1 // 2]
        blend_plane(frame.y[full], layers.luma, layers.alpha, self._scratch)
        blend_plane(frame.u[half], layers.u, layers.half_alpha, self._scratch)
        blend_plane(frame.v[half], layers.v, layers.half_alpha, self._scratch)


def compute_rim(view: MeshView) -> NDArray[np.float32]:
    """Return 0..1 on the view's grid: 0 outside the drawn mesh, rising over 3 % of its width.

    On a turned head the mesh ends before the texture's own feather does.
    """
    solid = view.inside.copy()
    scale = np.array(view.scale, np.float32)
    lips = (view.points[LIPS_INNER, :2] + 0.5) * scale - 0.5
    cv2.fillPoly(solid, [np.rint(lips * (1 << _SHIFT)).astype(np.int32)], 255, cv2.LINE_8, _SHIFT)
    distance = np.asarray(cv2.distanceTransform(solid, cv2.DIST_L2, 3))
    width = view.face_px * view.scale[0]
    return np.asarray(
        np.clip((distance - _RIM_FROM * width) / (_RIM_OVER * width), 0, 1), np.float32
    )


def _halve(plane: Plane, half: Plane) -> Plane:
    cv2.resize(plane, half.shape[::-1], dst=half, interpolation=cv2.INTER_AREA)
    return half
