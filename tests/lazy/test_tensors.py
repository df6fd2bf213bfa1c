"""Lazy tensors against NumPy: random expressions; tables, names of axes, programs, errors."""

from __future__ import annotations

import contextlib
import operator
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import ucle
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    BoundError,
    CoordinateError,
    DatabaseError,
    LabelError,
    LazyError,
    PositionError,
    UnsupportedError,
    ValueTypeError,
)
from ucle.language.parse import parse_program
from ucle.language.syntax import Number
from ucle.language.syntax_to_text import statement_text
from ucle.lazy.compute import program_of

Array = NDArray[Any]
TYPES = ("float64", "float32", "int64", "bool", "complex128")


@dataclass(frozen=True)
class Pair:
    """A value in two forms: as a lazy tensor and as NumPy computes it."""

    tensor: Any
    array: Any


class Undefined(Exception):
    """NumPy has no such operation on these operands."""


class Maker:
    """Random expressions: a pool of pairs that grows by one operation at a time."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.pool = [self.leaf() for _ in range(self.rng.integers(1, 4))]

    def leaf(self, shape: tuple[int, ...] | None = None) -> Pair:
        rng = self.rng
        if shape is None:
            sizes = [0, 1, 1, 2, 3, 3, 3, 3] if rng.random() < 0.1 else [1, 2, 3, 3, 3]
            shape = tuple(int(n) for n in rng.choice(sizes, rng.integers(0, 4)))
        array = rng.integers(-2, 4, shape)
        array[rng.random(shape) < 0.4] = 0
        dtype = str(rng.choice(TYPES, p=[0.4, 0.15, 0.2, 0.15, 0.1]))
        array = np.asarray(array.astype(dtype))
        if dtype == "complex128":
            array = array + 1j * rng.integers(-1, 2, shape)
        sparse = 1 <= array.ndim <= 2 and array.size and rng.random() < 0.3
        return Pair(ucle.array(scipy.sparse.coo_array(array) if sparse else array), array)

    def pick(self) -> Pair:
        return self.pool[int(self.rng.integers(len(self.pool)))]

    def fitting(self, pair: Pair) -> Pair:
        """Another operand: often one whose shape can be broadcast with the first's."""
        rng = self.rng
        if rng.random() < 0.5:
            return self.pick()
        shape = pair.array.shape[int(rng.integers(0, pair.array.ndim + 1)) :]
        return self.leaf(tuple(1 if rng.random() < 0.2 else n for n in shape))

    def axis(self, pair: Pair) -> Any:
        rank = pair.array.ndim
        if not rank or self.rng.random() < 0.2:
            return None
        if self.rng.random() < 0.3:
            count = int(self.rng.integers(1, rank + 1))
            return tuple(int(x) for x in self.rng.permutation(rank)[:count])
        return int(self.rng.integers(-rank, rank))

    def step(self) -> Pair:
        kinds = [
            self.binary, self.binary, self.unary, self.reduce, self.reduce, self.product,
            self.product, self.index, self.move, self.choose,
        ]  # fmt: skip
        made = kinds[int(self.rng.integers(len(kinds)))]()
        self.pool.append(made)
        return made

    def both(self, function: Callable[..., Any], *pairs: Any, ours: Any = None) -> Pair:
        tensors = [x.tensor if isinstance(x, Pair) else x for x in pairs]
        arrays = [x.array if isinstance(x, Pair) else x for x in pairs]
        try:
            with np.errstate(all="ignore"):
                expected = np.asarray(function(*arrays))
        except (TypeError, ValueError, IndexError) as error:
            raise Undefined(str(error)) from error
        if expected.dtype in (np.int8, np.float16):
            raise Undefined("NumPy computes in a type that ucle does not have")
        made = (ours or function)(*tensors)
        try:
            assert made.dtype == expected.dtype, made
        except ValueTypeError as error:
            self.refused(error, arrays)
        return Pair(made, expected)

    def refused(self, error: ValueTypeError, arrays: list[Any]) -> None:
        """Complex numbers have no order, and integers no bitwise operators."""
        kinds = [np.asarray(array).dtype.kind for array in arrays]
        ordered = re.search(r"no (min|max|argmax|less|less_equal|sign|prod|floor) of", str(error))
        assert ("c" in kinds and ordered) or re.search(r"no bitwise_\w+ of", str(error)), error
        raise Undefined(str(error)) from error

    def binary(self) -> Pair:
        one = self.pick()
        scalars = [2, -1, 0.5, True, 0]
        other: Any = self.fitting(one)
        if self.rng.random() < 0.3:
            other = scalars[int(self.rng.integers(len(scalars)))]
        names = [
            "add", "sub", "mul", "mul", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor",
        ]  # fmt: skip
        operands = (one, other) if self.rng.random() < 0.7 else (other, one)
        if self.rng.random() < 0.2:
            divisor = operands[1]
            if not isinstance(divisor, Pair):
                return self.both(operator.truediv, one, 3)
            below = self.both(lambda x: abs(x) + 1, divisor)
            return self.both(operator.truediv, operands[0], below)
        if self.rng.random() < 0.2:
            name = str(self.rng.choice(["maximum", "minimum", "logical_and", "logical_xor"]))
            return self.both(getattr(np, name), *operands, ours=getattr(ucle, name))
        return self.both(getattr(operator, str(self.rng.choice(names))), *operands)

    def unary(self) -> Pair:
        names = ["tanh", "abs", "sign", "square", "isnan", "logical_not", "floor", "real", "conj"]
        name = str(self.rng.choice([*names, "neg", "pow", "exp", "astype", "clip"]))
        one = self.pick()
        if name == "neg":
            return self.both(operator.neg, one)
        if name == "pow":
            return self.both(lambda x: x**2, one)
        if name == "exp":
            return self.both(lambda x: np.exp(np.tanh(x)), one)
        if name == "clip":
            return self.both(lambda x: x.clip(-1, 2), one)
        if name == "astype":
            dtype = str(self.rng.choice(["bool", "float64", "float32", "complex128"]))
            return self.both(lambda x: x.astype(dtype), one)
        return self.both(getattr(np, name), one)

    def reduce(self) -> Pair:
        one = self.pick()
        axis, keepdims = self.axis(one), bool(self.rng.random() < 0.4)
        names = ["sum", "max", "min", "mean", "any", "all", "count_nonzero", "var", "std", "prod"]
        name = str(self.rng.choice([*names, "argmax", "softmax"]))
        if name == "argmax" and one.array.ndim:
            axis = None if isinstance(axis, tuple) else axis
            return self.both(lambda x: np.argmax(x, axis, keepdims=keepdims), one)
        if name in ("softmax", "argmax") and not one.array.ndim:
            raise Undefined(name)
        if name == "softmax":
            place = axis if isinstance(axis, int) else -1
            return self.both(lambda x: softmax(x, place), one, ours=lambda x: x.softmax(place))
        return self.both(lambda x: getattr(np, name)(x, axis=axis, keepdims=keepdims), one)

    def product(self) -> Pair:
        one = self.pick()
        if self.rng.random() < 0.6:
            if one.array.ndim and self.rng.random() < 0.7:
                shape = (one.array.shape[-1], 2)[: int(self.rng.integers(1, 3))]
                return self.both(operator.matmul, one, self.leaf(shape))
            return self.both(operator.matmul, one, self.pick())
        if self.rng.random() < 0.5:
            count = int(self.rng.integers(0, one.array.ndim + 1))
            other = self.leaf(one.array.shape[one.array.ndim - count :])
            return self.both(lambda x, y: np.tensordot(x, y, count), one, other)
        texts = {1: ["i->i", "i,i->"], 2: ["ij->ji", "ij,ij->j", "ij,kj->ik"], 3: ["ijk->ki"]}
        text = str(self.rng.choice(texts.get(one.array.ndim, ["...->..."])))
        operands = [one] * (text.count(",") + 1)
        return self.both(lambda *x: np.einsum(text, *x), *operands)

    def index(self) -> Pair:
        one, rng = self.pick(), self.rng
        keys: list[Any] = []
        lists = 0
        for size in one.array.shape:
            kind = rng.random()
            if kind < 0.25 and size:
                keys.append(int(rng.integers(-size, size)))
            elif kind < 0.35 and size and not lists and not any(isinstance(k, int) for k in keys):
                keys.append([int(x) for x in rng.integers(-size, size, rng.integers(1, 4))])
                lists += 1
            elif kind < 0.9:
                ends = [None, None, 0, 1, 2, -1, 5]
                picked = [ends[int(n)] for n in rng.integers(0, len(ends), 2)]
                keys.append(slice(*picked, [None, 1, 2, -1][int(rng.integers(4))]))
            else:
                keys.append(Ellipsis)
                break
        if lists and any(isinstance(k, int) for k in keys):
            keys = [k for k in keys if not isinstance(k, int)]  # NumPy moves such axes about
        if rng.random() < 0.2:
            keys.insert(0, None)
        return self.both(lambda x: x[tuple(keys)], one)

    def move(self) -> Pair:
        one = self.pick()
        rank = one.array.ndim
        order = [int(x) for x in self.rng.permutation(rank)]
        place = int(self.rng.integers(-rank - 1, rank + 1))
        moves: list[Callable[[Any], Any]] = [
            lambda x: x.T,
            lambda x: np.transpose(x, order),
            lambda x: np.expand_dims(x, place),
            np.squeeze,
            lambda x: np.broadcast_to(x, (2, *x.shape)),
        ]
        return self.both(moves[int(self.rng.integers(len(moves)))], one)

    def choose(self) -> Pair:
        one = self.pick()
        x, y = self.fitting(one), self.fitting(one)
        if self.rng.random() < 0.3:
            return self.both(lambda c, x: np.where(c, x, 0.5), one, x, ours=where_half)
        return self.both(np.where, one, x, y, ours=ucle.where)


def where_half(c: Any, x: Any) -> ucle.Tensor:
    return ucle.where(c, x, 0.5)


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    result: Array = powers / powers.sum(axis, keepdims=True)
    return result


def check(pair: Pair, rounded: bool) -> None:
    found, expected = np.asarray(pair.tensor), pair.array
    assert found.shape == expected.shape, pair.tensor
    assert pair.tensor.shape == expected.shape
    assert found.dtype == expected.dtype, f"{found.dtype} {expected.dtype}\n{pair.tensor}"
    tolerance = 1e-4 if rounded else 1e-9
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_expressions(seed: int) -> None:
    maker = Maker(seed)
    made = maker.pick()
    for _ in range(int(maker.rng.integers(1, 7))):
        try:
            made = maker.step()
        except Undefined:
            continue
        if not np.isfinite(made.array).all() or np.abs(made.array).max(initial=0) > 1e6:
            maker.pool.pop()
            return
    rounded = any(pair.array.dtype in (np.float32, np.complex64) for pair in maker.pool)
    check(made, rounded)


# ---- Tables ----


@pytest.fixture
def graph() -> Iterator[duckdb.DuckDBPyConnection]:
    """Edges with weights, features as arrays, and people who know each other."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE edges AS FROM (VALUES (0, 1, 0.5), (1, 2, 1.5), (2, 0, 2.0), "
            "(2, 2, -1.0)) t(src, dst, weight)"
        )
        connection.execute(
            "CREATE TABLE features AS SELECT i AS node, [i, 1, -i]::DOUBLE[] AS val "
            "FROM range(3) t(i)"
        )
        connection.execute(
            "CREATE TABLE knows AS FROM (VALUES ('ann', 'bob'), ('bob', 'cid'), ('cid', 'ann'))"
            " t(a, b)"
        )
        connection.execute(
            "CREATE TABLE follows AS FROM (VALUES (700, 900, true), (900, 500, true)) t(a, b, yes)"
        )
        yield connection


EDGES = np.array([[0, 0.5, 0], [0, 0, 1.5], [2, 0, -1]])
FEATURES = np.array([[0.0, 1, 0], [1, 1, -1], [2, 1, -2]])


def test_a_graph_convolution_on_tables(graph: duckdb.DuckDBPyConnection) -> None:
    A = ucle.tensor("edges", axes=("src", "node"), database=graph)
    H = ucle.tensor("features", axes=("node", "feature"))
    W = ucle.array(np.eye(3)[:, :2], axes=("feature", "hidden"))
    Z = (A @ H @ W).relu()
    assert Z.axes == ("src", "hidden")
    assert Z.shape == (None, 2)
    np.testing.assert_array_equal(np.asarray(Z), np.maximum(EDGES @ FEATURES[:, :2], 0))
    with Z.program().execute(graph) as result:
        assert result["out"].shape == (3, 2)
    assert Z.to_sql(decomposition="relational").count("SELECT") >= 1
    assert "relu" in Z.explain()


def test_operators_on_table_inputs(graph: duckdb.DuckDBPyConnection) -> None:
    edges = ucle.table("edges", ["src", "dst"], "weight")
    two_steps = (edges @ edges).to_numpy(graph)
    np.testing.assert_array_equal(two_steps, EDGES @ EDGES)
    np.testing.assert_array_equal((1 - edges).to_numpy(graph), 1 - EDGES)
    np.testing.assert_array_equal(
        (np.ones((2, 3)) @ edges).to_numpy(graph), np.ones((2, 3)) @ EDGES
    )
    np.testing.assert_array_equal((edges == 0).to_numpy(graph), EDGES == 0)
    np.testing.assert_array_equal(ucle.sum(edges, 0).to_numpy(graph), EDGES.sum(0))


def test_the_same_table_is_one_input(graph: duckdb.DuckDBPyConnection) -> None:
    edges = ucle.table("edges", {"src": "src", "dst": "dst"}, "weight")
    steps = edges @ ucle.tensor(edges).rename({"src": "dst", "dst": "end"})
    assert steps.program_text() == "out[src,end] = sum[dst](edges[src,dst] * edges[dst,end])"
    np.testing.assert_array_equal(steps.to_numpy(graph), EDGES @ EDGES)


def test_other_columns_of_a_table_are_another_input(graph: duckdb.DuckDBPyConnection) -> None:
    graph.execute("CREATE TABLE twice AS SELECT src, dst, weight AS a, 2 * weight AS b FROM edges")
    one, other = (ucle.tensor(ucle.table("twice", ["src", "dst"], x)) for x in ("a", "b"))
    np.testing.assert_array_equal((one - other).to_numpy(graph), -EDGES)
    turned = ucle.tensor(ucle.table("twice", ["dst", "src"], "a"))
    np.testing.assert_array_equal((one - turned).to_numpy(graph), EDGES - EDGES.T)


def test_tables_of_booleans_are_not_counted(graph: duckdb.DuckDBPyConnection) -> None:
    graph.execute("CREATE TABLE yes AS SELECT src, dst, weight > 0 AS v FROM edges")
    yes = ucle.tensor("yes", ndim=2, database=graph)
    assert yes.dtype is None
    found = (yes @ yes).to_numpy()
    expected = (EDGES > 0) @ (EDGES > 0)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, expected)


def test_coordinates(graph: duckdb.DuckDBPyConnection) -> None:
    knows = ucle.tensor("knows", axes=("a", "b"), database=graph)
    entries = knows.sel(a="bob").to_arrow(decomposition="relational").to_pylist()
    assert entries == [{"b": "cid", "val": 1.0}]
    picked = knows.sel(b=["ann", "cid"])
    assert picked.shape == (None, None)
    np.testing.assert_array_equal(picked.to_numpy(), [[0, 0], [0, 1], [1, 0]])
    by_id = ucle.table("follows", {"a": "a", "b": "b"}, "yes", coordinates="dictionary")
    follows = ucle.tensor(by_id, database=graph)
    assert follows.sel(a=900, b=500).item() is True
    np.testing.assert_array_equal(follows.sel(a=[700, 900], b=900).to_numpy(), [True, False])
    with pytest.raises(UnsupportedError, match=r"t\.sel"):
        follows[0]


def test_dictionaries_go_by_names_of_axes(graph: duckdb.DuckDBPyConnection) -> None:
    shared = {"a": "people", "b": "people"}
    knows = ucle.tensor(
        ucle.table("knows", {"a": "a", "b": "b"}, coordinates=shared), database=graph
    )
    back = knows.rename({"a": "b", "b": "c"})
    with (knows @ back).program().execute() as result:
        assert result["out"].coordinates("a").to_pylist() == ["ann", "bob", "cid"]
        np.testing.assert_array_equal(result["out"].to_numpy(), np.eye(3)[[2, 0, 1]])


def test_slices_of_tables(graph: duckdb.DuckDBPyConnection) -> None:
    edges = ucle.tensor("edges", ndim=2, database=graph)
    np.testing.assert_array_equal(edges[1:3, 2].to_numpy(), EDGES[1:3, 2])
    sized = ucle.tensor(
        ucle.table("edges", ["src", "dst"], "weight", bounds=[3, 3]), database=graph
    )
    np.testing.assert_array_equal(sized[::-1, 1:].to_numpy(), EDGES[::-1, 1:])


def test_results_become_tables(graph: duckdb.DuckDBPyConnection) -> None:
    edges = ucle.tensor("edges", axes=("src", "dst"), database=graph)
    edges.sum("dst").to_table("strength", decomposition={"out": ["src"]})
    found = graph.sql("SELECT src, val FROM strength ORDER BY src").fetchall()
    assert found == [(0, 0.5), (1, 1.5), (2, 1.0)]
    assert edges.to_scipy().nnz == 4


def test_inputs_of_other_kinds() -> None:
    frame = pd.DataFrame({"i": [0, 1], "j": [1, 0], "v": [2.0, 3.0]})
    expected = np.array([[0.0, 2], [3, 0]])
    np.testing.assert_array_equal(ucle.tensor(frame, axes=("i", "j")).to_numpy(), expected)
    np.testing.assert_array_equal(
        (ucle.array(scipy.sparse.coo_array(expected)) + 1).to_numpy(), expected + 1
    )
    nonzero = ucle.tensor(ucle.table(expected, fill=2), axes=("i", "j"))
    np.testing.assert_array_equal(nonzero.max("i").to_numpy(), [3, 2])


# ---- Names ----


def test_named_axes_align_by_name() -> None:
    X, y = np.arange(6.0).reshape(2, 3), np.array([10.0, 20.0])
    x = ucle.array(X, axes=("node", "feature"))
    t = x.T - ucle.array(y, axes=("node",))
    assert t.axes == ("feature", "node")
    np.testing.assert_array_equal(t.to_numpy(), X.T - y)
    flipped = ucle.array(y, axes=("node",)) - x.permute_dims(["feature", "node"])
    assert flipped.axes == ("node", "feature")
    np.testing.assert_array_equal(flipped.to_numpy(), y[:, None] - X)
    np.testing.assert_array_equal((x / x.sum("node", keepdims=True)).to_numpy(), X / X.sum(0))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
def test_comparisons_have_the_axes_of_their_first_operand_first(name: str) -> None:
    """Those that are written with the others backwards, too."""
    X, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 4.0])
    function, sign = getattr(np, name), f"__{name[0]}{'e' if 'equal' in name else 't'}__"
    x, other = ucle.array(X, axes=("node", "feature")), ucle.array(y, axes=("other",))
    for found in (getattr(other, sign)(x), getattr(ucle, name)(other, x)):
        assert found.axes == ("other", "node", "feature")
        np.testing.assert_array_equal(found.to_numpy(), function(y[:, None, None], X))
    chosen = ucle.where(getattr(other, sign)(x), other, x)
    assert chosen.axes == ("other", "node", "feature")
    assert getattr(x, sign)(other).axes == ("node", "feature", "other")


def test_dot_keeps_other_axes_in_common() -> None:
    Q, K = np.arange(12.0).reshape(2, 3, 2), np.arange(16.0).reshape(2, 4, 2)
    q = ucle.array(Q, axes=("head", "query", "channel"))
    k = ucle.array(K, axes=("head", "key", "channel"))
    scores = q.dot(k, axis="channel")
    assert scores.axes == ("head", "query", "key")
    np.testing.assert_array_equal(scores.to_numpy(), Q @ K.transpose(0, 2, 1))
    np.testing.assert_array_equal((q @ k).to_numpy(), np.einsum("hqc,hkc->qk", Q, K))


def test_bounds_and_decompositions_go_by_names() -> None:
    x = ucle.tensor(pd.DataFrame({"i": [0], "v": [1.0]}), axes=("item",))
    assert (x + 1).program(bounds={"item": 4}).execute()["out"].shape == (4,)
    squares = x.rename({"item": "other"}) * x.sum()
    assert squares.program(bounds={"other": 2}).execute()["out"].shape == (2,)
    with pytest.raises(LabelError, match="no axis is called 'j'"):
        x.program(bounds={"j": 4})


# ---- Programs ----


def test_what_is_read_twice_is_a_statement() -> None:
    x = ucle.array([[1.0, 2.0]] * 2, name="x")
    y = (x @ x).relu()
    text = (y.T + y.sum(0)).program_text()
    assert text == ("t[i,j] = relu(sum[k](x[i,k] * x[k,j]))\nout[i,j] = t[j,i] + sum[k](t[k,j])")


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(40))
def test_text_says_what_is_computed(seed: int) -> None:
    maker = Maker(seed)
    for _ in range(5):
        with contextlib.suppress(Undefined):
            maker.step()
    tensor = maker.pool[-1].tensor
    program = program_of({"out": tensor.lazy})
    parsed = parse_program(str(program))
    assert [statement_text(s) for s in parsed] == str(program).splitlines()
    assert without_places(parsed) == without_places(program.statements)


def without_places(value: Any) -> Any:
    """Statements as nested tuples without spans; True and False as the text has to write them."""
    if isinstance(value, Number) and isinstance(value.value, bool):
        return "Call", "bool", (("Number", int(value.value)),)
    if isinstance(value, tuple):
        return tuple(map(without_places, value))
    if not is_dataclass(value):
        return value
    kept = [field.name for field in fields(value) if field.name not in ("span", "renamed")]
    return (type(value).__name__, *(without_places(getattr(value, name)) for name in kept))


def test_a_thousand_steps() -> None:
    A = np.array([[0.5, 0.25], [0.25, 0.5]])
    x, expected = ucle.array([1.0, 0.0]), np.array([1.0, 0.0])
    a = ucle.array(A)
    for _ in range(300):
        x, expected = a @ x, A @ expected
    np.testing.assert_allclose(x.to_numpy(search="greedy"), expected, rtol=1e-9)


def test_several_outputs_are_one_program() -> None:
    x = ucle.array([[1.0, 2.0], [3.0, 4.0]])
    y = x @ x
    total, same, product, unit = ucle.compute(y.sum(), x, y, y.max(keepdims=True))
    assert total.to_numpy() == 54
    np.testing.assert_array_equal(same.to_numpy(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(product.to_numpy(), [[7, 10], [15, 22]])
    np.testing.assert_array_equal(unit.to_numpy(), [[22]])
    assert ucle.compute() == ()
    twice = ucle.compute(y, y)
    assert [tensor.name for tensor in twice] == ["out0", "out1"]
    np.testing.assert_array_equal(twice[0].to_numpy(), twice[1].to_numpy())


# ---- Nothing is lost of NaN and infinity ----


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_what_comes_first(dtype: str) -> None:
    """Values and positions along each axis, and which entries they are; many are equal."""
    array = (np.arange(24) * 7 % 5 - 2).reshape(2, 4, 3).astype(dtype)
    x = ucle.array(array)
    for axis in range(3):
        order = np.argsort(array, axis=axis, kind="stable")
        down = (
            array.shape[axis]
            - 1
            - np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
        )
        assert_same(ucle.sort(x, axis=axis), np.sort(array, axis=axis))
        assert_same(np.argsort(x, axis=axis), order)
        assert_same(ucle.argsort(x, axis=axis, descending=True), down)
        for k in range(1, array.shape[axis] + 1):
            for every, best, members in (
                (down, x.top_k(k, axis), x.among_top_k(k, axis)),
                (order, x.bottom_k(k, axis), x.among_bottom_k(k, axis)),
            ):
                places = np.take(every, range(k), axis=axis)
                values, positions = ucle.compute(*best)
                assert_same(positions, places)
                assert_same(values, np.take_along_axis(array, places, axis))
                expected = np.zeros(array.shape, bool)
                np.put_along_axis(expected, places, values=True, axis=axis)
                assert_same(members, expected)
    assert_same(np.sort(x, axis=None), np.sort(array, axis=None))
    assert_same(ucle.array(array[:, :1]).top_k(1, 1).positions, np.zeros((2, 1, 3), int))


def assert_same(found: Any, expected: np.ndarray[Any, Any]) -> None:
    array = found.to_numpy()
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


def test_selections_pass_what_is_not_finite() -> None:
    array = np.array([[np.nan, 1, np.inf], [2, -np.inf, 0]])
    x = ucle.array(array)
    np.testing.assert_array_equal(x[1].to_numpy(), array[1])
    np.testing.assert_array_equal(x[:, [2, 0]].to_numpy(), array[:, [2, 0]])
    np.testing.assert_array_equal(x.argmax(1).to_numpy(), array.argmax(1))
    np.testing.assert_array_equal(ucle.where(x > 0, x, 0).to_numpy(), np.where(array > 0, array, 0))


CUBE = np.arange(24.0).reshape(2, 3, 4)
EVERY = slice(None)


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "key",
    [
        (0, EVERY, [0, 1, 2]),
        ([0, 1], EVERY, [2, 3]),
        ([1, 0], [2, 0]),
        (EVERY, [0, 2], [1, 3]),
        (1, [0, 2], [1, 3]),
        ([0], EVERY, [1, 2, 3]),
        (EVERY, 0, [1, 2]),
        ([0, 1], None, [1, 2], 0),
        ([-1, 0], EVERY, [-1, 2]),
        ([], []),
    ],
)
def test_lists_of_positions_go_together(key: Any) -> None:
    """NumPy's advanced indexing: lists are paired, and their axis comes first if they are apart."""
    expected = CUBE[key]
    found = ucle.array(CUBE)[key]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("place", [-4, -2, -1, 0, 3])
def test_new_axes_are_where_numpy_puts_them(place: int) -> None:
    found, expected = ucle.expand_dims(ucle.array(CUBE), place), np.expand_dims(CUBE, place)
    assert found.shape == expected.shape


def test_lists_of_positions_of_axes_of_size_one() -> None:
    one = ucle.array(CUBE[:1])
    for key in (([0, 0], [1, 2]), ([0, 0],), ([0, -1], EVERY, 3)):
        np.testing.assert_array_equal(one[key].to_numpy(), CUBE[:1][key])


def test_lists_that_do_not_go_together() -> None:
    with pytest.raises(PositionError, match=r"t\.take"):
        ucle.array(CUBE)[[0, 1], [0, 1, 2]]
    with pytest.raises(UnsupportedError, match=r"unnamed"):
        ucle.array(CUBE, axes=("a", "b", "c"))[[0, 1], [0, 1]]


def test_axes_of_size_one_change_no_value() -> None:
    """A product with ones would make NaN of an infinite complex number."""
    array = np.array([[complex(np.inf, 1)], [2]])
    x = ucle.array(array)
    np.testing.assert_array_equal(x.to_numpy(), array)
    np.testing.assert_array_equal(x.broadcast_to((2, 3)).to_numpy(), array[:, [0, 0, 0]])
    np.testing.assert_array_equal(x[:, [0, 0]].to_numpy(), array[:, [0, 0]])


def test_ids_stay_ids() -> None:
    rows = pa.table({"id": [10, 20, 30], "f": [0, 1, 0], "v": [1.0, 2.0, 3.0]})
    for how in ("auto", "dictionary"):
        x = ucle.tensor(ucle.table(rows, ["id", "f"], "v", coordinates=how), axes=("id", "f"))
        with x.sel(id=[30, 10]).program().execute() as result:
            assert result["out"].coordinates("id").to_pylist() == [10, 30]
            assert sorted(result["out"].to_arrow()["id"].to_pylist()) == [10, 30]
            np.testing.assert_array_equal(result["out"].to_numpy(), [[1, 0], [3, 0]])
        np.testing.assert_array_equal(x.sel(id=20).to_numpy(), [0, 2])
        for absent in (99, [10, 99]):
            with pytest.raises(CoordinateError, match="99"):
                x.sel(id=absent).to_numpy()
        with pytest.raises(LabelError, match="twice"):
            x.sel(id=[10, 10])
        np.testing.assert_array_equal(x.sel(id=slice(10, 20)).to_numpy(), [[1, 0], [0, 2]])


def test_dates_and_slices_as_coordinates() -> None:
    days = [datetime(2020, 1, day) for day in (1, 2)]
    y = ucle.tensor(ucle.table(pa.table({"ts": days, "v": [1.0, 2.0]}), ["ts"], "v"), axes=("ts",))
    for wanted in (days[1], np.datetime64("2020-01-02"), np.datetime64("2020-01-02", "ns")):
        assert y.sel(ts=wanted).item() == 2.0
    z = ucle.array([[1, 2], [3, 4]], axes=("a", "b"))
    np.testing.assert_array_equal(z.sel(a=slice(0, 1)).to_numpy(), [[1, 2]])
    for one in (np.int64(1), np.array(1)):
        np.testing.assert_array_equal(z.sel(a=one).to_numpy(), [3, 4])
    for bad in ([None], [[1]], [1, "x"]):
        with pytest.raises(LabelError, match="not coordinates"):
            z.sel(a=bad)


# ---- NumPy ----


def test_numpy_functions_give_lazy_tensors() -> None:
    array = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = ucle.array(array)
    for function in (
        lambda x: np.exp(x) + array,
        lambda x: array @ x,
        lambda x: array - x,
        lambda x: np.maximum(array, x.T),
        lambda x: np.sum(x, axis=1, keepdims=True),
        lambda x: np.std(x, ddof=1),
        lambda x: np.where(x > 1, x, -x),
        lambda x: np.einsum("ij,ij->i", x, array),
        lambda x: np.tensordot(x, array, axes=([0], [1])),
        np.transpose,
        lambda x: np.clip(x, 1.5, None),
        lambda x: np.float32(2) * x,
    ):
        made = function(x)
        assert isinstance(made, ucle.Tensor)
        np.testing.assert_allclose(np.asarray(made), function(array))
    lazily = ucle.einsum("ij,jk", x, array)
    assert isinstance(lazily, ucle.Tensor)
    np.testing.assert_array_equal(np.asarray(lazily, dtype="float32"), array @ array)
    with pytest.raises(TypeError):
        np.add.reduce(x)
    with pytest.raises(TypeError):
        np.partition(x, 1)


UFUNCS = sorted(x for x in dir(ucle) if isinstance(getattr(np, x, None), np.ufunc))


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", UFUNCS)
def test_functions_are_what_numpy_calls_so(name: str) -> None:
    function = getattr(np, name)
    operands = [np.array([0.5, 1, 2, 3]), np.array([2, 1, 0.5, 4])][: function.nin]
    if name.startswith("bitwise"):
        operands = [x > 1 for x in operands]
    found = getattr(ucle, name)(*map(ucle.array, operands)).to_numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, function(*operands))


def test_there_are_functions_of_numpy() -> None:
    assert len(UFUNCS) >= 30


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_inner_products_along_an_axis(axis: int) -> None:
    x, y = CUBE[0, :3, :3] + 1j * CUBE[1, :3, :3], CUBE[1, :3, :3] - 2j
    expected = (x.conj() * y).sum(axis)
    np.testing.assert_allclose(ucle.vecdot(ucle.array(x), ucle.array(y), axis), expected)
    named = [ucle.array(a, axes=("i", "j")) for a in (x, y)]
    np.testing.assert_allclose(ucle.vecdot(*named, axis=("i", "j")[axis]), expected)


def test_numbers_are_weak_and_numpy_numbers_are_not() -> None:
    x = ucle.array(np.ones(2, dtype="float32"))
    assert (x * 2.0).dtype == "float32"
    assert (x * np.float64(2)).dtype == (np.ones(2, dtype="float32") * np.float64(2)).dtype
    assert (ucle.sqrt(4) + 1).item() == 3.0
    chosen = ucle.where(ucle.array([True, False]), np.complex128(1 + 2j), ucle.array([1.0, 2.0]))
    np.testing.assert_array_equal(chosen.to_numpy(), [1 + 2j, 2])


# ---- Errors ----

X = ucle.array(np.ones((2, 3)))
N = ucle.array(np.ones((2, 3)), axes=("row", "column"))


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: X + N, LabelError, "axes with names meet axes without"),
        (lambda: X @ N, LabelError, "axes with names meet axes without"),
        (lambda: N + np.ones(3), LabelError, r"ucle\.array\(x, axes="),
        (lambda: X + np.ones(2), BoundError, "two shapes do not fit"),
        (lambda: X @ X, BoundError, "sizes of the axes to sum over differ"),
        (lambda: X @ 2, LabelError, "multiplies by a number"),
        (lambda: N @ N.rename({"row": "a", "column": "b"}), LabelError, "no axis in common"),
        (lambda: X.dot(X, axis="row"), LabelError, "goes by names"),
        (lambda: N.dot(N, axis="x"), AxisError, "one of row, column"),
        (lambda: X.sum(2), AxisError, "positions from -2 to 1"),
        (lambda: X.sum((0, -2)), AxisError, "given twice"),
        (lambda: X.sum("row"), AxisError, "t.named"),
        (lambda: X.sum(1.5), ArgumentTypeError, "the name of an axis, or a position"),
        (lambda: X.top_k(4), BoundError, "at most"),
        (lambda: X.top_k(0), ArgumentError, "at least 1"),
        (lambda: X.top_k(1.5), ArgumentTypeError, "integer"),
        (lambda: X.squeeze(0), AxisError, "not known to have size 1"),
        (lambda: X.permute_dims([0]), ArgumentTypeError, "all axes"),
        (lambda: X.broadcast_to((3, 2)), BoundError, "do not fit"),
        (lambda: X.broadcast_to((3,)), BoundError, "cannot be broadcast"),
        (lambda: N.expand_dims(0), LabelError, "a new axis needs a name"),
        (lambda: X.expand_dims(0, "a"), LabelError, "no name"),
        (lambda: X[2], PositionError, "-2 to 1"),
        (lambda: X[0, 0, 0], PositionError, "at most 2"),
        (lambda: X[X > 0], ArgumentTypeError, "ucle.where"),
        (lambda: X[np.ones((2, 3), dtype=bool)], UnsupportedError, "ucle.where"),
        (lambda: X["a"], ArgumentTypeError, "t.sel"),
        (lambda: X[[0.5]], PositionError, "integers"),
        (lambda: X.named("a"), LabelError, "2 names"),
        (lambda: X.named("a", "a"), LabelError, "two axes are called"),
        (lambda: X.named("a", "b c"), LabelError, "cannot be the name"),
        (lambda: X.named("a", "and"), LabelError, "cannot be the name"),
        (lambda: N.rename({"x": "y"}), AxisError, "no axis 'x'"),
        (lambda: ucle.tensor("edges"), LabelError, "how many axes"),
        (lambda: ucle.array("edges"), ArgumentTypeError, "ucle.tensor"),
        (lambda: X + "edges", ArgumentTypeError, "ucle.tensor"),
        (lambda: ucle.array([[1]], axes=("a",)), LabelError, "2 axes"),
        (lambda: ucle.array([object()]), ValueTypeError, "dtype object"),
        (lambda: X.astype("datetime64[s]"), ValueTypeError, "element type"),
        ((X & X).to_numpy, ValueTypeError, "parentheses"),
        (lambda: (X > 0) - (X > 0), None, ""),
        (((X > 0) - (X > 0)).to_numpy, ValueTypeError, "sub"),
        (lambda: X.sum(out=np.ones(())), ArgumentTypeError, "no out"),
        (lambda: bool(X), LazyError, "neither true nor false"),
        (X.__len__, LazyError, "shape"),
        (lambda: list(X), LazyError, "to_numpy"),
        (lambda: 1 in X, LazyError, "any"),
        (lambda: float(X), LazyError, "item"),
        (lambda: int(X), LazyError, "item"),
        (lambda: complex(X), LazyError, "item"),
        (lambda: np.asarray(X, copy=False), ValueError, "no array that could be shared"),
    ],
)
def test_errors(call: Callable[[], Any], kind: type[Exception] | None, message: str) -> None:
    if kind is None:
        assert isinstance(call(), ucle.Tensor)
        return
    with pytest.raises(kind, match=message):
        call()


def test_errors_of_tables(graph: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    edges = ucle.tensor("edges", axes=("src", "dst"), database=graph)
    for call in (lambda: edges[1:], lambda: edges[:-1], lambda: edges.var(ddof=1)):
        with pytest.raises(BoundError, match="bounds="):
            call()
    with pytest.raises(PositionError, match="at least 0"):
        edges[-1]
    found = ucle.sort(edges, axis="src").to_numpy()
    np.testing.assert_array_equal(found, np.sort(edges.to_numpy(), axis=0))
    other = ucle.tensor("edges", axes=("src", "dst"), database=str(tmp_path / "x.duckdb"))
    with pytest.raises(DatabaseError, match="different databases"):
        (edges + other).compute()
    wrong = edges + ucle.array(np.ones((2, 2)), axes=("src", "dst"))
    with pytest.raises(BoundError) as caught:
        wrong.compute()
    assert "out[src,dst] = edges[src,dst] + X[src,dst]" in caught.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["np.sum(t)", "np.einsum('i->', t)", "np.add(t, 1).sum()"])
def test_functions_of_numpy_come_first(call: str) -> None:
    """Before any of ucle's own was asked for."""
    script = f"import numpy as np, ucle; t = ucle.array([1, 2]); print({call}.item())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout in ("3\n", "5\n")


@pytest.mark.parametrize("axes", [("src", "dst"), None])
def test_dictionaries_go_by_columns_too(axes: tuple[str, str] | None) -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE web AS FROM (VALUES ('a', 'b'), ('c', 'b')) t(x, y)")
        pages = {"x": "page", "y": "page"}
        table = ucle.table("web", ["x", "y"], coordinates=pages)
        links = ucle.tensor(table, axes=axes, database=connection)
        found = links.sum(1).to_arrow().to_pylist()
        assert sorted((row[axes[0] if axes else "i"], row["val"]) for row in found) == [
            ("a", 1.0),
            ("c", 1.0),
        ]
        wrong = ucle.table("web", ["x", "y"], coordinates={"z": "page"})
        with pytest.raises(LabelError, match="'z'"):
            ucle.tensor(wrong, axes=axes, database=connection)
