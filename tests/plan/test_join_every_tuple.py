"""Outer joins and completions are left out where every tuple is stored, and nowhere else."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.options import Optimisations
from ucle.testing.check_matrix import recompiled

ROWS, INNER, WIDTH = 12, 3, 4
RNG = np.random.default_rng(5)
W, B = RNG.normal(size=(INNER, WIDTH)), RNG.normal(size=WIDTH)
BIAS = RNG.normal(size=ROWS)
PROGRAMS = {
    "Z[i,k] = relu(sum[j](X[i,j] * W[j,k]) + b[k])": lambda x: np.maximum(x @ W + B, 0),
    "Z[i,k] = exp(sum[j](X[i,j] * W[j,k])) + b[k]": lambda x: np.exp(x @ W) + B,
    "Z[i,j] = X[i,j] + c[i]": lambda x: x + BIAS[:, None],
    "Y[i] += X[i,j]; Z[i,j] = Y[i] - X[i,j] / 2": lambda x: x.sum(1)[:, None] - x / 2,
    "Y[i] = max[j](X[i,j]); Z[i] = exp(Y[i])": lambda x: np.exp(x.max(1)),
}
GIVEN = {"W": W, "b": B, "c": BIAS}


def features(gap: str) -> Any:
    """Features of all rows, and with one that is not there, or is there with zeros."""
    x = RNG.normal(size=(ROWS, INNER))
    if gap:
        x[5] = 0
    return x


def stored(connection: duckdb.DuckDBPyConnection, x: Any, gap: str) -> ucle.TableInput:
    """A table of arrays, in a table of its own name."""
    name = f"features_{gap or 'whole'}"
    connection.execute(f"CREATE OR REPLACE TABLE {name} (node INT, value DOUBLE[])")
    rows = [(n, row.tolist()) for n, row in enumerate(x) if gap != "missing" or row.any()]
    connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
    return ucle.table(name, ["node"], "value", shape=(INNER,))


@pytest.mark.sample(12)
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("gap", ["", "zeros", "missing"])
@pytest.mark.parametrize("source", ["memory", "table"])
def test_every_plan(text: str, gap: str, source: str, fresh: duckdb.DuckDBPyConnection) -> None:
    x = features(gap)
    given: dict[str, Any] = {k: v for k, v in GIVEN.items() if f"{k}[" in text}
    given["X"] = x if source == "memory" else stored(fresh, x, gap)
    program = ucle.einsum_program(text, inputs=given, bounds={"i": ROWS}, database=fresh)
    expecting = recompiled(program, Optimisations(inner_joins=False))
    for plan in (program, expecting, *program.plans(6)):
        with plan.execute(fresh) as result:
            found = result["Z"].to_numpy()
        np.testing.assert_allclose(found, PROGRAMS[text](x), err_msg=str(plan.decomposition))


def test_a_layer_is_a_map_of_rows(native: duckdb.DuckDBPyConnection) -> None:
    text = next(iter(PROGRAMS))
    for gap, joins in {"": "", "zeros": "LEFT JOIN"}.items():
        x = np.repeat(features(gap), 400, axis=0)
        program = ucle.einsum_program(text, X=x, W=W, b=B, database=native)
        script = program.with_decomposition(dict.fromkeys(program.decomposition, ("i",))).to_sql()
        assert ("LEFT JOIN" in script) == bool(joins), script


@pytest.mark.parametrize("text", PROGRAMS)
def test_other_arrays(text: str, fresh: duckdb.DuckDBPyConnection) -> None:
    """A program whose array had every tuple, executed with one that has not."""
    given: dict[str, Any] = {k: v for k, v in GIVEN.items() if f"{k}[" in text}
    program = ucle.einsum_program(text, inputs=given, X=features(""), database=fresh)
    for plan in (program, *program.plans(4)):
        for gap in ("zeros", ""):
            x = features(gap)
            with plan.execute(fresh, X=x) as result:
                np.testing.assert_allclose(result["Z"].to_numpy(), PROGRAMS[text](x))


def test_rows_that_go() -> None:
    """A program that runs again sees it, and views do not rely on what was there."""
    text = next(iter(PROGRAMS))
    with ucle.connect(threads=2) as connection:
        x = features("")
        table = stored(connection, x, "")
        connection.execute("CREATE TABLE weights (j INT, k INT, w DOUBLE)")
        weights = [(j, k, w) for (j, k), w in np.ndenumerate(W)]
        connection.executemany("INSERT INTO weights VALUES (?, ?, ?)", weights)
        connection.execute("CREATE TABLE bias (k INT, b DOUBLE)")
        connection.executemany("INSERT INTO bias VALUES (?, ?)", list(enumerate(B.tolist())))
        program = ucle.einsum_program(
            text, X=table, W="weights", b="bias", bounds={"i": ROWS}, database=connection
        )
        (view,) = program.create_views(connection, rows="all")
        program.execute()
        connection.execute(f"DELETE FROM {table.relation} WHERE node IN (3, {ROWS - 1})")
        x[[3, ROWS - 1]] = 0
        with program.execute() as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), PROGRAMS[text](x))
        seen = connection.execute(f"SELECT * FROM {view} ORDER BY i, k").fetchnumpy()
        np.testing.assert_allclose(seen["val"].reshape(ROWS, WIDTH), PROGRAMS[text](x))
