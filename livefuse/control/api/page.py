"""The page and its files: served as they lie, contacting nobody else."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from aiohttp import web

FOLDER: Final = Path(__file__).parents[1] / "web"
_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
}
# Nothing but ourselves: no other host, no inline script, in no other page's frame.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the key may stand in the address
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(self), display-capture=(self)",
}


async def show_page(request: web.Request) -> web.Response:
    """Serve the page."""
    return _serve(request, "index.html")


async def show_file(request: web.Request) -> web.Response:
    """Serve a file of the page."""
    return _serve(request, request.match_info["path"])


def _serve(request: web.Request, name: str) -> web.Response:
    path = (FOLDER / name).resolve()
    kind = _TYPES.get(path.suffix)
    if kind is None or not path.is_relative_to(FOLDER.resolve()) or not path.is_file():
        raise web.HTTPNotFound(text="there is no such page")
    data = path.read_bytes()
    etag = f'"{hashlib.blake2b(data, digest_size=9).hexdigest()}"'
    headers = {**_HEADERS, "ETag": etag}
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    charset = "utf-8" if kind.startswith("text/") or kind.endswith("json") else None
    return web.Response(body=data, content_type=kind, charset=charset, headers=headers)
