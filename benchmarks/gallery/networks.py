"""Small networks in the format of ONNX, as other libraries write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper

Node = tuple[Any, ...]
"""An operator, its operands, its result, and its attributes if it has any."""

KINDS = {"double": TensorProto.DOUBLE, "int64": TensorProto.INT64}


def network(
    nodes: Sequence[Node],
    weights: Mapping[str, Any],
    inputs: Mapping[str, tuple[str, Sequence[Any]]],
    output: tuple[str, Sequence[Any]],
) -> onnx.ModelProto:
    """A model with one output in float64.

    Args:
        nodes: in order.
        weights: arrays by name.
        inputs: type and shape by name.
        output: its name and shape.
    """
    made = [
        helper.make_node(operator, operands, [result], **(attributes[0] if attributes else {}))
        for operator, operands, result, *attributes in nodes
    ]
    graph = helper.make_graph(
        made,
        "network",
        [
            helper.make_tensor_value_info(name, KINDS[kind], shape)
            for name, (kind, shape) in inputs.items()
        ],
        [helper.make_tensor_value_info(output[0], TensorProto.DOUBLE, output[1])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
