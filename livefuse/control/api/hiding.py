"""What a caller is not told of a job: a viewer sees that it runs, not from where to where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.control.api.caller import sees_urls
from livefuse.control.api.views import SpecView
from livefuse.redact import HIDDEN, redact_url

if TYPE_CHECKING:
    from livefuse.control.api.caller import Caller
    from livefuse.control.api.views import Spec
    from livefuse.job.spec import JobSpec
    from livefuse.telemetry import Statistics

_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_PLACES: Final = frozenset({"url", "watch", "error"})


def hide_text(caller: Caller, text: str) -> str:
    """Return `text` without the addresses in it that `caller` is not told."""
    return text if sees_urls(caller) else _ADDRESS.sub(HIDDEN, text)


def hide_statistics(caller: Caller, figures: Statistics | None) -> Statistics | None:
    """Return `figures` without where the pictures come from and go to."""
    if figures is None or sees_urls(caller):
        return figures
    return msgspec.structs.replace(
        figures,
        source="",
        outputs=[_hide_output(output) for output in figures.outputs],
        notes=[hide_text(caller, note) for note in figures.notes],
        health_reason=hide_text(caller, figures.health_reason),
    )


def _hide_output(output: dict[str, Any]) -> dict[str, Any]:
    return {name: "" if name in _PLACES else value for name, value in output.items()}


def create_spec_view(caller: Caller, spec: Spec | JobSpec) -> SpecView:
    """Return a spec as `caller` may see it; passwords and stream keys nobody may."""
    is_told = sees_urls(caller)
    return SpecView(
        source=redact_url(spec.source) if is_told else "",
        targets=tuple(map(redact_url, spec.targets)) if is_told else (),
        operations=spec.operations or (),
        source_face=spec.source_face,
        parameters=spec.parameters,
        mode=spec.mode,
    )
