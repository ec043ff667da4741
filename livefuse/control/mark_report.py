"""What `livefuse mark read` found: as figures, and as sentences for people."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

Names = dict[int, str]
"""Job names by their number in marks."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as marks name it: 8 hex digits, and its name where that was given with --job."""

    number: str
    name: str | None = None

    def __str__(self) -> str:
        return f"job {self.name} ({self.number})" if self.name else f"job {self.number}"


class LumaLine(msgspec.Struct, frozen=True, kw_only=True):
    """A number in the luma: whose key, how far above chance (in standard deviations), when."""

    job: Job
    key: str
    z: float
    windows: int
    first_s: float
    last_s: float
    scale: float
    is_mirrored: bool


class SeiLines(msgspec.Struct, frozen=True, kw_only=True):
    """The records of keyframes: how many of which verdict (publish/sei.py), of which jobs."""

    keyframes: int = 0
    verdicts: dict[str, int] = {}
    jobs: list[Job] = []
    installs: list[str] = []
    first_utc: str = ""
    last_utc: str = ""

    @property
    def is_found(self) -> bool:
        """Whether any keyframe has a record of any kind."""
        return any(count for verdict, count in self.verdicts.items() if verdict != "missing")


class LabelLine(msgspec.Struct, frozen=True, kw_only=True):
    """The visible label: in how many windows, and the best score (0.7 and more is a label)."""

    windows: int = 0
    score: float = 0.0
    is_mirrored: bool = False


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The signature of a file (C2PA): its state as in publish/c2pa_read.py, and whose it is."""

    state: str
    job: str = ""
    install: str = ""
    faults: list[str] = []

    @property
    def is_ours(self) -> bool:
        """Whether a livefuse signed the file as it is."""
        return self.state in ("trusted", "valid") and bool(self.job)


class MarkReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found in the first `seconds` of `source` (no secret in it)."""

    source: str
    seconds: float
    windows: int
    luma: list[LumaLine] = []
    sei: SeiLines = SeiLines()
    label: LabelLine = LabelLine()
    metadata: dict[str, str] = {}
    signature: Signature | None = None
    """None: it is nothing that could be signed, or that cannot be told here (`notes`)."""
    notes: list[str] = []

    @property
    def survived(self) -> list[str]:
        """The marks that were found."""
        found = {
            "the invisible mark": bool(self.luma),
            "the record on keyframes": self.sei.is_found,
            "the visible label": self.label.windows > 0,
            "the container's metadata": bool(self.metadata),
            "the file's signature": self.signature is not None and self.signature.is_ours,
        }
        return [name for name, is_found in found.items() if is_found]


def create_job(number: int, names: Names) -> Job:
    """Return what is said of the job with that number."""
    return Job(number=f"{number:08x}", name=names.get(number))


def format_utc(epoch_us: int) -> str:
    """Return a time as a record has it, to the second; its digits where no calendar has it."""
    try:
        return datetime.fromtimestamp(epoch_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{epoch_us} us"


def tell(report: MarkReport) -> Iterator[str]:
    """Yield the report in sentences, one for each mark and one for all."""
    yield f"{report.source}: looked at {report.seconds:.1f} s in {report.windows} windows"
    yield from _tell_luma(report)
    yield _tell_sei(report.sei)
    yield _tell_label(report)
    yield _tell_metadata(report.metadata)
    if report.signature is not None:
        yield _tell_signature(report.signature)
    yield from report.notes
    names = report.survived
    yield f"survived: {', '.join(names)}" if names else "no mark was found"


def _tell_luma(report: MarkReport) -> Iterator[str]:
    for line in report.luma:
        side = ", mirrored" if line.is_mirrored else ""
        yield (
            f"invisible mark: {line.job} by {line.key}, in {line.windows} of {report.windows} "
            f"windows, {line.first_s:.1f} to {line.last_s:.1f} s, z {line.z:.1f}{side}"
        )
    if not report.luma:
        yield "invisible mark: none of these keys"


_SAYINGS: Final = {
    "valid": "signed with a key that is known here",
    "pasted": "signed so for other pictures: pasted, or the pictures were changed",
    "altered": "damaged or forged",
    "other_install": "signed by another install, which cannot be checked here",
    "unsigned": "not signed",
    "missing": "without a record",
}


def _tell_sei(sei: SeiLines) -> str:
    if not sei.keyframes:
        return "record on keyframes: none; the pictures came as no H.264 keyframe"
    if not sei.is_found:
        return f"record on keyframes: none on {sei.keyframes}; it does not survive a new encode"
    counts = "; ".join(
        f"{sei.verdicts[verdict]} of {sei.keyframes} {saying}"
        for verdict, saying in _SAYINGS.items()
        if sei.verdicts.get(verdict)
    )
    jobs = ", ".join(str(job) for job in sei.jobs) or "no job named"
    when = f", made {sei.first_utc} to {sei.last_utc}" if sei.first_utc else ""
    whose = f" of install {', '.join(sei.installs)}" if sei.installs else ""
    return f"record on keyframes: {counts}; {jobs}{whose}{when}"


def _tell_label(report: MarkReport) -> str:
    label = report.label
    if not label.windows:
        return f"visible label: not seen, score {label.score:.2f} of 0.70"
    side = ", mirrored" if label.is_mirrored else ""
    return (
        f"visible label: seen in {label.windows} of {report.windows} windows, "
        f"score {label.score:.2f}{side}"
    )


def _tell_metadata(metadata: dict[str, str]) -> str:
    if not metadata:
        return "container metadata: says nothing of it"
    said = "; ".join(f"{name}: {text}" for name, text in sorted(metadata.items()))
    return f"container metadata: {said}"


def _tell_signature(signature: Signature) -> str:
    whose = f"of job {signature.job} by install {signature.install}" if signature.job else "foreign"
    return "signature of the file (C2PA): " + {
        "trusted": f"by this install and whole, {whose}",
        "valid": f"whole, {whose}; by a root that is not this install's",
        "invalid": f"the file was changed since ({', '.join(signature.faults) or 'damaged'})",
    }.get(signature.state, "none")


def count_verdicts(verdicts: list[str]) -> dict[str, int]:
    """Return how often each verdict came, in the order of their weight."""
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in _SAYINGS if counts[verdict]}
