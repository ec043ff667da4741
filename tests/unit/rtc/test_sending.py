"""What one viewer gets: from a keyframe on, and to now when it is slow."""

import asyncio

import pytest
from aiortc.mediastreams import MediaStreamError

from livefuse.rtc.payload import Payloads
from livefuse.rtc.sending import MAX_UNITS, OutgoingTrack


def make_unit(number):
    return Payloads([b"x"], number, number)


def run(work):
    async def guarded():
        wishes = []
        track = OutgoingTrack("video", lambda: wishes.append(1))
        await work(track, wishes)

    asyncio.run(guarded())


async def begin(track):
    waiting = asyncio.get_running_loop().create_task(track.recv())
    await asyncio.sleep(0)
    return waiting


def test_nothing_is_kept_before_the_viewer_is_there():
    """C02: it then asks for a keyframe, and what came before is not shown."""

    async def work(track, wishes):
        track.put(make_unit(1), is_keyframe=True)
        waiting = await begin(track)
        assert wishes == [1]
        track.put(make_unit(2), is_keyframe=False)
        track.put(make_unit(3), is_keyframe=True)
        assert (await waiting).timestamp == 3
        assert track.last_pts == 3
        assert track.dropped == 0

    run(work)


def test_a_slow_viewer_goes_on_at_the_next_keyframe():
    """C03."""

    async def work(track, wishes):
        waiting = await begin(track)
        track.put(make_unit(0), is_keyframe=True)
        await waiting
        for number in range(1, MAX_UNITS["video"] + 3):
            track.put(make_unit(number), is_keyframe=False)
        assert len(wishes) == 2
        track.put(make_unit(90), is_keyframe=True)
        assert (await track.recv()).timestamp == 90
        assert track.dropped == MAX_UNITS["video"] + 2

    run(work)


def test_sound_can_begin_anywhere_and_skips_nothing_but_what_is_old():
    async def work():
        track = OutgoingTrack("audio", lambda: None)
        waiting = asyncio.get_running_loop().create_task(track.recv())
        await asyncio.sleep(0)
        for number in range(MAX_UNITS["audio"] + 5):
            track.put(make_unit(number), is_keyframe=True)
        await waiting
        assert (await track.recv()).timestamp >= MAX_UNITS["audio"]

    asyncio.run(work())


def test_whoever_waits_sees_the_end():
    async def work(track, _wishes):
        waiting = await begin(track)
        track.stop()
        with pytest.raises(MediaStreamError):
            await waiting

    run(work)
