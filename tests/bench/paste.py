"""paste_slope, swap_insightface, enhance_step_ms: what the swap and the restorer cost outside their
networks.

Stand-ins of the real names and shapes give their first answer again, on both sides, so that what is
counted (CPU time of the thread, medians, in turns in one process) is reading the crop, feeding,
masks and pasting back. insightface starts from BGR pixels, livefuse from the decoder's planes.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from livefuse.config import Config
from livefuse.frame import create_frame
from livefuse.geometry import Similarity
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.paste import Paster
from livefuse.pipeline.enhance_step import create_enhance_step
from livefuse.pipeline.landmarks import get_landmarks
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.pipeline.swap_step import create_swap_step
from livefuse.pipeline.templates import fit_template
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.bench._answered import (
    Answered,
    answer_again,
    list_ratios,
    measure_in_turns,
    take_medians,
    take_quiet,
    tell,
)
from tests.bench.harness import Result, bench, median
from tests.faces import analyse, create_face_frame, create_services, read_bgr, read_picture
from tests.standins import install_standins

if TYPE_CHECKING:
    from pathlib import Path

_ROUNDS = 16
_SHARES = (0.1, 0.2, 0.4, 0.6, 0.8)
_MODELS = ("inswapper_128", "gfpgan_1.4", "w600k_r50")
# Face widths (px) at which the network's crop is 320 px of a 720p frame, 480 of a 1080p one.
_CROPS = {"720": (320, (1280, 720)), "1080": (480, (1920, 1080))}


def create_context(sessions: SessionCache, **models: str) -> StepContext:
    """Return a context with sections' models set, and a source called "me"."""
    config = Config()
    for section, model in models.items():
        changed = msgspec.structs.replace(getattr(config, section), model=model)
        config = msgspec.structs.replace(config, **{section: changed})
    config = msgspec.structs.replace(config, models=sessions._config)
    services = create_services({"me": np.ascontiguousarray(read_picture()[:300, 60:400])})
    return StepContext(config, sessions, False, InlineExecutor(), services)


def create_scene(template: str, crop_px: int, size: tuple[int, int]) -> Any:
    """Return a frame whose face fills `template`'s crop of `crop_px` px, and the face."""
    face_px = crop_px / 2.0
    for _ in range(2):
        points = get_landmarks(analyse(create_face_frame(face_px, size)).faces[0], 5)
        assert points is not None
        face_px *= crop_px * fit_template(points, template, 512).scale / 512
    frame = create_face_frame(face_px, size)
    return frame, analyse(frame).faces[0]


def create_state(frame: Any, face: Any) -> FrameState:
    token = create_token(("detect", "align", "swap", "enhance"), now_epoch_s=0.0)
    return FrameState(frame, msgspec.structs.replace(token, source_face="me"), faces=[face])


def _create_theirs(sessions: SessionCache) -> Any:
    import contextlib
    import io

    import onnxruntime
    from insightface.model_zoo.inswapper import INSwapper

    assert sessions._registry is not None
    path = str(sessions._registry.find_path("inswapper_128"))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its shape
        return INSwapper(path, Answered(session))


@bench("swap_insightface")
def measure_swap(folder: Path) -> dict[str, Result]:
    """The swap step against `INSwapper.get(paste_back=True)`."""
    sessions = SessionCache(install_standins(folder / "models", *_MODELS))
    step = create_swap_step(create_context(sessions, swap="inswapper_128"))
    theirs = _create_theirs(sessions)
    detail: dict[str, Any] = {}
    ratios: dict[str, float] = {}
    for name, (crop_px, size) in _CROPS.items():
        frame, face = create_scene("arcface_128", crop_px, size)
        state = create_state(frame, face)
        step.prepare(state.token)
        answer_again(sessions.get("inswapper_128"))
        bgr = read_bgr(frame)
        target = SimpleNamespace(kps=get_landmarks(face, 5))
        source = SimpleNamespace(normed_embedding=np.full(512, 512**-0.5, np.float32))
        took = measure_in_turns(
            {
                f"livefuse_{name}": partial(step.run, state),
                f"insightface_{name}": partial(theirs.get, bgr, target, source, paste_back=True),
            },
            _ROUNDS // 2,
        )
        assert face.is_replaced
        ratios[name] = median(list_ratios(took[f"insightface_{name}"], took[f"livefuse_{name}"]))
        detail |= tell(take_medians(took))
        detail[f"ratio_{name}"] = round(ratios[name], 1)
    return {"swap_insightface": Result(min(ratios.values()), "ratio", ">= 20", detail)}


@bench("enhance_step_ms")
def measure_enhance(folder: Path) -> dict[str, Result]:
    """A restorer's step, its crop 512 px, on 720p; the crop shows 320 px of the frame."""
    sessions = SessionCache(install_standins(folder / "models", *_MODELS))
    step = create_enhance_step(create_context(sessions, enhance="gfpgan_1.4"))
    answer_again(sessions.get("gfpgan_1.4"))
    states = {"crop_320": create_state(*create_scene("ffhq_512", 320, (1280, 720)))}
    states["crop_480"] = create_state(*create_scene("ffhq_512", 480, (1280, 720)))
    took = measure_in_turns(
        {name: partial(step.run, state) for name, state in states.items()}, 2 * _ROUNDS
    )
    quiet = take_quiet(took["crop_320"])
    return {"enhance_step_ms": Result(quiet, "ms", "<= 5", tell(take_medians(took), "median_ms"))}


@bench("paste_slope")
def measure_slope(folder: Path) -> dict[str, Result]:
    """How the cost of pasting grows with the area pasted: the exponent of a fit, 1 is linear."""
    del folder
    width, height = 1920, 1080
    frame = create_frame(width, height)
    paster, size = Paster(), 512
    mask = np.full((size, size), 255, np.uint8)
    mask[[0, -1]] = 0
    mask[:, [0, -1]] = 0
    crop = np.random.default_rng(1).random((3, size, size), np.float32)
    works, areas = {}, {}
    for share in _SHARES:
        area = share * width * height
        # Higher than the frame from 56 % on: what counts is what lies within.
        side = area**0.5 if area**0.5 <= height else area / height
        scale = size / side
        to_crop = Similarity(
            scale, 0.0, size / 2 - scale * width / 2, size / 2 - scale * height / 2
        )
        name = f"{share * 100:.0f}%"
        areas[name] = area
        works[name] = partial(paster.paste, frame, crop, to_crop, mask)
    found = take_medians(measure_in_turns(works, _ROUNDS))
    logs = np.log([areas[name] for name in found]), np.log(list(found.values()))
    exponent = float(np.polyfit(*logs, 1)[0])
    return {"paste_slope": Result(exponent, "power", "<= 1.1", tell(found))}
