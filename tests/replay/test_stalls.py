"""What stalls and connections do to the stamps of a whole job, in virtual time (C35, C33)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from livefuse.clock import NS_PER_S
from tests.replay.steps import create_config, create_replay, use_plain_steps
from tests.replay.stream import FPS, MadeRecording, encode_pictures, make_item, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.ingest.playback import Entry
    from livefuse.replay.decisions import ReplayReport

_GOP = encode_pictures(FPS, size=(64, 48))
_CONFIG = create_config(governor={"enabled": False})


@pytest.fixture(autouse=True)
def _plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    use_plain_steps(monkeypatch, "detect", "blur")


class Camera:
    """Connections of pictures that are taken at one time and come at another."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []  # connection, index of its stamp, arrival
        self._connection = 0

    def connect(self) -> None:
        self._connection += 1

    def run(self, seconds: float, *, since_s: float, taken_s: float | None = None) -> None:
        first = round((since_s if taken_s is None else taken_s) * FPS)
        self._entries += [
            (self._connection, first + n, since_s + n / FPS) for n in range(round(seconds * FPS))
        ]

    def replay(self) -> ReplayReport:
        return create_replay(MadeRecording(self._make), config=_CONFIG).run()

    def _make(self) -> Iterator[Entry]:
        for _, group in itertools.groupby(self._entries, lambda entry: entry[0]):
            entries = list(group)
            yield open_source(round(entries[0][2] * NS_PER_S))
            for number, (_, index, at_s) in enumerate(entries):
                item = make_item(_GOP[number % FPS], index, at_s)
                item.packet.is_keyframe = number % FPS == 0
                yield item


def check(report: ReplayReport, *, longest_ms: float = 1100.0) -> None:
    """Stamps rise, leave no gap, and end where the time is."""
    left = sorted((frame for frame in report.frames if frame.left), key=lambda frame: frame.left)
    stamps = [frame.pts or 0 if frame.shown_pts is None else frame.shown_pts for frame in left]
    gaps_ms = [(b - a) / 90 for a, b in itertools.pairwise(stamps)]
    assert min(gaps_ms) > 0
    assert max(gaps_ms) <= longest_ms
    assert stamps[-1] / 90 == pytest.approx(left[-1].at_ms, abs=150)


@pytest.mark.parametrize("stale", [0, 1, 2])
def test_a_stall_and_later_another_connection(stale: int) -> None:
    """The stall's 7.58 s came again as a jump at the next connection."""
    camera = Camera()
    camera.run(3, since_s=0)
    camera.run(stale / FPS, since_s=10.58, taken_s=3)
    camera.run(7, since_s=10.7)
    camera.connect()
    camera.run(3, since_s=19)
    check(camera.replay())


def test_a_camera_that_goes_on_where_it_stopped_and_later_another_connection() -> None:
    camera = Camera()
    camera.run(3, since_s=0)
    camera.run(5, since_s=9, taken_s=3)
    camera.connect()
    camera.run(3, since_s=15.3, taken_s=0)
    report = camera.replay()
    check(report)
    late = [frame for frame in report.frames if frame.fate == "shown" and frame.at_ms > 9000]
    assert late[0].at_ms < 9700, "half a second later its pictures are shown again"
    assert report.summary["counts"]["corrected_pts_late"] == 1


def test_stall_after_stall_stamps_stay_with_the_time() -> None:
    """Bursts that catch up, again and again: what is shown never runs ahead."""
    camera, at_s = Camera(), 0.0
    for _ in range(4):
        camera.run(2, since_s=at_s)
        stalls_s, burst_s = 2.0, 2.5
        for n in range(round((stalls_s + burst_s) * FPS)):  # comes at 1.8 times its pace
            camera._entries.append(
                (
                    0,
                    round((at_s + 2) * FPS) + n,
                    at_s + 4 + n / FPS * burst_s / (stalls_s + burst_s),
                )
            )
        at_s += 2 + stalls_s + burst_s
    camera.run(2, since_s=at_s)
    check(camera.replay())
