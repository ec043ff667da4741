"""A person with a browser on the page: what is seen and done, and what the browser says of it."""

from __future__ import annotations

import base64
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import cv2
import numpy as np

from livefuse.ingest.scene.drawing import read_counter

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

READ_PICTURE = """id => {
  const video = document.getElementById(id);
  if (!video || !video.videoWidth) return null;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  canvas.getContext("2d").drawImage(video, 0, 0);
  return canvas.toDataURL("image/png").split(",")[1];
}"""
_WAIT_S = 30.0


def _look(condition: Callable[[], Any]) -> Any:
    """Ask `condition`; a page that is just being left tells nothing."""
    from playwright.sync_api import Error

    try:
        return condition()
    except Error as error:
        if "Execution context was destroyed" not in error.message:
            raise
        return None


def _is_empty(value: Any) -> bool:
    return not isinstance(value, np.ndarray) and not value


class Visitor:
    """One page in a context of its own; `expects`: patterns of complaints that belong to a test."""

    def __init__(
        self,
        browser: Any,
        url: str,
        *,
        camera: bool = True,
        expects: tuple[str, ...] = (),
        init: str = "",
        **wishes: Any,
    ) -> None:
        """`camera`: whether it is given; `init` runs before the page's own scripts."""
        wishes = {"locale": "en-GB", "viewport": {"width": 1280, "height": 860}} | wishes
        self.context = browser.new_context(**wishes)
        # What is not granted is refused without a question.
        granted = ["camera", "microphone"] if camera else ["clipboard-read", "clipboard-write"]
        self.context.grant_permissions(granted)
        self.page = self.context.new_page()
        if init:
            self.page.add_init_script(init)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self._expects = expects
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text} {message.location.get('url')}")

    def close(self) -> None:
        """Leave; the browser had nothing to complain about and contacted this machine only."""
        self.context.close()
        left = [c for c in self.complaints if not any(re.search(e, c) for e in self._expects)]
        assert not left, left
        asked = [url for url in self.asked if not url.startswith(("blob:", "data:"))]
        hosts = {urlsplit(url).hostname for url in asked}
        assert hosts <= {"127.0.0.1"}, hosts

    # What is seen.

    def find(self, selector: str, **wishes: Any) -> Any:
        return self.page.locator(selector, **wishes)

    def read(self, selector: str) -> str:
        """Return the text of what is visible there, or nothing."""
        places = [one for one in self.page.locator(selector).all() if one.is_visible()]
        return places[0].inner_text() if places else ""

    def wait(self, condition: Callable[[], Any], what: str, timeout_s: float = _WAIT_S) -> Any:
        """Return what `condition` gives once it gives something; the page goes on living."""
        deadline = time.monotonic() + timeout_s
        while (value := _look(condition)) is None or _is_empty(value):
            assert time.monotonic() < deadline, f"{what}: {self.complaints} {self.read('body')}"
            self.page.wait_for_timeout(60)
        return value

    def wait_text(self, selector: str, pattern: str, timeout_s: float = _WAIT_S) -> str:
        what = f"{selector} {pattern}"
        self.wait(lambda: re.search(pattern, self.read(selector)), what, timeout_s)
        return self.read(selector)

    def picture(self, video: str = "after") -> NDArray[np.uint8] | None:
        """Return what a video shows now, BGR, read back by a canvas."""
        data = self.page.evaluate(READ_PICTURE, video)
        if data is None:
            return None
        return cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)  # type: ignore[return-value]  # a PNG of the browser's

    def counter(self, video: str = "after") -> int | None:
        picture = self.picture(video)
        if picture is None:
            return None
        return read_counter(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY).astype(np.uint8))

    def wait_playing(self, video: str = "after", timeout_s: float = _WAIT_S) -> None:
        """Wait until pictures come, one after the other."""
        first = self.wait(lambda: self.clock(video), f"{video} plays", timeout_s)
        self.wait(lambda: self.clock(video) > first + 0.2, f"{video} goes on", timeout_s)

    def clock(self, video: str = "after") -> float:
        place = f"document.getElementById({video!r})"
        return float(self.page.evaluate(f"{place}?.srcObject ? {place}.currentTime : 0"))
