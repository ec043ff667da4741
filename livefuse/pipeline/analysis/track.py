"""Faces through time: the detector's word every n-th frame, optical flow in between.

A detection comes early when a face was lost, at a scene cut, and when something changed outside
the faces that are known: a person who steps in must not be bare until the next one is due.

A face that the detector no longer finds stays covered as long as flow carries on with something
that still looks like it. When that ends the cover stays, slowing and growing, for `hold_frames`;
after that the whole picture is to be covered for as long again, unless the face left over the
picture's edge, a cut took it away, or it was never more than a doubtful hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.face import Box
from livefuse.frame import TIME_BASE_HZ
from livefuse.geometry import Ellipse, compute_iou
from livefuse.pipeline.analysis.change import ChangeWatch, compute_cells, is_cut
from livefuse.pipeline.analysis.face_state import FaceState
from livefuse.pipeline.analysis.flow import compare_patches, cut_patch, follow_face
from livefuse.pipeline.planes import fit_size, shrink_plane

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import TrackConfig
    from livefuse.face import Detection, Track
    from livefuse.frame import Frame
    from livefuse.pipeline.analysis.detect import Detector

_LUMA_LONG_SIDE: Final = 640
_MIN_MATCH_IOU: Final = 0.1
_NEAR: Final = 0.5  # of the face's width: centres closer than that are one face
_SAME_LOOK: Final = 0.75
_ESTABLISHED_HITS: Final = 3
_EDGE: Final = 0.1  # of the face's size: closer to the picture's edge it may have left
_DEFAULT_DT_S: Final = 1 / 30
_MAX_DT_S: Final = 0.5
_UNWATCHED: Final = TIME_BASE_HZ // 3  # after so long without a frame nothing is known
_WARY_FRAMES: Final = 5


class Tracking(NamedTuple):
    """What a tracker says of a frame. `lost` wants the whole picture covered."""

    tracks: tuple[Track, ...]
    lost: bool
    detected: bool
    cut: bool = False


class FaceTracker:
    """Follows faces from frame to frame. One instance for one stream and one thread."""

    def __init__(
        self,
        detector: Detector,
        config: TrackConfig,
        *,
        every_n: int,
        min_score: float,
        light_on_change: bool = False,
        full_every_n: int = 0,
    ) -> None:
        """Ask `detector` every `every_n` frames; a new face needs `min_score`.

        With `full_every_n` (live) looks are light but for one in so many frames; without it
        `light_on_change` makes those light that only a change calls for.
        """
        self._detector = detector
        self._config = config
        self._every_n = every_n
        self._min_score = min_score
        self._light_on_change = light_on_change
        self._full_every_n = full_every_n
        self._spared_n = 1
        self._is_light_only = False
        self._trusts_bodies = False
        self._frames_since_full = 0
        self._faces: list[FaceState] = []
        self._next_id = 1
        self._frames_since = every_n
        self._is_first = True
        self._wary = 0  # frames for which a look that found nobody is not believed
        self._pts = 0
        self._scale = (1.0, 1.0)
        self._before = self._luma = np.zeros((0, 0), np.uint8)
        self._cells = np.zeros((0, 0), np.float32)
        self._watch = ChangeWatch(config.change_level)

    def spare(self, every_n: int, *, light_only: bool, hides_faces: bool) -> None:
        """Ask the detector no more often than each `every_n` frames, and lightly (under load).

        Where faces are hidden even what moves below a known one calls for a look.
        """
        self._spared_n = every_n
        self._is_light_only = light_only
        self._trusts_bodies = not hides_faces and bool(self._full_every_n)

    def update(self, frame: Frame) -> Tracking:
        """Return the faces of `frame`; frames come in order, some may be missing.

        Raises:
            ModelError: the detector failed; the next frame will be looked at anew.
        """
        cells, cut = self._look(frame)
        self._is_first |= frame.pts - self._pts > _UNWATCHED
        self._wary = _WARY_FRAMES if cut or self._is_first else max(self._wary - 1, 0)
        followed = set() if cut else self._follow()
        detected = False
        self._frames_since += 1
        self._frames_since_full += 1
        is_due = self._is_due(followed)
        if cut or is_due or self._has_newcomer(cells, frame):
            light = not cut and self._may_be_light(followed, is_due=is_due)
            # Until the detector has answered this frame counts as not looked at.
            self._is_first = True
            detections = self._detector.detect(frame, light=light)
            found_new = self._match(detections, followed, light=light)
            self._watch.note_detection(cells, found_new=found_new)
            self._is_first = False
            detected = True
            if not light or self._full_every_n:
                self._frames_since = 0
            if not light:
                self._frames_since_full = 0
        lost = self._sort_out(frame, followed, cut=cut)
        dt_s = self._measure_time(frame)
        tracks = tuple(face.finish_frame(dt_s) for face in self._faces)
        return Tracking(tracks, lost, detected, cut)

    def try_detector(self, frame: Frame) -> None:
        """Let the detector take a light look at `frame`, which `update` does not do at first.

        Raises:
            ModelError: the detector failed.
        """
        self._detector.detect(frame, light=True)

    def reset(self) -> None:
        """Forget all faces; the next frame is looked at whatever it shows."""
        self._faces.clear()
        self._is_first = True

    def _look(self, frame: Frame) -> tuple[NDArray[np.float32], bool]:
        """Keep the frame's small luma and say whether it is a cut."""
        width, height = fit_size(frame.width, frame.height, _LUMA_LONG_SIDE)
        if self._luma.shape != (height, width):
            self._before, self._luma = (np.zeros((height, width), np.uint8) for _ in range(2))
            self.reset()
        self._scale = (frame.width / width, frame.height / height)
        self._before, self._luma = self._luma, self._before
        shrink_plane(frame.y, self._luma)
        before, self._cells = self._cells, compute_cells(self._luma)
        return self._cells, before.shape == self._cells.shape and is_cut(before, self._cells)

    def _follow(self) -> set[int]:
        """Move every face by flow; return the ids of those that could be followed."""
        followed: set[int] = set()
        for face in self._faces:
            motion = follow_face(self._before, self._luma, self._shrink(face.ellipse))
            if motion is None:
                face.drift()
                continue
            x, y = self._scale
            face.move(motion._replace(tx=motion.tx * x, ty=motion.ty * y))
            followed.add(face.track_id)
        return followed

    def _is_due(self, followed: set[int]) -> bool:
        is_unsure = bool(self._wary) and not self._faces
        if self._is_first or is_unsure or self._frames_since >= max(self._every_n, self._spared_n):
            return True
        return any(face.track_id not in followed or face.missed for face in self._faces)

    def _may_be_light(self, followed: set[int], *, is_due: bool) -> bool:
        """Say whether a look may miss small faces: not the first, nor while one is lost."""
        if self._is_first or any(face.track_id not in followed for face in self._faces):
            return False
        if self._full_every_n:
            return self._is_light_only or self._frames_since_full < self._full_every_n
        return self._light_on_change and not is_due

    def _has_newcomer(self, cells: NDArray[np.float32], frame: Frame) -> bool:
        x, y = 1 / frame.width, 1 / frame.height
        known = [
            Box(face.box.x0 * x, face.box.y0 * y, face.box.x1 * x, face.box.y1 * y)
            for face in self._faces
        ]
        return self._watch.has_newcomer(cells, known, with_bodies=self._trusts_bodies)

    def _match(self, detections: list[Detection], followed: set[int], *, light: bool) -> bool:
        """Give each detection to the face it lies on best; return whether another face is new.

        A light look misses small faces, so it does not count against those that flow follows.
        """
        pairs = [
            (affinity, index, face)
            for face in self._faces
            for index, detection in enumerate(detections)
            if (affinity := _compute_affinity(face.box, detection.box)) > 0.0
        ]
        pairs.sort(key=lambda pair: -pair[0])
        taken: set[int] = set()
        seen: set[int] = set()
        for _, index, face in pairs:
            if index in taken or face.track_id in seen:
                continue
            taken.add(index)
            seen.add(face.track_id)
            face.confirm(detections[index], followed=face.track_id in followed)
            face.patch = cut_patch(self._luma, self._shrink(face.ellipse))
        for face in self._faces:
            if face.track_id not in seen and not (light and face.track_id in followed):
                face.missed += 1
        new = [
            detection
            for index, detection in enumerate(detections)
            if index not in taken and detection.score >= self._min_score
        ]
        for detection in new:
            self._add(detection)
        return bool(new)

    def _add(self, detection: Detection) -> None:
        face = FaceState(self._next_id, detection, self._config)
        self._next_id += 1
        face.patch = cut_patch(self._luma, self._shrink(face.ellipse))
        self._faces.append(face)

    def _sort_out(self, frame: Frame, followed: set[int], *, cut: bool) -> bool:
        """Drop the faces that are gone; return whether one is lost in the middle of the picture."""
        lost = False
        kept: list[FaceState] = []
        hold = self._config.hold_frames
        for face in self._faces:
            if face.missed and not self._is_vouched_for(face, followed):
                face.unseen_frames += 1
            if face.missed and (cut or _is_outside(face, frame) or self._is_double(face)):
                continue
            if face.unseen_frames > hold:
                may_return = face.hits >= _ESTABLISHED_HITS and not _is_at_edge(face, frame)
                if not may_return or face.unseen_frames > 2 * hold:
                    continue
                lost = True
            kept.append(face)
        self._faces = kept
        return lost

    def _is_vouched_for(self, face: FaceState, followed: set[int]) -> bool:
        """Say whether flow still carries what the detector once called this face."""
        if face.track_id not in followed or face.hits < _ESTABLISHED_HITS:
            return False
        patch = cut_patch(self._luma, self._shrink(face.ellipse))
        return compare_patches(face.patch, patch) >= _SAME_LOOK

    def _is_double(self, face: FaceState) -> bool:
        return any(
            not other.missed and _compute_affinity(face.box, other.box) > 0.0
            for other in self._faces
        )

    def _shrink(self, ellipse: Ellipse) -> Ellipse:
        x, y = self._scale
        return Ellipse(
            ellipse.x / x,
            ellipse.y / y,
            ellipse.half_width / x,
            ellipse.half_height / y,
            ellipse.roll_rad,
        )

    def _measure_time(self, frame: Frame) -> float:
        dt_s = (frame.pts - self._pts) / TIME_BASE_HZ
        self._pts = frame.pts
        return dt_s if 0.0 < dt_s <= _MAX_DT_S else _DEFAULT_DT_S


def _compute_affinity(one: Box, other: Box) -> float:
    """Return how surely two boxes are the same face: IoU, or a little for close centres; 0: not."""
    iou = compute_iou(one, other)
    if iou >= _MIN_MATCH_IOU:
        return iou
    x = (one.x0 + one.x1 - other.x0 - other.x1) / 2
    y = (one.y0 + one.y1 - other.y0 - other.y1) / 2
    near = _NEAR * min(one.width, other.width)
    return _MIN_MATCH_IOU / 2 if x * x + y * y < near * near else 0.0


def _is_outside(face: FaceState, frame: Frame) -> bool:
    x, y = (face.box.x0 + face.box.x1) / 2, (face.box.y0 + face.box.y1) / 2
    return not (0 <= x <= frame.width and 0 <= y <= frame.height)


def _is_at_edge(face: FaceState, frame: Frame) -> bool:
    box, x, y = face.box, _EDGE * face.box.width, _EDGE * face.box.height
    return box.x0 < x or box.y0 < y or box.x1 > frame.width - x or box.y1 > frame.height - y
