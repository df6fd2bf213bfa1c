"""Warnings where entries that are not stored decide what a program computes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
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


def frame_of_answers(size: int, form: str, type_: str) -> pd.DataFrame:
    """A frame with a row for each of some customers, one of four of which has a 1."""
    numbers = np.arange(size)
    who = {"names": [f"k{n:04}" for n in numbers], "positions": numbers}[form]
    return pd.DataFrame({"who": who, "left": (numbers % 4 == 0).astype(type_)})


@pytest.mark.parametrize("type_", ["bool", "int8", "float64"])
@pytest.mark.parametrize("form", ["names", "positions"])
@pytest.mark.parametrize("kind", ["table", "pandas", "arrow", "wide"])
def test_a_row_with_zero_is_an_entry(
    kind: str, form: str, type_: str, tables: duckdb.DuckDBPyConnection
) -> None:
    frame = frame_of_answers(40, form, type_)
    if kind == "table":
        tables.execute("CREATE OR REPLACE TABLE answers AS FROM frame")
    if kind == "wide":
        data = ucle.table(frame.assign(stayed=frame.left * 0), ["who"], columns_as="what")
        text = "m = mean[i](x[i,j])"
    else:
        relation = {"table": "answers", "pandas": frame}.get(kind)
        relation = pa.Table.from_pandas(frame) if relation is None else relation
        data, text = ucle.table(relation, ["who"], "left"), "m = mean[i](x[i])"
    text = text if kind != "wide" else "m[j] = mean[i](x[i,j])"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = ucle.einsum_program(text, x=data, database=tables)
        found = program.execute()["m"].to_numpy()
    np.testing.assert_array_equal(found, frame.left.mean() if kind != "wide" else [0.25, 0])


def test_rows_with_zero_are_counted(tables: duckdb.DuckDBPyConnection) -> None:
    """Positions without a row are noticed, and those with a row, of whatever value, are counted."""
    far = frame_of_answers(40, "positions", "bool").assign(who=np.arange(40) * 10)
    fewer, more = (frame_of_answers(n, "names", "bool") for n in (40, 100))
    text = "m = mean[i](x[i])"
    for data in (far, pa.Table.from_pandas(far)):
        with pytest.warns(ucle.MeaningWarning, match="391 positions.*entries at 40 of them"):
            ucle.einsum_program(text, x=ucle.table(data, ["who"], "left"), database=tables)
    with pytest.warns(ucle.MeaningWarning, match="100 positions.*entries at 40 of them"):
        ucle.einsum_program(
            "m = mean[i](x[i] * y[i])",
            x=ucle.table(fewer, ["who"], "left"),
            y=ucle.table(more.assign(left=1.0), ["who"], "left"),
            database=tables,
        )


def test_means_over_ids_of_large_tables(tables: duckdb.DuckDBPyConnection) -> None:
    """Of large tables, not everything is counted."""
    tables.execute(
        "CREATE OR REPLACE TABLE orders AS SELECT 'k' || (range % 99) AS who, "
        "1000000000 + range AS number, 50.0::DECIMAL(10, 2) AS paid FROM range(120000)"
    )
    x = ucle.tensor("orders", axes=("who", "number"), database=tables)
    with pytest.warns(ucle.MeaningWarning, match="1000120000 positions"):
        assert x.mean("number").to_numpy()[0] < 0.001
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.mean("who").count_nonzero().item()


@pytest.mark.filterwarnings("always")
def test_derived_programs_repeat_no_warning(tables: duckdb.DuckDBPyConnection) -> None:
    with pytest.warns(ucle.MeaningWarning) as caught:
        program = ucle.einsum_program(
            "loss = mean[i](square(x[i] - w[])) + mean[i](x[i])",
            x="far",
            w=np.float64(0),
            database=tables,
        )
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = program.minimize("loss", "w", ucle.optim.sgd(0.1))
        step.iterate(max_steps=2)
        program.gradient("loss", "w").execute()
