"""Pictures with a face where a test wants it, and a detector that says what a test tells it to."""

import cv2
import numpy as np

from livefuse.face import Box, Detection
from livefuse.frame import create_frame
from livefuse.geometry import apply_similarity, create_similarity
from livefuse.ingest.scene.talking_head import load_portrait
from livefuse.runtime.session import Network

PORTRAIT_FACE = (640.0, 275.0)  # its centre in the 1280x720 portrait, px
PORTRAIT_HALF = (112.0, 150.0)
MARKS = np.array([[-45, -35], [45, -35], [0, 20], [-38, 75], [38, 75]], np.float32)
FRAME_TICKS = 3000  # 30 fps


def draw_noise(width=320, height=240, seed=1, sigma=6.0):
    """Return a frame of smooth noise: textured, so that flow can follow it."""
    frame = create_frame(width, height)
    rng = np.random.default_rng(seed)
    for plane in (frame.y, frame.u, frame.v):
        noise = cv2.GaussianBlur(rng.normal(0, 1, plane.shape), (0, 0), sigma)
        plane[:] = np.clip(128 + 50 * noise / (noise.std() + 1e-6), 20, 230)
    return frame


def draw_head(  # noqa: PLR0913 - what a test may choose
    width=640, height=360, *, x=320.0, y=160.0, scale=0.4, roll=0.0, pts=0, back=7
):
    """Return a frame with the portrait's head at (x, y), and the detection that is true of it."""
    frame = draw_noise(width, height, seed=back)
    place = create_similarity(scale, roll, 0.0, 0.0)
    middle = apply_similarity(place, np.array([PORTRAIT_FACE]))[0]
    place = place._replace(tx=x - float(middle[0]), ty=y - float(middle[1]))
    matrix = np.array([[place.a, -place.b, place.tx], [place.b, place.a, place.ty]])
    picture = cv2.warpAffine(load_portrait(), matrix, (width, height), flags=cv2.INTER_AREA)
    alpha = np.zeros((720, 1280), np.uint8)
    centre = tuple(round(v) for v in PORTRAIT_FACE)
    cv2.ellipse(alpha, centre, (150, 190), 0, 0, 360, 255, -1)
    mask = cv2.warpAffine(alpha, matrix, (width, height))
    head = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
    planes = create_frame(width, height)
    planes.buffer[:] = head
    small = cv2.resize(mask, (width // 2, height // 2))
    for mine, theirs, where in (
        (frame.y, planes.y, mask),
        (frame.u, planes.u, small),
        (frame.v, planes.v, small),
    ):
        mine[where > 127] = theirs[where > 127]
    frame.pts = pts
    return frame, create_detection(x, y, scale, roll)


def create_detection(x, y, scale=0.4, roll=0.0, score=0.9):
    """Return a detection of the portrait's face at that place."""
    marks = apply_similarity(create_similarity(scale, roll, x, y), MARKS)
    half_x = scale * float(
        np.hypot(PORTRAIT_HALF[0] * np.cos(roll), PORTRAIT_HALF[1] * np.sin(roll))
    )
    half_y = scale * float(
        np.hypot(PORTRAIT_HALF[0] * np.sin(roll), PORTRAIT_HALF[1] * np.cos(roll))
    )
    return Detection(Box(x - half_x, y - half_y, x + half_x, y + half_y), score, marks)


class FakeDetector:
    """Answers with `answers[n]` at its n-th call (the last one for ever); raises exceptions."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = 0
        self.lights = []

    def detect(self, frame, *, light=False):
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        self.lights.append(light)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


class FakeNetwork(Network):
    """A network that answers with fixed arrays."""

    def __init__(self, *outputs):
        self.input_names = ("input",)
        self.outputs = list(outputs)
        self.feeds = []

    def run(self, feeds, *, expect=None):
        self.feeds.append({name: value.copy() for name, value in feeds.items()})
        return self.outputs
