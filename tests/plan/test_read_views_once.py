"""A view of the database is read once by what a program compares, whatever it holds."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.plan.pass_context import Memory

SIZE = 600
PROGRAMS = {
    "most[] = max[i](X[i]); above[i] = X[i] - most[]": lambda x, found: found["above"].max() == 0,
    "s[] += X[i]; share[i] = X[i] / s[]": lambda x, found: np.isclose(found["share"].sum(), 1),
    "s[] += X[i]; m[] = s[] / 600; left[] += X[i] - m[]": lambda x, found: (
        abs(found["left"]) < 1e-9
    ),
    "y[i] = exp(X[i]); z[i] = exp(X[i]) - y[i] + X[i] - X[i]": lambda x, found: (
        not found["z"].any()
    ),
}


@pytest.fixture
def volatile(fresh: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A database with a view that has other numbers whenever it is read."""
    fresh.execute(f"CREATE VIEW numbers AS SELECT i, 1 + random() AS x FROM range({SIZE}) r(i)")
    return fresh


@pytest.mark.parametrize("text", PROGRAMS)
def test_one_state(text: str, volatile: duckdb.DuckDBPyConnection) -> None:
    """In every plan; the outputs of several statements, too."""
    outputs = [line.split("[")[0].strip() for line in text.split(";")]
    program = ucle.einsum_program(text, X="numbers", database=volatile, outputs=outputs)
    for plan in (program, *program.plans(6)):
        with plan.execute(volatile) as result:
            found: dict[str, Any] = {name: result[name].to_numpy() for name in outputs}
        assert PROGRAMS[text](None, found), plan.decomposition


def test_tables_are_read_as_they_are(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute(f"CREATE TABLE kept AS SELECT i, 1 + random() AS x FROM range({SIZE}) r(i)")
    text = "s[] += X[i]; share[i] = X[i] / s[]"
    program = ucle.einsum_program(text, X="kept", database=fresh)
    for plan in (program, *program.plans(4)):
        assert "AS MATERIALIZED" not in plan.to_sql()
        with plan.execute(fresh) as result:
            assert np.isclose(result["share"].to_numpy().sum(), 1)


def test_a_view_beyond_the_memory_is_read_again(
    volatile: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memory, "holds", lambda *_: False)
    ucle.clear_caches()
    text = "s[] += X[i]; share[i] = X[i] / s[]"
    program = ucle.einsum_program(text, X="numbers", database=volatile)
    script = program.with_decomposition(dict.fromkeys(program.decomposition, ("i",))).to_sql()
    assert "AS MATERIALIZED" not in script
    ucle.clear_caches()
