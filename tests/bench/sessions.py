"""session_reuse: what a frame costs when its network is loaded anew, against a kept one (R31).

The figure is how many times dearer it is, for the face mesh; CPU time of the process, in turns.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from livefuse.config import ModelsConfig
from livefuse.runtime.session import SessionCache
from tests.bench.harness import Result, bench, median

if TYPE_CHECKING:
    from pathlib import Path

_ROUNDS = 12
_MODELS = {"facemesh_468": (1, 192, 192, 3), "centerface": (1, 3, 224, 384)}


@bench("session_reuse")
def measure_reuse(folder: Path) -> dict[str, Result]:
    detail, ratios = {}, []
    config = ModelsConfig(providers="cpu")
    kept = SessionCache(config)
    for name, shape in _MODELS.items():
        picture = np.random.default_rng(0).uniform(0, 1, shape).astype(np.float32)

        def run(sessions: SessionCache, name: str = name, picture: np.ndarray = picture) -> float:
            started = time.process_time()
            network = sessions.get(name)
            network.run({network.input_names[0]: picture})
            return (time.process_time() - started) * 1e3

        run(kept)
        pairs = [(run(kept), run(SessionCache(config))) for _ in range(_ROUNDS)]
        once, anew = (median([pair[i] for pair in pairs]) for i in (0, 1))
        detail[name] = f"kept {once:.1f} ms, anew {anew:.1f} ms"
        ratios.append(anew / once)
    detail["sessions made for all kept runs"] = str(kept.created)
    return {"session_reuse": Result(min(ratios), "times", ">= 1.5", detail)}
