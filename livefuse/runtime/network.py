"""A loaded network: runs by itself or in company, checks what it says, warms up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from livefuse.errors import ModelError
from livefuse.runtime.batch import MicroBatcher, count_rows, get_signature, split_outputs
from livefuse.runtime.batch import stack_feeds as stack
from livefuse.runtime.binding import BoundRunner
from livefuse.runtime.guard import ANYTHING, EXPECTATIONS, find_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from livefuse.runtime.batch import Feeds, Outputs
    from livefuse.runtime.guard import Expectation
    from livefuse.runtime.options import Precision
    from livefuse.runtime.providers import Provider
    from livefuse.runtime.registry import Model

    Floats = NDArray[np.float32]

_MAX_SHAPES: Final = 64
_GARBAGE_LIMIT: Final = 2
_FREE_SIDE: Final = 64
_TYPES: Final[dict[str, type]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


class Network:
    """A loaded network. Its methods may be called from any thread; a run lets go of the GIL.

    `precision` is what it runs in now: one that gives garbage twice in less than full precision is
    loaded again in full, and `note` says so. `shapes` are the input shapes it has run with;
    `observer` is shown what the network is fed.
    """

    def __init__(  # noqa: PLR0913 - the last four are how a device runs it, each with a default
        self,
        session: Any,  # noqa: ANN401 - onnxruntime is untyped
        model: Model,
        provider: Provider,
        *,
        precision: Precision = "fp32",
        max_batch: int = 1,
        device: int = 0,
        reload: Callable[[], Any] | None = None,
    ) -> None:
        """Wrap `session`; `reload` makes one in full precision."""
        self.model = model
        self.provider = provider
        self.precision: Precision = precision
        self.note = ""
        self.garbage = 0
        self.observer: Callable[[Feeds], None] | None = None
        self.input_names = tuple(str(item.name) for item in session.get_inputs())
        self.output_names = tuple(str(item.name) for item in session.get_outputs())
        # A free dimension (any batch, any size) is -1.
        self.input_shapes = tuple(
            tuple(side if isinstance(side, int) else -1 for side in item.shape)
            for item in session.get_inputs()
        )
        self.input_types = tuple(_TYPES.get(item.type, np.float32) for item in session.get_inputs())
        self.shapes: set[tuple[tuple[int, ...], ...]] = set()
        self.is_stackable = _keeps_rows_apart(session)
        self._expectation = EXPECTATIONS.get(getattr(model, "task", ""), ANYTHING)
        self._device = device
        self._max_batch = max_batch
        self._reload = reload
        self._lock = threading.Lock()
        self._use(session)
        # On a processor requests run side by side, one core each; a card does more at a time.
        is_shared = self.is_stackable and provider != "cpu" and max_batch > 1
        self._batcher = MicroBatcher(self._call, max_batch) if is_shared else None

    @property
    def has_own_size(self) -> bool:
        """Whether nothing but the number of rows is free in its inputs."""
        return all(-1 not in shape[1:] for shape in self.input_shapes)

    def run(self, feeds: Feeds, *, expect: Expectation | None = None) -> list[Floats]:
        """Return the outputs in `output_names`' order.

        `expect` says what the numbers look like, instead of what the model's task says.

        Raises:
            ModelError: the runtime refused or failed, or the result cannot be used.
        """
        if self.observer is not None:
            self.observer(feeds)
        outputs = self._forward(feeds)
        fault = find_fault(outputs, feeds, expect or self._expectation)
        if fault:
            self._note_garbage()
            raise ModelError(
                f"the result of {self.model.name} cannot be used: it is {fault}",
                hint="run  livefuse doctor",
            )
        return cast("list[Floats]", outputs)

    def run_batch(
        self, many: Sequence[Feeds], *, expect: Expectation | None = None
    ) -> list[list[Floats]]:
        """Return the outputs for each of `many`: stacked where the network allows, else in turn.

        Raises:
            ModelError: as `run`; one bad result fails all.
        """
        if not self.is_stackable or self._max_batch <= 1 or not _is_alike(many):
            return [self.run(feeds, expect=expect) for feeds in many]
        results: list[list[Floats]] = []
        for group in _group(many, self._max_batch):
            outputs = self.run(stack(group), expect=expect)
            rows = [count_rows(feeds) for feeds in group]
            results += cast("list[list[Floats]]", split_outputs(cast("Outputs", outputs), rows))
        return results

    def warm_up(self, shapes: Sequence[Mapping[str, tuple[int, ...]]] = ()) -> None:
        """Run once on zeros for each of `shapes` (input name -> shape), so that all is built.

        Inputs that a shape does not name have their own; free dimensions are 1 row, and the
        manifest's size. Without `shapes` one row is run, and the largest batch where requests are
        stacked: what lies between needs no other engine.

        Raises:
            ModelError: the runtime refused or failed.
        """
        rows = (1, self._max_batch) if self._batcher is not None else (1,)
        for count in rows:
            for shape in shapes or ({},):
                self._call(self._create_zeros(shape, count))

    def _create_zeros(self, shapes: Mapping[str, tuple[int, ...]], rows: int) -> Feeds:
        side = getattr(self.model, "size", 0) or _FREE_SIDE
        feeds: Feeds = {}
        for name, own, kind in zip(
            self.input_names, self.input_shapes, self.input_types, strict=True
        ):
            shape = list(shapes.get(name, own))
            free = [rows, *[side] * len(shape)][: len(shape)]
            filled = [want if got == -1 else got for got, want in zip(shape, free, strict=True)]
            if name in shapes and rows > 1 and own[:1] == (-1,):
                filled[0] = rows
            feeds[name] = np.zeros(filled, kind)
        return feeds

    def _forward(self, feeds: Feeds) -> Outputs:
        if self._batcher is not None:
            return self._batcher.run(feeds)
        return self._call(feeds)

    def _call(self, feeds: Feeds) -> Outputs:
        shape = tuple(value.shape for value in feeds.values())
        if shape not in self.shapes and len(self.shapes) < _MAX_SHAPES:
            self.shapes.add(shape)
        try:
            if self._bound is not None:
                return self._bound.run(feeds)
            return cast("Outputs", self._session.run(None, feeds))
        except Exception as error:  # noqa: BLE001 - onnxruntime raises many unrelated types
            raise ModelError(
                f"inference of {self.model.name} failed ({_first_line(error)})",
                hint="run  livefuse doctor",
            ) from None

    def _use(self, session: Any) -> None:  # noqa: ANN401 - onnxruntime is untyped
        self._session = session
        self._bound = None if self.provider == "cpu" else BoundRunner(session, "cuda", self._device)

    def _note_garbage(self) -> None:
        """Count it; the second time load the network in full precision, aside."""
        with self._lock:
            self.garbage += 1
            if self._reload is None or self.precision == "fp32" or self.garbage < _GARBAGE_LIMIT:
                return
            reload, self._reload = self._reload, None
        threading.Thread(
            target=self._load_in_full, args=(reload,), name="livefuse-reload", daemon=True
        ).start()

    def _load_in_full(self, reload: Callable[[], Any]) -> None:
        session, was = reload(), self.precision
        if session is None:
            self.note = f"{self.model.name} gives garbage in {was} and cannot be loaded in fp32"
            return
        self._use(session)
        self.precision = "fp32"
        self.note = f"{self.model.name} gave garbage in {was} and runs in fp32 now"


def _keeps_rows_apart(session: Any) -> bool:  # noqa: ANN401 - onnxruntime is untyped
    """Say whether every input and output has the same free first dimension, by its name."""
    firsts = {
        item.shape[0] if item.shape else 1
        for item in (*session.get_inputs(), *session.get_outputs())
    }
    return len(firsts) == 1 and isinstance(firsts.pop(), str)


def _is_alike(many: Sequence[Feeds]) -> bool:
    return all(count_rows(feeds) for feeds in many) and len({*map(get_signature, many)}) == 1


def _group(many: Sequence[Feeds], max_rows: int) -> list[list[Feeds]]:
    groups: list[list[Feeds]] = []
    rows = max_rows
    for feeds in many:
        count = count_rows(feeds)
        if rows + count > max_rows:
            groups.append([])
            rows = 0
        groups[-1].append(feeds)
        rows += count
    return groups


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
