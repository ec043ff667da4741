"""The child process that signs one recording: `python -m livefuse.publish.c2pa_child`.

It reads a `Task` from standard input, writes a signed copy beside the recording, puts it in its
place and tells on standard output what went wrong, if anything. The library is native code: what it
does to memory or processor stays in here. The key comes through the pipe: arguments can be read by
other users (C76). It ends by itself though its parent has gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import stat
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from livefuse.whole_file import lock_file

_NICE: Final = 10
_SPARE_BYTES: Final = 1 << 20
_MAX_REASON: Final = 200
SOURCE_TYPE: Final = (
    "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
)
MARK_LABEL: Final = "org.livefuse.mark"


class Task(msgspec.Struct, frozen=True):
    """What to sign with what. `copy` is the name of the file that takes the recording's place."""

    path: str
    copy: str
    chain: str
    key: str
    job: str
    install_id: str
    version: str
    limit_s: int

    def __repr__(self) -> str:
        return f"Task({self.path})"


def build_manifest(task: Task) -> dict[str, Any]:
    """Return what the recording is to say of itself (C2PA, section "Actions")."""
    action = {"action": "c2pa.created", "digitalSourceType": SOURCE_TYPE}
    return {
        "claim_generator_info": [{"name": "livefuse", "version": task.version}],
        "title": Path(task.path).name,
        "assertions": [
            {"label": "c2pa.actions", "data": {"actions": [action]}},
            {"label": MARK_LABEL, "data": {"job": task.job, "install": task.install_id}},
        ],
    }


def sign(task: Task) -> str:
    """Sign and return "", or why it was not done; the recording is whole either way."""
    copy = Path(task.copy)
    try:
        with Path(task.path).open("rb") as file:
            before = os.fstat(file.fileno())
            if not lock_file(file):
                return "another livefuse is writing there"
            room = os.statvfs(copy.parent)
            if room.f_bavail * room.f_frsize < before.st_size + _SPARE_BYTES:
                return "the disk has no room for a signed copy"
            _write_signed(task)
            _put_in_place(task, before)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told and nothing is lost
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return reason.splitlines()[0][:_MAX_REASON]
    finally:
        with contextlib.suppress(OSError):
            copy.unlink(missing_ok=True)
    return ""


def _write_signed(task: Task) -> None:
    import c2pa  # noqa: PLC0415 - that it cannot be loaded is an answer too

    signer = c2pa.Signer.from_info(
        c2pa.C2paSignerInfo(c2pa.C2paSigningAlg.ES256, task.chain.encode(), task.key.encode(), None)
    )
    with c2pa.Builder(json.dumps(build_manifest(task))) as builder:
        builder.sign_file(task.path, task.copy, signer)


def _put_in_place(task: Task, before: os.stat_result) -> None:
    """Let the copy be the recording, unless that has become another file meanwhile."""
    copy = Path(task.copy)
    copy.chmod(stat.S_IMODE(before.st_mode))
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    now = Path(task.path).stat()
    if (now.st_ino, now.st_dev, now.st_size) != (before.st_ino, before.st_dev, before.st_size):
        raise OSError(0, "it has become another file meanwhile")
    copy.replace(task.path)


def main() -> int:
    """Do the task that comes on standard input."""
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Task)
    signal.alarm(task.limit_s)
    os.nice(_NICE)
    with contextlib.suppress(OSError):  # Linux: memory that runs out is to be ours
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the key is in memory
    reason = sign(task)
    with contextlib.suppress(OSError):  # the parent may have gone
        os.write(sys.stdout.fileno(), reason.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
