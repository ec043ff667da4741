"""Runs with inputs and outputs that stay on the card: no allocation and one copy each way a run."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from livefuse.runtime.batch import Feeds, Outputs

_MAX_SHAPES: Final = 8


class _Binding:
    """One binding and the device memory of its inputs, for one run at a time and one shape."""

    def __init__(self, session: Any, feeds: Feeds, device: str, number: int) -> None:  # noqa: ANN401 - onnxruntime is untyped
        from onnxruntime import OrtValue  # noqa: PLC0415 - slow to load

        self._binding = session.io_binding()
        self._inputs: dict[str, Any] = {}
        for name, value in feeds.items():
            self._inputs[name] = OrtValue.ortvalue_from_numpy(value.copy("C"), device, number)
            self._binding.bind_ortvalue_input(name, self._inputs[name])
        for output in session.get_outputs():
            # Shapes may depend on values, so onnxruntime allocates, from its arena.
            self._binding.bind_output(output.name, device, number)

    def run(self, session: Any, feeds: Feeds) -> Outputs:  # noqa: ANN401 - onnxruntime is untyped
        for name, value in feeds.items():
            self._inputs[name].update_inplace(np.ascontiguousarray(value))
        session.run_with_iobinding(self._binding)
        outputs: Outputs = self._binding.copy_outputs_to_cpu()
        return outputs


class BoundRunner:
    """`session.run` by I/O binding. Thread-safe: each run takes a binding that nobody else has."""

    def __init__(self, session: Any, device: str, number: int = 0) -> None:  # noqa: ANN401 - onnxruntime is untyped
        """Keep memory on `device` ("cuda", or "cpu" where there is none) `number`."""
        self._session = session
        self._device = device
        self._number = number
        self._free: dict[tuple[Any, ...], deque[_Binding]] = {}

    def run(self, feeds: Feeds) -> Outputs:
        """Return the outputs, copied to this side; raises what onnxruntime raises."""
        key = tuple((name, value.shape, value.dtype.str) for name, value in feeds.items())
        free = self._free.get(key)
        if free is None:
            if len(self._free) >= _MAX_SHAPES:
                # Device memory is dear: shapes that come and go give theirs back.
                self._free = {}
            free = self._free.setdefault(key, deque())
        try:
            binding = free.pop()
        except IndexError:
            binding = _Binding(self._session, feeds, self._device, self._number)
        outputs = binding.run(self._session, feeds)
        free.append(binding)  # not after a failure: what it left behind is not known
        return outputs
