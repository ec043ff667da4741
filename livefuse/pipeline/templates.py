"""Where a network wants a face's five points: templates as fractions of a square crop.

The points are `face.Face.landmarks5`'s: image-left eye, image-right eye, nose tip, mouth corners.
A fraction times the crop's side is px, a whole number being a px's centre, as OpenCV's warps have
it and as the networks were trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.geometry import Similarity, fit_similarity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Points = NDArray[np.float32] | NDArray[np.float64]


def _freeze(*points: tuple[float, float]) -> NDArray[np.float64]:
    array = np.array(points, np.float64)
    array.setflags(write=False)
    return array


def _pad(points: NDArray[np.float64], padding: float) -> NDArray[np.float64]:
    """Return points given in a tight crop as fractions of one padded on each side."""
    return _freeze(*((points + padding) / (1.0 + 2.0 * padding)).tolist())


TEMPLATES: Final[dict[str, NDArray[np.float64]]] = {
    "arcface_112_v1": _freeze(
        (0.3547, 0.4566), (0.6453, 0.4566), (0.5, 0.6115), (0.3791, 0.7769), (0.6209, 0.7769)
    ),
    "arcface_112_v2": _freeze(
        (0.3419, 0.4616), (0.6565, 0.4598), (0.5002, 0.6405), (0.3710, 0.8247), (0.6315, 0.8233)
    ),
    "arcface_128": _freeze(
        (0.3617, 0.4039), (0.6370, 0.4024), (0.5002, 0.5604), (0.3871, 0.7216), (0.6151, 0.7203)
    ),
    "ffhq_512": _freeze(
        (0.3769, 0.4686), (0.6229, 0.4691), (0.5012, 0.6133), (0.3931, 0.7254), (0.6115, 0.7249)
    ),
    "mtcnn_512": _freeze(
        (0.3656, 0.4673), (0.6331, 0.4659), (0.5002, 0.6194), (0.3903, 0.7760), (0.6118, 0.7748)
    ),
    # dlib's face chip with its padding of a quarter on each side.
    "dlib_150": _pad(
        _freeze(
            (0.2255, 0.2160), (0.7548, 0.2160), (0.4900, 0.5156), (0.2541, 0.7802), (0.7261, 0.7802)
        ),
        0.25,
    ),
}
"""Name -> float64 (5, 2), read-only."""


def get_template(name: str) -> NDArray[np.float64]:
    """Return the template `name`.

    Raises:
        ValueError: there is none.
    """
    if name not in TEMPLATES:
        raise ValueError(f"no template {name!r}: there are {', '.join(TEMPLATES)}")
    return TEMPLATES[name]


def fit_template(landmarks5: Points, name: str, size: int) -> Similarity:
    """Return the transform from px of the frame to px of a `size` crop by the template `name`.

    The similarity with the least squares error; `geometry.invert_similarity` takes back.

    Raises:
        ValueError: no such template, or the points coincide.
    """
    return fit_similarity(landmarks5, get_template(name) * size)
