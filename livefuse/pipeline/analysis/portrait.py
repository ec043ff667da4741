"""One still picture of a person, looked at with care: for the face store, swaps and the gallery.

Not for the frame's thread: a large picture takes a second or two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import RefusedError
from livefuse.face import Box
from livefuse.frame import create_frame
from livefuse.geometry import compute_roll
from livefuse.pipeline.analysis.detect_step import create_detector
from livefuse.pipeline.analysis.embed import create_embedder
from livefuse.pipeline.analysis.facemesh import FaceMesh, create_crop_by_box, create_crop_by_mesh
from livefuse.pipeline.analysis.pose import compute_pose
from livefuse.pipeline.landmarks import convert_mesh_to_5

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import Config
    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.runtime.session import SessionCache

_LONG_SIDE_PX: Final = 2048  # more tells nothing new about a face
_BORDER: Final = 0.5  # of the picture's side, laid round a face that fills it
_MIN_MESH_SCORE: Final = 0.5
MIN_FACE_PX: Final = 64
_MAX_TURN_DEG: Final = 50.0
_CROP_HINT: Final = "crop the picture so that it shows one face from the front"
_SPREADS: Final = (1.0, 0.92, 1.08)
_MIRRORED_POINTS: Final = (1, 0, 2, 4, 3)
_BYSTANDER: Final = 0.2  # a face smaller than this share of the largest is a detail of the picture


@dataclass(slots=True, frozen=True, eq=False)
class Portrait:
    """What is known of the one face of a picture, in px of that picture.

    `mesh` is float32 (468 or 478, 3), `landmarks5` float32 (5, 2), `embedding` L2-normalised (d,).
    """

    box: Box
    landmarks5: NDArray[np.float32]
    mesh: NDArray[np.float32]
    embedding: NDArray[np.float32]


@dataclass(slots=True, frozen=True, eq=False)
class _Seen:
    """A face as found: in px of a frame that shows the picture."""

    detection: Detection
    mesh: NDArray[np.float32]


def analyse_portrait(
    picture_rgb: NDArray[np.uint8], sessions: SessionCache, config: Config
) -> Portrait:
    """Return the one face of `picture_rgb`, uint8 (height, width, 3).

    Detection at full size, the mesh in two passes, the identity from the mesh's points. Any thread.

    Raises:
        RefusedError: no face, more than one, too small or too far turned; in words for a user.
        ModelError: a network cannot be had or failed.
    """
    frame, scale, seen = _find_single(picture_rgb, sessions, config)
    points = convert_mesh_to_5(seen.mesh)
    embedder = create_embedder(config, sessions)
    box = seen.detection.box
    return Portrait(
        box=Box(*(value * scale for value in box)),
        landmarks5=points * np.float32(scale),
        mesh=seen.mesh * np.float32(scale),
        embedding=embedder.embed(frame, [points])[0],
    )


def embed_looks(
    picture_rgb: NDArray[np.uint8], sessions: SessionCache, config: Config
) -> NDArray[np.float32]:
    """Return (6, d): the face as it is, closer and wider, and each of these as in a mirror.

    One look at a face says little on its own: a verdict asks how many of these agree. The first
    row is `embed_picture`'s.

    Raises:
        RefusedError: no face, or more than one.
        ModelError: a network cannot be had or failed.
    """
    frame, _, seen = _find_single(picture_rgb, sessions, config)
    mirrored = _mirror(frame)
    points = convert_mesh_to_5(seen.mesh)
    flipped = points[list(_MIRRORED_POINTS)].copy()
    flipped[:, 0] = frame.width - 1 - flipped[:, 0]
    embedder = create_embedder(config, sessions)
    rows = [
        embedder.embed(shown, [_spread(where, spread) for spread in _SPREADS])
        for shown, where in ((frame, points), (mirrored, flipped))
    ]
    return np.concatenate(rows)


def embed_picture(
    picture_rgb: NDArray[np.uint8], sessions: SessionCache, config: Config
) -> NDArray[np.float32]:
    """Return the identity of the one face of `picture_rgb`, L2-normalised float32 (d,).

    Raises:
        RefusedError: no face, or more than one.
        ModelError: a network cannot be had or failed.
    """
    return analyse_portrait(picture_rgb, sessions, config).embedding


def find_single_face(picture_rgb: NDArray[np.uint8], sessions: SessionCache, config: Config) -> Box:
    """Return the box of the one face of `picture_rgb`, px.

    Raises:
        RefusedError: no face, or more than one.
        ModelError: a network cannot be had or failed.
    """
    _, scale, seen = _find_single(picture_rgb, sessions, config)
    return Box(*(value * scale for value in seen.detection.box))


def _mirror(frame: Frame) -> Frame:
    """Return a mirrored copy."""
    mirrored = create_frame(frame.width, frame.height)
    for plane in ("y", "u", "v"):
        np.copyto(getattr(mirrored, plane), getattr(frame, plane)[:, ::-1])
    mirrored.colour = frame.colour
    return mirrored


def _spread(points: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """Return `points` drawn apart by `factor`: the crop is wider."""
    centre = points.mean(axis=0)
    return np.asarray(centre + (points - centre) * np.float32(factor), np.float32)


def _find_single(
    picture_rgb: NDArray[np.uint8], sessions: SessionCache, config: Config
) -> tuple[Frame, float, _Seen]:
    """Return a frame that shows the picture, px of the picture to one of the frame, the face."""
    frame, scale = _create_frame(picture_rgb)
    faces = _find_faces(frame, sessions, config)
    if not faces:
        raise RefusedError("there is no face in the picture", hint=_CROP_HINT)
    if len(faces) > 1:
        raise RefusedError(f"there are {len(faces)} faces in the picture", hint=_CROP_HINT)
    face = faces[0]
    width = face.detection.box.width * scale
    if width < MIN_FACE_PX:
        raise RefusedError(
            f"the face in the picture is {width:.0f} px wide, {MIN_FACE_PX} are needed",
            hint="take a larger picture: 250 px of face or more look best",
        )
    turn_deg = math.degrees(max(abs(angle) for angle in compute_pose(face.mesh)[:2]))
    if turn_deg > _MAX_TURN_DEG:
        raise RefusedError(
            f"the face in the picture is turned away by {turn_deg:.0f} degrees",
            hint="take a picture from the front",
        )
    return frame, scale, faces[0]


def _create_frame(picture_rgb: NDArray[np.uint8]) -> tuple[Frame, float]:
    """Return the picture as a frame, shrunk when it is large, and the factor back to its px."""
    height, width = picture_rgb.shape[:2]
    scale = max(1.0, max(height, width) / _LONG_SIDE_PX)
    size = max(1, round(width / scale)), max(1, round(height / scale))
    small = (
        cv2.resize(picture_rgb, size, interpolation=cv2.INTER_AREA) if scale > 1 else picture_rgb
    )
    even = cv2.copyMakeBorder(small, 0, size[1] % 2, 0, size[0] % 2, cv2.BORDER_REPLICATE)
    frame = create_frame(even.shape[1], even.shape[0])
    cv2.cvtColor(np.ascontiguousarray(even), cv2.COLOR_RGB2YUV_I420, dst=frame.buffer)
    return frame, width / size[0]


def _find_faces(frame: Frame, sessions: SessionCache, config: Config) -> list[_Seen]:
    """Return the faces that the mesh network sees too, without the small ones behind."""
    detector = create_detector(config, sessions, every_frame=True)
    mesh = FaceMesh(sessions.get(config.align.model, config.align.threads))
    found = [d for d in detector.detect(frame) if d.score >= config.detect.min_score]
    if not found:
        # A face that fills the picture is too large for a detector: smaller, and with room around.
        found = _detect_with_border(frame, sessions, config)
    seen = [
        _Seen(detection, points)
        for detection in found
        if (points := _find_mesh(frame, detection, mesh)) is not None
    ]
    largest = max((face.detection.box.width for face in seen), default=0.0)
    return [face for face in seen if face.detection.box.width >= _BYSTANDER * largest]


def _detect_with_border(frame: Frame, sessions: SessionCache, config: Config) -> list[Detection]:
    border = round(_BORDER * max(frame.width, frame.height) / 4) * 4
    wide = create_frame(frame.width + 2 * border, frame.height + 2 * border)
    half = border // 2
    wide.y[border : border + frame.height, border : border + frame.width] = frame.y
    wide.u[half : half + frame.height // 2, half : half + frame.width // 2] = frame.u
    wide.v[half : half + frame.height // 2, half : half + frame.width // 2] = frame.v
    detector = create_detector(config, sessions, every_frame=True)
    shift = np.float32(border)
    return [
        type(d)(Box(*(value - border for value in d.box)), d.score, d.landmarks5 - shift)
        for d in detector.detect(wide, light=True)
        if d.score >= config.detect.min_score
    ]


def _find_mesh(frame: Frame, detection: Detection, mesh: FaceMesh) -> NDArray[np.float32] | None:
    """Return the mesh in two passes, or None where there is no face."""
    crop = create_crop_by_box(detection.box, compute_roll(detection.landmarks5))
    points, _ = mesh.find(frame, crop)
    points, score = mesh.find(frame, create_crop_by_mesh(points))
    return points if score >= _MIN_MESH_SCORE else None
