"""A rung that goes and comes, and a swap that comes out of its cover, frame by frame."""

from __future__ import annotations

import msgspec

from livefuse.config import LADDER, Config, load_config
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.enhance_step import create_enhance_step
from livefuse.pipeline.state import FrameState, StepContext
from livefuse.pipeline.swap_step import create_swap_step
from livefuse.token import create_token
from tests.faces import create_services, read_bgr, read_picture, share_sessions
from tests.sheets._beauty import copy_frame, crop_face, get_face
from tests.sheets._grid import lay_out


def _create_context(config):
    services = create_services({"self": read_picture()})
    return StepContext(config, share_sessions(), True, InlineExecutor(), services)


def _enhance(frame, face):
    context = _create_context(load_config(settings=("enhance.amount=1.0",)))
    step = create_enhance_step(context)
    token = create_token(("detect", "align", "enhance"), now_epoch_s=0.0)
    for index, rung in enumerate([0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0]):
        state = FrameState(copy_frame(frame), token, faces=[face], rung=LADDER[rung])
        step.run(state)
        yield f"{index} {LADDER[rung].name}: {state.did}", state.frame


def _swap(frame, face, source):
    step = create_swap_step(_create_context(Config()))
    token = create_token(("detect", "align", "swap"), now_epoch_s=0.0)
    token = msgspec.structs.replace(token, source_face=source)
    step.prepare(token)
    for index in range(6):
        hidden = index < 2
        shown = type(face)(face.track) if hidden else face
        state = FrameState(copy_frame(frame), token, faces=[shown])
        step.run(state)
        yield f"{index} {source}: {state.did}", state.frame


def draw_sheet():
    frame, face = get_face(250)
    rows = [*_enhance(frame, face), *_swap(frame, face, "avatar:fox"), *_swap(frame, face, "self")]
    return lay_out([(text, crop_face(read_bgr(f), face, 0.5)) for text, f in rows], 6, 300)
