"""align_overhead_ms, identify_overhead_ms: what a face costs there outside the networks (720p)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.config import Config
from livefuse.pipeline.steps import Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.bench._answered import answer_again, tell
from tests.bench.harness import Result, bench
from tests.bench.overhead import ThreadClock, run_frames
from tests.faces import create_face_frame, create_services, read_bgr

if TYPE_CHECKING:
    from pathlib import Path

_FACE_PX = 250
_FRAMES = 60


@bench("align_overhead_ms", "identify_overhead_ms")
def measure_analysis(folder: Path) -> dict[str, Result]:
    """The mean over frames with one face of 250 px that moves a little."""
    del folder
    sessions = SessionCache(Config().models)
    pipeline = Pipeline(Config(), sessions, ThreadClock(), create_services())
    token = create_token(("detect", "align", "identify"), now_epoch_s=0.0)
    pipeline.prepare(token)
    pictures = [
        read_bgr(create_face_frame(_FACE_PX, place=(0.5 + 0.002 * x, 0.5 + 0.003 * y)))
        for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    answer_again(*sessions._networks.values())
    spent = run_frames(pipeline, token, pictures, _FRAMES)
    pipeline.close()
    return {
        "align_overhead_ms": Result(spent["align"], "ms", "<= 1.5", tell(spent)),
        "identify_overhead_ms": Result(spent["identify"], "ms", "<= 0.6", tell(spent)),
    }
