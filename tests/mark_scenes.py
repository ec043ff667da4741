"""Pictures in motion to hide a mark in: faces, screens, dark, flat, noisy and still ones.

A scene is a function of the picture's number -> BGR; each is drawn from photos that come with
packages, from what livefuse draws itself, or from a seed. Those of /work/shared/media join in where
they are.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import av
import cv2
import numpy as np
import skimage.data

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.frame import FramePool, create_frame
from livefuse.ingest.synthetic import SyntheticIngest
from tests.faces import ASTRONAUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.frame import Frame

    Picture = NDArray[np.uint8]
    Draw = Callable[[int], Picture]

LANDSCAPE, PORTRAIT = (1280, 720), (720, 1280)
FPS = 30
MEDIA = Path("/work/shared/media")
_PHOTOS = Path(skimage.data.__file__).parent


class Scene(NamedTuple):
    """A scene's size in px and how its pictures are drawn, BGR."""

    size: tuple[int, int]
    draw: Draw


def list_frames(scene: Scene, count: int) -> list[Frame]:
    """Return the first `count` pictures as I420 frames."""
    frames = []
    for index in range(count):
        frame = create_frame(*scene.size)
        frame.buffer[:] = cv2.cvtColor(scene.draw(index), cv2.COLOR_BGR2YUV_I420)
        frame.pts = index * 90_000 // FPS
        frames.append(frame)
    return frames


@cache
def read_photo(name: str) -> Picture:
    """Return a photo as BGR: of scikit-image's package, or the astronaut of our own."""
    path = ASTRONAUT if name == "astronaut" else next(_PHOTOS.glob(f"{name}.*g"))
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    assert picture is not None, path
    return np.asarray(picture, np.uint8)


@cache
def fill(name: str, size: tuple[int, int], zoom: float = 1.0) -> Picture:
    """Return the middle of a photo that fills `size`, zoomed in further."""
    photo = read_photo(name)
    scale = zoom * max(size[0] / photo.shape[1], size[1] / photo.shape[0])
    large = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    top, left = ((large.shape[axis] - size[1 - axis]) // 2 for axis in (0, 1))
    return np.ascontiguousarray(large[top : top + size[1], left : left + size[0]])


def show_still(name: str, size: tuple[int, int] = LANDSCAPE, zoom: float = 1.0) -> Scene:
    """A photo that does not move."""
    return Scene(size, lambda _index: fill(name, size, zoom))


def pan(name: str, step: tuple[float, float], size: tuple[int, int] = LANDSCAPE) -> Scene:
    """A camera that moves over a photo by `step` px a picture."""
    room = (size[0] + int(abs(step[0]) * 160), size[1] + int(abs(step[1]) * 160))

    def draw(index: int) -> Picture:
        wide = fill(name, room)
        x, y = (s * index if s >= 0 else -s * (160 - index) for s in step)
        shape = np.asarray([[1, 0, -x], [0, 1, -y]], np.float32)
        return np.asarray(cv2.warpAffine(wide, shape, size, borderMode=cv2.BORDER_REFLECT))

    return Scene(size, draw)


def zoom_in(name: str, size: tuple[int, int] = LANDSCAPE) -> Scene:
    """A camera that comes nearer by 10 % a second, and turns a little."""

    def draw(index: int) -> Picture:
        middle = (size[0] / 2, size[1] / 2)
        shape = cv2.getRotationMatrix2D(middle, index / 30, 1.1 ** (1 + index / FPS))
        return np.asarray(cv2.warpAffine(fill(name, size), shape, size))

    return Scene(size, draw)


def add_noise(scene: Scene, sigma: float, gain: float = 1.0) -> Scene:
    """Grain that is new in every picture, over a darker or lighter one."""

    def draw(index: int) -> Picture:
        picture = cv2.convertScaleAbs(scene.draw(index), alpha=gain)
        random = np.random.default_rng(index)
        noise = random.normal(0, sigma, (*picture.shape[:2], 1)).astype(np.float32)
        return np.asarray(np.clip(picture + noise, 0, 255), np.uint8)

    return Scene(scene.size, draw)


def darken(scene: Scene, gain: float) -> Scene:
    """The same with less light."""
    return Scene(scene.size, lambda i: np.asarray(cv2.convertScaleAbs(scene.draw(i), alpha=gain)))


class _Keep:
    """Draws what a synthetic ingest draws, as often as is asked."""

    def __init__(self, url: str, count: int) -> None:
        self._pool: Any = None
        self.pictures: list[Picture] = []
        ingest = SyntheticIngest(
            f"{url}&frames={count}", IngestConfig(), SystemClock(), paced=False, every_frame=True
        )
        ingest.run(self)

    def on_media(self, media):
        self._pool = FramePool(media.width, media.height, 1)

    def acquire_frame(self):
        return self._pool.acquire()

    def on_frame(self, frame):
        self.pictures.append(cv2.cvtColor(frame.buffer, cv2.COLOR_YUV2BGR_I420))
        self._pool.release(frame)

    def __getattr__(self, name):
        return lambda *_args, **_kwargs: None


@cache
def _draw_synthetic(url: str, count: int) -> list[Picture]:
    return _Keep(url, count).pictures


def show_synthetic(kind: str, size: tuple[int, int] = LANDSCAPE) -> Scene:
    """The talking head (`demo`) or the bars (`test`) that livefuse draws."""
    url = f"{kind}:?size={size[0]}x{size[1]}&fps={FPS}&audio=0&sync=0"
    return Scene(size, lambda index: _draw_synthetic(url, 120)[index % 120])


@cache
def _read_media(path: Path, count: int) -> list[Picture]:
    with av.open(str(path)) as container:
        frames = container.decode(video=0)
        kept = zip(range(count), frames, strict=False)
        return [np.asarray(frame.to_ndarray(format="bgr24"), np.uint8) for _, frame in kept]


def show_media(name: str, size: tuple[int, int] = LANDSCAPE) -> Scene:
    """A video file, filled into the size."""

    def draw(index: int) -> Picture:
        pictures = _read_media(MEDIA / name, 95)
        picture = pictures[index % len(pictures)]
        scale = max(size[0] / picture.shape[1], size[1] / picture.shape[0])
        large = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        top, left = ((large.shape[axis] - size[1 - axis]) // 2 for axis in (0, 1))
        return np.ascontiguousarray(large[top : top + size[1], left : left + size[0]])

    return Scene(size, draw)


def write_text(
    paper: int, ink: int, step: float, size: tuple[int, int] = LANDSCAPE, *, is_dense: bool = False
) -> Scene:
    """Text that scrolls by `step` px a picture, with margins and paragraphs, or dense without."""

    @cache
    def draw_page() -> Picture:
        random = np.random.default_rng(paper)
        page = np.full((size[1] * 2, size[0], 3), paper, np.uint8)
        letters = list("abcdefghijklmnopqrstuvwxyz      ,.")
        left = 24 if is_dense else size[0] // 8
        for line, y in enumerate(range(40, page.shape[0], 32)):
            if line % 5 == 0 and not is_dense:
                continue
            text = "".join(random.choice(letters, (size[0] - 2 * left) // 13))
            cv2.putText(
                page, text, (left, y), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (ink,) * 3, 1, cv2.LINE_AA
            )
        return page

    def draw(index: int) -> Picture:
        top = int(step * index) % size[1]
        return np.ascontiguousarray(draw_page()[top : top + size[1]])

    return Scene(size, draw)


def draw_slide(index: int) -> Picture:
    """A white slide with blocks of colour, and a pointer that moves."""
    slide = np.full((720, 1280, 3), 250, np.uint8)
    for i, colour in enumerate(((200, 120, 40), (60, 160, 80), (40, 60, 200))):
        cv2.rectangle(slide, (120 + 360 * i, 260), (380 + 360 * i, 560), colour, -1)
    cv2.putText(slide, "Quarterly figures", (120, 160), cv2.FONT_HERSHEY_DUPLEX, 2, (40, 40, 40), 3)
    cv2.circle(slide, (200 + 8 * index, 620), 10, (0, 0, 200), -1)
    return slide


def draw_gradient(index: int) -> Picture:
    """A grey that rises from left to right and is all but still."""
    ramp = np.linspace(40, 210, 1280) + 2 * np.sin(index / 15)
    return np.repeat(np.repeat(ramp[None, :, None], 720, 0), 3, 2).astype(np.uint8)


def draw_flat(index: int, *, colour: tuple[int, int, int]) -> Picture:
    """One colour, with a small square that wanders."""
    picture = np.full((720, 1280, 3), colour, np.uint8)
    x = 100 + 6 * index
    picture[300:340, x : x + 40] = 255 - np.asarray(colour)
    return picture


def draw_night(index: int) -> Picture:
    """Lamps in the dark that flicker."""
    random = np.random.default_rng(9)
    picture = np.full((720, 1280, 3), 18, np.uint8)
    for x, y, radius in random.integers((0, 0, 4), (1280, 720, 26), (50, 3)):
        light = int(120 + 100 * np.sin(index / 5 + x))
        cv2.circle(
            picture, (int(x), int(y)), int(radius), (light // 2, light, light), -1, cv2.LINE_AA
        )
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), 3), np.uint8)


@cache
def _draw_mandelbrot(width: int, height: int) -> Picture:
    x = np.linspace(-0.79, -0.70, width)[None, :]
    y = np.linspace(0.08, 0.14, height)[:, None]
    point = z = x + 1j * y
    count = np.zeros(z.shape, np.uint8)
    for _ in range(120):
        z = np.where(np.abs(z) < 4, z * z + point, z)
        count += np.abs(z) < 4
    return np.asarray(cv2.applyColorMap(count * 2, cv2.COLORMAP_TWILIGHT), np.uint8)


def draw_mandelbrot(index: int) -> Picture:
    """A pan over a fractal: sharp detail everywhere."""
    return np.ascontiguousarray(_draw_mandelbrot(1760, 720)[:, 4 * index : 4 * index + 1280])


def draw_games(index: int) -> Picture:
    """Boxes with hard edges that fly about before a checkerboard."""
    tiles = (np.indices((720, 1280)) // 48).sum(0) % 2 * 60 + 70
    picture = np.repeat(tiles.astype(np.uint8)[..., None], 3, 2)
    random = np.random.default_rng(4)
    for x, y, dx, dy, c in random.integers((0, 0, -14, -14, 40), (1280, 720, 14, 14, 255), (24, 5)):
        px, py = int(x + dx * index) % 1280, int(y + dy * index) % 720
        cv2.rectangle(picture, (px, py), (px + 90, py + 60), (int(c), 255 - int(c), 128), -1)
    return picture


def box_in(scene: Scene, width: int) -> Scene:
    """The scene between black pillars, as an old film is shown."""

    def draw(index: int) -> Picture:
        picture = scene.draw(index).copy()
        edge = (picture.shape[1] - width) // 2
        picture[:, :edge] = picture[:, -edge:] = 0
        return picture

    return Scene(scene.size, draw)


_flat = partial(Scene, LANDSCAPE)
SCENES: dict[str, Scene] = {
    # Faces.
    "head": show_synthetic("demo"),
    "head_grain": add_noise(show_synthetic("demo"), 6),
    "head_dark": darken(show_synthetic("demo"), 0.25),
    "face_zoom": zoom_in("astronaut"),
    "face_pan": pan("astronaut", (3, 1)),
    "face_dark_grain": add_noise(show_still("astronaut"), 5, 0.3),
    # Screens.
    "text_white": write_text(245, 20, 1),
    "text_black": write_text(16, 210, 1),
    "text_still": write_text(235, 60, 0),
    "text_dense_white": write_text(245, 20, 2, is_dense=True),
    "text_dense_black": write_text(16, 210, 1.5, is_dense=True),
    "slide": _flat(draw_slide),
    "page": show_still("page"),
    "games": _flat(draw_games),
    # Dark and flat.
    "night": _flat(draw_night),
    "flat_grey": _flat(partial(draw_flat, colour=(120, 120, 120))),
    "flat_white": _flat(partial(draw_flat, colour=(240, 240, 240))),
    "gradient": _flat(draw_gradient),
    "moon_dark": darken(show_still("moon"), 0.4),
    # Noisy.
    "bars_noise": add_noise(show_synthetic("test"), 20),
    "black_noise": add_noise(_flat(partial(draw_flat, colour=(20, 20, 20))), 4),
    "grass_noise": add_noise(show_still("grass"), 12),
    # Still photos.
    "still_face": show_still("astronaut"),
    "still_coffee": show_still("coffee"),
    "still_cat": show_still("chelsea"),
    "still_brick": show_still("brick"),
    "still_gravel": show_still("gravel"),
    "still_camera": show_still("camera"),
    "still_stars": show_still("hubble_deep_field"),
    "still_motor": show_still("motorcycle_left"),
    # Pans.
    "pan_motor": pan("motorcycle_left", (2, 0)),
    "pan_coins": pan("coins", (-3, 2)),
    "pan_cells": pan("ihc", (2, 2)),
    "pan_fractal": _flat(draw_mandelbrot),
    "zoom_coffee": zoom_in("coffee"),
    # Finer detail in quicker motion than 1 Mb/s can carry.
    "pan_fast": pan("motorcycle_left", (4, 0)),
    # Other shapes.
    "pillars": box_in(pan("camera", (2, 0)), 960),
    "portrait_head": show_synthetic("demo", PORTRAIT),
    "portrait_still": show_still("astronaut", PORTRAIT),
    "portrait_pan": pan("chelsea", (1, 3), PORTRAIT),
}  # fmt: skip
if MEDIA.is_dir():
    SCENES |= {
        "video_face": show_media("portrait_pexels_langer.mp4"),
        "video_face_grain": add_noise(show_media("portrait_pexels_langer.mp4"), 7),
        "video_face_portrait": show_media("portrait_pexels_langer.mp4", PORTRAIT),
        "video_no_face": show_media("no_face.mp4"),
    }
