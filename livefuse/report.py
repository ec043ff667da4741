"""The figures of a job, put together when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from livefuse.clock import NS_PER_S
from livefuse.redact import redact_url
from livefuse.telemetry import Statistics

if TYPE_CHECKING:
    from livefuse.intake import Entrance
    from livefuse.loading import Loading
    from livefuse.publish.fanout import FanOut
    from livefuse.spec import JobSpec
    from livefuse.token import Token
    from livefuse.watchdog import Restarts


class Report:
    """Knows where a job's figures are; for any thread. `loading`: the last pipeline's."""

    def __init__(
        self, job_id: str, spec: JobSpec, entrance: Entrance, fanout: FanOut, restarts: Restarts
    ) -> None:
        self.loading: Loading | None = None
        self._job_id = job_id
        self._spec = spec
        self._entrance = entrance
        self._fanout = fanout
        self._restarts = restarts
        self._telemetry = entrance.telemetry

    def collect(self, state: str, token: Token) -> Statistics:
        """Return the figures of now."""
        telemetry, entrance = self._telemetry, self._entrance
        stages, media = entrance.stages, entrance.media
        networks = self.loading.describe_networks() if self.loading is not None else {}
        return Statistics(
            job=self._job_id,
            state=state,
            source=redact_url(self._spec.source),
            seconds=round((telemetry.clock.now_ns() - telemetry.started_ns) / NS_PER_S, 3),
            frames_in=entrance.frames,
            frames_out=telemetry.latency.count,
            fps_in=telemetry.frames_in.per_s(),
            fps_out=telemetry.frames_out.per_s(),
            dropped=telemetry.dropped(),
            counts=telemetry.counts(),
            faces=stages.faces if stages is not None else 0,
            latency=telemetry.latency.overall(),
            latency_recent=telemetry.latency.recent(),
            steps={name: step.overall() for name, step in telemetry.steps.copy().items()},
            bottleneck=telemetry.bottleneck(),
            outputs=[msgspec.to_builtins(status) for status in self._fanout.statuses()],
            notes=[*(media.notes if media is not None else ()), *networks.get("notes", ())],
            media=self._describe_media(),
            token=msgspec.to_builtins(token),
            rung=load.rung_name if (load := stages and stages.load) else "",
            networks=networks,
        )

    def _describe_media(self) -> dict[str, Any]:
        """Return what the input is and how it is coded."""
        media, stages = self._entrance.media, self._entrance.stages
        if media is None:
            return {}
        return {
            "size": f"{media.width}x{media.height}",
            "fps": round(media.fps, 3),
            "decoder": media.decoder,
            "encoder": stages.encoder.name if stages is not None else "",
            "audio": media.audio.codec if media.audio is not None else "none",
            "mode": self._entrance.mode,
        }
