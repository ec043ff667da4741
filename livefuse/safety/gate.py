"""The consent gate: which enrolled faces there are, and whether a job may show one now."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.config import RefuseConfig
from livefuse.errors import ConsentError, RefusedError
from livefuse.face import KnownFace, SourceFace
from livefuse.safety.actor import get_actor
from livefuse.safety.deny import DenyList
from livefuse.safety.deny_watch import DenyWatch
from livefuse.safety.embeddings import FaceEmbedder, get_looks
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.keys import KeyRing
from livefuse.safety.picture import read_picture
from livefuse.safety.records import AVATAR_PREFIX, FaceRecord, is_same_name
from livefuse.safety.refusals import Refusals
from livefuse.safety.shelf import Shelf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livefuse.clock import Clock
    from livefuse.config import SafetyConfig
    from livefuse.safety.audit import AuditLog

    Signature = tuple[int, int, int]

DIGEST_PREFIX: Final = "sha256:"
_LIST_HINT: Final = "run  livefuse faces list"


class FaceGate:
    """Enrolled faces, read only. Methods may be called from any thread, and by several processes.

    A face whose consent does not hold, or that is denied, is never given out. `job_id` is whose
    job is to show it: a consent may be for some jobs only; without it nobody asks for which. All
    but `is_allowed` read files whole.
    """

    def __init__(
        self,
        config: SafetyConfig,
        clock: Clock,
        *,
        embedder: FaceEmbedder | None = None,
        refuse: RefuseConfig | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Take the folder; nothing is read or made yet. Without `embedder` there is no gallery.

        Refusals are written into `audit`, if there is one.
        """
        self.folder = find_safety_folder(config)
        self.keys = KeyRing(self.folder, clock)
        self.audit = audit
        refuse = refuse or RefuseConfig()
        self.refusals = Refusals(refuse, audit)
        self.denied = DenyList(self.folder, self.keys, clock, embedder, refuse.face_margin)
        self._config = config
        self._shelf = Shelf(self.folder, self.keys)
        self._clock = clock
        self._embedder = embedder
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[Signature, FaceRecord | None]] = {}
        self._vectors: dict[str, tuple[Signature, NDArray[np.float32] | None]] = {}
        self._watch = DenyWatch(self.denied, self._get_looks, audit)

    # Who is there.

    def list_records(self) -> tuple[FaceRecord, ...]:
        """Return the records that can be read, the oldest first."""
        return self._shelf.list_records()

    def list_damaged(self) -> tuple[str, ...]:
        """Return the ids whose records cannot be read."""
        good = {record.face_id for record in self._shelf.list_records()}
        return tuple(face_id for face_id in self._shelf.list_ids() if face_id not in good)

    def get_record(self, name_or_id: str) -> FaceRecord:
        """Return the record of a face by id or name, whatever its state.

        Raises:
            ConsentError: nobody of that name is enrolled, or the record cannot be read.
        """
        return self._shelf.read_record(self.resolve(name_or_id))

    def find_by_digest(self, picture_sha256: str) -> FaceRecord | None:
        """Return the record of the picture with this SHA-256, whatever its state."""
        records = self._shelf.list_records()
        return next((r for r in records if r.picture_sha256 == picture_sha256), None)

    def resolve(self, name_or_id: str) -> str:
        """Return the face id that a person wrote as an id or a name; `avatar:NAME` is itself.

        `sha256:HEX` is the digest of an enrolled picture's file: how a program elsewhere names it.

        Raises:
            ConsentError: nobody of that name is enrolled.
        """
        wanted = name_or_id.strip()
        if wanted.startswith(AVATAR_PREFIX) or self._shelf.has(wanted):
            return wanted
        if wanted.startswith(DIGEST_PREFIX):
            found = self.find_by_digest(wanted.removeprefix(DIGEST_PREFIX))
            if found is not None:
                return found.face_id
        for record in self._shelf.list_records():
            if record.name and is_same_name(record.name, wanted):
                return record.face_id
        looks_like_file = "/" in wanted or "." in wanted
        raise ConsentError(
            f"no face {wanted[:64]!r} is enrolled",
            hint='a picture is enrolled first:  livefuse faces enroll PICTURE --consent "..."'
            if looks_like_file
            else f"{_LIST_HINT}  or  livefuse faces enroll",
        )

    # May it be shown?

    def check_consent(self, face_id: str, job_id: str | None = None) -> FaceRecord:
        """Return the record of a face that may be shown now, by the job `job_id`.

        Raises:
            ConsentError: it is not enrolled, its consent has expired, was revoked, or is not for
                this job.
        """
        record = self._shelf.read_record(face_id)
        if record.get_state(self._clock.epoch_s()) != "valid":
            when = f"was revoked on {record.revoked[:10]}"
            if not record.revoked:
                when = f"ended on {record.consent.until[:10]}"
            raise ConsentError(
                f"the consent for {record.person} {when}",
                hint="ask for a new one and enroll the picture again",
            )
        if job_id is not None and not record.consent.covers_job(job_id):
            raise ConsentError(
                f"the consent for {record.person} is for the jobs "
                f"{', '.join(record.consent.jobs)}, not for {job_id or 'one without an id'}",
                hint="give the job such an id, or ask for a consent that covers it",
            )
        return record

    def check_source(
        self, face_id: str, job_id: str | None = None, *, for_job: str = ""
    ) -> FaceRecord:
        """Return the record of a face that the job may be made from now: consent, deny list.

        `for_job`: whose job it is for, where nobody asks yet whether the consent is for that one.

        Raises:
            ConsentError: as `check_consent`.
            RefusedError: its picture shows a denied face (which is logged), or was not kept.
            AuditError: a refusal cannot be logged.
            ModelError, ConfigError: nobody can tell whether it is denied.
        """
        record = self.check_consent(face_id, job_id)
        if not record.has_picture:
            raise RefusedError(
                f"the picture of {record.person} was not kept, and a swap or puppet is made from "
                "it",
                hint="enroll it again without --forget-picture; select=reference and blur_whom "
                "know the face without it",
            )
        if self.denied.sign() is not None:
            self.check_denied(record, self._get_looks(record), job_id or for_job)
        return record

    def check_denied(
        self, record: FaceRecord, looks: NDArray[np.float32] | None, job_id: str = ""
    ) -> None:
        """Refuse a face that is denied, or of which nobody can tell; the refusal is logged.

        Raises:
            RefusedError, AuditError, ModelError, ConfigError: as `check_source`.
        """
        self._watch.check(record, looks, who=get_actor(), job_id=job_id)

    def is_allowed(self, face_id: str, job_id: str | None = None) -> bool:
        """Say whether the face may be shown now; cheap enough to be asked every second.

        The record is read anew only when its file changed. When in doubt: no.
        """
        if face_id.startswith(AVATAR_PREFIX):
            return True
        signature, record = self._see(face_id)
        if signature is None or record is None:
            return False
        if record.get_state(self._clock.epoch_s()) != "valid":
            return False
        if job_id is not None and not record.consent.covers_job(job_id):
            return False
        return self._watch.is_allowed(record, signature, job_id or "")

    def explain_refusal(self, face_id: str, job_id: str | None = None) -> str:
        """Return in words why `is_allowed` says no, without naming anybody; empty when it does not.

        As cheap as that: for whoever watches a job, who need not know whose face it was.
        """
        if self.is_allowed(face_id, job_id):
            return ""
        _, record = self._see(face_id)
        if record is None:
            return "the source face was removed: pictures are covered"
        if day := record.revoked[:10]:
            return f"the consent for the source face was revoked on {day}: pictures are covered"
        if record.get_state(self._clock.epoch_s()) != "valid":
            day = record.consent.until[:10]
            return f"the consent for the source face ended on {day}: pictures are covered"
        if job_id is not None and not record.consent.covers_job(job_id):
            return "the consent for the source face is not for this job: pictures are covered"
        return "the source face is on the deny list or cannot be compared: pictures are covered"

    def load_source(self, face_id: str, job_id: str | None = None) -> SourceFace:
        """Return the enrolled face `face_id`, its long side at most 2048 px.

        Raises:
            ConsentError: it is not enrolled, its consent does not hold, or its picture does not
                open.
            RefusedError, AuditError, ModelError, ConfigError: as `check_source`; or the keys
                cannot be read.
        """
        record = self.check_source(face_id, job_id)
        data = self._shelf.open_part(record, "picture")
        return SourceFace(face_id, read_picture(data), record.picture_sha256, "photo")

    def list_gallery(self) -> tuple[KnownFace, ...]:
        """Return the people whose consent holds, by name (without one: by id).

        Asked again it is cheap, but for who is new. What another network made of a face is made
        again from its picture: never call this for a frame. A face that cannot be read is left
        out.
        """
        if self._embedder is None:
            return ()
        now_epoch_s = self._clock.epoch_s()
        known, vectors = [], {}
        for face_id in self._shelf.list_ids():
            signature, record = self._see(face_id)
            if signature is None or record is None or record.get_state(now_epoch_s) != "valid":
                continue
            kept = self._vectors.get(face_id)
            if kept is None or kept[0] != signature:
                looks = self._get_looks(record)
                kept = signature, None if looks is None else looks[0]
            vectors[face_id] = kept
            if kept[1] is not None:
                known.append(KnownFace(record.person, kept[1]))
        self._vectors = vectors
        return tuple(known)

    def _get_looks(self, record: FaceRecord) -> NDArray[np.float32] | None:
        return get_looks(self._shelf, record, self._embedder) if self._embedder else None

    def _see(self, face_id: str) -> tuple[Signature | None, FaceRecord | None]:
        """Return the record and its file's signature; read anew only when the file changed."""
        signature = self._shelf.sign_record(face_id)
        with self._lock:
            if signature is None:
                self._seen.pop(face_id, None)
                return None, None
            seen = self._seen.get(face_id)
            if seen is None or seen[0] != signature:
                try:
                    seen = signature, self._shelf.read_record(face_id)
                except ConsentError:
                    seen = signature, None
                self._seen[face_id] = seen
            return seen
