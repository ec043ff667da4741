"""The plain page at `/`: which streams there are and how to watch them."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.telemetry import Statistics


def draw_page(jobs: Iterable[Statistics], base_url: str) -> str:
    """Return the page; all that comes from outside is escaped."""
    items = "".join(_draw_job(job, base_url) for job in jobs) or "<p>No stream is running.</p>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>livefuse</title>'
        f"<h1>livefuse</h1>{items}"
        '<p><a href="/metrics">metrics</a></p></html>'
    )


def _draw_job(job: Statistics, base_url: str) -> str:
    name, source, state = (html.escape(text) for text in (job.job, job.source, job.state))
    flv, ts = (html.escape(f"{base_url}/jobs/{job.job}/live.{kind}") for kind in ("flv", "ts"))
    return (
        f"<h2>{name}</h2><p>{source}, {state}, {job.fps_out:.1f} frames a second, "
        f"p50 {job.latency_recent.p50_ms:.1f} ms added</p>"
        f'<ul><li>OBS (media source), VLC, ffplay: <a href="{flv}">{flv}</a></li>'
        f'<li>MPEG-TS: <a href="{ts}">{ts}</a></li>'
        f'<li><a href="/jobs/{name}/status">figures</a></li></ul>'
    )
