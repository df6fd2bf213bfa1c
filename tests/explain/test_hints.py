"""Tests of the hints of errors: advice about what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle import errors
from ucle.errors import did_you_mean

ARRAY = np.eye(3)
PRODUCT = "T[i,k] += A[i,j] * B[j,k]"


def program(text: str, /, **options: Any) -> ucle.EinsumProgram:
    return ucle.einsum_program(text, **options)


def connection(table: str) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute(f"CREATE TABLE t AS FROM (VALUES {table}) t(i, weight)")
    return opened


NULL_VALUE = "(1, 2.0), (2, NULL)"
NULL_KEY = "(1, 2.0), (NULL, 3.0)"
NEGATIVE = "(-1, 2.0)"
WORDS = "(1, 'two')"

CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: program("y[i] = sigmod(x[i])", x=[1.0]), 'mean "sigmoid"'),
    (lambda: program("y[i] = meen[j](A[i,j])", A=ARRAY), 'mean "mean"'),
    (lambda: program(PRODUCT, A=ARRAY), "inputs: B=..."),
    (lambda: program(PRODUCT, A=ARRAY, B=ARRAY, a=ARRAY), 'mean "A"'),
    (lambda: program("y[i] += edges[i,j]", edge=ARRAY, edges=ARRAY), 'mean "edges"'),
    (lambda: program("total[i] += A[i,j]", A=ARRAY, outputs=["totals"]), 'mean "total"'),
    (lambda: program(PRODUCT, A=ARRAY, B=np.eye(4)), "order of the labels"),
    (lambda: program("y[i] = x[i]; y[i] = x[i]", x=[1.0]), "another name"),
    (lambda: program(PRODUCT, A=ARRAY, B=ARRAY, search="greedi"), 'mean "greedy"'),
    (lambda: program(PRODUCT, A=ARRAY, B=ARRAY, association="fre"), 'mean "free"'),
    (lambda: program(PRODUCT, A=ARRAY, B=ARRAY, profile="papers"), 'mean "paper"'),
    (lambda: program(PRODUCT, A=ARRAY, B=ARRAY, memory_limit="lots"), "GiB"),
    (lambda: program("y[i] = x[i]", x=np.array(["1", "2"])), "astype(float)"),
    (lambda: program("y[i] = x[i]", x=[1.0]).explain("jsn"), 'mean "json"'),
    (lambda: program("y[i] = t[i]", t="t", database=connection(NULL_VALUE)), "weight IS NOT NULL"),
    (lambda: program("y[i] = t[i]", t="t", database=connection(NULL_KEY)), "i IS NOT NULL"),
    (lambda: program("y[i] = t[i]", t="t", database=connection(NEGATIVE)), "'dictionary'"),
    (lambda: program("y[i] = t[i]", t="t", database=connection(WORDS)), "name the value column"),
    (lambda: program("y[i,j,k] = t[i,j,k]", t="t", database=connection(NEGATIVE)), "name the"),
    (
        lambda: program(
            "y[i] = t[i]", t=ucle.table("t", ["i"], "wieght"), database=connection(NEGATIVE)
        ),
        'mean "weight"',
    ),
    (
        lambda: program(
            "y[i] = t[i]", t=ucle.table("t", bounds=[1]), database=connection("(5, 1.0)")
        ),
        "bounds=...",
    ),
    (lambda: program("y[i] = x[i]", x=[1.0], database="nosuch.db"), "ucle.connect(path)"),
    (lambda: program("y[i] = x[i]", x=[1.0], database=ARRAY), ".con"),
    (lambda: program("y[i] = x[i]", x=[1.0]).execute()["y"].save("y.parquets"), 'mean ".parquet"'),
    (lambda: program("y[i] = x[i]", x=[1.0]).execute()["y"].save("no/y.npy"), "folder"),
    (lambda: program("y += max(z[i], 1)", z=[1j]), "complex"),
]


@pytest.mark.sample(20)
@pytest.mark.parametrize(("wrong", "hint"), CASES)
def test_hints(
    wrong: Callable[[], Any], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.UcleError) as caught:
        wrong()
    assert hint in (caught.value.hint or "")
    assert f"  hint: {caught.value.hint}" in str(caught.value)


def test_one_tree() -> None:
    """All errors are in it, and each says what it is for."""
    found = [x for x in vars(errors).values() if getattr(x, "__module__", "") == errors.__name__]
    kinds = [x for x in found if isinstance(x, type)]
    assert len(kinds) > 20
    for kind in kinds:
        assert kind.__doc__
        if not issubclass(kind, Warning):
            assert issubclass(kind, errors.UcleError)


def test_did_you_mean() -> None:
    assert did_you_mean("edge", {"edges": 1, "nodes": 2}) == 'Did you mean "edges"?'
    assert did_you_mean("xyz", ["edges"]) is None
