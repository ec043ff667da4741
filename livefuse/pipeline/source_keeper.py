"""What a step shows of the source that the token names; another source is made ready aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from livefuse.errors import LivefuseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

T = TypeVar("T")


class SourceKeeper(Generic[T]):
    """Keeps what `build` made of the wanted source. Used by the frame's thread.

    `made` is what is shown, of the source `shown`; `problem` says why another one is not.
    """

    def __init__(self, aside: Executor, build: Callable[[str], T]) -> None:
        """`build` takes a face id and may take seconds, in the thread of `aside`."""
        self._aside = aside
        self._build = build
        self.shown = ""
        self._refused = ""
        self._coming: tuple[str, Future[T]] | None = None
        self.made: T | None = None
        self.problem = ""

    def set_source(self, face_id: str) -> None:
        """Make `face_id` ready now.

        Raises:
            LivefuseError: the source cannot be used.
        """
        self.made = self._build(face_id)
        self.shown, self._refused, self.problem = face_id, "", ""

    def follow(self, face_id: str) -> None:
        """Have another source made ready when it is wanted; take it over once it is.

        One that is no longer wanted by then is not shown; one that was refused is tried once.
        """
        if face_id == self.shown:
            self._refused = self.problem = ""
        if self._coming is None and face_id not in (self.shown, self._refused):
            self._coming = face_id, self._aside.submit(self._build, face_id)
        if self._coming is None or not self._coming[1].done():
            return
        (name, coming), self._coming = self._coming, None
        if name != face_id:
            return
        error = coming.exception()
        if error is None:
            self.made, self.shown, self._refused, self.problem = coming.result(), name, "", ""
            return
        self._refused = name
        self.problem = error.message if isinstance(error, LivefuseError) else type(error).__name__
