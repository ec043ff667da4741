"""What was shown beside what was filmed, in rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from tests.sheets._grid import label, lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.fuzz.judge import Offence

Buffer = np.ndarray[Any, Any]


def read_bgr(buffer: Buffer) -> Buffer:
    """Return the planes of a frame as BGR."""
    return cv2.cvtColor(buffer, cv2.COLOR_YUV2BGR_I420)


def write_offence(offence: Offence, path: Path) -> None:
    """Write the picture that should not have been shown, beside the true one."""
    both = [read_bgr(offence.picture), read_bgr(offence.truth)]
    cv2.imwrite(str(path), label(np.hstack(both), offence.what))


def write_sheet(pictures: Sequence[tuple[str, Buffer]], path: Path, columns: int = 8) -> None:
    """Write a contact sheet of (text, planes)."""
    if pictures:
        cells = [(text, read_bgr(buffer)) for text, buffer in pictures]
        cv2.imwrite(str(path), lay_out(cells, columns, width=200))
