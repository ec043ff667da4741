"""OBS Studio: a home folder of its own, started without a screen, spoken to by obs-websocket 5."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import time
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import cv2
import numpy as np

from tests.peers.programs import Display, wait_some
from tests.wire.servers import HOST, ChildServer

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = (640, 360)
FPS = 30
_PASSWORD = "only-for-this-trial"
_NAME = "trial"
_GLOBAL = """
[General]
FirstRun=true
EnableAutoUpdates=false
LastVersion=486539266

[Basic]
Profile={name}
ProfileDir={name}
SceneCollection={name}
SceneCollectionFile={name}

[OBSWebSocket]
FirstLoad=false
ServerEnabled=true
ServerPort={port}
AlertsEnabled=false
AuthRequired=true
ServerPassword={password}
"""
_BASIC = """
[General]
Name={name}

[Output]
Mode=Simple

[SimpleOutput]
StreamEncoder=x264
VBitrate=1500
ABitrate=128
UseAdvanced=true
Preset=ultrafast

[Video]
BaseCX={width}
BaseCY={height}
OutputCX={width}
OutputCY={height}
FPSType=0
FPSCommon={fps}

[Audio]
SampleRate=48000
ChannelSetup=Stereo
"""


class ObsError(RuntimeError):
    """OBS has refused a request."""


class Obs(ChildServer):
    """One OBS with one empty scene, `Scene`. For `with`; `start` and `stop` as often as wanted."""

    start_s = 90.0

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display
        settings = self.folder / ".config" / "obs-studio"
        profile = settings / "basic" / "profiles" / _NAME
        profile.mkdir(parents=True)
        (settings / "global.ini").write_text(
            _GLOBAL.format(name=_NAME, port=self.port, password=_PASSWORD)
        )
        width, height = SIZE
        (profile / "basic.ini").write_text(
            _BASIC.format(name=_NAME, width=width, height=height, fps=FPS)
        )

    def command(self) -> list[str]:
        """Return the command line."""
        return [
            *("env", "-u", "XDG_CONFIG_HOME", f"HOME={self.folder}"),
            *(f"DISPLAY={self._display.name}", "LIBGL_ALWAYS_SOFTWARE=1", "QT_QPA_PLATFORM=xcb"),
            *("nice", "-n", "5", "obs", "--multi", "--disable-updater"),
            *("--disable-missing-files-check", "--profile", _NAME, "--collection", _NAME),
        ]

    def connect(self) -> Link:
        """Return a connection once OBS answers requests."""
        return Link(f"ws://{HOST}:{self.port}")


class Link:
    """Requests to OBS, one after the other. For `with`."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._numbers = itertools.count(1)
        self._url = url
        self._session: Any = None
        self._socket: Any = None

    def __enter__(self) -> Self:
        self._runner.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._session.close())
        self._runner.close()

    def ask(self, request: str, **data: Any) -> dict[str, Any]:
        """Return what OBS answers to `request`.

        Raises:
            ObsError: it has refused.
        """
        return self._runner.run(self._ask(request, data))

    def shoot(self, source: str = "Scene") -> NDArray[np.uint8] | None:
        """Return what OBS shows of `source` now, BGR; None when it has no picture."""
        try:
            said = self.ask("GetSourceScreenshot", sourceName=source, imageFormat="png")
        except ObsError:
            return None
        data = base64.b64decode(said["imageData"].partition(",")[2])
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)  # type: ignore[return-value] # a PNG of OBS's

    def stream(self, *, is_on: bool) -> bool:
        """Start or stop streaming; return whether OBS does so within 60 s."""
        try:
            self.ask("StartStream" if is_on else "StopStream")
        except ObsError:
            return False
        return wait_some(lambda: self.is_streaming() is is_on, 60)

    def is_streaming(self) -> bool:
        """Whether OBS sends, and is not only dialling."""
        status = self.ask("GetStreamStatus")
        return bool(status["outputActive"] and not status["outputReconnecting"])

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(
            self._url, protocols=("obswebsocket.json",), max_msg_size=0
        )
        hello = (await self._receive())["d"]["authentication"]
        secret = _digest(_PASSWORD + hello["salt"])
        proof = _digest(secret + hello["challenge"])
        await self._send(1, {"rpcVersion": 1, "authentication": proof, "eventSubscriptions": 0})
        await self._receive()
        deadline = time.monotonic() + 30
        while True:  # it answers before its scenes are loaded, and says so
            try:
                await self._ask("GetSceneList", {})
            except ObsError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
            else:
                return

    async def _ask(self, request: str, data: dict[str, Any]) -> dict[str, Any]:
        number = str(next(self._numbers))
        await self._send(6, {"requestType": request, "requestId": number, "requestData": data})
        answer: dict[str, Any] = {}
        while answer.get("requestId") != number:
            answer = (await self._receive())["d"]
        status = answer["requestStatus"]
        if not status["result"]:
            raise ObsError(f"{request}: {status['code']} {status.get('comment', '')}")
        return answer.get("responseData") or {}

    async def _send(self, kind: int, data: dict[str, Any]) -> None:
        await self._socket.send_str(json.dumps({"op": kind, "d": data}))

    async def _receive(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(await self._socket.receive_str(timeout=30))
        return said


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
