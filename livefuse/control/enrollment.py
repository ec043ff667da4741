"""What the command line says of an enrollment: its terms, a live match, and how it is shown."""

from __future__ import annotations

import getpass
import random
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.errors import ConfigError, RefusedError
from livefuse.redact import redact_url
from livefuse.safety.actor import get_actor
from livefuse.safety.consent import Terms, parse_consent
from livefuse.safety.evidence import MAX_EVIDENCE_BYTES, describe_evidence
from livefuse.safety.picture import read_picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from livefuse.safety.records import FaceRecord
    from livefuse.workers.face_desk import FaceDesk


FILMS: Final = frozenset({"file", "demo", "test", "replay"})
"""Kinds of sources that answer nobody: whoever tries often enough has one in the right order."""


class LiveWish(NamedTuple):
    """How a person is to be looked at: by which camera, and whether it mirrors."""

    source: str
    mirrored: bool = False


def create_terms(
    jobs: Sequence[str], evidence: Path | None, *, forget_picture: bool = False
) -> Terms:
    """Return the terms of a consent as the command line says them; the caller enrolls it.

    Raises:
        ConfigError: the file of evidence cannot be read.
        ConsentError: it is empty or too large.
    """
    kept = None
    if evidence is not None:
        try:
            with evidence.open("rb") as file:
                data = file.read(MAX_EVIDENCE_BYTES + 1)
        except OSError as error:
            reason = error.strerror or "unreadable"
            raise ConfigError(
                f"cannot read the evidence {evidence} ({reason})", hint="check its path"
            ) from None
        kept = describe_evidence(data, evidence.name)
    return Terms(
        jobs=tuple(jobs),
        evidence=kept,
        enrolled_by=f"cli:{_get_user()}",
        forget_picture=forget_picture,
    )


def match_live(desk: FaceDesk, picture: bytes, consent: str, terms: Terms, wish: LiveWish) -> Terms:
    """Have the person before the camera show that they are the one in the picture.

    Return `terms` with that as evidence. What can be refused without them is refused first; a match
    that fails is in the audit log.

    Raises:
        ConfigError: there is other evidence already, or what is looked at is no camera.
        LivefuseError: as `FaceDesk.enroll` and `run_live_match`.
    """
    from livefuse.control.live_session import run_live_match  # noqa: PLC0415 - loads FFmpeg
    from livefuse.ingest import get_kind  # noqa: PLC0415 - as above

    if get_kind(wish.source) in FILMS:
        raise ConfigError(
            f"{redact_url(wish.source)} is no camera: nobody in it can be asked for anything",
            hint="write --from camera: or the address of a camera",
        )
    if terms.evidence is not None:
        raise ConfigError(
            "--live and --evidence are two kinds of evidence", hint="leave one of them out"
        )
    parse_consent(consent, desk.clock.epoch_s(), terms)
    looks = desk.reader.embed_looks(read_picture(picture))
    try:
        evidence = run_live_match(
            desk, wish.source, looks, rng=create_rng(), mirrored=wish.mirrored
        )
    except RefusedError as error:
        desk.audit.append("refusal.live", who=get_actor(), facts={"reason": error.message})
        raise
    return msgspec.structs.replace(terms, evidence=evidence)


def create_rng() -> random.Random:
    """Return a source of orders that nobody can foretell."""
    return random.SystemRandom()


def describe_face(record: FaceRecord, now_epoch_s: float) -> Iterator[str]:
    """Yield lines that tell all of a record."""
    consent, evidence = record.consent, record.consent.evidence
    state = record.get_state(now_epoch_s)
    yield f"{record.face_id}  {record.name or '-'}  {state}"
    yield f"who        {consent.who}"
    yield f"purpose    {consent.scope}"
    yield f"jobs       {', '.join(consent.jobs) or 'all'}"
    yield f"until      {consent.until}" + (f", revoked {record.revoked}" if record.revoked else "")
    if evidence is None:
        yield "evidence   none but the words"
    elif evidence.kind == "live":
        yield f"evidence   live match ({evidence.name}), SHA-256 {evidence.sha256}"
    else:
        name = f"{evidence.name}, {evidence.size_bytes} bytes"
        yield f"evidence   {name}, SHA-256 {evidence.sha256}"
    yield f"enrolled   {record.created} by {consent.enrolled_by or 'nobody known'}"
    yield f"consent    SHA-256 {record.consent_sha256}"
    kept = "kept" if record.has_picture and state != "revoked" else "not kept"
    yield f"picture    SHA-256 {record.picture_sha256}, {kept}"
    for entry in record.history:
        yield f"before     {entry}"


def _get_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "nobody known"
