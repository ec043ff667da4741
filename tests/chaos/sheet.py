"""A contact sheet: what the far end showed around each fault, one row a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import av
import cv2
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.chaos.judge import Track
    from tests.chaos.run import Outcome

_OFFSETS_S = (-0.5, 0.3, 1.3, 0.2, 1.5, 4.0)
"""The first three from a fault's begin, the others from its end."""
_FROM_BEGIN = 3
_TILE_PX = (240, 135)
_TEXT_PX = 18
_MOST_ROWS = 40


def draw_sheet(outcome: Outcome, track: Track, source: Path, target: Path) -> None:
    """Write the sheet of the recording `source`, which `track` was read from."""
    rows = outcome.done[:_MOST_ROWS]
    wanted = []
    for row, done in enumerate(rows):
        for column, offset_s in enumerate(_OFFSETS_S):
            base_s = done.began_s if column < _FROM_BEGIN else done.ended_s
            wanted.append((base_s + offset_s, row, column))
    tiles = _collect(source, track, sorted(wanted))
    height = _TILE_PX[1] + _TEXT_PX
    sheet = np.full((max(len(rows), 1) * height, len(_OFFSETS_S) * _TILE_PX[0], 3), 32, np.uint8)
    for row, done in enumerate(rows):
        details = " ".join(f"{key}={value}" for key, value in done.fault.details.items())
        recovered = "-" if done.recovered_s is None else f"{done.recovered_s:.1f} s"
        text = (
            f"{done.began_s - outcome.began_s:.1f} s  {done.fault.kind} {done.fault.lasts_s:.1f} s "
        )
        _write(sheet, f"{text} {details}   well after {recovered}", (4, row * height + 13))
        for column in range(len(_OFFSETS_S)):
            tile = tiles.get((row, column))
            if tile is not None:
                top, left = row * height + _TEXT_PX, column * _TILE_PX[0]
                sheet[top : top + _TILE_PX[1], left : left + _TILE_PX[0]] = tile
    cv2.imwrite(str(target), sheet)


def _collect(
    source: Path, track: Track, wanted: list[tuple[float, int, int]]
) -> dict[tuple[int, int], NDArray[np.uint8]]:
    """Return the picture that was to be seen at each time, small."""
    tiles: dict[tuple[int, int], NDArray[np.uint8]] = {}
    waiting = list(wanted)
    before: Any = None
    container: Any
    with av.open(str(source)) as container:
        for frame in container.decode(video=0):
            at_s = track.to_time_s(float(frame.pts * frame.time_base))
            while waiting and at_s > waiting[0][0]:
                _, row, column = waiting.pop(0)
                tiles[row, column] = _shrink(before if before is not None else frame)
            before = frame
            if not waiting:
                break
    return tiles


def _shrink(frame: Any) -> NDArray[np.uint8]:
    small = cv2.resize(frame.to_ndarray(format="bgr24"), _TILE_PX, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8)


def _write(picture: NDArray[np.uint8], text: str, place: tuple[int, int]) -> None:
    font, colour = cv2.FONT_HERSHEY_SIMPLEX, (230, 230, 230)
    cv2.putText(picture, text, place, font, 0.42, colour, 1, cv2.LINE_AA)


def draw_curves(
    curves: dict[str, tuple[list[float], list[float]]], target: Path, width: int = 900
) -> None:
    """Write one small plot below the other; each curve is (times, values), scaled to itself."""
    height = 120
    sheet = np.full((height * len(curves), width, 3), 255, np.uint8)
    for index, (name, (times, values)) in enumerate(curves.items()):
        top = index * height
        low, high = (min(values), max(values)) if values else (0.0, 0.0)
        text = f"{name}: {low:.1f} .. {high:.1f}"
        cv2.putText(sheet, text, (6, top + 14), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (0, 0, 0), 1)
        if len(values) > 1 and times[-1] > times[0]:
            x = 6 + (np.array(times) - times[0]) / (times[-1] - times[0]) * (width - 12)
            y = top + height - 8 - (np.array(values) - low) / max(high - low, 1e-9) * (height - 34)
            points = np.stack([x, y], axis=1).round().astype(np.int32)
            cv2.polylines(sheet, [points], False, (160, 80, 0), 1, cv2.LINE_AA)
        cv2.line(sheet, (0, top + height - 1), (width, top + height - 1), (200, 200, 200), 1)
    cv2.imwrite(str(target), sheet)
