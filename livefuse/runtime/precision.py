"""Smaller copies of a model: halves (fp16) or bytes (int8), made once, kept in the cache folder.

Making one needs the packages onnx and onnxruntime's own tools; running it needs nothing more. A
copy's name holds the SHA-256 of the file it was made from, so that it never outlives that.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime.environment import create_session
from livefuse.runtime.options import Plan, find_cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from livefuse.runtime.batch import Feeds
    from livefuse.runtime.options import Precision
    from livefuse.runtime.providers import Provider

_DIGITS: Final = 16
_OPSET_BY_CHANNEL: Final = 13
_FEW: Final = 16  # a score or two have no span to measure noise against


def get_reduced_path(
    config: ModelsConfig, source: Path, precision: Precision, provider: Provider = "cpu"
) -> Path:
    """Return where the copy of `source` for `precision` and `provider` lies or would lie.

    int8 for a card is another than for a processor: TensorRT takes ranges around zero only, and a
    processor is nearer to full precision (by 4 to 8 dB) without that.
    """
    kind = "int8s" if precision == "int8" and provider != "cpu" else precision
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
    return find_cache_folder(config) / "models" / f"{source.stem}-{digest}.{kind}.onnx"


def reduce_model(
    source: Path,
    target: Path,
    precision: Precision,
    samples: Sequence[Feeds] = (),
    *,
    is_symmetric: bool = False,
) -> None:
    """Write `source` in `precision` to `target`; inputs and outputs stay as they are.

    int8 is QDQ, weights by channel, ranges measured on `samples` (what the network is fed in
    practice; some tens), around zero with `is_symmetric`. fp16 needs none.

    Raises:
        ModelError: onnx is not installed, there are no samples, or the graph cannot be reduced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        half_done = Path(folder) / "model.onnx"
        try:
            if precision == "fp16":
                _write_halves(source, half_done)
            else:
                _write_bytes(source, half_done, samples, is_symmetric=is_symmetric)
        except ImportError as error:
            raise ModelError(
                f"{precision} needs the package {error.name}", hint="pip install onnx"
            ) from None
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - the tools raise many unrelated types
            text = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise ModelError(
                f"{source.name} cannot be written in {precision} ({text})", hint="use fp32"
            ) from None
        half_done.replace(target)


def _write_halves(source: Path, target: Path) -> None:
    import onnx  # noqa: PLC0415 - optional, and slow to load
    from onnxruntime.transformers.float16 import (  # noqa: PLC0415 - as above
        convert_float_to_float16,
    )

    model = onnx.load(source)
    onnx.save(convert_float_to_float16(model, keep_io_types=True), target)


def _write_bytes(
    source: Path, target: Path, samples: Sequence[Feeds], *, is_symmetric: bool
) -> None:
    import onnx  # noqa: PLC0415 - optional, and slow to load
    from onnxruntime import quantization  # noqa: PLC0415 - as above
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415 - as above

    if not samples:
        raise ModelError("int8 needs samples of what the network is fed", hint="give some tens")
    model = onnx.load(source)
    opset = max((item.version for item in model.opset_import if not item.domain), default=0)
    if opset < _OPSET_BY_CHANNEL:
        model = onnx.version_converter.convert_version(model, _OPSET_BY_CHANNEL)
    simple = target.with_name("simple.onnx")
    onnx.save(model, simple)
    quant_pre_process(os.fspath(simple), os.fspath(simple), skip_symbolic_shape=True)
    kinds = quantization.QuantType
    quantization.quantize_static(
        os.fspath(simple),
        os.fspath(target),
        _create_reader(quantization.CalibrationDataReader, samples),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        # 7 bits: with 8 the sums of processors without VNNI overflow (25 dB instead of 48).
        reduce_range=True,
        extra_options={"ActivationSymmetric": is_symmetric},
        activation_type=kinds.QInt8 if is_symmetric else kinds.QUInt8,
        weight_type=kinds.QInt8,
    )


def _create_reader(base: Any, samples: Sequence[Feeds]) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """Return what onnxruntime's calibration reads `samples` from."""

    class Reader(base):  # type: ignore[misc] # onnxruntime is untyped
        def __init__(self) -> None:
            self._left: Iterator[Feeds] = iter(samples)

        def get_next(self) -> Feeds | None:
            return next(self._left, None)

    return Reader()


def compare_models(reference: Path, other: Path, samples: Sequence[Feeds]) -> list[float]:
    """Return the PSNR (dB) of `other`'s outputs against `reference`'s, over `samples`, on the CPU.

    Outputs of less than 16 values are left out.

    Raises:
        ModelError: one of the two cannot be loaded.
    """
    plan = Plan("cpu", 1, "fp32")
    sessions = [create_session(path, plan, ModelsConfig()) for path in (reference, other)]
    if None in sessions:
        raise ModelError(f"{other.name} cannot be loaded", hint="make it again")
    one, two = ([session.run(None, feeds) for feeds in samples] for session in sessions)
    return [
        compute_psnr(np.stack([run[i] for run in one]), np.stack([run[i] for run in two]))
        for i, output in enumerate(one[0])
        if output.size >= _FEW
    ]


def compute_psnr(reference: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """Return the peak signal-to-noise ratio in dB, the peak being the reference's span."""
    error = float(np.mean((reference.astype(np.float64) - other.astype(np.float64)) ** 2))
    span = float(reference.max()) - float(reference.min())
    if not error:
        return float("inf")
    return 10.0 * float(np.log10(max(span * span, 1e-12) / error))
