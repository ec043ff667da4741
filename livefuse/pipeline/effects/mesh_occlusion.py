"""What stands before the face, as an occluder network found it, on a view's grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_lowband import blur

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.pipeline.effects.mesh_raster import MeshView

_SOFT_GRID_PX = 0.7


def place_occlusion(face: Face, view: MeshView) -> NDArray[np.float32] | None:
    """Return 0..1 on the view's grid, 1 is hidden; None when nobody looked for it."""
    hidden, where = face.occlusion, face.occlusion_box
    if hidden is None or where is None or not hidden.size:
        return None
    box = view.box
    across = where.width / hidden.shape[1] * box.columns / box.width
    down = where.height / hidden.shape[0] * box.rows / box.height
    # Centre of px i of the mask -> px of the frame -> px of the grid.
    left = (where.x0 - box.x0) * box.columns / box.width + 0.5 * across - 0.5
    top = (where.y0 - box.y0) * box.rows / box.height + 0.5 * down - 0.5
    matrix = np.array([[across, 0.0, left], [0.0, down, top]])
    shrunk = cv2.blur(hidden, (max(round(1 / across), 1), max(round(1 / down), 1)))
    placed = cv2.warpAffine(shrunk, matrix, (box.columns, box.rows), flags=cv2.INTER_LINEAR)
    return blur(np.asarray(placed, np.float32) * np.float32(1 / 255), _SOFT_GRID_PX)
