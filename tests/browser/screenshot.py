"""The page's picture for README: python -m tests.browser.screenshot [FILE].

A camera that shows the astronaut's portrait, the fox instead of the face on the right of the split.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.apis import RunningApi
from tests.browser import CHROMIUM, FLAGS, write_camera_clip
from tests.browser.pages import Visitor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PICTURE = Path(__file__).parents[1] / "data" / "page.jpg"
_SETTLED_MS = 1500


def is_fox(picture: NDArray[np.uint8] | None) -> bool:
    """Say whether the middle of the forehead is orange, which neither skin nor robot is."""
    if picture is None:
        return False
    blue, _, red = picture[90:115, 330:350].reshape(-1, 3).mean(axis=0)
    return bool(red - blue > 90)


def take_screenshot(path: Path) -> None:
    """Write the studio with a running camera as a JPEG of 1280x800."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="livefuse-page-") as folder:
        clip = write_camera_clip(Path(folder) / "face.y4m", 640, 360, with_counter=False)
        flags = [*FLAGS, f"--use-file-for-fake-video-capture={clip}"]
        settings = ("ingest.canvas=640x360", "governor.enabled=false")
        with RunningApi(Path(folder), *settings) as api, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
            visitor = Visitor(
                browser,
                api.server.get_url("/"),
                color_scheme="dark",
                viewport={"width": 1280, "height": 800},
            )
            visitor.find("#start-camera").click()
            visitor.wait_playing()
            visitor.page.wait_for_timeout(_SETTLED_MS)
            visitor.find("#operation-swap").click()
            visitor.find("#face").select_option("avatar:fox")
            visitor.find("#blend").fill("1")
            visitor.find("#split").fill("50")
            visitor.page.evaluate("document.activeElement.blur()")
            visitor.wait(lambda: visitor.read("#controls-busy") == "", "all is loaded")
            visitor.wait(lambda: is_fox(visitor.picture()), "the fox is drawn", 120)
            visitor.page.wait_for_timeout(_SETTLED_MS)
            visitor.page.evaluate("device.options[0].text = 'Camera 1'")  # it is a file's name
            visitor.page.screenshot(path=path, type="jpeg", quality=82)
            visitor.close()
            browser.close()


if __name__ == "__main__":
    take_screenshot(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
