"""Runtimes of ONNX: onnxruntime where it is installed, and the reference implementation."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dtypes import nearest

Array = NDArray[Any]
FAST = importlib.util.find_spec("onnxruntime") is not None
"""Whether onnxruntime is installed."""


def run_model(model: Any, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs of a model by name.

    Args:
        model: an `onnx.ModelProto`.
        inputs: arrays by name; those that are no inputs are left out.
    """
    names = {value.name for value in model.graph.input}
    feeds = {x: _typed(model, x, array) for x, array in inputs.items() if x in names}
    outputs = [value.name for value in model.graph.output]
    sizes = [x.size for x in feeds.values()]
    sizes += [int(np.prod(x.dims)) for x in model.graph.initializer]
    fast = FAST and 0 not in sizes  # onnxruntime divides by a size in `Einsum`
    with np.errstate(all="ignore"):
        results = (_run_fast if fast else _run_reference)(model, outputs, feeds)
    return dict(zip(outputs, map(np.asarray, results), strict=True))


def _typed(model: Any, name: str, array: Any) -> Array:
    """An array in the type of an input."""
    from onnx import helper

    (value,) = (x for x in model.graph.input if x.name == name)
    own = np.asarray(array)
    assert nearest(own.dtype) is not None
    return own.astype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))


def _run_fast(model: Any, outputs: list[str], feeds: Mapping[str, Array]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(outputs, dict(feeds)))


def _run_reference(model: Any, outputs: list[str], feeds: Mapping[str, Array]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(outputs, dict(feeds)))
