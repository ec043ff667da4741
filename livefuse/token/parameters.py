"""How the operations are done: the `parameters` of a token."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from livefuse.token.frozen import FrozenDict
from livefuse.token.operations import LEAST_BLEND

Selector = Literal["all", "largest", "left-most", "id", "reference"]
FailurePolicy = Literal["skip", "hold", "alert"]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Amount = Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]
Word = Annotated[str, msgspec.Meta(max_length=64)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the operations are done.

    `face_size` is the side in px of the square a face is worked on in, for families that leave it
    open (those that come along and all networks know their own). `blend_ratio` is how much of
    the new face shows: 0 is the input, 1 the full swap. `enable_gfpgan`: whether `enhance` may use
    a network. `select` picks the faces that swap, puppet, beautify and enhance work on: by size,
    by place, by track id or by the gallery's names, both listed in `people`. `blur_whom` auto: the
    others when a swap has the chosen ones, else the chosen.

    `on_failure`: what becomes of a frame that a step failed on. skip: it is covered (or left
    out) and the next one goes on; hold: the last good picture is shown instead; alert: as skip,
    and the failure is told. A job that hides faces never shows the frame itself, and later
    frames are not touched by any of them. `cover_all`: nothing of the picture is to be seen for
    now. `beautify` are amounts, -1 to 1, or colours, by parameter name.
    """

    face_size: Annotated[int, msgspec.Meta(ge=16, le=2048)] = 256
    blend_ratio: Share = 0.85
    enable_gfpgan: bool = True
    device_mode: Literal["auto", "light", "cpu", "cuda", "tensorrt"] = "auto"
    select: Selector = "all"
    people: Annotated[tuple[Name, ...], msgspec.Meta(max_length=32)] = ()
    blur_whom: Literal["auto", "all", "chosen", "others"] = "auto"
    on_failure: FailurePolicy = "skip"
    cover_all: bool = False
    beautify: Annotated[dict[Name, Amount | Word], msgspec.Meta(max_length=64)] = msgspec.field(
        default_factory=FrozenDict
    )

    @property
    def shows_source(self) -> bool:
        """Whether anything of the source face is shown: what is generated leaves marked."""
        return self.blend_ratio >= LEAST_BLEND

    def __post_init__(self) -> None:
        """Freeze what could be changed behind the back of other threads."""
        if type(self.beautify) is not FrozenDict:
            msgspec.structs.force_setattr(self, "beautify", FrozenDict(self.beautify))
