"""The token of a running job: read, and changed by a merge patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.control.api.body import JSON_TYPES, answer, read_bytes
from livefuse.control.api.context import get_api
from livefuse.control.changes import change_token as change
from livefuse.control.changes import create_etag
from livefuse.token import MAX_TOKEN_BYTES

if TYPE_CHECKING:
    from aiohttp import web

_LIMIT: Final = 2 * MAX_TOKEN_BYTES


async def show_token(request: web.Request) -> web.Response:
    """Return the job's token, with its ETag."""
    token = get_api(request).get_job(request).token.get()
    return answer(token, headers={"ETag": create_etag(token)})


async def change_token(request: web.Request) -> web.Response:
    """Change what the job does, whole, from its next frame on (RFC 7396).

    Null brings a field's default back: of `parameters`, `extensions`, `source_face` and `ttl_s`,
    and of each part of `parameters`. `operations` are named, `[]` for none: null is refused.
    """
    api = get_api(request)
    job_id = api.get_managed(request).job_id
    patch = await read_bytes(request, JSON_TYPES, _LIMIT)
    etag = request.headers.get("If-Match", "")
    token = await api.run("patch", lambda: change(api.manager, job_id, patch, etag))
    return answer(token, headers={"ETag": create_etag(token)})
