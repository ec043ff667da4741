"""Viewers by WHEP in a process of their own: `python -m tests.bench.whep_viewers URL COUNT`.

Plain aiortc, which is not made to decode: what is measured is who sends. Prints how many pictures
each got when standard input ends.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from functools import partial
from types import SimpleNamespace
from typing import Any

from aiortc import rtcrtpreceiver

from tests.webrtc import Watcher, wait_for


class _Counter:
    """In the place of a decoder."""

    def __init__(self) -> None:
        self.pictures = 0

    def decode(self, _encoded: object) -> list[Any]:
        """Count a picture and show none."""
        self.pictures += 1
        return []


def post_offer(url: str, sdp: str) -> Any:
    """Return what `url` answers to an offer, as Watcher takes it."""
    request = urllib.request.Request(url, sdp.encode(), {"Content-Type": "application/sdp"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return SimpleNamespace(answer_sdp=answer.read().decode())


def main() -> None:
    """Watch until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    counters: list[_Counter] = []

    def create_counter(_codec: object) -> _Counter:
        counters.append(_Counter())
        return counters[-1]

    vars(rtcrtpreceiver)["get_decoder"] = create_counter
    viewers = [
        Watcher(partial(post_offer, options.url), has_sound=False) for _ in range(options.count)
    ]
    for viewer in viewers:
        viewer.connect()
    wait_for(lambda: all(viewer.is_connected() for viewer in viewers), 20, "connected")
    print("connected", flush=True)
    sys.stdin.read()
    print(json.dumps([counter.pictures for counter in counters]), flush=True)
    for viewer in viewers:
        viewer.close()


if __name__ == "__main__":
    main()
