"""What is remembered of the people in a stream: a mean vector each, a name, what is in doubt.

A track is the tracker's word for "the same patch of picture", a person is who it shows. Most of
the time they agree. When two people cross, the tracker may exchange them, and one who leaves and
returns gets a new track: vectors tell, and the person keeps the number under which it was first
known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.analysis.gallery import Gallery

    Vector = NDArray[np.float32]

_MAX_WEIGHT: Final = 8.0  # older looks fade: a mean of about so many good ones
_FOUNDED: Final = 0.35  # a look of less quality adds little and casts no doubt
_DOUBTS: Final = 2  # looks in a row that must disagree, at least
_PATIENCE_S: Final = 0.5
_AHEAD: Final = 0.25  # of what is between `same` and 1: another name must be nearer by that


class Likeness(NamedTuple):
    """From which cosine on two faces are one person, and down to which they stay one."""

    same: float
    keep: float


@dataclass(slots=True, eq=False)
class Person:
    """Somebody in the stream. `number` is the track id under which they are shown to the steps."""

    number: int
    total: Vector | None = None
    weight: float = 0.0
    name: str = ""
    similarity: float = 0.0
    rival: str = ""
    rival_s: float = 0.0
    misses: int = 0
    absent_s: float = 0.0

    @property
    def mean(self) -> Vector | None:
        """The normalised mean of the looks so far, None before the first."""
        if self.total is None:
            return None
        return np.asarray(self.total / max(float(np.linalg.norm(self.total)), 1e-9), np.float32)

    def compare(self, vector: Vector) -> float:
        """Return the cosine of `vector` to the mean; -1 before the first look."""
        mean = self.mean
        return -1.0 if mean is None else float(mean @ vector)

    def add(self, vector: Vector, quality: float) -> None:
        """Let a look of `quality` 0..1 into the mean."""
        share = max(quality, 0.01)
        if self.total is None:
            self.total, self.weight = vector * share, share
            return
        weight = self.weight + share
        fade = min(1.0, _MAX_WEIGHT / weight)
        self.total = np.asarray((self.total + vector * share) * np.float32(fade), np.float32)
        self.weight = weight * fade

    def name_by(self, gallery: Gallery, likeness: Likeness, passed_s: float) -> None:
        """Take, keep, change or drop a name by the gallery, `passed_s` after the look before."""
        mean = self.mean
        if mean is None or not gallery.people:
            self.name, self.similarity = "", 0.0
            return
        cosines = gallery.compare(mean[None])[0].tolist()
        best = max(range(len(cosines)), key=cosines.__getitem__)
        names = gallery.people
        own = cosines[names.index(self.name)] if self.name in names else -1.0
        if not self.name or self.name not in names:
            self.name = names[best] if cosines[best] >= likeness.same else ""
            self.similarity = cosines[best]
            return
        self.similarity = own
        ahead = _AHEAD * (1.0 - likeness.same)
        if names[best] != self.name and cosines[best] >= max(likeness.same, own + ahead):
            self._note_rival(names[best], cosines[best], passed_s)
            return
        self.rival = ""
        self.misses = self.misses + 1 if own < likeness.keep else 0
        if self.misses >= _DOUBTS:
            self.name, self.misses = "", 0

    def _note_rival(self, name: str, similarity: float, passed_s: float) -> None:
        if self.rival != name:
            self.rival, self.rival_s = name, 0.0
            return
        self.rival_s += passed_s
        if self.rival_s >= _PATIENCE_S:
            self.name, self.similarity, self.rival = name, similarity, ""


@dataclass(slots=True, eq=False)
class Followed:
    """One of the tracker's tracks: whom it shows, and when it should be looked at again.

    `quality` is the pose's and the size's of the best look; `is_crowded`: another face is so near
    that the tracker may mix them up.
    """

    person: Person
    looks: int = 0
    doubts: int = 0
    doubt_s: float = 0.0
    frames_since: int = 0
    since_s: float = 0.0
    quality: float = 0.0
    is_crowded: bool = False
    is_urgent: bool = True


class People:
    """All who are in the stream, and those who were a moment ago. One thread."""

    def __init__(
        self, likeness: Likeness, *, remember_s: float = 60.0, max_absent: int = 16
    ) -> None:
        """Remember those who left for `remember_s`, at most `max_absent` of them."""
        self._likeness = likeness
        self._remember_s = remember_s
        self._max_absent = max_absent
        self._absent: list[Person] = []
        self._next_number = 1 << 20
        self.tracks: dict[int, Followed] = {}

    def update(self, track_ids: set[int], dt_s: float) -> None:
        """Tell which tracks there are in this frame, `dt_s` after the one before."""
        for track_id in set(self.tracks) - track_ids:
            self._part(self.tracks.pop(track_id).person)
        for track_id in track_ids - set(self.tracks):
            self.tracks[track_id] = Followed(Person(track_id))
        for followed in self.tracks.values():
            followed.frames_since += 1
            followed.since_s += dt_s
        for person in self._absent:
            person.absent_s += dt_s
        self._absent = [one for one in self._absent if one.absent_s <= self._remember_s]

    def note_look(self, track_id: int, vector: Vector, quality: float, gallery: Gallery) -> None:
        """Take the normalised `vector` of a look at a track into account; `quality` is 0..1."""
        followed = self.tracks[track_id]
        passed_s, followed.since_s = followed.since_s, 0.0
        followed.frames_since = 0
        followed.looks += 1
        followed.is_urgent = False
        person = followed.person
        if person.mean is None:
            followed.person = person = self._welcome(person, vector)
        elif person.compare(vector) < self._likeness.keep:
            if quality < _FOUNDED or followed.is_crowded:
                return  # of two faces on top of one another nobody knows whose is seen
            resolved = self._resolve(followed, vector, passed_s)
            if resolved is None:
                return
            person = resolved
        followed.doubts, followed.doubt_s = 0, 0.0
        person.add(vector, quality)
        person.name_by(gallery, self._likeness, passed_s)

    def forget(self) -> None:
        """Forget everybody."""
        self.tracks.clear()
        self._absent.clear()

    def _part(self, person: Person) -> None:
        if person.mean is None:
            return
        person.absent_s = 0.0
        self._absent = [*self._absent, person][-self._max_absent :]

    def _welcome(self, stranger: Person, vector: Vector) -> Person:
        """Return who it is that a new track shows: one who left, or the stranger."""
        best = max(self._absent, key=lambda one: one.compare(vector), default=None)
        if best is None or best.compare(vector) < self._likeness.same:
            return stranger
        self._absent.remove(best)
        return best

    def _resolve(self, followed: Followed, vector: Vector, passed_s: float) -> Person | None:
        """Find out whom a track shows since it seems not to show its person; None: not sure yet.

        Somebody who is known takes two looks; a stranger half a second more of them, since a hand
        or another head before a face makes a stranger of everyone.
        """
        followed.doubt_s += passed_s if followed.doubts else 0.0
        followed.doubts += 1
        if followed.doubts < _DOUBTS:
            followed.is_urgent = True
            return None
        before = followed.person
        others = [other for other in self.tracks.values() if other is not followed]
        twin = max(others, key=lambda other: other.person.compare(vector), default=None)
        if twin is not None and twin.person.compare(vector) >= self._likeness.same:
            followed.person, twin.person = twin.person, before
            twin.doubts, twin.quality, twin.is_urgent = 0, 0.0, True
        else:
            newcomer = Person(self._next_number)
            found = self._welcome(newcomer, vector)
            if found is newcomer and followed.doubt_s < _PATIENCE_S:
                return None
            self._next_number += found is newcomer
            followed.person = found
            self._part(before)
        followed.quality = 0.0
        return followed.person
