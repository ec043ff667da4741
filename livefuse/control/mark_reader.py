"""Reads all marks of a file or a stream: decodes it, looks into its windows and keyframes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.clock import SystemClock
from livefuse.control.mark_report import (
    LabelLine,
    LumaLine,
    MarkReport,
    SeiLines,
    Signature,
    count_verdicts,
    create_job,
    format_utc,
)
from livefuse.errors import LivefuseError
from livefuse.ingest.material import Material
from livefuse.mark_ids import number_job
from livefuse.publish import find_file_path
from livefuse.publish.c2pa_read import read_c2pa
from livefuse.publish.label_search import LabelFound, find_label
from livefuse.publish.luma.detect import LumaDetector
from livefuse.publish.luma.reader import LumaReader
from livefuse.publish.mark_windows import MeanPicture, MeanWindows
from livefuse.publish.recording_signer import SUFFIX
from livefuse.publish.sei import SeiMark, read_sei_marks
from livefuse.redact import redact_url
from livefuse.safety.c2pa_chain import read_c2pa_root
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.mark_keys import MARK_KEY_FILE, REPLAY_KEYS, MarkKeys, load_mark_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.config import Config
    from livefuse.control.mark_report import Names

_MAX_KEYFRAMES: Final = 1000
_METADATA: Final = ("title", "comment", "aigc")
_SAYS_SO: Final = ("ai-modified", "aigc", '"label":"1"')


class _Key(NamedTuple):
    name: str
    keys: MarkKeys


class MarkReader:
    """Reads one source. One thread; takes up to a second for each window of two.

    Args:
        config: the tree; `ingest` and `safety` are used.
        jobs: names to be told instead of their numbers.
        public_keys: of other installs whose records are to be verified.

    Raises:
        ConfigError: the install's keys cannot be read.
    """

    def __init__(
        self, config: Config, jobs: Sequence[str], public_keys: Sequence[bytes] = ()
    ) -> None:
        self._config = config
        self._names: Names = {number_job(job): job for job in ("replay", *jobs)}
        self._notes: list[str] = []
        self._keys = self._list_keys()
        self._public_keys = [*(key.keys.public_key for key in self._keys), *public_keys]
        self._luma = LumaReader([LumaDetector(key.keys.luma_key) for key in self._keys])
        self._windows = MeanWindows()
        self._count = 0
        self._labels: list[LabelFound] = []
        self._sei: list[SeiMark] = []
        self._until_s = 0.0

    def read(self, url: str, seconds: float) -> MarkReport:
        """Return what is found in the first `seconds` of the pictures at `url`.

        Raises:
            ConfigError: it is nothing that can be looked at.
            IngestError: it cannot be opened, or holds no pictures.
        """
        material = Material(url, self._config.ingest, SystemClock())
        for glimpse in material.read(seconds):
            if glimpse.unit and len(self._sei) < _MAX_KEYFRAMES:
                self._sei += read_sei_marks([glimpse.unit], self._public_keys)
            for time_s, luma in glimpse.lumas:
                self._until_s = time_s
                self._look(self._windows.add(luma, time_s))
        self._look(self._windows.finish())
        if not self._luma.list_sightings() and (whole := self._windows.get_whole()) is not None:
            self._luma.look(whole)
        return self._report(url, material.metadata)

    def _look(self, mean: MeanPicture | None) -> None:
        if mean is not None:
            self._count += 1
            self._luma.look(mean)
            self._labels.append(find_label(mean.luma))

    def _list_keys(self) -> list[_Key]:
        replay = _Key("the key of replays, which everybody has", REPLAY_KEYS)
        if not (find_safety_folder(self._config.safety) / MARK_KEY_FILE).exists():
            self._notes.append(
                "this install has no mark keys yet, so its marks cannot be known here: name the "
                "folder of another's with --set safety.folder=FOLDER"
            )
            return [replay]
        return [_Key("this install", load_mark_keys(self._config.safety)), replay]

    def _report(self, url: str, metadata: dict[str, str]) -> MarkReport:
        return MarkReport(
            source=redact_url(url),
            seconds=round(self._until_s, 3),
            windows=self._count,
            luma=self._list_luma(),
            sei=self._sum_up_sei(),
            label=self._sum_up_labels(),
            metadata={
                name: text for name, text in metadata.items() if _is_mark(name.lower(), text)
            },
            signature=self._read_signature(url),
            notes=self._notes,
        )

    def _read_signature(self, url: str) -> Signature | None:
        """Return the signature of a file of a kind that recordings are signed in."""
        path = find_file_path(url)
        if path is None or path.suffix.lower() != SUFFIX:
            return None
        try:
            found = read_c2pa(path, read_c2pa_root(self._config.safety))
        except (LivefuseError, OSError) as error:
            self._notes.append(f"signature of the file (C2PA): {error}")
            return None
        return Signature(
            state=found.state, job=found.job, install=found.install_id, faults=list(found.faults)
        )

    def _list_luma(self) -> list[LumaLine]:
        return [
            LumaLine(
                job=create_job(seen.best.number, self._names),
                key=self._keys[seen.which].name,
                z=round(seen.best.z, 2),
                windows=seen.windows,
                first_s=round(seen.first_s, 2),
                last_s=round(seen.last_s, 2),
                scale=round(seen.best.scale, 3),
                is_mirrored=seen.best.is_mirrored,
            )
            for seen in self._luma.list_sightings()
        ]

    def _sum_up_sei(self) -> SeiLines:
        records = [mark.record for mark in self._sei if mark.record is not None]
        times = [record.epoch_us for record in records]
        numbers = dict.fromkeys(record.job for record in records)
        installs = dict.fromkeys(mark.install_id for mark in self._sei if mark.install_id)
        return SeiLines(
            keyframes=len(self._sei),
            verdicts=count_verdicts([mark.verdict for mark in self._sei]),
            jobs=[create_job(number, self._names) for number in numbers],
            installs=list(installs),
            first_utc=format_utc(min(times)) if times else "",
            last_utc=format_utc(max(times)) if times else "",
        )

    def _sum_up_labels(self) -> LabelLine:
        best = max(self._labels, default=None)
        if best is None:
            return LabelLine()
        return LabelLine(
            windows=sum(label.is_label for label in self._labels),
            score=round(best.score, 3),
            is_mirrored=best.is_label and best.is_mirrored,
        )


def _is_mark(name: str, text: str) -> bool:
    """Say whether a field of a container is one of ours."""
    said = text.lower()
    return name in _METADATA and (name == "aigc" or any(word in said for word in _SAYS_SO))
