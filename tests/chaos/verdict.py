"""The table at the end: what was asked of the far end and of livefuse, and whether it holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tests.chaos.bare import BareJudge, Reference
from tests.chaos.control import is_overloaded
from tests.chaos.judge import (
    GAP_S,
    Track,
    count_not_rising,
    find_calm,
    find_gaps,
    find_steps_back,
    measure_sync,
    read_track,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.run import Done, Outcome

SYNC_MS = 40.0
RECOVERY_S = 10.0
# The server that is harmed may miss what comes until it has been dialled again.
_HARM_AFTER_S = 8.0


@dataclass(slots=True)
class Row:
    """One line; `is_kept` None: told, not judged."""

    name: str
    value: str
    bound: str = ""
    is_kept: bool | None = None


@dataclass(slots=True)
class Verdict:
    """All rows, and what they were made from.

    `slack_s` is added to what is asked of times, for a machine that has other work.
    """

    rows: list[Row] = field(default_factory=list)
    slack_s: float = 0.0
    tracks: dict[str, Track] = field(default_factory=dict)
    bare: dict[str, BareJudge] = field(default_factory=dict)

    def is_kept(self) -> bool:
        """Say whether everything that is judged holds."""
        return all(row.is_kept is not False for row in self.rows)

    def check(self, name: str, value: object, bound: str, *, is_kept: bool) -> None:
        """Add a line that is judged."""
        self.rows.append(Row(name, str(value), bound, is_kept))

    def tell(self, name: str, value: object) -> None:
        """Add a line that is told."""
        self.rows.append(Row(name, str(value)))

    def format(self) -> str:
        """Return the table."""
        width = max(len(row.name) for row in self.rows)
        marks = {True: "ok", False: "FAILED", None: ""}
        return "\n".join(
            f"{row.name:<{width}}  {marks[row.is_kept]:<6}  {row.bound:<18}  {row.value}"
            for row in self.rows
        )


def judge(outcome: Outcome, *, variant: str, slack_s: float = 0.0) -> Verdict:
    """Read everything back and judge it; takes about as long as the run did."""
    verdict = Verdict(slack_s=slack_s)
    _judge_process(verdict, outcome)
    pieces = {name: [p for p in paths if p.exists()] for name, paths in outcome.files.items()}
    count = {name: len(paths) for name, paths in pieces.items()}
    verdict.check("file, pieces", count["file"], "1", is_kept=count["file"] == 1)
    verdict.check("steady, pieces", count["steady"], "1", is_kept=count["steady"] == 1)
    assert outcome.clip is not None
    reference = Reference(outcome.clip)
    shift_s = None
    for name in ("file", "steady"):
        for path in pieces[name]:
            what = (name, path, variant)
            track = _judge_recording(verdict, outcome, reference, what, shift_s)
            shift_s = track.shift_s
    _judge_harmed(verdict, outcome, reference, [("harmed", p, variant) for p in pieces["harmed"]])
    _judge_arrivals(verdict, outcome)
    return verdict


def _judge_harmed(
    verdict: Verdict, outcome: Outcome, reference: Reference, what: list[tuple[str, Path, str]]
) -> None:
    """Judge each piece that the harmed server has; only those that fail get lines of their own."""
    shift_s = verdict.tracks["file"].shift_s if "file" in verdict.tracks else None
    pictures = 0
    failed: list[Row] = []
    for number, piece in enumerate(what, 1):
        apart = Verdict(slack_s=verdict.slack_s)
        pictures += len(_judge_recording(apart, outcome, reference, piece, shift_s).seen)
        for row in apart.rows:
            if row.is_kept is False:
                row.name = f"{row.name} ({number})"
                failed.append(row)
    told = f"{len(what)} pieces, {pictures} pictures: play, rise, covered, no gap of their own"
    verdict.check("harmed, pieces", told, "all hold", is_kept=bool(what) and not failed)
    verdict.rows += failed


def _judge_recording(
    verdict: Verdict,
    outcome: Outcome,
    reference: Reference,
    what: tuple[str, Path, str],
    shift_s: float | None,
) -> Track:
    kind, path, variant = what
    bare = BareJudge(reference, has_faces=variant == "avatar", detects=kind == "steady")
    track = read_track(path, bare.look, begins_s=outcome.began_s, shift_s=shift_s)
    verdict.tracks[kind], verdict.bare[kind] = track, bare
    errors = [e for e in track.errors if kind != "harmed" or "cannot be read on" not in e]
    verdict.check(f"{kind}, plays", errors[:3] or "yes", "no error", is_kept=not errors)
    _judge_stamps(verdict, kind, track)
    _judge_gaps(verdict, outcome, kind, track)
    back = find_steps_back(track)
    verdict.check(f"{kind}, counter goes back", back[:3] or 0, "never", is_kept=not back)
    likest = max(bare.likeness, default=0.0)
    shown = f"{len(track.seen)} pictures, likeness <= {likest:.2f}, {bare.looked} by the detector"
    shown += f", {bare.false_alarms} false alarms" if bare.false_alarms else ""
    seen = [f"{at_s:.2f} s: {why}" for at_s, why in bare.bare]
    verdict.check(f"{kind}, bare faces", seen[:3] or shown, "none", is_kept=not seen)
    if kind != "harmed":
        _judge_sync(verdict, outcome, kind, track)
    track.recording.audio.clear()  # ten minutes of it are 115 MB
    return track


def _judge_stamps(verdict: Verdict, name: str, track: Track) -> None:
    recording = track.recording
    wrong = {
        "video DTS": count_not_rising(recording.video_dts_s),
        "audio DTS": count_not_rising(recording.audio_dts_s),
        "PTS": count_not_rising(seen.pts_s for seen in track.seen),
    }
    wrong = {what: amount for what, amount in wrong.items() if amount}
    told = wrong or f"{len(recording.video_dts_s)} + {len(recording.audio_dts_s)} packets"
    verdict.check(f"{name}, stamps rise", told, "strictly", is_kept=not wrong)


def _judge_gaps(verdict: Verdict, outcome: Outcome, name: str, track: Track) -> None:
    for kind, times_s in (
        ("video", [seen.pts_s for seen in track.seen]),
        ("audio", [pts_s for pts_s, _ in track.recording.audio]),
    ):
        gaps = [
            (round(track.to_time_s(a), 2), round(b - a, 2))
            for a, b in find_gaps(times_s, GAP_S + verdict.slack_s)
            if not _is_excused(outcome, name, track.to_time_s(a), track.to_time_s(b))
        ]
        longest = max(np.diff(times_s), default=0.0)
        told = gaps[:3] or f"longest {longest:.2f} s"
        verdict.check(
            f"{name}, {kind} gaps", told, f"<= {GAP_S + verdict.slack_s} s", is_kept=not gaps
        )


def _is_excused(outcome: Outcome, name: str, begin_s: float, end_s: float) -> bool:
    """Say whether a gap is the run's own: livefuse was stopped, or the server itself was harmed."""
    frozen_s = sum(
        min(end_s, done.ended_s) - max(begin_s, done.began_s)
        for done in outcome.done
        if done.fault.kind == "freeze" and done.began_s < end_s and done.ended_s > begin_s
    )
    if end_s - begin_s - frozen_s <= GAP_S:
        return True
    return name.startswith("harmed") and any(
        done.began_s - 1.0 < end_s and done.ended_s + _HARM_AFTER_S > begin_s
        for done in outcome.done
        if done.fault.group == "server"
    )


def _judge_sync(verdict: Verdict, outcome: Outcome, name: str, track: Track) -> None:
    busy = [(done.began_s, done.ended_s) for done in outcome.done]
    calm = find_calm(busy, outcome.began_s, outcome.ended_s)
    offsets, mute = measure_sync(track, calm)
    worst = max(map(abs, offsets), default=0.0)
    told = f"worst {worst:.0f} ms of {len(offsets)} clicks in {len(calm)} calm phases, {mute} mute"
    is_kept = worst <= SYNC_MS and len(offsets) >= max(len(calm) // 2, 2) and mute < len(offsets)
    verdict.check(f"{name}, sound in step", told, f"<= {SYNC_MS:.0f} ms", is_kept=is_kept)


def _judge_arrivals(verdict: Verdict, outcome: Outcome) -> None:
    gaps = [
        (round(a, 2), round(b - a, 2))
        for a, b in find_gaps([at_s for at_s, _ in outcome.arrivals], GAP_S + verdict.slack_s)
        if not _is_excused(outcome, "viewer", a, b)
    ]
    times_s = [at_s for at_s, _ in outcome.arrivals]
    end_s = times_s[-1] if times_s else 0.0
    longest = max(np.diff(times_s), default=0.0)
    told = gaps[:3] or f"{len(times_s)} pictures, longest wait {longest:.2f} s"
    verdict.check(
        "viewer, waits", told, f"<= {GAP_S + verdict.slack_s} s", is_kept=bool(times_s) and not gaps
    )
    is_there = end_s >= outcome.ended_s - GAP_S - verdict.slack_s
    verdict.check("viewer, until the end", is_there, "", is_kept=is_there)


def _judge_process(verdict: Verdict, outcome: Outcome) -> None:
    note_recoveries(outcome)
    died = outcome.died
    verdict.check("livefuse runs", died or "yes", "until the end", is_kept=not died)
    missed = [f"{d.fault.kind}: {d.note}" for d in outcome.done if d.note]
    told = missed[:3] or f"{len(outcome.done)}"
    verdict.check("faults done", told, "all", is_kept=not missed)
    known = [(d.recovered_s, d.fault.kind) for d in outcome.done if d.recovered_s is not None]
    if outcome.done:
        last = outcome.done[-1].recovered_s
        told = "never" if last is None else f"{last:.1f} s"
        bound_s = RECOVERY_S + verdict.slack_s
        is_kept = last is not None and last <= bound_s
        verdict.check("well after the last", told, f"<= {bound_s:.0f} s", is_kept=is_kept)
    verdict.tell("slowest recoveries", [f"{k} {s:.1f} s" for s, k in sorted(known)[:-4:-1]])
    busy = [s for s in outcome.samples if s.status and is_overloaded(s.status)]
    share = 100 * len(busy) / max(len(outcome.samples), 1)
    verdict.tell("covered for want of time", f"{share:.0f} % of the run")
    before, after = map(Counter, outcome.threads)
    more = dict(after - before)
    verdict.check("threads more", more or 0, "none", is_kept=not more)
    end = outcome.end
    verdict.check("exit code", end.get("code"), "0", is_kept=end.get("code") == 0)
    left = [*end.get("threads", []), *end.get("children", [])]
    verdict.check("left at the end", left or 0, "none", is_kept=not left)
    verdict.tell("SIGTERM to end", f"{end.get('took_s')} s")


def note_recoveries(outcome: Outcome) -> None:
    """Fill in how long after each fault's end all was well; None: not before the next one."""
    for index, done in enumerate(outcome.done):
        following = outcome.done[index + 1 :]
        until_s = following[0].began_s if following else outcome.ended_s
        done.recovered_s = _find_recovery(outcome, done, until_s)


def _find_recovery(outcome: Outcome, done: Done, until_s: float) -> float | None:
    samples = [s for s in outcome.samples if done.ended_s < s.at_s <= until_s]
    bad = [s.at_s for s in samples if not s.is_good]
    good = [s.at_s for s in samples if s.is_good and s.at_s > max(bad, default=0.0)]
    return good[0] - done.ended_s if good else None
