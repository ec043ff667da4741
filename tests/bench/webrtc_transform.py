"""aiortc's own way, in a process of its own: each offer on standard input (JSON) is answered.

Its video-transform example without an effect: decode, to an array, back, encode again for each
peer. Nothing of livefuse is loaded but the choice of the loopback address.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import av
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.contrib.media import MediaRelay
from aiortc.mediastreams import MediaStreamTrack

from livefuse.rtc import patches

LOOPBACK = "127.0.0.1"


class _Transform(MediaStreamTrack):
    """What aiortc's example does with each picture, without an effect."""

    kind = "video"

    def __init__(self, track: Any) -> None:
        super().__init__()
        self._track = track

    async def recv(self) -> av.VideoFrame:
        frame = await self._track.recv()
        picture = av.VideoFrame.from_ndarray(frame.to_ndarray(format="bgr24"), format="bgr24")
        picture.pts, picture.time_base = frame.pts, frame.time_base
        return picture


async def _answer(offer_sdp: str) -> tuple[RTCPeerConnection, str]:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    relay = MediaRelay()

    def take(track: Any) -> None:
        connection.addTrack(_Transform(relay.subscribe(track)))

    connection.on("track", take)
    await connection.setRemoteDescription(RTCSessionDescription(offer_sdp, "offer"))
    for transceiver in connection.getTransceivers():
        agent = transceiver.receiver.transport.transport._connection
        patches.limit_gathering(agent, [LOOPBACK], 0.3)
    await connection.setLocalDescription(await connection.createAnswer())
    return connection, str(connection.localDescription.sdp)


async def _serve() -> None:
    """Answer until standard input ends."""
    loop = asyncio.get_running_loop()
    connections = []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        connection, answer = await _answer(json.loads(line))
        connections.append(connection)
        print(json.dumps(answer), flush=True)
    for connection in connections:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(_serve())
