"""A single picture for whoever asks: the right colours, and nothing while nobody does."""

import threading

import cv2
import numpy as np
import pytest

from livefuse.frame import Colour, create_frame
from livefuse.publish.snapshot import Snapshot, encode_jpeg


def read_jpeg(data, flags):
    assert data is not None
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    assert picture is not None
    return picture


def paint(planes, colour):
    frame = create_frame(64, 48)
    frame.y[:], frame.u[:], frame.v[:] = planes
    frame.colour = colour
    return frame


@pytest.mark.parametrize(
    ("colour", "planes"),
    [
        # Pure red by each matrix: ITU-R BT.601 and BT.709, limited and full range.
        (Colour("bt601", full_range=False), (81, 90, 240)),
        (Colour("bt709", full_range=False), (63, 102, 240)),
        (Colour("bt601", full_range=True), (76, 85, 255)),
    ],
)
def test_red_stays_red(colour, planes):
    frame = paint(planes, colour)
    picture = read_jpeg(encode_jpeg(frame.buffer, colour), cv2.IMREAD_COLOR)
    assert picture.shape == (48, 64, 3)
    blue, green, red = picture[24, 32].astype(int)
    assert red > 245
    assert green < 12
    assert blue < 12


def test_whoever_asks_gets_the_next_picture():
    snapshot = Snapshot()
    got = []
    asker = threading.Thread(target=lambda: got.append(snapshot.take(5.0)))
    asker.start()
    frame = paint((200, 128, 128), Colour())
    while asker.is_alive():
        snapshot.show(frame)
        asker.join(0.01)
    picture = read_jpeg(got[0], cv2.IMREAD_GRAYSCALE)
    assert picture.mean() > 200


def test_nobody_asks_nothing_is_copied():
    snapshot = Snapshot()
    filled = []
    frame = create_frame(16, 16)
    frame.lend(object(), lambda: filled.append(1))
    snapshot.show(frame)
    assert not filled
    assert snapshot.take(0.01) is None
