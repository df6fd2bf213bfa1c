"""Programs as ONNX models: trained ones, what stays open, and what has no operator there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

pytest.importorskip("onnx")

import onnx
from runtimes import run_model

import ucle
from ucle.errors import ArgumentError, NameResolutionError, UnsupportedError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
LABEL = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
USER, ITEM = RNG.integers(0, 6, 60), RNG.integers(0, 5, 60)
TOKENS = RNG.integers(0, 9, (40, 3))
TARGET = LABEL.astype(float)

TRAINED = {
    "logistic": (
        """
        z[i] += x[i,j] * w[j]
        p[i] = sigmoid(z[i] + b[])
        loss = mean[i](softplus(z[i] + b[]) - y[i] * (z[i] + b[]))
        """,
        {"x": X, "y": TARGET, "w": np.zeros(4), "b": 0.0},
        ["w", "b"],
        "p",
        ["x"],
    ),
    "network": (
        """
        h[i,k] = relu(x[i,j] * W1[j,k] + b1[k])
        s[i,c] = h[i,k] * W2[k,c] + b2[c]
        p[i,c] = softmax[c](s[i,c])
        loss = mean[i](logsumexp[c](s[i,c]) - s[i,label[i]])
        """,
        {
            "x": X,
            "label": LABEL,
            "W1": ucle.init.he_normal((4, 8), seed=1),
            "b1": np.zeros(8),
            "W2": ucle.init.glorot_uniform((8, 2), seed=2),
            "b2": np.zeros(2),
        },
        ["W1", "b1", "W2", "b2"],
        "p",
        ["x"],
    ),
    "factors": (
        """
        p[n] = sum[k](U[user[n],k] * V[item[n],k])
        loss = mean[n](square(p[n] - stars[n]))
        """,
        {
            "user": USER,
            "item": ITEM,
            "stars": RNG.integers(1, 6, 60) * 1.0,
            "U": RNG.normal(size=(6, 3)),
            "V": RNG.normal(size=(5, 3)),
        },
        ["U", "V"],
        "p",
        ["user", "item"],
    ),
    "embedding": (
        """
        e[i,t,d] = E[tokens[i,t],d]
        m[i,d] = mean[t](e[i,t,d])
        p[i] = sigmoid(m[i,d] * w[d])
        loss = mean[i](square(p[i] - y[i]))
        """,
        {"tokens": TOKENS, "y": TARGET, "E": RNG.normal(size=(9, 5)), "w": np.ones(5)},
        ["E", "w"],
        "p",
        ["tokens"],
    ),
}
"""Programs with their inputs, what is trained, the output, and what the model reads."""


@pytest.mark.parametrize("name", TRAINED)
def test_trained_programs(name: str, native: Any) -> None:
    text, inputs, wrt, output, read = TRAINED[name]
    program = ucle.einsum_program(text, inputs=inputs, database=native)
    step = program.minimize("loss", wrt, ucle.optim.adam(0.05), outputs=[output])
    with step.prepare() as run:
        for _ in range(5):
            run()
        model = step.to_onnx(outputs=[output], weights=run.state)
        expected = run()[output].to_numpy()
    assert [x.name for x in model.graph.input] == read
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    np.testing.assert_allclose(run_model(model, inputs)[output], expected, rtol=1e-9, atol=1e-12)
    few = {name: inputs[name][:7] for name in read}
    np.testing.assert_allclose(run_model(model, few)[output], expected[:7], rtol=1e-9, atol=1e-12)
    narrow = step.to_onnx(outputs=[output], weights=dict(_state(step, 5)), dtype="float32")
    own = run_model(narrow, inputs)[output]
    assert own.dtype == np.float32
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def _state(step: Any, steps: int) -> Any:
    """The trained inputs after some steps, by the result of a loop."""
    with step.iterate(max_steps=steps) as found:
        for name, output in step.carry.items():
            yield name, found[output].to_numpy()


def test_a_result_of_a_loop_has_the_weights() -> None:
    text, inputs, wrt, output, _ = TRAINED["logistic"]
    step = ucle.einsum_program(text, inputs=inputs).minimize("loss", wrt, ucle.optim.sgd(0.1))
    with step.iterate(max_steps=3) as found:
        model = step.to_onnx(outputs=[output], weights=found)
        (own,) = (x for x in model.graph.initializer if x.name == "w")
        assert np.array_equal(onnx.numpy_helper.to_array(own), found["w_next"].to_numpy())


def test_rows_say_what_is_a_weight(tmp_path: Path) -> None:
    text = "p[i] = tanh(x[i,j] * w[j] + b[])"
    program = ucle.einsum_program(text, x=X, w=np.ones(4), b=0.5)
    path = tmp_path / "model.onnx"
    program.to_onnx(path, rows="i")
    model = onnx.load(path)
    assert [x.name for x in model.graph.input] == ["x"]
    assert [
        d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim
    ] == [
        "i",
        4,
    ]
    assert model.opset_import[0].version == 18
    found = run_model(model, {"x": X[:3]})["p"]
    np.testing.assert_allclose(found, np.tanh(X[:3].sum(axis=1) + 0.5))


def test_sparse_weights_and_names(native: Any) -> None:
    """Weights from tables are dense in the order of their names, which the model tells."""
    native.execute(
        "CREATE OR REPLACE TEMP TABLE price AS "
        "FROM (VALUES ('pear', 2.0), ('fig', 3.0)) t(fruit, val)"
    )
    program = ucle.einsum_program(
        "cost[n] = sum[fruit](bought[n,fruit] * price[fruit]); far[n] = S[n,m] * y[m]",
        bought=ucle.table(
            pd.DataFrame({"n": [0, 0, 1], "fruit": ["fig", "pear", "pear"], "val": [1.0, 2.0, 1.0]})
        ),
        price=ucle.table("price", ["fruit"], "val"),
        S=scipy.sparse.coo_array(np.array([[0.0, 1.0], [2.0, 0.0]])),
        y=[1.0, 3.0],
        database=native,
        outputs=["cost", "far"],
    )
    model = program.to_onnx(weights=["price", "S"])
    told = {x.key: x.value for x in model.metadata_props}
    assert told == {"coordinates.price.fruit": '["fig", "pear"]'}
    bought = np.array([[1.0, 2.0], [0.0, 1.0]])
    found = run_model(model, {"bought": bought, "y": np.array([1.0, 3.0])})
    assert found["cost"].tolist() == [7.0, 2.0]
    assert found["far"].tolist() == [3.0, 2.0]


def test_positions_and_masks_of_open_axes() -> None:
    """Coordinates, masks and means follow the number of rows."""
    program = ucle.einsum_program(
        "a[i,j] = when(i <= j, x[i,j]) + i; m = mean[i,j](x[i,j]); c[i,j] = cumsum[j](x[i,j])",
        x=X,
        outputs=["a", "m", "c"],
    )
    model = program.to_onnx()
    other = np.arange(6.0).reshape(3, 2)
    found = run_model(model, {"x": other})
    assert np.array_equal(found["a"], np.triu(other) + np.arange(3)[:, None])
    assert found["m"] == other.mean()
    assert np.array_equal(found["c"], other.cumsum(axis=1))


def test_what_comes_first() -> None:
    text = (
        "v[i,r] = top_k[j,r](x[i,j]); n[i,r] = arg_top_k[j,r](x[i,j]); least[i] = argmin[j](x[i,j])"
    )
    outputs = ["v", "n", "least"]
    program = ucle.einsum_program(text, x=X, bounds={"r": 2}, outputs=outputs)
    found = run_model(program.to_onnx(), {"x": X[:9]})
    order = np.argsort(-X[:9], axis=1)[:, :2]
    assert np.array_equal(found["n"], order)
    assert found["n"].dtype == np.int64
    assert np.array_equal(found["v"], np.take_along_axis(X[:9], order, axis=1))
    assert np.array_equal(found["least"], X[:9].argmin(axis=1))


def test_all_that_has_no_operator_is_listed() -> None:
    text = """
    a[i] = cumprod[i](x[i])
    b[i] = nextafter(a[i], 1) + 1
    c[i,j] = inv[i,j](M[i,j])
    d[i] = random_uniform(3, 2*i) + x[i]
    e[i] = relu(x[i])
    """
    program = ucle.einsum_program(text, x=X[:, 0], M=np.eye(3), outputs=list("bcde"))
    with pytest.raises(UnsupportedError) as caught:
        program.to_onnx()
    message = str(caught.value)
    for line, reason in ((2, "cumprod"), (4, "inv"), (5, "random_bits")):
        assert f"line {line}," in message
        assert reason in message
    assert "relu" not in message
    assert "line 3" not in message  # it only reads what is missing
    assert [x.op_type for x in program.to_onnx(outputs="e").graph.node] == ["Relu"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"rows": "k"}, ArgumentError, "no input has the label of the rows"),
        ({"rows": "t"}, ArgumentError, "cannot stay open"),
        ({"weights": ["v"]}, NameResolutionError, "no input of the program"),
        ({"weights": {"v": 1}}, ArgumentError, "no such input"),
        ({"weights": {"w": np.ones(2)}}, ArgumentError, "another shape"),
        ({"outputs": "q"}, NameResolutionError, "q"),
        ({"dtype": "float16"}, ArgumentError, "float32"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], words: str) -> None:
    program = ucle.einsum_program(
        "p[i,t] = x[i,t+1] - x[i,t] * w[j]", x=X, w=np.ones(3), outputs=["p"]
    )
    with pytest.raises(error, match=words):
        program.to_onnx(**arguments)


def test_a_weight_that_is_too_large_when_dense() -> None:
    wide = scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(1 << 16, 1 << 16))
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=wide, x=np.ones(1 << 16))
    with pytest.raises(UnsupportedError, match="65536 x 65536, 32768 MB"):
        program.to_onnx(weights=["A"])
    assert len(program.to_onnx().graph.input) == 2
