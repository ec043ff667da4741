"""What goes over the API, as types: the OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from livefuse.config import Mode
from livefuse.publish.base import OutputStatus
from livefuse.telemetry import Statistics
from livefuse.token import Parameters

JobPhase = Literal[
    "draft",
    "submitted",
    "queued",
    "loading",
    "running",
    "degraded",
    "stopping",
    "stopped",
    "failed",
]
"""One worker knows draft, submitted, running, stopped and failed; the daemon knows all."""
MAX_INLINE_CHARACTERS: Final = 2 << 20
"""Of a picture within JSON, some 1.5 MB as a file; a larger one is sent as it is."""
SourceFace = Annotated[str, msgspec.Meta(max_length=MAX_INLINE_CHARACTERS)]
JobId = Annotated[str, msgspec.Meta(pattern=r"^(?![^\n]*\n)[A-Za-z0-9_-]{1,64}$")]
"""The first bracket: in Python `$` is before a line break at the end too."""
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Provider = Annotated[str, msgspec.Meta(max_length=64)]


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job is to do. `operations` left out: what `source_face` and `look` need.

    `source_face` may also be `sha256:` and the digest of an enrolled picture, or that picture as a
    data URL or base64, 2 MiB of it at most, which is exchanged for the face's id at once. Of the
    `execution_providers` (CUDAExecutionProvider, ...) the first one counts.
    """

    source: Url
    targets: Annotated[tuple[Url, ...], msgspec.Meta(max_length=16)] = ()
    operations: Annotated[tuple[str, ...], msgspec.Meta(max_length=16)] | None = None
    source_face: SourceFace = ""
    look: Annotated[str, msgspec.Meta(max_length=64)] = ""
    parameters: Parameters = Parameters()
    mode: Mode = "auto"
    execution_threads: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    execution_providers: Annotated[tuple[Provider, ...], msgspec.Meta(max_length=8)] = ()


class NewJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to be made: a draft; with `spec` submitted; with `start` started too.

    With `queue` it waits for its turn where a daemon has no room for it now.
    """

    id: JobId | None = None
    spec: Spec | None = None
    start: bool = False
    queue: bool = False


class SpecView(msgspec.Struct, frozen=True, kw_only=True):
    """A spec as it may be shown: no passwords, no stream keys."""

    source: str
    targets: tuple[str, ...]
    operations: tuple[str, ...]
    source_face: str
    parameters: Parameters
    mode: str


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """Where the parts of a job are, as paths."""

    flv: str
    ts: str
    snapshot: str
    whip: str
    whep: str
    events: str


def create_links(job_id: str) -> Links:
    """Return where the parts of the job of that id are."""
    base = f"/v1/jobs/{job_id}"
    return Links(
        flv=f"{base}/live.flv",
        ts=f"{base}/live.ts",
        snapshot=f"{base}/snapshot.jpg",
        whip=f"{base}/whip",
        whep=f"{base}/whep",
        events=f"{base}/events",
    )


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a job's state: when, in seconds since 1970, from what to what, and why."""

    epoch_s: float
    before: JobPhase
    after: JobPhase
    reason: str = ""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `error` is the sentence it failed with, `error_type` the error's name in errors.py.

    The daemon also says why it is in its state, since when, in seconds since 1970, how many workers
    it has lost since it was started, and, of a single job, its last 64 changes of state, the oldest
    first. `error_type` and `statistics` of a job that has ended outlive the daemon.
    """

    id: str
    state: JobPhase
    error: str
    spec: SpecView | None
    statistics: Statistics | None
    links: Links
    error_type: str = ""
    reason: str = ""
    since_epoch_s: float = 0.0
    restarts: int = 0
    changes: tuple[JobChange, ...] = ()


class JobList(msgspec.Struct, frozen=True):
    """All jobs of this worker."""

    jobs: list[JobView]


class OutputList(msgspec.Struct, frozen=True):
    """The outputs of a job."""

    outputs: list[OutputStatus]


class NewOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target to be added."""

    url: Url


class FaceChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A face that is there: `avatar:NAME`, an enrolled one's id or name.

    Or a picture as a data URL or base64, 2 MiB of it at most, under the rules of one that is sent
    as it is: it is enrolled already, or an operator sends its `consent` along.
    """

    face: Annotated[SourceFace, msgspec.Meta(min_length=1)]


class FaceView(msgspec.Struct, frozen=True):
    """A face that can be shown."""

    id: str
    name: str
    kind: Literal["drawn", "person"]


class OperationView(msgspec.Struct, frozen=True):
    """An operation: what must stand before it."""

    name: str
    needs: list[str]


class AmountView(msgspec.Struct, frozen=True, kw_only=True):
    """One amount of beautify; a colour has no range."""

    name: str
    chinese: str
    kind: str
    text: str
    low: float
    high: float
    default: float | str


class LookView(msgspec.Struct, frozen=True):
    """A look and the amounts it is made of."""

    name: str
    title: str
    chinese: str
    text: str
    parameters: dict[str, float | str]


class LookList(msgspec.Struct, frozen=True):
    """The looks that are there."""

    looks: list[LookView]


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """A network: what for, whether its file is here, and whether its licence was accepted."""

    name: str
    task: str
    family: str
    state: Literal["embedded", "present", "missing"]
    licence: str
    is_restricted: bool
    is_accepted: bool


class ModelList(msgspec.Struct, frozen=True):
    """The networks that are known."""

    models: list[ModelView]


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be asked for. `parameters` is a JSON Schema."""

    version: str
    operations: list[OperationView]
    parameters: dict[str, Any]
    beautify: list[AmountView]
    looks: list[LookView]
    faces: list[FaceView]


class RecordingView(msgspec.Struct, frozen=True):
    """Where the last seconds of the input have been written."""

    path: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Problem details (RFC 9457): what happened, and in `hint` what to do.

    `type` ends with the error's name in errors.py where there is one.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    hint: str = ""
