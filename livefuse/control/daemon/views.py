"""A job of the daemon as it may be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from livefuse.control.api.hiding import create_spec_view, hide_statistics, hide_text
from livefuse.control.api.views import JobView, create_links
from livefuse.control.daemon.life import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.control.api.caller import Caller
    from livefuse.control.api.views import JobChange
    from livefuse.control.daemon.lives import Life
    from livefuse.control.daemon.records import JobRecord
    from livefuse.telemetry import Statistics


def create_view(
    caller: Caller,
    record: JobRecord,
    life: Life,
    figures: Statistics | None,
    changes: Sequence[JobChange] = (),
) -> JobView:
    """Return what `caller` is told of a job, with its last `changes`."""
    reason = (life.reason if record.phase in ACTIVE else "") or record.reason
    return JobView(
        id=record.job_id,
        state=record.phase,
        error=hide_text(caller, record.reason) if record.phase == "failed" else "",
        error_type=record.ending.error_type if record.phase == "failed" else "",
        spec=create_spec_view(caller, record.spec) if record.spec is not None else None,
        statistics=hide_statistics(caller, figures),
        links=create_links(record.job_id),
        reason=hide_text(caller, reason),
        since_epoch_s=record.since_epoch_s,
        restarts=record.restarts,
        changes=tuple(
            msgspec.structs.replace(change, reason=hide_text(caller, change.reason))
            for change in changes
        ),
    )
