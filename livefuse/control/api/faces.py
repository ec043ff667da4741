"""Enrolled faces and their consents, and faces that are denied: for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from aiohttp import web

from livefuse.control.api.body import answer, read_bytes
from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.source import PICTURE_TYPES, hold_upload
from livefuse.errors import ConfigError, ConsentError, JobNotFoundError, RefusedError
from livefuse.safety.actor import get_actor
from livefuse.safety.consent import Terms
from livefuse.safety.deny_shelf import DeniedFace
from livefuse.safety.evidence import Evidence, clean_name
from livefuse.safety.picture import MAX_PICTURE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from livefuse.control.api.context import Api
    from livefuse.safety.records import FaceRecord
    from livefuse.workers.face_desk import FaceDesk

ENROLL_QUERY: Final = (
    "consent", "name", "jobs", "forget_picture", "evidence_sha256", "evidence_name",
    "evidence_bytes",
)  # fmt: skip
_FLAGS: Final = {"": False, "false": False, "true": True}
_MAX_NAME: Final = 64


class EnrolledFace(msgspec.Struct, frozen=True, kw_only=True):
    """A face and its consent. `state`: what holds now; `jobs`: patterns of ids, none: all."""

    id: str
    name: str
    state: Literal["valid", "expired", "revoked"]
    who: str
    purpose: str
    jobs: tuple[str, ...]
    until: str
    revoked: str
    evidence: Evidence | None
    enrolled: str
    enrolled_by: str
    has_picture: bool
    consent_sha256: str
    picture_sha256: str
    history: tuple[str, ...]


class FaceList(msgspec.Struct, frozen=True):
    """The enrolled faces, the oldest first; `damaged`: ids whose records cannot be read."""

    faces: list[EnrolledFace]
    damaged: list[str]


class DeniedList(msgspec.Struct, frozen=True):
    """The faces that no source picture may show, the oldest first."""

    denied: list[DeniedFace]


async def list_faces(request: web.Request) -> web.Response:
    """List the enrolled faces with their consents, whatever their state."""
    api = get_api(request)
    desk = _get_desk(api)

    def collect() -> FaceList:
        now_s = desk.clock.epoch_s()
        faces = [create_view(record, now_s) for record in desk.store.list_records()]
        return FaceList(faces, list(desk.store.list_damaged()))

    return answer(await api.run("faces", collect))


async def show_face(request: web.Request) -> web.Response:
    """Show an enrolled face, by id or name."""
    return await _answer_one(request, lambda desk, face: desk.store.get_record(face))


async def enroll_face(request: web.Request) -> web.Response:
    """Enroll the one face of the picture that comes, with `?consent=who, what for, until when`.

    `jobs`: patterns of the ids of jobs that may show it, with commas. `evidence_sha256` is the hash
    of what shows that the person agreed (`evidence_name`, `evidence_bytes`); the file itself is not
    sent. `forget_picture=true` keeps only what recognises the face.
    """
    api = get_api(request)
    desk, query = _get_desk(api), request.query
    terms = read_terms(query)
    with hold_upload(api):
        picture = await read_bytes(request, PICTURE_TYPES, MAX_PICTURE_BYTES)
        consent, name = query.get("consent", ""), query.get("name", "")
        record = await api.run("enroll", lambda: desk.enroll(picture, consent, name, terms))
    view = create_view(record, desk.clock.epoch_s())
    return answer(view, 201, {"Location": f"/v1/faces/{record.face_id}"})


async def revoke_face(request: web.Request) -> web.Response:
    """Take a consent back: what is kept of the face is deleted, running jobs cover it."""
    return await _answer_one(request, lambda desk, face: desk.store.revoke(face))


async def remove_face(request: web.Request) -> web.Response:
    """Forget a face wholly, its record too."""
    api = get_api(request)
    desk, face = _get_desk(api), request.match_info["face"]
    await api.run("faces", lambda: desk.store.remove(_find(desk, face)))
    return web.Response(status=204, headers=NO_STORE)


async def list_denied(request: web.Request) -> web.Response:
    """List the faces that are denied."""
    api = get_api(request)
    desk = _get_desk(api)
    records = await api.run("denied", desk.store.denied.list_records)
    return answer(DeniedList(list(records)))


async def deny_face(request: web.Request) -> web.Response:
    """Refuse the one face of the picture that comes, from now on; running jobs cover it."""
    api = get_api(request)
    desk, name = _get_desk(api), request.query.get("name", "")
    if not name.strip():
        raise ConfigError("a denied face has a name", hint="send ?name=")
    with hold_upload(api):
        picture = await read_bytes(request, PICTURE_TYPES, MAX_PICTURE_BYTES)
        denied = await api.run("deny", lambda: desk.deny(picture, name))
    return answer(denied, 201, {"Location": f"/v1/denied-faces/{denied.denied_id}"})


async def undeny_face(request: web.Request) -> web.Response:
    """Deny a face no more, by id or name."""
    api = get_api(request)
    desk, face = _get_desk(api), request.match_info["face"]

    def undeny() -> None:
        try:
            desk.store.denied.shelf.find(face)
        except RefusedError as error:
            raise JobNotFoundError(error.message, hint="GET /v1/denied-faces") from None
        desk.store.undeny(face)

    await api.run("deny", undeny)
    return web.Response(status=204, headers=NO_STORE)


def create_view(record: FaceRecord, now_epoch_s: float) -> EnrolledFace:
    """Return all of a record that operators are shown."""
    consent, state = record.consent, record.get_state(now_epoch_s)
    return EnrolledFace(
        id=record.face_id,
        name=record.name,
        state=state,
        who=consent.who,
        purpose=consent.scope,
        jobs=consent.jobs,
        until=consent.until,
        revoked=record.revoked,
        evidence=consent.evidence,
        enrolled=record.created,
        enrolled_by=consent.enrolled_by,
        has_picture=record.has_picture and state != "revoked",
        consent_sha256=record.consent_sha256,
        picture_sha256=record.picture_sha256,
        history=record.history,
    )


def read_terms(query: Mapping[str, str]) -> Terms:
    """Return the terms of a consent as a query says them, on behalf of whoever acts now.

    Raises:
        ConfigError: a value does not fit.
    """
    forget = query.get("forget_picture", "")
    if forget not in _FLAGS:
        raise ConfigError(
            f"forget_picture cannot be {forget[:_MAX_NAME]!r}", hint="write true or false"
        )
    jobs = tuple(job.strip() for job in query.get("jobs", "").split(",") if job.strip())
    return Terms(
        jobs=jobs,
        evidence=_read_evidence(query),
        enrolled_by=get_actor(),
        forget_picture=_FLAGS[forget],
    )


def _read_evidence(query: Mapping[str, str]) -> Evidence | None:
    digest = query.get("evidence_sha256", "").strip().lower()
    if not digest:
        return None
    values = {
        "kind": "file",
        "sha256": digest,
        "name": clean_name(query.get("evidence_name", "")),
        "size_bytes": query.get("evidence_bytes", "0"),
    }
    try:
        return msgspec.convert(values, Evidence, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"the evidence cannot be used ({error})", hint="send its SHA-256 in hexadecimal"
        ) from None


async def _answer_one(
    request: web.Request, act: Callable[[FaceDesk, str], FaceRecord]
) -> web.Response:
    """Do something with the face that the path names; answer with what it is by then."""
    api = get_api(request)
    desk, face = _get_desk(api), request.match_info["face"]
    record = await api.run("faces", lambda: act(desk, _find(desk, face)))
    return answer(create_view(record, desk.clock.epoch_s()))


def _find(desk: FaceDesk, face: str) -> str:
    """Return the id of an enrolled face by id or name.

    Raises:
        JobNotFoundError: nobody of that name is enrolled.
    """
    try:
        return desk.store.resolve(face)
    except ConsentError as error:
        raise JobNotFoundError(error.message, hint="GET /v1/faces") from None


def _get_desk(api: Api) -> FaceDesk:
    return api.manager.worker.desk
