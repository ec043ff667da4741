"""A job of the daemon as it may be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.control.api.caller import sees_urls
from livefuse.control.api.hiding import hide_statistics, hide_text
from livefuse.control.api.views import JobView, Links, SpecView
from livefuse.control.daemon.life import ACTIVE
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from livefuse.control.api.caller import Caller
    from livefuse.control.api.views import Spec
    from livefuse.control.daemon.lives import Life
    from livefuse.control.daemon.records import JobRecord
    from livefuse.telemetry import Statistics


def create_view(
    caller: Caller, record: JobRecord, life: Life, figures: Statistics | None
) -> JobView:
    """Return what `caller` is told of a job."""
    reason = (life.reason if record.phase in ACTIVE else "") or record.reason
    base = f"/v1/jobs/{record.job_id}"
    return JobView(
        id=record.job_id,
        state=record.phase,
        error=hide_text(caller, record.reason) if record.phase == "failed" else "",
        error_type=life.error_type if record.phase == "failed" else "",
        spec=_create_spec_view(caller, record.spec) if record.spec is not None else None,
        statistics=hide_statistics(caller, figures),
        links=Links(
            flv=f"{base}/live.flv",
            ts=f"{base}/live.ts",
            snapshot=f"{base}/snapshot.jpg",
            whip=f"{base}/whip",
            whep=f"{base}/whep",
            events=f"{base}/events",
        ),
        reason=hide_text(caller, reason),
        since_epoch_s=record.since_epoch_s,
        restarts=record.restarts,
    )


def _create_spec_view(caller: Caller, spec: Spec) -> SpecView:
    is_told = sees_urls(caller)
    return SpecView(
        source=redact_url(spec.source) if is_told else "",
        targets=tuple(map(redact_url, spec.targets)) if is_told else (),
        operations=spec.operations or (),
        source_face=spec.source_face,
        parameters=spec.parameters,
        mode=spec.mode,
    )
