"""The node tests that come with the package `onnx`, as cases for models.

``node_tests.txt`` lists those that have to pass, so that nothing of `onnx` is imported to collect
tests; ``python tests/models/node_cases.py`` writes it.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ucle.errors import UnsupportedError
from ucle.models import Model, from_onnx
from ucle.models.graph import _HERE
from ucle.models.operators.known_operators import TABLE

REFUSED = (
    *("training_dropout", "batchnorm_example_training", "batchnorm_epsilon_training"),
    *("maxpool_with_argmax", "if", "split_zero_size", "tril_zero", "triu_zero", "empty_set"),
    *("allowzero_reordered", "equal_string", "label_encoder_string", "tensor_mapping"),
    *("bitshift_left_int", "identity_opt", "if_opt", "if_seq", "tensor_value_only", "optional"),
    *("loop16_seq_none", "cubic", "antialias", "tf_crop", "not_larger", "not_smaller"),
    *("FLOAT4", "FLOAT8", "E8M0", "INT2", "INT4", "BFLOAT16", "bfloat16"),
)
"""Parts of the names of cases whose operators are there, in a form that is not."""


@cache
def cases() -> dict[str, Any]:
    """All cases by name; those that spell out the definition of an operator are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = import_module("onnx.backend.test.loader").load_model_tests(kind="node")
    return {case.name.removeprefix("test_"): case for case in found if "_expanded" not in case.name}


@cache
def names() -> tuple[str, ...]:
    """The cases whose operators are all in the table, or defined by those that are."""
    return tuple(name for name in sorted(cases()) if is_there(name))


def is_there(name: str) -> bool:
    """True for a case that has to pass."""
    if any(part in name if part != "if" else part == name for part in REFUSED):
        return False
    model = read(name)
    if any(value.type.HasField("sequence_type") for value in model.graph.input):
        return False
    return all(
        (node.domain, node.op_type) in TABLE or (node.domain, node.op_type) in _HERE
        for node in model.graph.node
    )


def read(name: str) -> Any:
    """The model of a case: its own copy."""
    case = cases()[name]
    if case.model is not None:
        return onnx.load_model_from_string(case.model.SerializeToString())
    return onnx.load(Path(case.model_dir) / "model.onnx")


def values(name: str, kind: str, infos: Any) -> list[Any]:
    """The inputs or outputs of a case; None where an optional one is missing."""
    case = cases()[name]
    if case.data_sets:
        return [array(x) for x in case.data_sets[0][0 if kind == "input" else 1]]
    found = []
    for n, _ in enumerate(infos):
        path = Path(case.model_dir) / "test_data_set_0" / f"{kind}_{n}.pb"
        tensor = onnx.TensorProto()
        if path.exists():
            tensor.ParseFromString(path.read_bytes())
        found.append(numpy_helper.to_array(tensor) if path.exists() else None)
    return found


def array(value: Any) -> Any:
    """A value of a case as an array."""
    return (
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    )


def model_of(name: str, given: dict[str, Any]) -> Model:
    """A case as a model; operands that have to be constants are those of the case."""
    try:
        return from_onnx(read(name))
    except UnsupportedError as error:
        if "constant" not in str(error.expected):
            raise
    first = next(iter(given), "")
    small = {
        key: value
        for key, value in given.items()
        if value is not None
        and (key != first or "constantofshape" in name or "loop" in name)
        and (value.ndim < 2 or value.size == 1 or "pad" in name or "onehot" in name)
        and (value.dtype.kind in "ib" or value.size == 1 or "onehot" in name or "resize" in name)
    }
    return from_onnx(read(name), constants=given if name.startswith("range") else small)


def inputs_of(model: Model, given: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a case as a program takes them."""
    return {own.original: np.squeeze(given[own.original]).astype(own.dtype) for own in model.inputs}


LISTED = Path(__file__).with_name("node_tests.txt")

if __name__ == "__main__":
    LISTED.write_text("\n".join(names()) + "\n")
