"""The section about load: the ladder of savings that the governor goes down and up."""

from __future__ import annotations

import msgspec

from livefuse.config.values import Positive, Share


class Rung(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named set of savings. Shares are the part of the frames that a step works on anew."""

    name: str
    detect_every: Positive = 3
    light_looks: bool = False
    enhance_share: Share = 1.0
    swap_share: Share = 1.0
    cover_only: bool = False


LADDER = (
    Rung(name="everything"),
    Rung(name="enhance_half", enhance_share=0.5),
    Rung(name="enhance_off", enhance_share=0.0),
    Rung(name="detect_5th", enhance_share=0.0, detect_every=5, light_looks=True),
    Rung(name="swap_half", enhance_share=0.0, detect_every=5, light_looks=True, swap_share=0.5),
    Rung(
        name="cover_only",
        enhance_share=0.0,
        detect_every=5,
        light_looks=True,
        swap_share=0.0,
        cover_only=True,
    ),
)


class GovernorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pipeline lightens itself under load and comes back."""

    enabled: bool = True
    rungs: tuple[Rung, ...] = LADDER
