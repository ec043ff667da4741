"""The picture of `demo:`: a portrait that sways, rolls, comes nearer, blinks and speaks.

Mouth and eyes are a few ready-made phases of their patches in the portrait; the head's movement is
one smooth displacement field, a sum of few base fields made at a 16th of the size. As what lies
behind the head is soft, the field may fade out there: no matte is needed. Per frame one region is
warped in the I420 planes, the rest is copied: 3.5 ms at 1280x720 on one core.
"""

from __future__ import annotations

from importlib import resources
from math import sin
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.frame import create_frame
from livefuse.ingest.scene import face_phases, speech

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Frame

    Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]

BASE_WIDTH: Final = 1280
BASE_HEIGHT: Final = 720
_PHASES: Final = 10
_GRID_PX: Final = 16
# In px of the 1280x720 portrait: what moves (left, top, right, bottom), the head, nose and neck.
_MOVING_BOX: Final = (336, 0, 944, 640)
_HEAD: Final = (640.0, 265.0, 195.0, 240.0)
_NOSE: Final = (632.0, 318.0)
_NECK: Final = (630.0, 520.0)
# BGR to Y, Cb, Cr: ITU-R BT.709, limited range.
_BT709: Final = np.array(
    [[0.0620, 0.6142, 0.1826], [0.4392, -0.3386, -0.1006], [-0.0403, -0.3989, 0.4392]], np.float32
)


class _Patch(NamedTuple):
    """Where a patch lies in the picture (px, even) and its planes for each phase."""

    left: int
    top: int
    phases: list[Planes]


class TalkingHead:
    """Draws the head of any moment into frames of one size. Not for two threads at a time."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._scale = max(width / BASE_WIDTH, height / BASE_HEIGHT)
        self._offset = (
            (width - BASE_WIDTH * self._scale) / 2,
            (height - BASE_HEIGHT * self._scale) / 2,
        )
        portrait = load_portrait()
        planes = _to_planes(self._fit(portrait))
        self._texture = create_frame(width, height)
        _write_planes(self._texture, 0, 0, planes)
        self._mouth = self._prepare(portrait, face_phases.MOUTH_BOX, face_phases.open_mouth)
        self._eyes = self._prepare(portrait, face_phases.EYES_BOX, face_phases.close_eyes)
        self._shown = [0, 0]
        self._prepare_field()

    def draw(self, frame: Frame, time_s: float) -> None:
        """Draw the moment `time_s` into `frame`."""
        self._show(0, self._mouth, speech.compute_mouth_opening(time_s))
        self._show(1, self._eyes, speech.compute_blink(time_s))
        field = np.tensordot(compute_movement(time_s), self._bases, 1)
        np.copyto(frame.buffer, self._texture.buffer)
        left, top, right, bottom = self._box
        cv2.resize(
            field, (right - left, bottom - top), dst=self._map, interpolation=cv2.INTER_LINEAR
        )
        np.multiply(field, 0.5, out=field)
        half_size = ((right - left) // 2, (bottom - top) // 2)
        cv2.resize(field, half_size, dst=self._half_map, interpolation=cv2.INTER_LINEAR)
        np.add(self._map, self._identity, out=self._map)
        np.add(self._half_map, self._half_identity, out=self._half_map)
        texture = self._texture
        _remap(texture.y, self._map, frame.y[top:bottom, left:right])
        half = (slice(top // 2, bottom // 2), slice(left // 2, right // 2))
        _remap(texture.u, self._half_map, frame.u[half])
        _remap(texture.v, self._half_map, frame.v[half])

    def _fit(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Scale a picture of the portrait's size to fill the frame, the middle kept."""
        matrix = np.array(
            [[self._scale, 0, self._offset[0]], [0, self._scale, self._offset[1]]], np.float32
        )
        size = (self._width, self._height)
        if self._scale < 1:
            small = (round(BASE_WIDTH * self._scale), round(BASE_HEIGHT * self._scale))
            resized = cv2.resize(picture, small, interpolation=cv2.INTER_AREA)
            picture = np.asarray(resized, np.uint8)
            matrix[0, 0] = matrix[1, 1] = 1.0
        fitted = cv2.warpAffine(picture, matrix, size, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(fitted, np.uint8)

    def _to_frame_box(self, box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        x, y = self._offset
        left, right = (int(side * self._scale + x) & ~1 for side in (box[0], box[2]))
        top, bottom = (int(side * self._scale + y) & ~1 for side in (box[1], box[3]))
        return (max(left, 0), max(top, 0), min(right, self._width), min(bottom, self._height))

    def _prepare(
        self,
        portrait: NDArray[np.uint8],
        box: tuple[int, int, int, int],
        change: face_phases.Change,
    ) -> _Patch:
        left, top, right, bottom = self._to_frame_box(box)
        phases = []
        for phase in range(_PHASES):
            changed = self._fit(change(portrait, phase / (_PHASES - 1)))
            phases.append(_to_planes(changed[top:bottom, left:right]))
        return _Patch(left, top, phases)

    def _show(self, which: int, patch: _Patch, amount: float) -> None:
        phase = round(amount * (_PHASES - 1))
        if phase != self._shown[which]:
            self._shown[which] = phase
            _write_planes(self._texture, patch.left, patch.top, patch.phases[phase])

    def _prepare_field(self) -> None:
        self._box = self._to_frame_box(_MOVING_BOX)
        left, top, right, bottom = self._box
        shape = (bottom - top, right - left)
        cells = (max(shape[0] // _GRID_PX, 8), max(shape[1] // _GRID_PX, 8))
        # The centres of the grid's cells, in px of the portrait, as cv2.resize understands them.
        ys = (
            (np.arange(cells[0]) + 0.5) * shape[0] / cells[0] + top - self._offset[1]
        ) / self._scale
        xs = (
            (np.arange(cells[1]) + 0.5) * shape[1] / cells[1] + left - self._offset[0]
        ) / self._scale
        self._bases = compute_base_fields(xs.astype(np.float32), ys.astype(np.float32))
        self._bases *= self._scale
        self._map = np.empty((*shape, 2), np.float32)
        self._half_map = np.empty((shape[0] // 2, shape[1] // 2, 2), np.float32)
        self._identity = _create_identity(left, top, self._map.shape)
        self._half_identity = _create_identity(left // 2, top // 2, self._half_map.shape)


def load_portrait() -> NDArray[np.uint8]:
    """Return the embedded portrait, BGR (720, 1280, 3)."""
    data = resources.files("livefuse.ingest.scene").joinpath("data/portrait.jpg").read_bytes()
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    return np.asarray(picture, np.uint8)


def compute_movement(time_s: float) -> NDArray[np.float32]:
    """Return the weights of the base fields at `time_s`.

    Sway x and y (px of the portrait), roll (rad), nearer (share), turn and nod (px of the nose).
    Periods that do not fit together keep the movement from repeating.
    """
    t = time_s
    return np.array(
        [
            24.0 * sin(0.83 * t) + 9.0 * sin(2.03 * t + 1.0),
            5.0 * sin(1.31 * t + 0.4) + 3.0 * speech.compute_mouth_opening(t - 0.06),
            0.055 * sin(0.71 * t + 0.9) + 0.02 * sin(1.93 * t),
            0.035 + 0.035 * sin(0.47 * t - 1.2),
            9.0 * sin(0.67 * t + 2.0) + 3.0 * sin(2.41 * t),
            4.0 * sin(1.07 * t) + 2.5 * sin(3.1 * t + 0.5),
        ],
        np.float32,
    )


def compute_base_fields(xs: NDArray[np.float32], ys: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the base fields (6, rows, columns, 2): from how far a pixel is fetched, in px."""
    x, y = np.meshgrid(xs, ys)
    head_x, head_y, radius_x, radius_y = _HEAD
    distance = np.hypot((x - head_x) / radius_x, (y - head_y) / radius_y)
    left, _, right, bottom = _MOVING_BOX
    edge = np.minimum(np.minimum(x - left, right - x) / 48.0, (bottom - y) / 48.0)
    head = _smooth_step(1.6 - distance, 0.65) * _smooth_step(edge, 1.0)
    face = np.exp(-((x - _NOSE[0]) ** 2 + (y - _NOSE[1]) ** 2) / (2 * 75.0**2))
    zero = np.zeros_like(x)
    fields = [
        (head, zero),
        (zero, head),
        ((_NECK[1] - y) * head, (x - _NECK[0]) * head),
        ((x - _NECK[0]) * head, (y - _NECK[1]) * head),
        (face, zero),
        (zero, face),
    ]
    return np.asarray([-np.dstack(field) for field in fields], np.float32)


def _smooth_step(value: NDArray[np.float32], width: float) -> NDArray[np.float32]:
    share = np.clip(value / width, 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share), np.float32)


def _create_identity(left: int, top: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    rows, columns = np.mgrid[top : top + shape[0], left : left + shape[1]]
    return np.asarray(np.dstack([columns, rows]), np.float32)


def _remap(
    source: NDArray[np.uint8], field: NDArray[np.float32], target: NDArray[np.uint8]
) -> None:
    # cv2's stubs want two maps; one of two channels and None is what it takes.
    cv2.remap(source, field, None, cv2.INTER_LINEAR, target, cv2.BORDER_REPLICATE)  # type: ignore[call-overload] # see above


def _to_planes(bgr: NDArray[np.uint8]) -> Planes:
    """Convert BGR (even sides) to I420 planes, BT.709 limited range."""
    yuv = cv2.transform(bgr.astype(np.float32), _BT709)
    chroma = cv2.resize(yuv[:, :, 1:], None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    y, u, v = (
        np.clip(plane + offset + 0.5, 0, 255).astype(np.uint8)
        for plane, offset in ((yuv[:, :, 0], 16), (chroma[:, :, 0], 128), (chroma[:, :, 1], 128))
    )
    return (y, u, v)


def _write_planes(frame: Frame, left: int, top: int, planes: Planes) -> None:
    height, width = planes[0].shape
    frame.y[top : top + height, left : left + width] = planes[0]
    half = (slice(top // 2, (top + height) // 2), slice(left // 2, (left + width) // 2))
    frame.u[half] = planes[1]
    frame.v[half] = planes[2]
