"""Files that are damaged, or that ask for what a model must not do: typed errors, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

from ucle.errors import InputError, ModelError, UcleError, UnsupportedError
from ucle.models import from_onnx

FLOAT = TensorProto.FLOAT


def value(name: str, dims: Any = ("n", 4), kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, dims)


def model(
    nodes: Any, weights: Any = (), inputs: Any = None, outputs: Any = None, **given: Any
) -> Any:
    graph = helper.make_graph(
        nodes, "crafted", inputs or [value("x")], outputs or [value("y", ("p", "q"))], list(weights)
    )
    given.setdefault("opset_imports", [helper.make_opsetid("", 20)])
    return helper.make_model(graph, **given)


def node(kind: str, inputs: Any = ("x",), outputs: Any = ("y",), **given: Any) -> Any:
    return helper.make_node(kind, list(inputs), list(outputs), **given)


def weight(array: Any, name: str = "w") -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def raw(dims: Any, data: bytes, kind: int = FLOAT) -> Any:
    return TensorProto(dims=dims, data_type=kind, raw_data=data, name="w")


def external(location: str) -> Any:
    tensor = TensorProto(dims=[4], data_type=FLOAT, name="w", data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def trees(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
        **changes,
    }
    made = node("TreeEnsembleRegressor", domain="ai.onnx.ml", **given)
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return model([made], opset_imports=sets)


def matrix(*shape: int) -> Any:
    return weight(np.ones(shape, "f4"))


def integers(*numbers: int) -> Any:
    return weight(np.array(numbers, np.int64))


CRAFTED: dict[str, Callable[[], Any]] = {
    "no bytes of a model": lambda: b"this is no model",
    "random bytes": lambda: np.random.default_rng(0).bytes(500),
    "cut off": lambda: model([node("Relu")]).SerializeToString()[:-9],
    "another object": lambda: {"graph": []},
    "no graph": onnx.ModelProto,
    "a cycle": lambda: model([node("Relu", ["z"], ["y"]), node("Neg", ["y"], ["z"])]),
    "its own input": lambda: model([node("Add", ["x", "y"], ["y"])]),
    "used before computed": lambda: model([node("Neg", ["z"], ["y"]), node("Relu", ["x"], ["z"])]),
    "computed twice": lambda: model([node("Relu"), node("Neg")]),
    "unknown input": lambda: model([node("Add", ["x", "nothing"])]),
    "output not computed": lambda: model([node("Relu", outputs=["z"])]),
    "no output": lambda: model([node("Relu")], outputs=[value("", ("p",))]),
    "unknown operator": lambda: model([node("Levitate")]),
    "unknown domain": lambda: model([node("Relu", domain="org.example")]),
    "two unknown operators": lambda: model([node("Fly", ["x"], ["z"]), node("Swim", ["z"])]),
    "unknown operator in a branch": lambda: model(
        [
            node(
                "If",
                ["w"],
                then_branch=helper.make_graph([node("Fly", ["x"], ["a"])], "a", [], [value("a")]),
                else_branch=helper.make_graph([node("Relu", ["x"], ["b"])], "b", [], [value("b")]),
            )
        ],
        [weight(np.array(True))],
    ),
    "condition computed": lambda: model(
        [
            node("ReduceMax", ["x"], ["m"], keepdims=0),
            node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
            node(
                "If",
                ["c"],
                then_branch=helper.make_graph([node("Neg", ["x"], ["a"])], "a", [], [value("a")]),
                else_branch=helper.make_graph([node("Relu", ["x"], ["b"])], "b", [], [value("b")]),
            ),
        ]
    ),
    "too few operands": lambda: model([node("Add", ["x"])]),
    "too many operands": lambda: model([node("Relu", ["x", "x"])]),
    "unknown attribute": lambda: model([node("Relu", colour=3)]),
    "attribute of another type": lambda: model([node("LeakyRelu", alpha="much")]),
    "missing attribute": lambda: model([node("Cast")]),
    "cast to nothing": lambda: model([node("Cast", to=0)]),
    "cast to strings": lambda: model([node("Cast", to=TensorProto.STRING)]),
    "negative size": lambda: model([node("Add", ["x", "w"])], [raw([-4], b"")]),
    "huge size": lambda: model([node("Add", ["x", "w"])], [raw([1 << 40, 1 << 20], b"")]),
    "data too short": lambda: model([node("Add", ["x", "w"])], [raw([4], bytes(12))]),
    "data too long": lambda: model([node("Add", ["x", "w"])], [raw([4], bytes(20))]),
    "list too short": lambda: model(
        [node("Add", ["x", "w"])],
        [TensorProto(dims=[4], data_type=FLOAT, float_data=[1, 2], name="w")],
    ),
    "unknown type": lambda: model([node("Add", ["x", "w"])], [raw([4], bytes(16), kind=99)]),
    "absolute path": lambda: model([node("Add", ["x", "w"])], [external("/etc/passwd")]),
    "path out of the folder": lambda: model([node("Add", ["x", "w"])], [external("../w.bin")]),
    "no such data": lambda: model([node("Add", ["x", "w"])], [external("missing.bin")]),
    "no path": lambda: model([node("Add", ["x", "w"])], [external("")]),
    "sizes do not fit": lambda: model([node("Add", ["x", "w"])], [matrix(3)]),
    "products do not fit": lambda: model([node("MatMul", ["x", "w"])], [matrix(3, 2)]),
    "axis does not exist": lambda: model([node("Softmax", axis=7)]),
    "permutation of others": lambda: model([node("Transpose", perm=[0, 3])]),
    "shape does not fit": lambda: model([node("Reshape", ["x", "w"])], [integers(-1, 3)]),
    "two open sizes": lambda: model([node("Reshape", ["x", "w"])], [integers(-1, -1)]),
    "squeezed axis of size 4": lambda: model([node("Squeeze", ["x", "w"])], [integers(1)]),
    "rows in one row": lambda: model([node("ReduceSum", ["x", "w"], keepdims=0)], [integers(0)]),
    "some of the rows": lambda: model([node("Gather", ["x", "w"], axis=0)], [integers(0, 1)]),
    "position beyond": lambda: model([node("Gather", ["x", "w"], axis=1)], [integers(9)]),
    "position before": lambda: model([node("Gather", ["x", "w"], axis=1)], [integers(-5, 2)]),
    "step of 0": lambda: model(
        [node("Slice", ["x", "a", "a", "a", "a"])], [weight(np.array([0], np.int64), "a")]
    ),
    "open size of a sequence": lambda: model([node("Relu")], inputs=[value("x", ("n", "length"))]),
    "rank not known": lambda: model([node("Relu")], inputs=[value("x", None)]),
    "a sequence of tensors": lambda: model(
        [node("SequenceAt", ["x", "w"])],
        [weight(np.array(0))],
        inputs=[helper.make_tensor_sequence_value_info("x", FLOAT, [3])],
    ),
    "strings computed": lambda: model(
        [node("Equal", ["x", "x"])], inputs=[value("x", ("n", 1), TensorProto.STRING)]
    ),
    "strings as output": lambda: model(
        [node("Identity")], inputs=[value("x", ("n", 1), TensorProto.STRING)]
    ),
    "einsum of other labels": lambda: model([node("Einsum", equation="ij,jk->ik")]),
    "einsum of two sizes": lambda: model(
        [node("Einsum", ["x", "w"], equation="ij,j->i")], [matrix(3)]
    ),
    "windows of other channels": lambda: model(
        [node("Conv", ["x", "w"])], [matrix(2, 5, 3)], inputs=[value("x", ("n", 4, 9))]
    ),
    "weights too small": lambda: model(
        [node("LSTM", ["x", "w", "w"], hidden_size=3)],
        [matrix(1, 2, 2)],
        inputs=[value("x", (5, "n", 4))],
    ),
    "trees: a cycle": lambda: trees(nodes_truenodeids=[0, 0, 0]),
    "trees: no such node": lambda: trees(nodes_truenodeids=[9, 0, 0]),
    "trees: two parents": lambda: trees(nodes_truenodeids=[2, 0, 0]),
    "trees: lists of two lengths": lambda: trees(nodes_values=[0.5]),
    "trees: unknown condition": lambda: trees(nodes_modes=["BRANCH_MAYBE", "LEAF", "LEAF"]),
    "trees: no such output": lambda: trees(target_ids=[0, 3]),
    "trees: no such leaf": lambda: trees(target_nodeids=[1, 7]),
    "trees: no such feature": lambda: trees(nodes_featureids=[8, 0, 0]),
}


def run(source: Any) -> None:
    read = from_onnx(source)
    read.program(np.ones((2, *read.inputs[0].sizes[1:]), "f4")).execute().close()


@pytest.mark.parametrize("name", CRAFTED)
@pytest.mark.sample(None)
def test_a_crafted_file(name: str, tmp_path: Path) -> None:
    made = CRAFTED[name]()
    if (hasattr(made, "SerializeToString") and "path" in name) or name == "no such data":
        path = tmp_path / "model.onnx"
        path.write_bytes(made.SerializeToString())
        made = path
    with pytest.raises(UcleError) as raised:
        run(made)
    assert isinstance(raised.value, InputError | ModelError | UnsupportedError | UcleError)
    assert len(str(raised.value)) > 20


def test_data_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    (tmp_path / "inner").mkdir()
    path = tmp_path / "inner" / "model.onnx"
    path.write_bytes(CRAFTED["path out of the folder"]().SerializeToString())
    with pytest.raises(ModelError, match="outside of the model's folder"):
        from_onnx(path)


def test_all_missing_operators_are_listed() -> None:
    with pytest.raises(UnsupportedError, match="Fly, Swim"):
        from_onnx(CRAFTED["two unknown operators"]())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        from_onnx(tmp_path / "nothing.onnx")


def test_external_data_in_the_folder_is_read(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "w"])], [weight(np.arange(4, dtype="f4"))])
    onnx.save_model(
        made,
        str(tmp_path / "m.onnx"),
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    read = from_onnx(tmp_path / "m.onnx")
    with read.program(np.ones((2, 4), "f4")).execute() as result:
        assert result["y"].to_numpy().tolist() == [[1, 2, 3, 4]] * 2
