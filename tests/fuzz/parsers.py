"""Everything that reads what strangers send, fed with damaged input: read, or refused in words.

    python -m tests.fuzz.parsers --seconds 60 --seed 1      # all in turn; prints what broke

Inputs are good ones that were damaged from a seed: bytes changed, parts cut, doubled, put together
with others, numbers made huge, brackets nested. A parser may return a value or raise a
`LivefuseError` with a sentence; anything else, or half a second of it, is a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import cv2
import msgspec
import numpy as np

from livefuse.clock import ManualClock
from livefuse.config import load_config
from livefuse.control.address import parse_daemon_url
from livefuse.control.api.views import NewJob, Spec
from livefuse.control.specs import create_spec, create_spec_by_args, read_job_args
from livefuse.errors import ConsentError, LivefuseError
from livefuse.packet import Packet
from livefuse.publish.sei import SeiStamp, read_record, verify_record
from livefuse.rtc.sdp import check_publisher, check_viewer, read_offer
from livefuse.safety.consent import parse_consent
from livefuse.safety.keys import KeyRing
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks
from livefuse.safety.picture import read_picture
from livefuse.safety.seal import open_token, seal_token
from livefuse.token import create_token, parse_token, patch_token

LONGEST_S: Final = 0.5
_MIXED: Final = 0.1
OFFERS: Final = Path(__file__).parents[1] / "unit" / "rtc" / "offers"
_HUGE: Final = (b"0", b"-1", b"1e999", b"4294967296", b"9" * 40, b"NaN", b"null", b"true", b'""')
_PIECES: Final = (
    b"\x00", b"\xff\xfe", "\u202e\uff29".encode(), b"${jndi:x}", b"../" * 9, b"%s%n", b"\r\n",
)  # fmt: skip
_NESTS: Final = (b"[", b'{"a":', b"(", b"<")
_Damage = Callable[[bytes, int, int, random.Random], bytes]
_DAMAGES: Final[tuple[_Damage, ...]] = (
    lambda data, at, _end, chance: data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :],
    lambda data, at, end, _chance: data[:at] + data[end:],
    lambda data, at, end, _chance: data[:end] + data[at:],
    lambda data, at, _end, _chance: data[:at],
    lambda data, at, _end, chance: data[:at] + chance.choice(_PIECES) + data[at:],
    lambda data, at, end, chance: data[:at] + chance.choice(_HUGE) + data[end:],
    lambda data, at, _end, chance: data[:at] + chance.choice(_NESTS) * 2000 + data[at:],
    lambda data, at, end, chance: data[:at] + data[at:end] * chance.randint(2, 3000) + data[end:],
)


class Parser(NamedTuple):
    """What reads, and good input for it."""

    name: str
    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]


class Fault(NamedTuple):
    """What a parser did that it must not."""

    parser: str
    data: bytes
    what: str


def damage(data: bytes, others: tuple[bytes, ...], chance: random.Random) -> bytes:
    """Return `data` damaged in one to six places."""
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(data))
        end = min(at + chance.choice((1, 1, 2, 8, 64)), len(data))
        if chance.random() < _MIXED:
            other = chance.choice(others)
            data = data[:at] + other[chance.randint(0, len(other)) :]
        else:
            data = chance.choice(_DAMAGES)(data, at, end, chance)
    return data[: 256 * 1024]


def feed(parser: Parser, data: bytes) -> Fault | None:
    """Return the fault that `parser` shows with `data`."""
    started_s = time.thread_time()
    try:
        parser.read(data)
    except LivefuseError as error:
        if len(str(error)) < 8 or "\n" in error.message:
            return Fault(parser.name, data, f"says {str(error)!r}")
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return Fault(parser.name, data, f"{type(error).__name__}: {error}")
    spent_s = time.thread_time() - started_s
    if spent_s > LONGEST_S:
        return Fault(parser.name, data, f"takes {spent_s:.2f} s")
    return None


def run(parser: Parser, seed: int, count: int) -> list[Fault]:
    """Return the faults that `count` damaged inputs bring out."""
    chance = random.Random(f"{parser.name}/{seed}")
    found = []
    for _ in range(count):
        data = damage(chance.choice(parser.seeds), parser.seeds, chance)
        if (fault := feed(parser, data)) is not None:
            found.append(fault)
    return found


def list_parsers(folder: Path) -> list[Parser]:
    """Return all parsers; `folder` is theirs to write into."""
    ring = KeyRing(folder / "keys", ManualClock())
    token = create_token(("detect", "blur"), now_epoch_s=1.8e9)
    config = load_config()
    offers = tuple(path.read_bytes() for path in sorted(OFFERS.glob("*.sdp")))
    spec = (
        b'{"source":"rtsp://u:p@h/c","targets":["rtmp://h/a/k","a.mp4"],"operations":["detect",'
        b'"blur"],"look":"natural","parameters":{"blend_ratio":0.5,"beautify":{"smile":0.2}}}'
    )
    return [
        Parser("token", parse_token, (
            token.to_json(), b'{"request_id":"a","operations":["detect"]}',
        )),
        Parser("token patch", lambda data: patch_token(token, data), (
            b'{"operations":["detect","align","swap"],"source_face":"avatar:fox"}',
            b'{"parameters":{"blend_ratio":1,"cover_all":true,"beautify":{"smile":0.3}},"ttl_s":null}',
        )),
        Parser("sealed token", lambda data: open_token(decode(data), ring), (
            seal_token(token, ring).encode(),
        )),
        Parser("configuration file", _read_file(folder / "a.toml"), (
            (Path(__file__).parents[2] / "configs" / "livefuse.toml").read_bytes(),
            b"[http]\nport = 1\n[detect]\nevery_n = 3\n",
        )),
        Parser("configuration setting", lambda data: load_config(settings=(decode(data),)), (
            b"http.port=8090", b"hold.show=blur", b'webrtc.addresses=["127.0.0.1"]',
        )),
        Parser("offer", _read_offer, offers),
        Parser("job of the API", lambda data: _create_job(data, config), (
            spec, b'{"id":"a","spec":' + spec + b',"start":true}',
        )),
        Parser("job_args", _read_args, (
            (b'{"source_paths":["a.png"],"target_path":"rtsp://h/a","output_path":"rtmp://h/a/b",'
            b'"processors":["face_detector","face_swapper"],"execution_threads":6,'
            b'"execution_providers":["CUDAExecutionProvider"]}'),
        )),
        Parser("consent", lambda data: parse_consent(decode(data), 1.8e9), (
            b"Anna Berger, my live streams, 90d", b"A, b, 2031-02-03", "王芳，直播，30d".encode(),
        )),
        Parser("address", lambda data: parse_daemon_url(decode(data)), (
            b"http://127.0.0.1:8090/?key=abc", b"http+unix://%2Frun%2Fa/", b"https://[::1]:1/base",
        )),
        Parser("SEI record", _read_unit, _make_units()),
        Parser("picture", read_picture, _make_pictures()),
    ]  # fmt: skip


def decode(data: bytes) -> str:
    """Return text as a header or an argument would carry it."""
    return data.decode("utf-8", "surrogateescape")


def _read_file(path: Path) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        path.write_bytes(data)
        return load_config(path)

    return read


def _read_offer(data: bytes) -> None:
    offer = read_offer(data.decode("utf-8", "replace"))
    for check in (check_publisher, check_viewer):
        with contextlib.suppress(LivefuseError):
            check(offer)


def _decode_json(data: bytes, kind: type[Any]) -> Any:
    """Return what the API makes of a body; it refuses these errors itself (api/body.py)."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _create_job(data: bytes, config: Any) -> None:
    wish = _decode_json(data, NewJob)
    spec = (wish.spec if wish is not None else None) or _decode_json(data, Spec)
    if spec is not None:
        create_spec(spec, config, lambda name: name)


def _read_args(data: bytes) -> None:
    args = _decode_json(data, dict)
    if args is not None:
        create_spec_by_args(read_job_args(args), _find_nobody)


def _find_nobody(name: str) -> str:
    raise ConsentError(f"no face {name[:20]!r} is enrolled")


def _read_unit(data: bytes) -> None:
    read_record(data)
    verify_record(data, (REPLAY_KEYS.public_key,))


def _make_units() -> tuple[bytes, ...]:
    unit = b"".join(b"\0\0\0\1" + nal for nal in (b"\x67\x42\0\x1f", b"\x68\xce", b"\x65" * 900))
    packet = Packet("video", unit, 0, 0, 3000, is_keyframe=True)
    marks = JobMarks("main", REPLAY_KEYS)
    stamp = SeiStamp(marks.number, marks.keys.key_id, marks.keys.signing.sign)
    return (stamp.stamp(packet, 1.8e9).data,)


def _make_pictures() -> tuple[bytes, ...]:
    picture = np.random.default_rng(1).integers(0, 255, (24, 32, 3), np.uint8)
    return tuple(cv2.imencode(kind, picture)[1].tobytes() for kind in (".png", ".jpg", ".webp"))


def main() -> int:
    """Run them in turn until the time is over; return 1 when one broke."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.parsers")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--seed", type=int, default=1)
    wanted = options.parse_args()
    faults: list[Fault] = []
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="livefuse-parsers-") as folder:
        parsers = list_parsers(Path(folder))
        end_s, seed = time.monotonic() + wanted.seconds, wanted.seed
        while time.monotonic() < end_s:
            for parser in parsers:
                faults += run(parser, seed, 200)
                counts[parser.name] = counts.get(parser.name, 0) + 200
            seed += 1
    for name, count in counts.items():
        print(f"{name:24} {count:8} inputs, {sum(f.parser == name for f in faults)} faults")
    for fault in faults[:20]:
        print(f"{fault.parser}: {fault.what}\n    {fault.data[:300]!r}")
    print(f"seed {wanted.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
