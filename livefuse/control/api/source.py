"""The face that a running job shows: another one, while the stream goes on (C17)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from livefuse.control.api.body import MAX_PICTURED_BYTES, answer, read_bytes, read_json
from livefuse.control.api.caller import get_caller, is_large_enough
from livefuse.control.api.context import get_api
from livefuse.control.api.views import FaceChoice, FaceView
from livefuse.control.changes import change_token
from livefuse.errors import ConsentError, JobCapacityError
from livefuse.safety.intern import decode_picture, is_inline_picture
from livefuse.safety.picture import MAX_PICTURE_BYTES
from livefuse.safety.records import AVATAR_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiohttp import web

    from livefuse.control.api.context import Api

_MAX_UPLOADS: Final = 4
PICTURE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})


async def set_source_face(request: web.Request) -> web.Response:
    """Show another face: one that is there, or a picture that comes with its consent."""
    api = get_api(request)
    job_id = api.get_job(request).job_id
    if request.content_type in PICTURE_TYPES:
        face_id = await _take_picture(api, request, job_id)
    else:
        face_id = await _take_choice(api, request, job_id)
    patch = {"source_face": face_id}
    await api.run("patch", lambda: change_token(api.manager, job_id, patch))
    return answer(create_face_view(face_id, request.query.get("name", "")))


async def _take_choice(api: Api, request: web.Request, job_id: str) -> str:
    """Return the id of the face that JSON names, or holds as a picture."""
    choice = await read_json(request, FaceChoice, MAX_PICTURED_BYTES)
    if is_inline_picture(choice.face):
        consent = _read_consent(request)
        return await _intern(api, job_id, lambda: decode_picture(choice.face), consent)
    find = api.manager.audit.tell_unknown(job_id, api.manager.worker.faces.resolve)
    return await api.run("face", lambda: find(choice.face))


async def _take_picture(api: Api, request: web.Request, job_id: str) -> str:
    """Return the id of the face in the picture that comes."""
    consent = _read_consent(request)
    with hold_upload(api):
        picture = await read_bytes(request, PICTURE_TYPES, MAX_PICTURE_BYTES)
        return await _intern(api, job_id, lambda: picture, consent)


def _read_consent(request: web.Request) -> tuple[str, str]:
    """Return the consent that comes with a picture, and a name for the face.

    Whom a consent is believed is the operator's business: else whoever may stream could undo what
    the person in the picture took back.
    """
    consent, name = request.query.get("consent", ""), request.query.get("name", "")
    if (consent or name) and not is_large_enough(get_caller(request), "operator"):
        raise ConsentError(
            "only an operator takes in a picture with its consent",
            hint="ask one to enroll it and name it here, or show an avatar",
        )
    return consent, name


async def _intern(
    api: Api, job_id: str, read: Callable[[], bytes], consent: tuple[str, str]
) -> str:
    """Return the id of the face in the picture that `read` gives, with its consent and name."""
    worker, audit = api.manager.worker, api.manager.audit

    def take() -> str:
        with audit.note_refusal(job_id, "source face"):
            return worker.take_picture(read(), *consent)

    return await api.run("enroll", take)


@contextlib.contextmanager
def hold_upload(api: Api) -> Iterator[None]:
    """Keep a place for a picture that comes: few at a time, each is held whole.

    Raises:
        JobCapacityError: all places are taken.
    """
    if api.uploads >= _MAX_UPLOADS:
        raise JobCapacityError(f"{_MAX_UPLOADS} pictures are coming in", hint="try again soon")
    api.uploads += 1
    try:
        yield
    finally:
        api.uploads -= 1


def create_face_view(face_id: str, name: str) -> FaceView:
    """Return a face as it is listed."""
    if face_id.startswith(AVATAR_PREFIX):
        return FaceView(face_id, face_id.removeprefix(AVATAR_PREFIX), "drawn")
    return FaceView(face_id, name or face_id, "person")
