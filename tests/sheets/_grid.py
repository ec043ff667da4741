"""Pictures in rows, with a word over each."""

from __future__ import annotations

import cv2
import numpy as np

_BAR = 22


def label(picture, text):
    """Return BGR `picture` with `text` in a bar above it."""
    bar = np.full((_BAR, picture.shape[1], 3), 32, np.uint8)
    cv2.putText(bar, text, (5, 15), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (235, 235, 235), 1, cv2.LINE_AA)
    return np.vstack([bar, picture])


def lay_out(pictures, columns, width=320):
    """Return one sheet of (text, BGR picture) pairs, each `width` px wide."""
    cells = []
    for text, picture in pictures:
        height = round(picture.shape[0] * width / picture.shape[1])
        small = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        cells.append(label(small, text))
    tallest = max(cell.shape[0] for cell in cells)
    cells = [
        cv2.copyMakeBorder(c, 0, tallest - c.shape[0], 0, 6, cv2.BORDER_CONSTANT, value=(32,) * 3)
        for c in cells
    ]
    while len(cells) % columns:
        cells.append(np.full_like(cells[0], 32))
    rows = [np.hstack(cells[i : i + columns]) for i in range(0, len(cells), columns)]
    return np.vstack(rows)
