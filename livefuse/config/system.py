"""Sections about the machine and the people: models, marks, the private store."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Network files."""

    folder: str = ""
    packs: str = ""
    mirror: str = ""
    offline: bool = False
    providers: Literal["auto", "cpu", "cuda", "tensorrt"] = "auto"


class MarkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How generated pictures are marked; that they are cannot be switched off."""

    corner: Literal["top-left", "top-right", "bottom-left", "bottom-right"] = "bottom-right"
    height: Annotated[float, msgspec.Meta(ge=0.05, le=0.2)] = 0.05


class SafetyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where faces, consents and keys are kept."""

    folder: str = ""
