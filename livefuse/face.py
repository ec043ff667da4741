"""Facts about faces: values that analysis writes and effects read. Coordinates are px of the frame.

Left and right are the picture's: `landmarks5` is image-left eye, image-right eye, nose tip,
image-left mouth corner, image-right mouth corner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Box(NamedTuple):
    """x0, y0, x1, y1 in px; x1 and y1 are exclusive."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Width in px."""
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        """Height in px."""
        return self.y1 - self.y0


@dataclass(slots=True, frozen=True, eq=False)
class Detection:
    """What a detector says: a box, a score 0..1, and float32 (5, 2) landmarks."""

    box: Box
    score: float
    landmarks5: NDArray[np.float32]


@dataclass(slots=True, frozen=True, eq=False)
class Track:
    """One person's face through time.

    `missed` counts detections in a row that did not see it: a track with missed > 0 is held, so
    that its cover stays (never bare).
    """

    track_id: int
    box: Box
    landmarks5: NDArray[np.float32]
    score: float
    roll_rad: float
    age_frames: int = 0
    missed: int = 0


class Attributes(NamedTuple):
    """z_att: what of a face is not its person's: pose, expression, light.

    Pose in radians: roll > 0 turns the head clockwise in the picture; with the roll undone yaw > 0
    turns the nose to the picture's right and pitch > 0 lifts it. Openings and the smile are shares
    of the face's width, the brows' height of the eyes' distance. `light` is the skin's luma 0..1;
    `light_side` and `light_down` are -1..1, above 0 when the picture's right, and the face's lower
    half, are the brighter.
    """

    yaw: float
    pitch: float
    roll: float
    mouth_open: float
    smile: float
    eye_left: float
    eye_right: float
    brows: float
    light: float
    light_side: float
    light_down: float


@dataclass(slots=True, eq=False)
class Face:
    """What is known of one face in one frame: each analysis step fills its slots, effects read.

    `mesh` is float32 (468 or 478, 3): MediaPipe's points, x, y and z in px of the frame, z growing
    away from the camera; 468.. are the irises. None: not aligned, or not to be trusted.
    `landmarks` are the other point sets by their count (5, 68, 106, 203), float32 (n, 2) px.
    `embedding` is L2-normalised (d,), z_id; `attributes` are z_att, `pose_rad` is yaw, pitch, roll.
    `chosen`: the token's selector picked it; `person` is its name in the gallery, if any.
    `is_doubtful`: who it is is not known yet, so by name it is neither meant nor not meant.
    `occlusion` is what stands before the face: uint8 of `occlusion_box` px, 255 is occluded.
    `is_replaced`: another face is shown; `is_drawn`: that one is a drawing, which has no skin.
    """

    track: Track
    mesh: NDArray[np.float32] | None = None
    landmarks: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    pose_rad: tuple[float, float, float] = (0.0, 0.0, 0.0)
    attributes: Attributes | None = None
    embedding: NDArray[np.float32] | None = None
    person: str = ""
    similarity: float = 0.0
    chosen: bool = True
    is_doubtful: bool = False
    is_replaced: bool = False
    is_drawn: bool = False
    occlusion: NDArray[np.uint8] | None = None
    occlusion_box: Box | None = None


@dataclass(slots=True, frozen=True, eq=False)
class SourceFace:
    """A face that a swap or a puppet shows. `picture_rgb` is uint8 (height, width, 3).

    `face_id` names it in the face store, `digest` is the SHA-256 of the file it came from.
    """

    face_id: str
    picture_rgb: NDArray[np.uint8]
    digest: str
    kind: Literal["photo", "drawing"] = "photo"


@dataclass(slots=True, frozen=True, eq=False)
class KnownFace:
    """A person of the gallery: a name and an L2-normalised embedding (d,)."""

    person: str
    embedding: NDArray[np.float32]
