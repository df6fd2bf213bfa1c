"""Statistics of large tables of arrays: by kernels and by NumPy, without unnest."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import ValueTypeError
from ucle.inputs.inputs import value_array
from ucle.stats import measure
from ucle.stats.measure import MeasuredInput

ROUTES = [ucle.connect, duckdb.connect]
TYPES = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "BIGINT", "bool": "BOOLEAN"}


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large here."""
    monkeypatch.setattr(measure, "EXACT_ENTRIES", 40)


def stored(array: Any) -> pa.Table:
    """Rows of arrays over the last axes."""
    flat = array.reshape(len(array), -1)
    offsets = pa.array(np.arange(len(flat) + 1) * flat.shape[1], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, value_array(flat.reshape(-1)))
    return pa.table({"k": np.arange(len(flat)), "val": lists})


def measured(
    connection: Any, array: Any, fill: Any = 0, type_: str | None = None
) -> tuple[MeasuredInput, list[str]]:
    """The statistics of a table of arrays, and the queries that measured it."""
    connection.register("given", stored(array))
    column = "val" if type_ is None else f"val::{type_}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE t AS SELECT k, {column} AS val FROM given")
    labels = ",".join("ijk"[: array.ndim])
    seen: list[str] = []
    found: list[MeasuredInput] = []

    def watch(fetch: Any, look: Any, *args: Any, **options: Any) -> MeasuredInput:
        found.append(
            measure.measure(lambda q: (seen.append(q), fetch(q))[1], look, *args, **options)
        )
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ucle.database.statistics_cache.measure", watch)
        shape = array.shape[1:] if type_ is None else None
        ucle.einsum_program(
            f"B[{labels}] = A[{labels}]",
            A=ucle.table("t", ["k"], "val", shape=shape, fill=fill),
            database=connection,
        )
    return found[0], seen


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("dtype", [*TYPES, "complex128", "complex64"])
def test_dense_arrays_are_not_taken_apart(dtype: str, route: Any) -> None:
    array = np.ones((30, 5), dtype)
    array[3, 2] = 0
    with route() as connection:
        facts, queries = measured(connection, array)
        assert (facts.entries, facts.finite, facts.sizes) == (149, True, (30, 5))
        assert facts.distinct == (30, 5)
        assert not any("unnest" in query.lower() for query in queries)
        if dtype in TYPES:
            assert measured(connection, array, type_=f"{TYPES[dtype]}[5]")[0] == facts
            nested = array.reshape(15, 2, 5)
            facts, _ = measured(connection, nested)
            assert (facts.entries, facts.distinct) == (149, (15, 2, 5))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fill", [0.0, 1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("other", [0.0, 1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_what_is_finite_and_what_is_an_entry(
    dtype: str, other: float, fill: float, route: Any
) -> None:
    array = np.full((20, 4), fill, dtype)
    array[::3] = 2
    array[6, 1] = other
    with route() as connection:
        facts, _ = measured(connection, array, complex(fill) if dtype[0] == "c" else fill)
    entries = array[~np.isnan(array)] if np.isnan(fill) else array[array != dtype_of(fill, dtype)]
    assert facts.entries == len(entries)
    assert facts.finite == bool(np.isfinite(entries).all())


def dtype_of(fill: float, dtype: str) -> Any:
    return np.dtype(dtype).type(fill)


BAD = ["[1.0, 2.0]", "NULL", "[1.0, NULL, 3.0]", "[1.0, 2.0, 3.0, 4.0]", "[]"]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("bad", BAD)
def test_one_bad_row_of_many(bad: str, route: Any) -> None:
    with route() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS k, [1, 2, 3]::DOUBLE[] AS val FROM range(5000) s(i);"
            f"INSERT INTO t VALUES (5000, {bad})"
        )
        with pytest.raises(ValueTypeError, match="an array") as info:
            ucle.einsum_program("B[i,j] = A[i,j]", A="t", database=connection)
    assert info.value.where == "input A, t, column val"
    assert "the row (5000, " in str(info.value.found)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("share", [0.3, 0.01])
def test_sparse_arrays_are_sampled(
    route: Any, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T and V of keys are counted, V inside arrays is between what is seen and what can be."""
    monkeypatch.setattr(measure, "EXACT_ENTRIES", 4000)
    rng = np.random.default_rng(0)
    array = np.where(rng.random((4000, 12)) < share, 1.0, 0.0)
    array[:, 10:] = 0
    with route() as connection:
        facts, queries = measured(connection, array)
        assert facts == measured(connection, array)[0]
    assert facts.entries == np.count_nonzero(array)
    assert facts.distinct[0] == np.count_nonzero(array.any(1))
    assert (facts.distinct[1] == 10) if share == 0.3 else (1 <= facts.distinct[1] <= 12)
    assert any("hash" in query for query in queries)
    assert not facts.exact


def test_both_routes_find_the_same() -> None:
    array = np.random.default_rng(1).integers(0, 3, (300, 7)).astype("float64")
    found = []
    for route in ROUTES:
        with route() as connection:
            found.append(measured(connection, array)[0])
    assert found[0] == found[1]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("fill", [0, 7])
def test_extremes(dtype: str, fill: int, route: Any) -> None:
    """Extremes are those of all values in the arrays, also of values equal to the fill."""
    array = np.arange(3, 153).reshape(30, 5).astype(dtype)
    array[4, 1] = fill
    with route() as connection:
        facts, _ = measured(connection, array, fill)
    assert facts.extremes == (array.min(), array.max())


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fill", [0, np.nan, np.inf])
def test_extremes_are_not_known_beside_nan(fill: float, route: Any) -> None:
    array = np.arange(150.0).reshape(30, 5)
    array[[2, 17, 17], [0, 3, 4]] = np.nan
    with route() as connection:
        facts, _ = measured(connection, array, fill)
    assert facts.extremes is None
    assert facts.finite == bool(np.isnan(fill))
