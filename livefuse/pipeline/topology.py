"""MediaPipe's face mesh as data: which points form the oval, eyes, lips; triangles; canonical UV.

All arrays are read-only. `UV` is float32 (468, 2) in 0..1, v down. `TRIANGLES` is int32 (880, 3):
852 of the tessellation and 28 that close the eyes, turned so that a face seen from the front has
positive areas. Left and right are the picture's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_FILE: Final = Path(__file__).parent / "data" / "facemesh_topology.json"

Indices = NDArray[np.int32]


def _freeze(values: Any, kind: type) -> Any:  # noqa: ANN401 - JSON in, an array of `kind` out
    array: NDArray[Any] = np.ascontiguousarray(values, kind)
    array.setflags(write=False)
    return array


def _turn_triangles(triangles: NDArray[np.int32], uv: NDArray[np.float32]) -> NDArray[np.int32]:
    a, b, c = (uv[triangles[:, i]] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    turned = triangles.copy()
    turned[area < 0] = turned[area < 0][:, ::-1]
    return turned


_data: dict[str, Any] = json.loads(_FILE.read_text("utf-8"))

UV: Final[NDArray[np.float32]] = _freeze(_data["uv468"], np.float32)
TRIANGLES: Final[Indices] = _freeze(
    _turn_triangles(np.array(_data["triangles"], np.int32), UV), np.int32
)
OVAL: Final[Indices] = _freeze(_data["oval"], np.int32)
LIPS_OUTER: Final[Indices] = _freeze(_data["lips_outer"], np.int32)
LIPS_INNER: Final[Indices] = _freeze(_data["lips_inner"], np.int32)
EYE_LEFT: Final[Indices] = _freeze(_data["eye_image_left"], np.int32)
EYE_RIGHT: Final[Indices] = _freeze(_data["eye_image_right"], np.int32)
BROW_LEFT: Final[Indices] = _freeze(_data["brow_image_left"], np.int32)
BROW_RIGHT: Final[Indices] = _freeze(_data["brow_image_right"], np.int32)
REFINE_LIPS: Final[Indices] = _freeze(_data["refine_lips"], np.int32)
REFINE_EYE_LEFT: Final[Indices] = _freeze(_data["refine_left_eye"], np.int32)
REFINE_EYE_RIGHT: Final[Indices] = _freeze(_data["refine_right_eye"], np.int32)
