"""The section about load: the ladder of savings that the governor goes down and up."""

from __future__ import annotations

from typing import Annotated

import msgspec

from livefuse.config.values import Positive, Share


class Rung(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named set of savings.

    `detect_every`: faces are looked for in one of so many frames at most; `light_looks`: never in
    the larger picture. `enhance_share` is the part of the frames that are enhanced anew,
    `align_share` that have their landmarks looked for, `frame_share` that are shown at all.
    """

    name: str
    detect_every: Positive = 1
    light_looks: bool = False
    enhance_share: Share = 1.0
    align_share: Share = 1.0
    frame_share: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0
    cover_only: bool = False


LADDER = (
    Rung(name="everything"),
    Rung(name="enhance_half", enhance_share=0.5),
    Rung(name="enhance_off", enhance_share=0.0),
    Rung(name="detect_5th", enhance_share=0.0, detect_every=5, light_looks=True),
    Rung(name="align_half", enhance_share=0.0, detect_every=5, light_looks=True, align_share=0.5),
    Rung(
        name="frames_half",
        enhance_share=0.0,
        detect_every=5,
        light_looks=True,
        align_share=0.5,
        frame_share=0.5,
    ),
    Rung(
        name="cover_only",
        enhance_share=0.0,
        detect_every=5,
        light_looks=True,
        cover_only=True,
    ),
)


class GovernorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pipeline lightens itself under load and comes back.

    `watch_machine` lets memory, heat and power press too: above `memory_share` of what
    the container may have, or when `memory_stall_share` of the time somebody waits for memory;
    above `gpu_memory_share` of the graphics card's; when cores slow themselves down, or are slowed
    down while running (`heed_heat`); below `battery_share` of a battery that is in use.
    """

    enabled: bool = True
    watch_machine: bool = True
    memory_share: Share = 0.92
    memory_stall_share: Share = 0.2
    gpu_memory_share: Share = 0.95
    heed_heat: bool = True
    battery_share: Share = 0.2
    rungs: Annotated[tuple[Rung, ...], msgspec.Meta(min_length=1)] = LADDER
