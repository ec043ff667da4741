"""Make the golden recordings: one for each thing that goes wrong with a live source.

`python -m tests.replay.make [FOLDER]`. They are drawn and encoded here, with arrival times made up
from a seed; the same FFmpeg gives the same bytes.

    burst     a second as it should be, then two seconds of packets at once
    stall     nothing for three seconds, the source's clock goes on
    restart   the camera goes away and comes back after 1.5 s: other parameter sets, stamps from 0
    wrap      stamps of 33 bits that begin again at 0
    size      another size from one keyframe on, within a connection
    rotation  a picture that asks to be turned by 90 degrees (SEI, display orientation)
    missing   pictures without time stamps
    noise     damaged packets, some marked, and some that are missing
    overload  a calm stream, long enough for a machine to become too slow and fast again
"""

from __future__ import annotations

import random
import sys
import uuid
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import msgspec
import numpy as np

from livefuse import __version__
from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.ingest.recording import write_events
from livefuse.ingest.recording_file import About, Event, Taken
from livefuse.ingest.scene.drawing import draw_counter
from livefuse.ingest.sidecar import Gap, Happened, Opened, Stored, VideoParameters, pack_annexb
from livefuse.packet import AudioInfo
from tests.faces import create_face_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from livefuse.ingest.base import InputState

DATA = Path(__file__).parent / "data"
FPS, SIZE, RATE_HZ = 30, (320, 180), 16_000
STEP, BASE = 90_000 // FPS, (1, 90_000)
STEP_NS = NS_PER_S // FPS
UNIT = 1024
START = b"\0\0\0\1"
_SLICES, _SEI, _SPS, _PPS = (1, 5), 6, 7, 8


@dataclass
class Coded:
    """Pictures of one encoder, Annex B, and the parameter sets that they begin with."""

    pictures: list[tuple[bytes, bool]]
    size: tuple[int, int]
    extradata: bytes = field(init=False)

    def __post_init__(self) -> None:
        sets = [unit for unit in split(self.pictures[0][0]) if unit[0] & 31 in (_SPS, _PPS)]
        self.extradata = b"".join(START + unit for unit in sets)


def split(data: bytes) -> list[bytes]:
    """Return the NAL units of Annex B bytes."""
    packed = pack_annexb(data)
    assert packed is not None
    units, at = [], 0
    while at < len(packed[0]):
        size = int.from_bytes(packed[0][at : at + 4], "big")
        units.append(packed[0][at + 4 : at + 4 + size])
        at += 4 + size
    return units


def draw(count: int, *, first: int = 0, size: tuple[int, int] = SIZE, **options: str) -> Coded:
    """Return `count` encoded pictures of a face that moves slowly, each with its number."""
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = *size, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, FPS), Fraction(FPS)
    encoder.thread_count = 1
    encoder.options = {
        "preset": "veryfast", "crf": "31", "g": str(FPS), "bf": "0", "tune": "zerolatency",
        "x264-params": "sliced-threads=0:threads=1",
    } | options  # fmt: skip
    packets: list[Any] = []
    for index in range(first, first + count):
        # It moves by whole pixels, two a second: an encoder has next to nothing to do.
        step = index * 2 // FPS / size[0]
        frame = create_face_frame(size[1] * 0.4, size, place=(0.45 + step, 0.5))
        draw_counter(frame, index, "small")
        picture = av.VideoFrame.from_ndarray(frame.buffer, format="yuv420p")
        picture.pts, picture.time_base = index, Fraction(1, FPS)
        packets += encoder.encode(picture)
    packets += encoder.encode(None)
    return Coded([(bytes(packet), bool(packet.is_keyframe)) for packet in packets], size)


def sing(seconds: float) -> tuple[list[bytes], AudioInfo]:
    """Return a soft tone as raw AAC units of `UNIT` samples."""
    encoder: Any = av.CodecContext.create("aac", "w")
    encoder.sample_rate, encoder.layout, encoder.format = RATE_HZ, "mono", "fltp"
    encoder.bit_rate, encoder.time_base = 12_000, Fraction(1, RATE_HZ)
    encoder.open()
    units: list[bytes] = []
    for index in range(round(seconds * RATE_HZ / UNIT)):
        times = (np.arange(UNIT) + index * UNIT) / RATE_HZ
        tone = (0.1 * np.sin(2 * np.pi * 220 * times)).astype(np.float32)[None]
        piece = av.AudioFrame.from_ndarray(tone, "fltp", "mono")
        piece.sample_rate, piece.pts = RATE_HZ, index * UNIT
        piece.time_base = Fraction(1, RATE_HZ)
        units += [bytes(packet) for packet in encoder.encode(piece)]
    return units, AudioInfo("aac", RATE_HZ, 1, bytes(encoder.extradata))


class Script:
    """What came in, put together. Times are in ns; each connection begins where it is told."""

    def __init__(self, seed: int) -> None:
        self.events: list[Event] = []
        self._random = random.Random(seed)

    def open(self, at: int, coded: Coded, audio: AudioInfo | None = None) -> None:
        """Begin a connection."""
        width, height = coded.size
        video = VideoParameters(
            codec="h264", decoder="h264", width=width, height=height, pix_fmt="yuv420p",
            extradata=coded.extradata, base=BASE, aspect=(1, 1), fps=float(FPS),
        )  # fmt: skip
        self.events.append(Opened(at=at, video=video, audio=audio))

    def tell(self, at: int, state: InputState) -> None:
        """Note a change of state."""
        self.events.append(Happened(at=at, state=state))

    def add(
        self,
        coded: Coded,
        sounds: Iterable[bytes] = (),
        *,
        at: int = 0,
        first_pts: int = 0,
        arrive: Callable[[int], int] = lambda due: due,
    ) -> None:
        """Add pictures and sound that are due from `at` on and come when `arrive` says."""
        taken: list[tuple[int, Taken]] = []
        for index, (data, key) in enumerate(coded.pictures):
            pts = first_pts + index * STEP
            due = at + index * STEP_NS + self._random.randrange(4 * NS_PER_MS)
            line = Stored(at=arrive(due), pts=pts, dts=pts, duration=STEP, base=BASE, key=key)
            taken.append((due, Taken(data, line)))
        for index, data in enumerate(sounds):
            offset = index * UNIT * 90_000 // RATE_HZ
            due = at + (index + 1) * UNIT * NS_PER_S // RATE_HZ + self._random.randrange(4_000_000)
            pts = first_pts + offset
            line = Stored(at=arrive(due), sound=True, pts=pts, dts=pts, base=BASE, key=True)
            taken.append((due, Taken(data, line)))
        taken.sort(key=lambda pair: (pair[1].line.at, pair[0]))  # a burst keeps its order
        self.events += [event for _, event in taken]


def make_burst() -> Script:
    script, coded, (sounds, audio) = Script(1), draw(120), sing(4)
    script.open(0, coded, audio)
    held = range(NS_PER_S, 3 * NS_PER_S)
    script.add(coded, sounds, arrive=lambda due: 3 * NS_PER_S if due in held else due)
    return script


def make_stall() -> Script:
    script, (sounds, audio) = Script(2), sing(1.5)
    before, after = draw(45), draw(45, first=135)
    script.open(0, before, audio)
    script.add(before, sounds)
    script.tell(5 * NS_PER_S // 2, "stalled")
    script.add(after, sounds, at=9 * NS_PER_S // 2, first_pts=135 * STEP)
    end = next(i for i, event in enumerate(script.events) if is_picture(event, 135 * STEP))
    script.events.insert(end, Happened(at=9 * NS_PER_S // 2, state="live"))
    return script


def is_picture(event: Event, pts: int) -> bool:
    return isinstance(event, Taken) and not event.line.sound and event.line.pts == pts


def make_restart() -> Script:
    script, (sounds, audio) = Script(3), sing(1.5)
    before = draw(45, profile="main")
    after = draw(60, first=90, profile="baseline", preset="ultrafast", crf="33")
    assert before.extradata != after.extradata
    script.open(0, before, audio)
    script.add(before, sounds, first_pts=900_000)
    script.tell(3 * NS_PER_S // 2 + 50 * NS_PER_MS, "lost")
    script.tell(5 * NS_PER_S // 2, "connecting")
    script.open(3 * NS_PER_S - 40 * NS_PER_MS, after, audio)
    script.add(after, sounds, at=3 * NS_PER_S)
    return script


def make_wrap() -> Script:
    script, coded, (sounds, audio) = Script(4), draw(90), sing(3)
    script.open(0, coded, audio)
    whole = 1 << 33
    script.add(coded, sounds, first_pts=whole - 45 * STEP)
    script.events = [change_stamps(event, lambda pts, _: pts % whole) for event in script.events]
    return script


def make_size() -> Script:
    script = Script(5)
    large, small = draw(45), draw(45, first=45, size=(240, 136))
    script.open(0, large)
    script.add(large)
    script.add(small, at=45 * STEP_NS, first_pts=45 * STEP)
    return script


def make_rotation() -> Script:
    script, coded = Script(6), draw(60)
    # H.264 D.1.27: not cancelled, no flips, a quarter of 65536, for this picture, no extension.
    bits = "0" + "00" + f"{16384:016b}" + "1" + "0" + "1" + "00"
    body = int(bits, 2).to_bytes(len(bits) // 8, "big")
    sei = START + bytes((_SEI, 47, len(body))) + body + b"\x80"
    coded.pictures = [(b"".join(put_before_slice(data, sei)), key) for data, key in coded.pictures]
    script.open(0, coded)
    script.add(coded)
    return script


def put_before_slice(data: bytes, extra: bytes) -> list[bytes]:
    """Return the pieces of `data` with `extra` before its first slice."""
    units = split(data)
    place = next(i for i, unit in enumerate(units) if unit[0] & 31 in _SLICES)
    pieces = [START + unit for unit in units]
    return [*pieces[:place], extra, *pieces[place:]]


def make_missing() -> Script:
    script, coded = Script(7), draw(90)
    script.open(0, coded)
    script.add(coded)
    script.events = [
        change_stamps(event, lambda pts, index: None if index < 3 or index % 7 == 0 else pts)
        for event in script.events
    ]
    return script


def make_noise() -> Script:
    """Return three seconds; between 0.5 s and 1.4 s each fifth packet is damaged or missing."""
    script, coded, noise = Script(8), draw(90), random.Random(8)
    script.open(0, coded)
    script.add(coded)
    events: list[Event] = []
    number = -1
    for event in script.events:
        number += isinstance(event, Taken)
        if not isinstance(event, Taken) or number in (24, 25):
            events += [event] if number not in (24, 25) else []
            continue
        if number == 26:
            events.append(Gap(at=event.line.at, packets=2))
        is_hit = number in range(15, 42, 5)
        events.append(damage(event, noise, marked=number % 2 == 0) if is_hit else event)
    script.events = events
    return script


def make_overload() -> Script:
    script, coded = Script(9), draw(360, crf="36")
    script.open(0, coded)
    script.add(coded)
    return script


def damage(taken: Taken, noise: random.Random, *, marked: bool) -> Taken:
    """Return a packet with some wrong bytes in its middle."""
    data = bytearray(taken.data)
    for _ in range(max(len(data) // 20, 4)):
        data[noise.randrange(min(12, len(data) - 1), len(data))] = noise.randrange(1, 256)
    line = taken.line
    return Taken(bytes(data), change(line, corrupt=marked))


def change(line: Stored, **fields: Any) -> Stored:
    """Return `line` with other `fields`."""
    return msgspec.structs.replace(line, **fields)


def change_stamps(event: Event, move: Callable[[int, int], int | None]) -> Event:
    """Return `event` with stamps that `move` makes of a packet's and its place in its stream."""
    if not isinstance(event, Taken) or event.line.pts is None:
        return event
    pts = move(event.line.pts, event.line.pts // STEP)
    return Taken(event.data, change(event.line, pts=pts, dts=pts))


MAKERS: dict[str, Callable[[], Script]] = {
    "burst": make_burst,
    "stall": make_stall,
    "restart": make_restart,
    "wrap": make_wrap,
    "size": make_size,
    "rotation": make_rotation,
    "missing": make_missing,
    "noise": make_noise,
    "overload": make_overload,
}


def make(name: str, folder: Path) -> Path:
    """Write one recording; return where."""
    script = MAKERS[name]()
    path = folder / f"{name}.mkv"
    about = About(
        f"golden:{name}",
        "2026-11-30T00:00:00+00:00",
        f"livefuse {__version__}",
        uuid.uuid5(uuid.NAMESPACE_OID, name).bytes,
    )
    write_events(script.events, path, about, overwrite=True)
    return path


def main() -> None:
    """Make all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    folder.mkdir(parents=True, exist_ok=True)
    for name in MAKERS:
        path = make(name, folder)
        sidecar = path.with_name(f"{path.name}.jsonl")
        print(f"{path}  {path.stat().st_size + sidecar.stat().st_size} bytes")


if __name__ == "__main__":
    main()
