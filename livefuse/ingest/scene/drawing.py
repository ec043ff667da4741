"""Draw into I420 planes: rectangles, digits, a counter that machines can read, a flash.

The counter is a row of 24 cells at the top left: white, black, 16 bits (highest first), 4 check
bits, black, white. Cells are large enough to survive a low bit rate and scaling by two.
`read_counter` is its reader, for tests and for whoever measures a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import cv2

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livefuse.frame import Frame

CounterSize = Literal["large", "small"]

BLACK: Final = 16
WHITE: Final = 235
COUNTER_BITS: Final = 16
_CELLS: Final = COUNTER_BITS + 8
# Width and height of a cell as shares of the picture's: 48 x 32 px and 16 x 16 px at 1280x720.
_CELL_SHARES: Final[dict[CounterSize, tuple[float, float]]] = {
    "large": (3 / 80, 2 / 45),
    "small": (1 / 80, 1 / 45),
}
_DARK: Final = 90
_BRIGHT: Final = 160
# Left, top, right, bottom as shares: the square that flashes with the beep.
_FLASH_BOX: Final = (0.86, 0.08, 0.98, 0.29)
FLASH_S: Final = 0.06


def fill_box(frame: Frame, box: tuple[int, int, int, int], yuv: tuple[int, int, int]) -> None:
    """Fill `box` (left, top, right, bottom in px, made even) with one colour (Y, Cb, Cr)."""
    left, top, right, bottom = (value & ~1 for value in box)
    frame.y[top:bottom, left:right] = yuv[0]
    half = (slice(top // 2, bottom // 2), slice(left // 2, right // 2))
    frame.u[half] = yuv[1]
    frame.v[half] = yuv[2]


def compute_counter_cells(value: int) -> list[bool]:
    """Return the 24 cells of the counter for `value` (modulo 65536); True is white."""
    value &= 0xFFFF
    bits = [bool(value >> shift & 1) for shift in range(COUNTER_BITS - 1, -1, -1)]
    check = ~(value ^ value >> 4 ^ value >> 8 ^ value >> 12) & 0xF
    checks = [bool(check >> shift & 1) for shift in range(3, -1, -1)]
    return [True, False, *bits, *checks, False, True]


def draw_counter(frame: Frame, value: int, size: CounterSize) -> None:
    """Burn `value` (modulo 65536) into the top left corner."""
    cells = compute_counter_cells(value)
    share_x, share_y = _CELL_SHARES[size]
    bottom = round(frame.height * share_y)
    for index, is_white in enumerate(cells):
        left, right = (round(frame.width * share_x * i) for i in (index, index + 1))
        frame.y[:bottom, left:right] = WHITE if is_white else BLACK
    right = round(frame.width * share_x * _CELLS)
    half = (slice(0, (bottom + 1) // 2), slice(0, (right + 1) // 2))
    frame.u[half] = 128
    frame.v[half] = 128


def read_counter(y_plane: NDArray[np.uint8]) -> int | None:
    """Return the counter in a luma plane (height, width) of either size, or None without one."""
    for size in _CELL_SHARES:
        value = _read_counter_of_size(y_plane, size)
        if value is not None:
            return value
    return None


def _read_counter_of_size(y_plane: NDArray[np.uint8], size: CounterSize) -> int | None:
    height, width = y_plane.shape
    cell_w, cell_h = width * _CELL_SHARES[size][0], height * _CELL_SHARES[size][1]
    top, bottom = int(cell_h * 0.25), max(round(cell_h * 0.75), int(cell_h * 0.25) + 1)
    cells: list[bool] = []
    for index in range(_CELLS):
        left = int(cell_w * (index + 0.3))
        right = max(round(cell_w * (index + 0.7)), left + 1)
        level = float(y_plane[top:bottom, left:right].mean())
        if _DARK < level < _BRIGHT:
            return None
        cells.append(level >= _BRIGHT)
    value = 0
    for cell in cells[2 : 2 + COUNTER_BITS]:
        value = value << 1 | cell
    return value if compute_counter_cells(value) == cells else None


def draw_digits(frame: Frame, text: str, left_px: int, baseline_px: int, height_px: int) -> None:
    """Write `text` in white with a dark rim, for people; luma only."""
    scale = height_px / 22.0  # the font's capitals are 22 px high at scale 1
    thickness = max(1, round(scale * 2))
    place = (left_px, baseline_px)
    font = cv2.FONT_HERSHEY_SIMPLEX
    cv2.putText(frame.y, text, place, font, scale, BLACK, thickness + 2 + thickness // 2)
    cv2.putText(frame.y, text, place, font, scale, WHITE, thickness)


def find_flash_box(width: int, height: int) -> tuple[int, int, int, int]:
    """Return the flash square (left, top, right, bottom) in px."""
    left, top, right, bottom = _FLASH_BOX
    return (int(width * left), int(height * top), int(width * right), int(height * bottom))


def draw_flash(frame: Frame, *, is_lit: bool) -> None:
    """Draw the flash square, white when lit, else dark."""
    luma = WHITE if is_lit else 40
    fill_box(frame, find_flash_box(frame.width, frame.height), (luma, 128, 128))


def is_flash_lit(y_plane: NDArray[np.uint8]) -> bool:
    """Tell whether the flash square of a luma plane (height, width) is lit."""
    height, width = y_plane.shape
    left, top, right, bottom = find_flash_box(width, height)
    inset_x, inset_y = (right - left) // 4, (bottom - top) // 4
    middle = y_plane[top + inset_y : bottom - inset_y, left + inset_x : right - inset_x]
    return float(middle.mean()) > _BRIGHT
