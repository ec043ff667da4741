"""What changes a running job: done by its worker, kept here, and then answered.

So a job that goes on in another worker goes on as it was last told to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.control.api.body import JSON_TYPES, read_bytes, read_json
from livefuse.control.api.views import NewOutput
from livefuse.control.daemon.context import get_daemon
from livefuse.control.daemon.forward import forward
from livefuse.control.daemon.records import apply_token
from livefuse.control.daemon.worker import explain_loss
from livefuse.errors import JobError
from livefuse.publish.base import OutputStatus
from livefuse.token import MAX_TOKEN_BYTES, Token

if TYPE_CHECKING:
    from aiohttp import web

    from livefuse.control.api.views import Spec
    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.lives import Life

MAX_TARGETS: Final = 16
"""As many as a spec may name."""
_OK, _CREATED, _DONE = 200, 201, 204


async def pass_on(request: web.Request) -> web.StreamResponse:
    """Have the job's worker answer; nothing that has to be kept comes of it."""
    _, worker = await get_daemon(request).find_worker(request.match_info["id"])
    return await forward(request, worker)


async def ask_any(request: web.Request) -> web.StreamResponse:
    """Have any worker answer what all know alike."""
    return await forward(request, await get_daemon(request).pool.borrow())


async def change_token(request: web.Request) -> web.StreamResponse:
    """Change what the job does, whole, from its next frame on."""
    daemon = get_daemon(request)
    life, worker = await daemon.find_worker(request.match_info["id"])
    patch = await read_bytes(request, JSON_TYPES, 2 * MAX_TOKEN_BYTES)

    async def change() -> web.StreamResponse:
        generation = life.generation
        response = await forward(request, worker, patch)
        if response.status == _OK:
            await _keep_token(daemon, life, generation)
        return response

    return await daemon.complete(change())


async def set_source_face(request: web.Request) -> web.StreamResponse:
    """Show another face."""
    daemon = get_daemon(request)
    life, worker = await daemon.find_worker(request.match_info["id"])

    async def change() -> web.StreamResponse:
        generation = life.generation
        response = await forward(request, worker)
        if response.status == _OK:
            await _keep_token(daemon, life, generation)
        return response

    return await daemon.complete(change())


async def add_output(request: web.Request) -> web.StreamResponse:
    """Add a target to a running job."""
    daemon = get_daemon(request)
    life, worker = await daemon.find_worker(request.match_info["id"])
    wish = await read_json(request, NewOutput)
    if len(life.outputs) >= MAX_TARGETS:
        raise JobError(f"the job has {MAX_TARGETS} outputs", hint="remove one first")

    async def add() -> web.StreamResponse:
        generation = life.generation
        response = await forward(request, worker, msgspec.json.encode(wish))
        if response.status == _CREATED and isinstance(
            data := getattr(response, "body", b""), bytes
        ):
            status = msgspec.json.decode(data, type=OutputStatus)
            url = wish.url.strip()
            await _keep_targets(daemon, life, generation, life.outputs | {status.id: url})
        return response

    return await daemon.complete(add())


async def remove_output(request: web.Request) -> web.StreamResponse:
    """Close a target of a running job."""
    daemon = get_daemon(request)
    life, worker = await daemon.find_worker(request.match_info["id"])

    async def remove() -> web.StreamResponse:
        generation, gone = life.generation, request.match_info["output"]
        response = await forward(request, worker, b"")
        if response.status == _DONE:
            left = {name: url for name, url in life.outputs.items() if gone not in (name, url)}
            await _keep_targets(daemon, life, generation, left)
        return response

    return await daemon.complete(remove())


async def _keep_token(daemon: Daemon, life: Life, generation: int) -> None:
    """Keep what the job's token says now: with our change come those that were made meanwhile."""
    async with life.changing:
        worker = life.worker
        if worker is None or life.generation != generation:
            raise explain_loss()  # the next one may have begun without it
        reply = await worker.ask("GET", f"/v1/jobs/{life.job_id}/token")
        token = msgspec.json.decode(reply.data, type=Token)
        await _keep(daemon, life, apply_token(_get_spec(daemon, life), token))


async def _keep_targets(
    daemon: Daemon, life: Life, generation: int, outputs: dict[str, str]
) -> None:
    async with life.changing:
        if life.generation != generation:
            raise explain_loss()
        spec = msgspec.structs.replace(_get_spec(daemon, life), targets=tuple(outputs.values()))
        await _keep(daemon, life, spec)
        life.outputs = outputs


async def _keep(daemon: Daemon, life: Life, spec: Spec) -> None:
    if spec != daemon.book.get(life.job_id).spec:
        await daemon.book.change_spec(life.job_id, spec)


def _get_spec(daemon: Daemon, life: Life) -> Spec:
    spec = daemon.book.get(life.job_id).spec
    if spec is None:
        raise JobError(f"the job {life.job_id} has nothing to do yet", hint="submit a spec")
    return spec
