"""Random graphs against the reference implementation of ONNX, with and without open rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from random_graphs import Graph

from ucle.errors import UnsupportedError
from ucle.models import from_onnx
from ucle.testing.check_matrix import Routes


@pytest.mark.parametrize("seed", range(400))
def test_random_graphs(seed: int, routes: Routes) -> None:
    rng = np.random.default_rng(seed)
    model = Graph(seed, rows=seed % 4 != 0).model(int(rng.integers(1, 9)))
    shape = [n.dim_value or 5 for n in model.graph.input[0].type.tensor_type.shape.dim]
    x = rng.normal(size=shape).astype("f4")
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(model).run(None, {"x": x})
    read = from_onnx(model)
    for connection in routes.values():
        program = read.program(x, database=connection)
        with program.execute() as result:
            for output, value in zip(read.outputs, expected, strict=True):
                found = result[output.name].to_numpy().reshape(value.shape)
                known = np.isfinite(value)  # the reference takes logarithms of what underflows
                scale = max(float(np.abs(value[known]).max(initial=0)), 1)
                np.testing.assert_allclose(found[known], value[known], rtol=1e-4, atol=1e-5 * scale)


def test_a_product_of_split_axes(routes: Routes) -> None:
    """12 positions as 3 by 4, multiplied by a matrix of 12 rows."""
    rng = np.random.default_rng(0)
    shape, w = np.array([-1, 3, 4], np.int64), rng.normal(size=(12, 5)).astype("f4")
    flat = np.array([-1, 12], np.int64)
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["split"]),
        helper.make_node("Relu", ["split"], ["positive"]),
        helper.make_node("Reshape", ["positive", "flat"], ["line"]),
        helper.make_node("MatMul", ["line", "w"], ["y"]),
    ]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "split",
        [helper.make_tensor_value_info("x", floats, ["rows", 12])],
        [helper.make_tensor_value_info("y", floats, ["rows", 5])],
        [numpy_helper.from_array(v, n) for n, v in (("shape", shape), ("flat", flat), ("w", w))],
    )
    model = from_onnx(helper.make_model(graph))
    assert not [line for line in model.statements.splitlines() if "//" in line]
    x = rng.normal(size=(4, 12)).astype("f4")
    for connection in routes.values():
        with model.program(x, database=connection).execute() as result:
            np.testing.assert_allclose(result["y"].to_numpy(), np.maximum(x, 0) @ w, rtol=1e-4)


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_large_entries_lose_no_digits(kind: str, routes: Routes) -> None:
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], ["y"], axis=-1)],
        "large",
        [helper.make_tensor_value_info("x", floats, ["rows", 4])],
        [helper.make_tensor_value_info("y", floats, ["rows", 4])],
    )
    model = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    small = np.array([[0, 1, 2, 3], [0.5, 0, -4, 1]], "f4")
    for connection in routes.values():
        values = []
        for x in (small, small + np.float32(8192)):
            with model.program(x, database=connection).execute() as result:
                values.append(result["y"].to_numpy())
        np.testing.assert_allclose(values[1], values[0], rtol=1e-6)


def test_a_number_with_more_axes(routes: Routes) -> None:
    """A constant of one entry and three axes gives its rank to what it is added to."""
    floats = TensorProto.FLOAT
    nodes = [
        helper.make_node("Add", ["x", "one"], ["sum"]),
        helper.make_node("ReduceSum", ["sum", "axes"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "number",
        [helper.make_tensor_value_info("x", floats, [3])],
        [helper.make_tensor_value_info("y", floats, [1, 1])],
        [
            numpy_helper.from_array(np.ones((1, 1, 1), "f4"), "one"),
            numpy_helper.from_array(np.array([2], np.int64), "axes"),
        ],
    )
    x = np.arange(3, dtype="f4")
    model = from_onnx(helper.make_model(graph), sizes={})
    for connection in routes.values():
        program = model.program(inputs={"x": x}, database=connection)
        with program.execute() as result:
            assert result["y"].to_numpy() == pytest.approx(6)


def test_a_position_that_is_one_number(routes: Routes) -> None:
    """A tensor without axes is no label where another one is read at it."""
    number = helper.make_tensor_value_info("k", TensorProto.INT64, [])
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "k"], ["y"])],
        "position",
        [number],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(np.array([5, 6, 7], "f4"), "w")],
    )
    model = from_onnx(helper.make_model(graph))
    for connection in routes.values():
        for k, expected in ((2, 7), (-3, 5)):
            with model.program(k=np.array(k), database=connection).execute() as result:
                assert result["y"].item() == expected


def test_sizes_of_axes_without_names(routes: Routes) -> None:
    """An axis is stated by its input and number; -1 is an open size, as older files have it."""
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        "sizes",
        [helper.make_tensor_value_info("x", floats, [-1, "?", "?"])],
        [helper.make_tensor_value_info("y", floats, ["rows"])],
        [numpy_helper.from_array(np.array([1, 2], np.int64), "axes")],
    )
    proto = helper.make_model(graph)
    with pytest.raises(UnsupportedError, match=r"sizes=\{'\?': 64\}"):
        from_onnx(proto)
    model = from_onnx(proto, sizes={"x.1": 2, "x.2": 3})
    x = np.arange(24, dtype="f4").reshape(4, 2, 3)
    for connection in routes.values():
        with model.program(x, database=connection).execute() as result:
            assert np.array_equal(result["y"].to_numpy(), x.sum(axis=(1, 2)))


@pytest.mark.parametrize("steps", [1, 4])
def test_a_loop_of_known_length(steps: int, routes: Routes) -> None:
    """Its body is computed once for each step; what each step adds is stacked."""
    floats, whole, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", "w"], ["product"]),
            helper.make_node("Cast", ["step"], ["number"], to=floats),
            helper.make_node("Add", ["product", "number"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["next"]),
            helper.make_node("Identity", ["goes"], ["goes_on"]),
            helper.make_node("Identity", ["next"], ["each"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", whole, []),
            helper.make_tensor_value_info("goes", truth, []),
            helper.make_tensor_value_info("h", floats, None),
        ],
        [
            helper.make_tensor_value_info("goes_on", truth, []),
            helper.make_tensor_value_info("next", floats, None),
            helper.make_tensor_value_info("each", floats, None),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["steps", "", "x"], ["last", "all"], body=body)],
        "loop",
        [helper.make_tensor_value_info("x", floats, ["rows", 3])],
        [
            helper.make_tensor_value_info("last", floats, ["rows", 3]),
            helper.make_tensor_value_info("all", floats, [steps, "rows", 3]),
        ],
        [
            numpy_helper.from_array(np.array(steps), "steps"),
            numpy_helper.from_array(np.eye(3, k=1, dtype="f4") - np.eye(3, dtype="f4"), "w"),
        ],
    )
    model = from_onnx(helper.make_model(graph))
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("f4")
    each = [x]
    for step in range(steps):
        each.append(np.tanh(each[-1] @ (np.eye(3, k=1) - np.eye(3)) + step))
    expected = each[-1], np.stack(each[1:])
    for connection in routes.values():
        with model.program(x, database=connection).execute() as result:
            for output, value in zip(model.outputs, expected, strict=True):
                found = result[output.name].to_numpy()
                if output.name == "all" and found.shape != value.squeeze().shape:
                    found = np.moveaxis(found, 0, 1)  # the rows come first in programs
                np.testing.assert_allclose(found, value.squeeze(), rtol=1e-5, atol=1e-6)
