"""Sections about what is done to faces, in the order of the operations."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from livefuse.config.values import AboveZero, Amount, Colour, NonNegative, Positive, Share, Threads


class PipelineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the operations share the processor."""

    execution_threads: Threads = 2
    while_loading: Literal["blur", "slate", "pass"] = "blur"
    loading_patience_ms: NonNegative = 3000
    memory_limit_mb: NonNegative = 0


class DetectConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Finding faces."""

    model: str = "centerface"
    input_long_side: Positive = 384
    light_input_long_side: Positive = 224
    every_n: Positive = 3
    full_every_n: Positive = 30
    threads: Threads = 1
    every_frame_input_long_side: Positive = 640
    every_frame_light_input_long_side: Positive = 320
    every_frame_every_n: Positive = 10
    every_frame_threads: Threads = 2
    min_score: Share = 0.5
    keep_score: Share = 0.3
    rotations: bool = False


class TrackConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Following faces between detections."""

    hold_frames: NonNegative = 15
    change_level: Amount = 18.0
    smooth_min_cutoff_hz: AboveZero = 1.5
    smooth_beta: Amount = 6.0


class AlignConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Landmarks."""

    model: str = "facemesh_attention_478"
    extra: tuple[str, ...] = ()
    threads: Threads = 1
    smooth_min_cutoff_hz: AboveZero = 1.0
    smooth_beta: Amount = 60.0


class IdentifyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is who."""

    model: str = "dlib_resnet_128"
    threads: Threads = 1
    every_n: Positive = 15
    min_similarity: Share = 0.0


class BackgroundConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is behind the person."""

    model: str = "selfie_seg_256"
    threads: Threads = 1
    every_n: Positive = 2
    style: Literal["blur", "picture"] = "blur"
    strength: Share = 0.6
    picture: str = ""


class SwapConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another face in its place."""

    model: str = "mesh"
    threads: Threads = 1
    grain: bool = True
    match_colour: bool = True


class PuppetConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A portrait that moves as the wearer does."""

    expression: Share = 0.7
    turn: Share = 0.8


class BeautifyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Skin, shape, make-up."""

    looks: str = ""
    ramp_ms: NonNegative = 300


class EnhanceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sharper faces."""

    model: str = "classical"
    threads: Threads = 1
    amount: Share = 0.5
    every_n: Positive = 1
    fidelity: Share = 0.7


class MaskConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an operation may paint."""

    shape: Literal["ellipse", "hull"] = "hull"
    occluder: str = ""
    parser: str = ""
    threads: Threads = 1


class BlurConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Covering faces."""

    style: Literal["gaussian", "mosaic", "solid", "picture"] = "gaussian"
    strength: Share = 0.8
    size: Annotated[float, msgspec.Meta(ge=0.5, le=4.0)] = 1.35
    feather: Share = 0.15
    colour: Colour = "#202020"
    picture: str = ""
