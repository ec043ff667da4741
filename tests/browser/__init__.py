"""A real Chromium without a screen, driven by Playwright, with a camera made of a clip.

It keeps to loopback, has a profile of its own and nothing that calls home.
"""

from __future__ import annotations

import contextlib
import tempfile
from typing import TYPE_CHECKING, Any

from livefuse.frame import create_frame
from livefuse.ingest.scene.drawing import draw_counter
from livefuse.ingest.scene.talking_head import TalkingHead

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
ORIGIN = "http://127.0.0.1:1/"
"""Answered by `serve_text`: nothing listens there. A camera may be used at this address."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-loopback-in-peer-connection",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
)


def write_camera_clip(
    path: Path, width: int, height: int, frames: int = 60, *, with_counter: bool = True
) -> Path:
    """Write a face with a counter, 30 pictures a second, as y4m: it keeps its size in Chromium."""
    head, frame = TalkingHead(width, height), create_frame(width, height)
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F30:1 Ip A1:1 C420mpeg2\n".encode())
        for number in range(frames):
            head.draw(frame, number / 30)
            if with_counter:
                draw_counter(frame, number, "large")
            file.write(b"FRAME\n" + frame.buffer.tobytes())
    return path


@contextlib.contextmanager
def browsing(camera: Path | None = None, *flags: str) -> Iterator[Any]:
    """Give a Playwright browser context; its camera shows the clip `camera` over and over."""
    from playwright.sync_api import sync_playwright

    source = [f"--use-file-for-fake-video-capture={camera}"] if camera is not None else []
    with (
        tempfile.TemporaryDirectory(prefix="livefuse-chromium-") as profile,
        sync_playwright() as playwright,
    ):
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            headless=True,
            args=[*FLAGS, *source, *flags],
            timeout=60_000,
        )
        try:
            yield context
        finally:
            context.close()


def serve_text(page: Any, text: str) -> None:
    """Show `text` (HTML) at `ORIGIN`."""
    page.route(f"{ORIGIN}**", lambda route: route.fulfill(body=text, content_type="text/html"))
    page.goto(ORIGIN)
