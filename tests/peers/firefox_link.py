"""Firefox without a screen, in a profile of its own, driven by WebDriver BiDi."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import cv2
import numpy as np

from tests.browser.pages import READ_PICTURE
from tests.peers.programs import wait_some
from tests.wire.servers import HOST, ChildServer

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What is not said is Firefox's own default. It dials nobody: no telemetry, updates, portals, lists.
PREFERENCES: dict[str, bool | int | str] = {
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.navigator.permission.disabled": True,
    "media.navigator.streams.fake": True,
    "media.autoplay.default": 0,
    "app.update.enabled": False,
    "app.normandy.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.topsites.contile.enabled": False,
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.update.enabled": False,
    "intl.accept_languages": "en-GB, en",
    "media.gmp-manager.updateEnabled": False,
    "media.gmp-provider.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    "network.prefetch-next": False,
    "network.proxy.type": 0,
    "services.settings.server": "data:,#",
    "toolkit.telemetry.unified": False,
}
# Complaints that the console keeps to itself.
_HEAR = """() => document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy", event.violatedDirective, event.blockedURI, event.sourceFile))"""


class FirefoxError(RuntimeError):
    """Firefox has refused a command, or a script has thrown."""


class Firefox(ChildServer):
    """One Firefox. `preferences` are added to `PREFERENCES`. For `with`."""

    start_s = 90.0

    def __init__(self, **preferences: bool | int | str) -> None:
        super().__init__()
        profile = self.folder / "profile"
        profile.mkdir()
        wanted = PREFERENCES | preferences
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in wanted.items()]
        (profile / "user.js").write_text("".join(lines))

    def command(self) -> list[str]:
        """Return the command line."""
        return [
            *("env", "-u", "DISPLAY", f"HOME={self.folder}", "firefox-esr"),
            *("--headless", "--no-remote", "--profile", str(self.folder / "profile")),
            *("--remote-debugging-port", str(self.port)),
        ]


class Tab:
    """One page. For `with`; `complaints` is what its console and its scripts have said."""

    def __init__(
        self, firefox: Firefox, *preload: str, size: tuple[int, int] = (1280, 900)
    ) -> None:
        """`preload`: functions that run before the page's own scripts."""
        self.complaints: list[str] = []
        self._runner = asyncio.Runner()
        self._numbers = itertools.count(1)
        self._url = f"ws://{HOST}:{firefox.port}/session"
        self._preload = (_HEAR, *preload)
        self._size = size
        self._session: Any = None
        self._socket: Any = None
        self._context = self.version = ""

    def __enter__(self) -> Self:
        self._runner.run(self._open())
        made = self.ask("session.new", capabilities={})
        self.version = str(made["capabilities"]["browserVersion"])
        self.ask("session.subscribe", events=["log.entryAdded"])
        for text in self._preload:
            self.ask("script.addPreloadScript", functionDeclaration=text)
        self._context = self.ask("browsingContext.create", type="tab")["context"]
        width, height = self._size
        viewport = {"width": width, "height": height}
        self.ask("browsingContext.setViewport", context=self._context, viewport=viewport)
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("browsingContext.close", context=self._context)
        self.ask("session.end")
        self._runner.run(self._session.close())
        self._runner.close()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return what Firefox answers.

        Raises:
            FirefoxError: it has refused.
        """
        return self._runner.run(self._ask(method, parameters))

    def go(self, url: str) -> None:
        """Open a page and wait for its load event."""
        self.ask("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def run(self, expression: str) -> Any:
        """Return what an expression gives, promises awaited, by way of JSON.

        Raises:
            FirefoxError: it throws.
        """
        said = self.ask(
            "script.evaluate",
            expression=f"(async () => JSON.stringify((await ({expression})) ?? null))()",
            target={"context": self._context},
            awaitPromise=True,
            userActivation=True,
        )
        if said["type"] != "success":
            raise FirefoxError(said["exceptionDetails"]["text"])
        return json.loads(said["result"]["value"])

    def click(self, selector: str) -> None:
        """Press something, by its centre, as a hand does."""
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        box = self.run(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        x, y = (round(value) for value in box)
        actions = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {"type": "pointer", "id": "mouse", "actions": actions}
        self.ask("input.performActions", context=self._context, actions=[pointer])

    def read(self, selector: str) -> str:
        """Return the text of what is visible there, or nothing."""
        return str(
            self.run(
                f"((e) => e && e.checkVisibility() ? e.innerText : '')"
                f"(document.querySelector({selector!r}))"
            )
        )

    def wait(self, expression: str, timeout_s: float = 90.0) -> bool:
        """Wait until an expression is true; return whether it came to that."""
        return wait_some(lambda: self.run(expression), timeout_s, 0.25)

    def picture(self, video: str = "after") -> NDArray[np.uint8] | None:
        """Return what a video shows now, BGR."""
        data = self.run(f"({READ_PICTURE})({video!r})")
        if data is None:
            return None
        return _decode(base64.b64decode(data))

    def shoot(self) -> bytes:
        """Return the page as it is seen, PNG."""
        said = self.ask("browsingContext.captureScreenshot", context=self._context)
        return base64.b64decode(said["data"])

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(self._url, max_msg_size=0)

    async def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters}
        await self._socket.send_str(json.dumps(command))
        while True:
            said = json.loads(await self._socket.receive_str(timeout=120))
            if said.get("type") == "event":
                self._hear(said["params"])
            elif said.get("id") == number:
                if said["type"] == "error":
                    raise FirefoxError(f"{method}: {said['error']} {said['message']}")
                return dict(said["result"])

    def _hear(self, entry: dict[str, Any]) -> None:
        if entry.get("level") in {"error", "warn"}:
            self.complaints.append(f"{entry['level']}: {entry.get('text')}")


def _decode(data: bytes) -> NDArray[np.uint8]:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)  # type: ignore[return-value] # a PNG of Firefox's
