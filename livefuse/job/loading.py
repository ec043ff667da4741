"""Making a pipeline ready: in a thread of its own, so that the stream need not wait for ever."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

_TRIAL_WIDTH_PX, _TRIAL_HEIGHT_PX = 640, 360  # before anybody knows the size

if TYPE_CHECKING:
    from livefuse.pipeline.steps import Pipeline
    from livefuse.token import Token


class Loading:
    """Loads networks and builds what the token asks for, then runs all once at the input's size.

    A stream that starts before that, while `is_ready` is False, is covered as the configuration
    says (pipeline.while_loading).
    """

    def __init__(self, pipeline: Pipeline, token: Token) -> None:
        self.pipeline = pipeline
        pipeline.is_ready = False
        self._token = token
        self._size = (0, 0)
        self._error: Exception | None = None
        self._is_prepared, self._has_size = threading.Event(), threading.Event()
        self._is_over = threading.Event()

    @property
    def is_ready(self) -> bool:
        """Whether frames are treated as asked for; a token without operations needs nothing."""
        return self.pipeline.is_ready or not self._token.operations

    def describe_networks(self) -> dict[str, Any]:
        """Return where networks run (`Pipeline.describe_networks`), once they are loaded."""
        return self.pipeline.describe_networks() if self.pipeline.is_ready else {}

    def run(self) -> None:
        """Load, wait for the size, warm up; from a thread of its own.

        Raises:
            LivefuseError: what is asked for cannot be had.
        """
        try:
            self.pipeline.prepare(self._token)
            self._is_prepared.set()
            self._has_size.wait()
            if self._size != (0, 0):
                self.pipeline.warm_up(*self._size, self._token)
        except Exception as error:
            self._error = error
            raise
        finally:
            self._is_prepared.set()
            self._is_over.set()

    def prepare_changes(self, token: Token) -> None:
        """Make ready what `token` does and nothing did so far. From any thread but the frames'.

        Raises:
            LivefuseError: what is asked for cannot be had.
        """
        width, height = self._size if all(self._size) else (_TRIAL_WIDTH_PX, _TRIAL_HEIGHT_PX)
        self.pipeline.prepare_changes(width, height, token)

    def set_size(self, width: int, height: int) -> None:
        """Tell the size of the frames; 0 x 0: there will be none."""
        self._size = (width, height)
        self._has_size.set()

    def wait_prepared(self, patience_ms: int | None) -> None:
        """Wait until all is loaded, at most for `patience_ms`: what cannot be had is told early.

        Raises:
            Exception: whatever it failed of.
        """
        self._is_prepared.wait(_to_s(patience_ms))
        if self._error is not None:
            raise self._error

    def wait(self, patience_ms: int | None) -> bool:
        """Wait until it is over; False when that takes longer than `patience_ms`.

        Raises:
            Exception: whatever it failed of.
        """
        is_over = self._is_over.wait(_to_s(patience_ms))
        if self._error is not None:
            raise self._error
        return is_over


def _to_s(patience_ms: int | None) -> float | None:
    return None if patience_ms is None else patience_ms / 1000
