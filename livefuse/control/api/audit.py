"""The newest records of the audit log, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.clock import SystemClock
from livefuse.control.api.body import answer
from livefuse.control.api.context import get_api
from livefuse.control.audit_query import find_audit, parse_since
from livefuse.errors import ConfigError
from livefuse.safety.audit_read import MAX_RECORDS, AuditQuery, read_audit
from livefuse.safety.audit_records import AuditRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from livefuse.config import Config

_DEFAULT_LIMIT: Final = 100
_MAX_BYTES: Final = 1 << 20
_LONGEST: Final = 64


class AuditList(msgspec.Struct, frozen=True):
    """Records, the oldest first. `is_cut`: older ones fit too, and were left out."""

    records: list[AuditRecord]
    is_cut: bool


async def show_audit(request: web.Request) -> web.Response:
    """Show who did what: `?job=`, `?event=`, `?since=` (a time, or 2h), `?limit=` up to 999.

    At most 1 MiB of records is given, the newest.
    """
    api, query = get_api(request), dict(request.query)
    return answer(await api.run("audit", lambda: collect_audit(api.config, query)))


def collect_audit(config: Config, query: Mapping[str, str]) -> AuditList:
    """Return the records that `query` asks for. Reads files.

    Raises:
        ConfigError: something in `query` cannot be understood.
        AuditError: the log cannot be read.
    """
    clock = SystemClock()
    limit = _read_limit(query.get("limit", ""))
    since = query.get("since", "")
    begin_s = parse_since(since, clock.epoch_s()) if since else 0.0
    folder, _ = find_audit(config, clock)
    job, event = query.get("job", "")[:_LONGEST], query.get("event", "")[:_LONGEST]
    wanted = AuditQuery(job=job, event=event, since_epoch_s=begin_s)
    records = read_audit(folder, wanted, limit + 1)
    kept = _keep_newest(records, limit)
    return AuditList(kept, is_cut=len(kept) < len(records))


def _read_limit(text: str) -> int:
    if not text:
        return _DEFAULT_LIMIT
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_RECORDS))
    if not is_number or not 1 <= int(text) < MAX_RECORDS:
        raise ConfigError(
            f"limit cannot be {text[:20]!r}", hint=f"write a number from 1 to {MAX_RECORDS - 1}"
        )
    return int(text)


def _keep_newest(records: list[AuditRecord], limit: int) -> list[AuditRecord]:
    """Return the newest of `records`, the oldest first, as many as may be sent."""
    kept: list[AuditRecord] = []
    left_bytes = _MAX_BYTES
    for record in reversed(records[-limit:]):
        left_bytes -= len(record.encode()) + 1
        if left_bytes < 0:
            break
        kept.append(record)
    return kept[::-1]
