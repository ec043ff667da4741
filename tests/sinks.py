"""An ingest's sink that keeps what it gets."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np

from livefuse.frame import FramePool
from livefuse.ingest.scene.drawing import is_flash_lit, read_counter


class CollectingSink:
    """Keeps each frame's PTS, counter and mean luma, all sound, states and counts.

    `keep_every` keeps a copy of the planes of each n-th frame; `stop_after` calls `ingest.stop`
    after so many frames; `starve` makes `acquire_frame` answer None for that many calls.
    """

    def __init__(self, *, stop_after=None, ingest=None, keep_every=0, starve=0, capacity=2):
        self.media: Any = None
        self.pts, self.counters, self.lumas, self.flashes, self.buffers = [], [], [], [], []
        self.arrivals_ns = []
        self.packets, self.states, self.errors = [], [], []
        self.counts: Counter[str] = Counter()
        self.enough = threading.Event()
        self._stop_after, self._ingest = stop_after, ingest
        self._keep_every, self._starve, self._capacity = keep_every, starve, capacity
        self._pool: Any = None
        self.works = 0

    def on_media(self, media):
        assert self.media is None, "media is told once"
        self.media = media
        self._pool = FramePool(media.width, media.height, self._capacity)

    def acquire_frame(self):
        if self._starve > 0:
            self._starve -= 1
            return None
        return self._pool.acquire()

    def on_frame(self, frame):
        frame.fill_planes()
        if self._keep_every and len(self.pts) % self._keep_every == 0:
            self.buffers.append(frame.buffer.copy())
        self.pts.append(frame.pts)
        self.counters.append(read_counter(frame.y))
        self.flashes.append(is_flash_lit(frame.y))
        self.lumas.append(float(np.mean(frame.y[::8, ::8])))
        self.arrivals_ns.append(frame.arrival_ns)
        self._pool.release(frame)
        if self._stop_after is not None and len(self.pts) >= self._stop_after:
            self.enough.set()
            if self._ingest is not None:
                self._ingest.stop()

    def on_audio(self, packet):
        self.packets.append(packet)

    def on_state(self, state, error=None):
        self.states.append(state)
        self.errors.append(error)

    def count(self, event, amount=1):
        self.counts[event] += amount

    def begin_work(self):
        self.works += 1

    def end_work(self):
        self.works -= 1
        assert not self.works, "work begins and ends in turns"
