"""The outputs of a job, and how its recordings are signed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.publish.fanout import FanOut
from livefuse.publish.recording_signer import RecordingSigner

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.job.spec import JobSpec
    from livefuse.telemetry import Telemetry


def create_outputs(
    spec: JobSpec, config: Config, telemetry: Telemetry, request_keyframe: Callable[[], None]
) -> FanOut:
    """Return the outputs that `spec` names, checked, with nothing opened yet.

    Raises:
        ConfigError: a target cannot be understood, or could not be signed and must be.
        PublishError: a file cannot be written.
    """
    clock = telemetry.clock

    def load_chain() -> tuple[str, str]:
        from livefuse.safety.c2pa_chain import load_c2pa_chain  # noqa: PLC0415 - 0.1 s to load X.509

        chain = load_c2pa_chain(config.safety, clock.epoch_s())
        return chain.chain, chain.key

    return FanOut.create(
        spec.targets,
        config,
        clock,
        request_keyframe,
        lossless=spec.choose_mode() == "every_frame",
        signer=RecordingSigner(config.mark, load_chain, telemetry.count),
    )
