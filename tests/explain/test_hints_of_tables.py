"""Tests of the hints for tables: what they say is valid, and helps."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle import errors
from ucle.foundation.names import RESERVED, sql_name
from ucle.inputs.formats import FORMATS


def hint_of(wrong: Callable[[], Any]) -> str:
    with pytest.raises(errors.UcleError) as caught:
        wrong()
    assert caught.value.hint
    return caught.value.hint


def database(columns: str, *rows: str) -> duckdb.DuckDBPyConnection:
    opened = ucle.connect()
    opened.execute(f"CREATE TABLE t AS FROM (VALUES {', '.join(rows)}) t({columns})")
    return opened


def total(connection: duckdb.DuckDBPyConnection, relation: Any = "t", axis: str = "k") -> Any:
    return ucle.tensor(relation, axes=(axis,), database=connection).sum().item()


def test_names_are_quoted_where_sql_needs_it() -> None:
    with duckdb.connect() as connection:
        words = connection.sql("""
            SELECT keyword_name FROM duckdb_keywords()
            WHERE keyword_category IN ('reserved', 'type_function')
        """).fetchall()
        assert {word for (word,) in words} <= RESERVED
        for name in ("weight", "order", "ORDER", "Parent Part", 'a"b', "2nd", "größe"):
            connection.sql(
                f"SELECT {sql_name(name)} FROM (SELECT 1 AS {sql_name(name)})"
            ).fetchall()
    assert sql_name("weight") == "weight"


@pytest.mark.parametrize("name", ["weight", "order", "Parent Part"])
def test_rows_with_nulls_are_left_out_as_the_hint_says(name: str) -> None:
    for columns, rows in (
        (f'"{name}", v', ("('a', 1.0)", "(NULL, 2.0)")),
        (f'k, "{name}"', ("('a', 1.0)", "('b', NULL)")),
    ):
        with database(columns, *rows) as connection:
            hint = hint_of(lambda: total(connection))
            condition = re.search("WHERE (.*? IS NOT NULL)", hint)
            assert condition is not None
            connection.execute(f"CREATE VIEW others AS FROM t WHERE {condition[1]}")
            assert total(connection, "others") == 1.0


def test_null_values_may_be_missing() -> None:
    with database("k, v", "('a', 1.0)", "('b', NULL)") as connection:
        assert "nulls='missing'" in hint_of(lambda: total(connection))
        assert total(connection, ucle.table("t", nulls="missing")) == 1.0


def test_nulls_of_frames() -> None:
    frame = pd.DataFrame({"k": ["a", None], "v": [1.0, 2.0]})
    hint = hint_of(lambda: ucle.tensor(frame, axes=("k",)).sum().item())
    assert "dropna(subset=['k'])" in hint
    assert ucle.tensor(frame.dropna(subset=["k"]), axes=("k",)).sum().item() == 1.0
    table = pa.table({"k": ["a", "b"], "v": [1.0, None]})
    hint = hint_of(lambda: ucle.tensor(table, axes=("k",)).sum().item())
    assert "drop_null()" in hint
    assert "drop_nulls()" in hint


@pytest.mark.parametrize(
    ("key", "cast"), [("true", "CAST(k AS VARCHAR)"), ("1.5::DOUBLE", "CAST(k AS INTEGER)")]
)
def test_keys_that_are_named_and_of_no_type_for_keys(key: str, cast: str) -> None:
    with database("k, v", f"({key}, 1.0)") as connection:
        named = hint_of(lambda: total(connection, ucle.table("t", ["k"], "v")))
        assert cast in named
        assert "name the key columns" not in named
        assert "name the key columns" in hint_of(lambda: total(connection))
        for made in re.findall(r"CAST\(.*?\)", named):
            connection.execute(f"CREATE OR REPLACE VIEW others AS SELECT {made} AS k, v FROM t")
            assert total(connection, "others") == 1.0


def test_keys_of_text_files_that_are_named(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text("k,v\n1.5,2\n2.5,1\n")
    hint = hint_of(lambda: total(ucle.connect(), ucle.table(path, ["k"], "v")))
    assert "CAST(k AS VARCHAR)" in hint


@pytest.mark.parametrize(
    "value",
    [
        "DATE '2024-01-01'",
        "TIMESTAMP '2024-01-01 12:00:00'",
        "TIMESTAMPTZ '2024-01-01 12:00:00+00'",
        "INTERVAL 1 DAY",
        "TIME '12:00:00'",
        "'1.5'",
    ],
)
def test_values_that_are_named_and_no_numbers(value: str) -> None:
    with database("k, v", f"('a', {value})") as connection:
        hint = hint_of(lambda: total(connection, ucle.table("t", ["k"], "v")))
        assert "name the value column" not in hint
        made = re.search(r"a view with (.*) has numbers", hint)
        assert made is not None
        connection.execute(f"CREATE VIEW others AS SELECT k, {made[1]} AS v FROM t")
        assert total(connection, "others") > 0


NAMED = ucle.table("t", coordinates={"k": "n", "j": "n"})


def test_labels_that_stand_for_names() -> None:
    with database("k, j, v", "('a', 'b', 1.0)", "('b', 'c', 2.0)") as connection:

        def go(text: str, **options: Any) -> Any:
            return ucle.einsum_program(text, N=NAMED, database=connection, **options)

        text = "keep[x,a] = sum[b](N[a,b]) * (x != a)"
        hint = hint_of(lambda: go(text))
        factor = re.search(r"a factor such as (\S+ != 0)", hint)
        assert factor is not None
        assert "N[x,b]) != 0" in hint_of(lambda: go(text, bounds={"x": 2}))
        found = go(f"{text} * ({factor[1]})").execute()["keep"].to_arrow().to_pylist()
        assert sorted((x["x"], x["a"], x["val"]) for x in found) == [("a", "b", 2), ("b", "a", 1)]


def test_labels_without_names_have_bounds() -> None:
    hint = hint_of(lambda: ucle.einsum_program("y[x,a] = z[a] * (x < a)", z=np.ones(2)))
    assert hint == "pass bounds={'x': ...}"


@pytest.mark.parametrize(
    ("days", "made"),
    [
        (["2024-01-01", "2024-01-03"], r"CAST\(day AS DATE\)"),
        (["31.12.2023", "01.02.2024"], r"strptime\(day, '.*?'\)"),
    ],
)
def test_dates_that_are_text(days: list[str], made: str) -> None:
    frame = pd.DataFrame({"day": days, "v": [1.0, 2.0]})
    series = ucle.tensor(frame, axes=("day",))
    with ucle.connect() as connection:
        connection.register("texts", frame)
        for wrong in (
            lambda: series.rolling("7d", axis="day").sum().to_numpy(),
            lambda: series.rolling(2, axis="day").sum().to_numpy(),
            lambda: series.cumsum("day").to_numpy(),
        ):
            expression = re.search(made, hint_of(wrong))
            assert expression is not None
            connection.execute(
                f"CREATE OR REPLACE VIEW dated AS SELECT {expression[0]} AS day, v FROM texts"
            )
        dated = ucle.tensor("dated", axes=("day",), database=connection)
        assert dated.rolling("2d", axis="day").sum().to_numpy().sum() in (3.0, 5.0)


SELECTED = [
    ("DATE '2024-01-03'", "2024-01-03"),
    ("DATE '2024-01-03'", 3),
    ("'7'", 7),
    ("TIMESTAMP '2024-01-01 02:00:00'", "2024-01-01 02:00:00"),
    ("TIMESTAMPTZ '2024-01-01 02:00:00+00'", "2024-01-01 02:00:00+00"),
    ("TIMESTAMPTZ '2024-01-01 02:00:00+00'", datetime.datetime(2024, 1, 1, 2)),
]


@pytest.mark.parametrize(("key", "given"), SELECTED)
@pytest.mark.parametrize("several", [False, True])
def test_coordinates_of_another_type(key: str, given: Any, *, several: bool) -> None:
    with database("day, v", f"({key}, 1.0)") as connection:
        tensor = ucle.tensor("t", axes=("day",), database=connection)
        picked = [given] if several else given
        hint = hint_of(lambda: tensor.sel(day=picked).to_numpy())
        call = re.fullmatch(r"write sel\(day=(.*)\)", hint)
        assert call is not None
        right = eval(call[1], {"datetime": datetime})
        assert tensor.sel(day=right).item() == 1.0


def test_ids_of_another_type() -> None:
    with database("id, v", "(1000000000000, 1.0)") as connection:
        ids = ucle.tensor(
            ucle.table("t", coordinates="dictionary"), axes=("id",), database=connection
        )
        assert "sel(id=7)" in hint_of(lambda: ids.sel(id="7").item())


def test_large_ids_need_a_dictionary() -> None:
    with ucle.connect() as connection:
        connection.execute("""
            CREATE TABLE t AS SELECT 1000000000000 + 7 * i AS id, i * 1.0 v FROM range(1000) t(i)
        """)
        ids = ucle.tensor("t", axes=("id",), database=connection)
        above = ids > ucle.mean(ids, "id", stored=True)
        assert 'coordinates="dictionary"' in hint_of(lambda: above.sum().item())
        assert ucle.median(ids, "id", stored=True).item() == 499.5


@pytest.mark.parametrize(
    "text", ["z[t] = x[at[t]]", "z[t] = x[n[]] * at[t]", "z[at[t]] += x[t]; w[t] = z[t] * x[t]"]
)
def test_gathers_along_dates(text: str) -> None:
    inputs = {"x": "t", "at": "t", **({"n": np.array(0)} if "n[" in text else {})}
    with (
        database("day, v", "(DATE '2024-01-03', 1)", "(DATE '2024-01-04', 0)") as connection,
        pytest.raises(errors.LabelError) as caught,
    ):
        ucle.einsum_program(text, inputs=inputs, database=connection)
    read = re.search(r"[xz]\[(at\[t\]|n\[\])\]", text)
    assert read is not None
    assert read[0] in caught.value.message
    assert f"the axis at {read[1]}," in (caught.value.found or "")
    assert "positions" in (caught.value.hint or "")


def test_columns_by_labels_of_the_first_read() -> None:
    table = ucle.table("t", {"i": "person"}, "v")
    with (
        database("person, v", "(1, 1.0)") as connection,
        pytest.raises(errors.InputError) as caught,
    ):
        ucle.einsum_program("s = sum[i,j](R[j] * R[i])", R=table, database=connection)
    assert "first reads it: j" in (caught.value.expected or "")
    assert "list" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["x.json", "x.xlsx", "x.y.bin"])
def test_files_that_are_not_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text('[{"k": 1, "v": 2.0}]')
    for path in (name, f"./{name}"):
        hint = hint_of(lambda: total(ucle.connect(), path))  # noqa: B023
        assert all(suffix in hint for format_ in FORMATS for suffix in format_.suffixes)
        if query := re.search(r"FROM read_json\(.*\)", hint):
            with ucle.connect() as connection:
                connection.execute(f"CREATE VIEW v AS {query[0]}")
                assert total(connection, "v") == 2.0


def test_results_are_no_lazy_tensors() -> None:
    result = ucle.einsum_program("y[i] = x[i]", x=[1.0, 3.0]).execute()["y"]
    with pytest.raises(AttributeError, match=r"argmax.*ucle\.tensor"):
        _ = getattr(result, "argmax")()  # noqa: B009
    assert not hasattr(result, "__dataframe__")
    assert ucle.tensor(result).argmax().item() == 1
