"""Warnings where entries that are not stored decide what a program computes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

import ucle

ROADS = "d[j] = min[i](road[i,j] + here[i])"


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE road AS SELECT * FROM (VALUES (0, 1, 4.0), (1, 2, 1.0)) t")
        connection.execute(
            "CREATE TABLE full_ AS SELECT i, j, 1.0 FROM range(3) a(i), range(3) b(j)"
        )
        connection.execute("CREATE TABLE rated AS SELECT range + 1, 4.0 FROM range(9)")
        connection.execute("CREATE TABLE far AS SELECT 10 * range, 4.0 FROM range(9)")
        yield connection


def test_paths_over_zeros(tables: duckdb.DuckDBPyConnection) -> None:
    inputs = {"road": ucle.table("road", bounds=(3, 3)), "here": np.zeros(3)}
    with pytest.warns(ucle.MeaningWarning, match=r"fill=ucle.inf") as caught:
        ucle.einsum_program(ROADS, inputs=inputs, database=tables)
    assert caught[0].filename == __file__
    with pytest.warns(ucle.MeaningWarning, match=r"greatest.*fill=-ucle.inf"):
        ucle.einsum_program(ROADS.replace("min", "max"), inputs=inputs, database=tables)


@pytest.mark.parametrize("name", ["rated", "far"])
def test_means_over_positions_that_no_entry_has(
    name: str, tables: duckdb.DuckDBPyConnection
) -> None:
    with pytest.warns(ucle.MeaningWarning, match="entries at 9 of them"):
        program = ucle.einsum_program("m = mean[i](x[i])", x=name, database=tables)
    assert program.execute()["m"].item() < 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = ucle.table(name, coordinates="dictionary")
        program = ucle.einsum_program("m = mean[i](x[i])", x=table, database=tables)
    assert program.execute()["m"].item() == 4


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (ROADS, {"road": ucle.table("road", bounds=(3, 3), fill=math.inf), "here": np.zeros(3)}),
        (ROADS, {"road": "full_", "here": np.zeros(3)}),
        (ROADS, {"road": np.eye(3), "here": np.zeros(3)}),
        ("d[j] = min[i](road[i,j])", {"road": ucle.table("road", bounds=(3, 3))}),
        ("d[j] = sum[i](road[i,j] + here[i])", {"road": "road", "here": np.zeros(2)}),
        ("s = sum[i](x[i])", {"x": "far"}),
        ("m = mean[i](x[i])", {"x": ucle.table("far", bounds=(100,))}),
        ("m[i] = mean[j](x[i,j])", {"x": "full_"}),
    ],
)
def test_nothing_to_notice(
    text: str, inputs: dict[str, object], tables: duckdb.DuckDBPyConnection
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ucle.einsum_program(text, inputs=inputs, database=tables)
