"""Rows of wide tables by expressions over their columns, against kernels and NumPy."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle.inputs.table_options import table
from ucle.options import Optimisations
from ucle.plan.relation_nodes import ColumnExpressions
from ucle.testing import recompiled

Array = np.ndarray[Any, np.dtype[Any]]
ON, OFF = Optimisations(columns=0.0), Optimisations(columns=None)
ROWS = 40


def keys_of(rng: np.random.Generator, rows: int) -> Any:
    """Keys of rows, in no order: positions, sparse numbers, text, or dates."""
    order = rng.permutation(rows)
    match rng.integers(0, 4):
        case 0:
            return order
        case 1:
            return order * 1_000_003 - 7
        case 2:
            return [f"key {n:03d}" for n in order]
    return [dt.date(2024, 1, 1) + dt.timedelta(days=int(n)) for n in order]


def frame_of(rng: np.random.Generator, width: int, kind: str = "float") -> pd.DataFrame:
    """A frame of random numbers, some of them missing, with a column of keys."""
    x: Any = rng.normal(size=(ROWS, width)).round(3)
    frame = pd.DataFrame(x, columns=[f"c{n}" for n in range(width)])
    if kind == "float":
        frame = frame.mask(rng.random(frame.shape) < 0.2)
    else:
        frame = (frame * 10).astype(kind)
    frame.insert(int(rng.integers(0, width + 1)), "id", keys_of(rng, ROWS))
    return frame


def in_order(frame: pd.DataFrame) -> Array:
    """The numbers of a frame in the order of its keys."""
    return frame.set_index("id").sort_index().to_numpy()


def wide(frame: pd.DataFrame, **options: Any) -> Any:
    """A frame as an input whose keys are numbered."""
    given = {"coordinates": "dictionary"} if frame["id"].dtype.kind == "i" else {}
    return table(frame, ["id"], columns_as="f", nulls="missing", **given, **options)


def columns_of(program: ucle.EinsumProgram) -> list[str]:
    """The steps of a program that are expressions over columns."""
    steps = program.compiled.physical.steps
    return [step.tensor for step in steps if isinstance(step.relation, ColumnExpressions)]


Meaning = Callable[[Array, Mapping[str, Array]], Mapping[str, Array]]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


PROGRAMS: dict[str, tuple[str, Meaning]] = {
    "logistic": (
        "S[i,f] = (X[i,f] - m[f]) / s[f]; R[i,c] += S[i,f] * W[f,c]; P[i,c] = sigmoid(R[i,c]); "
        "N[i] += P[i,c]; Y[i,c] = P[i,c] / N[i]",
        lambda x, w: {
            "Y": (p := sigmoid((x - w["m"]) / w["s"] @ w["W"])) / p.sum(axis=1, keepdims=True)
        },
    ),
    "two outputs of the same rows": (
        "Z[i,f] = X[i,f] * s[f]; T[i] += Z[i,f]; Y[i,f] = max(Z[i,f], 0.1) - T[i]",
        lambda x, w: {
            "T": (x * w["s"]).sum(axis=1),
            "Y": np.maximum(x * w["s"], 0.1) - (x * w["s"]).sum(axis=1, keepdims=True),
        },
    ),
    "reductions": (
        "A[i] max= X[i,f]; B[i] min= X[i,f]; C[i] *= X[i,f]; D[i] += exp(abs(X[i,f])); "
        "Y[i] = A[i] - B[i] + C[i] * D[i]",
        lambda x, w: {
            "Y": x.max(axis=1) - x.min(axis=1) + x.prod(axis=1) * np.exp(np.abs(x)).sum(axis=1)
        },
    ),
    "functions of functions": (
        "Y[i,f] = log(1 + exp(tanh(X[i,f] * 2) ** 2 + s[f]))",
        lambda x, w: {"Y": np.log(1 + np.exp(np.tanh(x * 2) ** 2 + w["s"]))},
    ),
    "conditions": (
        "Y[i,f] = where(X[i,f] > m[f], X[i,f], s[f])",
        lambda x, w: {"Y": np.where(x > w["m"], x, w["s"])},
    ),
    "products of one row with itself": (
        "G[i,f,g] = X[i,f] * X[i,g]; Y[i] += G[i,f,g] * V[f,g]",
        lambda x, w: {"Y": np.einsum("if,ig,fg->i", x, x, w["V"])},
    ),
    "labels in another order": (
        "Y[f,i] = X[i,f] + s[f]",
        lambda x, w: {"Y": (x + w["s"]).T},
    ),
    "sums over the rows": (
        "Z[i,f] = X[i,f] * s[f] + m[f]; C[f,g] += Z[i,f] * Z[i,g]; T[i] += Z[i,f]",
        lambda x, w: {
            "C": (x * w["s"] + w["m"]).T @ (x * w["s"] + w["m"]),
            "T": (x * w["s"] + w["m"]).sum(axis=1),
        },
    ),
    "too many products": (
        "Z[i,f] = X[i,f] - m[f]; R[i,k] += Z[i,f] * U[f,k]; Y[i] += relu(R[i,k])",
        lambda x, w: {"Y": np.maximum((x - w["m"]) @ w["U"], 0).sum(axis=1)},
    ),
    "positions of rows": (
        "Z[i] += X[i,f] * s[f]; B = argmax[i](Z[i]); Y[i] = Z[i] + 1",
        lambda x, w: {"Y": x @ w["s"] + 1},
    ),
}


def weights_of(rng: np.random.Generator, width: int) -> dict[str, Array]:
    """Constants of programs: opposite coefficients of two classes among them."""
    coefficients = rng.normal(size=(width, 1))
    return {
        "m": rng.normal(size=width),
        "s": rng.uniform(0.5, 2, width),
        "W": np.hstack([-coefficients, coefficients]),
        "V": rng.normal(size=(width, width)),
        "U": rng.normal(size=(width, 60)),
    }


@pytest.mark.sample(8)
@pytest.mark.parametrize("missing", ["nothing", "fill", "NaN"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_as_in_numpy(
    seed: int, name: str, missing: str, connection: duckdb.DuckDBPyConnection
) -> None:
    rng = np.random.default_rng([seed, list(PROGRAMS).index(name)])
    width = int(rng.integers(2, 8))
    frame = frame_of(rng, width)
    number = {"nothing": 0.25, "fill": 0.0, "NaN": np.nan}[missing]
    if missing == "nothing":
        frame = frame.fillna(number)
    text, meaning = PROGRAMS[name]
    every = weights_of(rng, width)
    weights = {x: value for x, value in every.items() if re.search(rf"\b{x}\[", text)}
    options = {"fill": number} if missing == "NaN" else {}
    X = wide(frame, **options)
    outputs = meaning(np.zeros((2, width)), every)
    program = ucle.einsum_program(
        text.replace("; ", "\n"), X=X, database=connection, outputs=list(outputs), **weights
    )
    with np.errstate(all="ignore"):
        expected = meaning(np.where(np.isnan(x := in_order(frame)), number, x), every)
    on = recompiled(program, ON)
    assert not columns_of(recompiled(program, OFF))
    if name not in ("too many products", "positions of rows"):
        assert columns_of(on)
    with on.execute() as found:
        for output, value in expected.items():
            np.testing.assert_allclose(found[output].to_numpy(), value, rtol=1e-9, atol=1e-12)


@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", ["float32", "int64", "bool"])
@pytest.mark.parametrize("seed", range(4))
def test_other_types(seed: int, kind: str, connection: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 8))
    frame = frame_of(rng, width, kind)
    text = {
        "float32": "Z[i,f] = exp(X[i,f] * s[f]); Y[i] += Z[i,f]; N[i] max= 0 - Z[i,f]",
        "int64": "Z[i,f] = X[i,f] * s[f]; Y[i] += Z[i,f] * 2; N[i] max= 0 - Z[i,f]",
        "bool": "Y[i,f] = X[i,f] & s[f]; N[i] any= Y[i,f]",
    }[kind]
    scale = (rng.integers(1, 4, width) / (4 if kind == "float32" else 1)).astype(kind)
    X = wide(frame)
    program = ucle.einsum_program(text.replace("; ", "\n"), X=X, s=scale, database=connection)
    on, off = recompiled(program, ON), recompiled(program, OFF)
    assert columns_of(on)
    with on.execute() as found, off.execute() as expected:
        for name in found:
            one, other = found[name].to_numpy(), expected[name].to_numpy()
            assert one.dtype == other.dtype
            if kind == "float32":
                np.testing.assert_allclose(one, other, rtol=1e-5)
            else:
                np.testing.assert_array_equal(one, other)


def read_arrow(found: ucle.TensorRelation) -> Any:
    return found.to_arrow(keys=["i"]).to_pydict()


READS: dict[str, Callable[[ucle.TensorRelation], Any]] = {
    "numpy": lambda found: found.to_numpy().tolist(),
    "coordinates": lambda found: found.coordinates("i").to_pylist(),
    "arrow": read_arrow,
    "entries": lambda found: found.to_arrow().to_pydict(),
    "every row": lambda found: found.to_arrow(keys=["i"], rows="all").to_pydict(),
    "nonfill": lambda found: found.to_arrow(keys=["i"], rows="nonfill").to_pydict(),
    "columns": lambda found: found.to_arrow(columns="f").to_pydict(),
    "by the other label": lambda found: found.to_arrow(keys=["f"]).to_pydict(),
    "relation": lambda found: found.relation.to_arrow_table().to_pydict(),
    "repr": lambda found: len(repr(found)),
}


def sorted_rows(rows: Any) -> Any:
    """The rows of a dict of columns in the order of the keys."""
    return sorted(zip(*rows.values(), strict=True), key=str) if isinstance(rows, dict) else rows


@pytest.mark.parametrize("read", READS)
def test_results_are_read_alike(read: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Keys that stay coordinates are numbered when that is asked for, and not before."""
    rng = np.random.default_rng(len(read))
    frame = frame_of(rng, 3)
    X = wide(frame)
    text = "Y[i,f] = X[i,f] * 2 + s[f]\nT[i] += X[i,f]"
    program = ucle.einsum_program(text, X=X, s=[1.0, 0.0, -1.0], database=connection)
    on, off = recompiled(program, ON), recompiled(program, OFF)
    with on.execute() as found, off.execute() as expected:
        for _ in range(2):
            assert sorted_rows(READS[read](found["Y"])) == sorted_rows(READS[read](expected["Y"]))
        total = found["T"].to_arrow().to_pydict()
        assert sorted_rows(total) == sorted_rows(expected["T"].to_arrow().to_pydict())
        assert found["Y"].to_numpy().shape == (ROWS, 3)
        np.testing.assert_array_equal(found["T"].to_numpy(), expected["T"].to_numpy())


def test_no_dictionary_is_made_for_tables(native: duckdb.DuckDBPyConnection) -> None:
    frame = frame_of(np.random.default_rng(0), 3).fillna(0.5)
    X = wide(frame)
    program = recompiled(
        ucle.einsum_program("Y[i,f] = X[i,f] * s[f]", X=X, s=[1.0, 2, 3], database=native), ON
    )
    assert "ROW_NUMBER" not in program.to_sql()
    assert "columns: Y by the columns of pandas frame, in 1 stage" in str(program.explain())
    with program.execute() as result:
        result["Y"].to_table("kept_as_they_are", keys=["i"])
        rows = native.sql("SELECT i, val FROM kept_as_they_are ORDER BY i").fetchall()
    native.execute("DROP TABLE kept_as_they_are").fetchall()
    keys = frame.sort_values("id")["id"].tolist()
    assert [key for key, _ in rows] == keys
    np.testing.assert_allclose([row for _, row in rows], in_order(frame) * [1, 2, 3])


@pytest.mark.sample(5)
@pytest.mark.parametrize("fill", [0.0, np.nan])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_another_table_names(
    seed: int, fill: float, connection: duckdb.DuckDBPyConnection
) -> None:
    """Rows that are not there hold the fill, and count where a function of that is not the fill."""
    rng = np.random.default_rng(seed)
    frame = frame_of(rng, 3).fillna(0.5)
    frame["id"] = [f"key {n:03d}" for n in rng.permutation(ROWS)]
    keys = [f"key {n:03d}" for n in range(0, 2 * ROWS, 3)]
    others = pa.table({"id": keys, "v": rng.normal(size=len(keys))})
    text = "Z[i,f] = X[i,f] * s[f]; Y[i,f] = Z[i,f] + 1; T[i] += Z[i,f]; R[i] = T[i] + v[i]"
    program = ucle.einsum_program(
        text.replace("; ", "\n"),
        X=wide(frame, fill=fill),
        v=table(others, ["id"], "v", coordinates="dictionary"),
        s=[1.0, -1.0, 2.0],
        database=connection,
        outputs=["Z", "Y", "T", "R"],
    )
    on, off = recompiled(program, ON), recompiled(program, OFF)
    with on.execute() as found, off.execute() as expected:
        for name in found:
            one, other = found[name].to_numpy(), expected[name].to_numpy()
            np.testing.assert_allclose(one, other, rtol=1e-12)
            coordinates = found[name].coordinates("i").to_pylist()
            assert coordinates == sorted({*keys, *frame["id"]})


def test_data_that_changes(fresh: duckdb.DuckDBPyConnection) -> None:
    """Rows that come and go after the program was compiled."""
    fresh.execute(
        "CREATE TABLE t AS SELECT 'k' || i AS id, i * 1.0 a, -i * 1.0 b FROM range(9) r(i)"
    )
    program = recompiled(
        ucle.einsum_program(
            "Y[i] += X[i,f] * s[f]",
            X=ucle.table("t", ["id"], columns_as="f"),
            s=[1.0, 0.5],
            database=fresh,
        ),
        ON,
    )
    for statement in ("SELECT 1", "DELETE FROM t WHERE a > 6", "INSERT INTO t VALUES ('a', 4, 2)"):
        fresh.execute(statement).fetchall()
        rows = fresh.execute("SELECT id, a + 0.5 * b FROM t ORDER BY id").fetchall()
        with program.execute() as result:
            assert sorted_rows(result["Y"].to_arrow(rows="all").to_pydict()) == rows
            assert result["Y"].to_numpy().tolist() == [value for _, value in rows]


def test_results_of_a_transaction_that_is_rolled_back(native: duckdb.DuckDBPyConnection) -> None:
    frame = frame_of(np.random.default_rng(1), 2).fillna(1.0)
    X = wide(frame)
    program = recompiled(ucle.einsum_program("Y[i] += X[i,f]", X=X, database=native), ON)
    with program.execute() as result:
        native.execute("BEGIN").fetchall()
        inside = result["Y"].to_numpy()
        native.execute("ROLLBACK").fetchall()
        np.testing.assert_array_equal(result["Y"].to_numpy(), inside)
        np.testing.assert_allclose(inside, in_order(frame).sum(axis=1))
