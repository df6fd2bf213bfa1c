"""Functions along labels that stay, in programs and of lazy tensors, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import LabelError, NameResolutionError
from ucle.language.functions import ALONG
from ucle.testing.oracle import evaluate

Array = np.ndarray[Any, Any]


def _centred(x: Array, axis: Any) -> Array:
    return x - x.mean(axis, keepdims=True)


def _length(x: Array, axis: Any) -> Array:
    length = np.sqrt((np.abs(x) ** 2).sum(axis, keepdims=True))
    return np.where(length == 0, 1, length)


def _log_softmax(x: Array, axis: Any) -> Array:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


NUMPY: dict[str, Callable[[Array, Any], Array]] = {
    "softmax": lambda x, axis: np.exp(_log_softmax(x, axis)),
    "log_softmax": _log_softmax,
    "normalize": lambda x, axis: x / _length(x, axis),
    "standardize": lambda x, axis: _centred(x, axis) / x.std(axis, keepdims=True),
    "layer_norm": lambda x, axis: _centred(x, axis) / np.sqrt(x.var(axis, keepdims=True) + 1e-5),
}


def test_all_are_compared() -> None:
    assert set(NUMPY) == set(ALONG)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("labels", ["j", "i", "ij", "ki"])
def test_programs(name: str, labels: str, connection: duckdb.DuckDBPyConnection) -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 3)) * 30
    axes = tuple("ijk".index(label) for label in labels)
    text = f"Z[i,k,j] = {name}[{','.join(labels)}](2 * x[i,j,k]) + 1"
    with ucle.einsum_program(text, x=x, database=connection).execute() as result:
        expected = NUMPY[name](2 * x, axes).transpose(0, 2, 1) + 1
        np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ALONG)
def test_tables_and_decompositions(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    """What is not stored counts as any other entry, whatever label is a key."""
    x = np.random.default_rng(1).normal(size=(6, 5))
    x[np.abs(x) < 0.7] = 0
    x[2] = x[1] if name == "standardize" else 0
    rows = [f"({i}, {j}, {x[i, j]})" for i, j in zip(*np.nonzero(x), strict=True)]
    connection.execute("DROP TABLE IF EXISTS along")
    connection.execute(f"CREATE TABLE along AS SELECT * FROM (VALUES {', '.join(rows)}) t(i, j, v)")
    table = ucle.table("along", ["i", "j"], "v", bounds=x.shape)
    program = ucle.einsum_program(f"Z[i,j] = {name}[j](x[i,j])", x=table, database=connection)
    for keys in ("i", "j", "ij", ""):
        chosen = program.with_decomposition({"Z": tuple(keys)})
        with chosen.execute() as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), NUMPY[name](x, 1), atol=1e-12)


@pytest.mark.parametrize("name", ALONG)
def test_booleans_count_as_numbers(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    x = np.array([[True, False, True, False], [False, False, False, True]])
    text = f"Z[i,j] = {name}[j](x[i,j]); l[i] logsumexp= x[i,j]"
    with ucle.einsum_program(text, x=x, database=connection).execute() as result:
        expected = NUMPY[name](x.astype(float), 1)
        np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-10, atol=1e-10)
        sums = np.log(np.exp(x.astype(float)).sum(1))
        np.testing.assert_allclose(result["l"].to_numpy(), sums, rtol=1e-10)
    found = getattr(ucle, name)(x, 1)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.to_numpy(connection), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
def test_lazy_tensors(name: str, axis: Any) -> None:
    if name == "softmax" and isinstance(axis, tuple):
        pytest.skip("it is along one axis, as scipy's and PyTorch's")
    x = np.random.default_rng(2).normal(size=(4, 5))
    found = getattr(ucle, name)(x, axis=axis).to_numpy()
    np.testing.assert_allclose(found, NUMPY[name](x, axis), atol=1e-12)


def test_large_numbers_stay_finite() -> None:
    x = np.array([[1000.0, 0.0, -1000.0]])
    with ucle.einsum_program("P[i,j] = softmax[j](x[i,j])", x=x).execute() as result:
        np.testing.assert_array_equal(result["P"].to_numpy(), [[1, 0, 0]])


def test_complex_numbers_have_a_length() -> None:
    x = np.array([3 + 4j, 0])
    with ucle.einsum_program("Z[i] = normalize[i](x[i])", x=x).execute() as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), x / 5)


def test_gradients() -> None:
    x = np.random.default_rng(3).normal(size=(2, 4))
    inputs = {"x": ucle.parameter(x), "w": np.arange(8.0).reshape(2, 4)}
    for name in ALONG:
        text = f"loss = sum[i,j](w[i,j] * {name}[j](x[i,j]))"
        program = ucle.einsum_program(text, inputs=inputs)
        with program.gradient("loss", ["x"]).execute() as result:
            (found,) = (result[x].to_numpy() for x in result if result[x].shape == (2, 4))
        step = 1e-6
        for place in np.ndindex(2, 4):
            change = np.zeros_like(x)
            change[place] = step
            high, low = ((inputs["w"] * NUMPY[name](y, 1)).sum() for y in (x + change, x - change))
            assert found[place] == pytest.approx((high - low) / (2 * step), abs=1e-5), name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Z[i,j] = softmax[](x[i,j])", r"softmax\[j\]"),
        ("Z[i,j] = softmax[k](x[i,j])", "labels of its argument"),
        ("Z[i,j] = softmax[j,j](x[i,j])", "labels of its argument"),
        ("Z[i,j] = softmax(x[i,j])", "over which labels"),
        ("Z[i,j] = sofmax[j](x[i,j])", 'Did you mean "softmax"'),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises((LabelError, NameResolutionError), match=message):
        ucle.einsum_program(text, x=np.ones((2, 2)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_missing_labels_are_summed_in_the_argument(name: str, decomposition: str) -> None:
    rng = np.random.default_rng(5)
    a, b, w = rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), rng.normal(size=(3, 2))
    text = f"""
        P[i,n] = {name}[n](a[i,j] * b[j,n])
        Q[i,n] = 1 - {name}[n](a[i,j] * b[j,m] * w[m,n]) / 2
        R[i] = {name}[n](a[i,j] * b[j,n] / 2)
    """
    program = ucle.einsum_program(text, a=a, b=b, w=w, decomposition=decomposition)
    with program.execute() as result:
        found = {each: result[each].to_numpy() for each in "PQR"}
    np.testing.assert_allclose(found["P"], NUMPY[name](a @ b, 1), atol=1e-12)
    np.testing.assert_allclose(found["Q"], 1 - NUMPY[name](a @ b @ w, 1) / 2, atol=1e-12)
    np.testing.assert_allclose(found["R"], NUMPY[name](a @ b / 2, 1).sum(1), atol=1e-12)


@pytest.mark.parametrize("name", ALONG)
def test_the_oracle_knows_them(name: str) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(5, 3))
    found = evaluate(f"P[i,n] = {name}[n](a[i,j] * b[j,n])", {"a": a, "b": b})["P"]
    np.testing.assert_allclose(found, NUMPY[name](a @ b, 1), atol=1e-12)
