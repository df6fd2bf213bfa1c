"""Tests of the columns of a table that are read, and their types: nothing is guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle.errors import ArgumentTypeError, InputError, UcleError, ValueTypeError

TABLES = """
CREATE TABLE ratings AS FROM (VALUES (0, 1, 5, 2.5), (1, 2, 6, 3.5)) t(usr, item, ts, rating);
CREATE TABLE numbered AS FROM (VALUES (7, 0, 1, 2.5), (8, 1, 2, 3.5)) t(id, src, dst, w);
CREATE TABLE edges AS FROM (VALUES (0, 1), (1, 2)) t(src, dst);
CREATE TABLE docs AS FROM (VALUES (0, 'a', [1.0, 2.0]), (1, 'b', [3.0, 4.0])) t(id, title, emb);
"""


@pytest.fixture
def tables() -> Any:
    with duckdb.connect() as connection:
        connection.execute(TABLES)
        yield connection


def read(given: Any, connection: Any = None, rank: int = 2) -> Any:
    labels = ",".join("ijk"[:rank])
    program = ucle.einsum_program(f"B[{labels}] = A[{labels}]", A=given, database=connection)
    return program.execute()["B"].to_numpy()


def entries(array: Any) -> list[tuple[int, int, float]]:
    return [(int(i), int(j), array[i, j].item()) for i, j in np.argwhere(array)]


UNCLEAR = [
    ("ratings", "ts INTEGER, rating", "ucle.table('ratings', ['usr', 'item'], 'ts')"),
    (ucle.table("ratings", ["usr", "item"]), "ts INTEGER, rating", "value=1"),
    (ucle.table("ratings", {"i": "usr", "j": "item"}), "ts INTEGER, rating", "value=1"),
    ("numbered", "dst INTEGER, w", "if id numbers the rows, it is not a key"),
    ("docs", "title VARCHAR, emb", "ucle.table('docs', ['id'], 'emb')"),
]


@pytest.mark.parametrize(("given", "found", "hint"), UNCLEAR)
def test_several_columns_are_left(tables: Any, given: Any, found: str, hint: str) -> None:
    with pytest.raises(InputError, match="not clear which column") as info:
        read(given, tables)
    assert found in str(info.value.found)
    assert hint in str(info.value.hint)


CLEAR = [
    (ucle.table("ratings", value="rating"), [(0, 1, 2.5), (1, 2, 3.5)]),
    (ucle.table("ratings", ["usr", "item"], "rating"), [(0, 1, 2.5), (1, 2, 3.5)]),
    (ucle.table("ratings", {"j": "item", "i": "usr"}, "rating"), [(0, 1, 2.5), (1, 2, 3.5)]),
    (ucle.table("ratings", value=1), [(0, 1, 1.0), (1, 2, 1.0)]),
    (ucle.table("ratings", ["usr", "item"], np.float32(2)), [(0, 1, 2.0), (1, 2, 2.0)]),
    (ucle.table("ratings", ["usr", "item"], 2 - 1j), [(0, 1, 2 - 1j), (1, 2, 2 - 1j)]),
    (ucle.table("ratings", ["usr", "item"], True), [(0, 1, True), (1, 2, True)]),
    (ucle.table("ratings", ["usr", "item"], 3, dtype="int64"), [(0, 1, 3), (1, 2, 3)]),
    (ucle.table("numbered", ["src", "dst"], "w"), [(0, 1, 2.5), (1, 2, 3.5)]),
    ("edges", [(0, 1, 1.0), (1, 2, 1.0)]),
    (ucle.table("edges", ["dst", "src"]), [(1, 0, 1.0), (2, 1, 1.0)]),
    (ucle.table("docs", value="emb"), [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 4.0)]),
]


@pytest.mark.parametrize(("given", "expected"), CLEAR)
def test_what_is_said_is_read(tables: Any, given: Any, expected: Any) -> None:
    found = entries(read(given, tables))
    assert found == expected
    assert [type(x[2]) for x in found] == [type(x[2]) for x in expected]


def test_a_constant_of_every_row_adds_up(tables: Any) -> None:
    tables.execute("INSERT INTO ratings VALUES (0, 1, 9, 4)")
    counted = ucle.table("ratings", ["usr", "item"], 1, duplicates="sum")
    assert entries(read(counted, tables)) == [(0, 1, 2.0), (1, 2, 1.0)]


BAD = [
    (ucle.table("edges", value=1.5, dtype="int64"), ValueTypeError, "whole numbers"),
    (ucle.table("edges", value=1j, dtype="float64"), ValueTypeError, "within the range"),
    (ucle.table("edges", value=1e40, dtype="float32"), ValueTypeError, "within the range"),
    (ucle.table("edges", {"j": "dst"}, 1), InputError, "columns for i"),
    (ucle.table("edges", fill=1j), ValueTypeError, "float64 can hold"),
]


@pytest.mark.parametrize(("given", "kind", "expected"), BAD)
def test_bad_statements(tables: Any, given: Any, kind: Any, expected: str) -> None:
    with pytest.raises(UcleError) as info:
        read(given, tables)
    assert type(info.value) is kind
    assert expected in str(info.value.expected)


def test_a_value_is_a_column_or_a_number() -> None:
    with pytest.raises(ArgumentTypeError, match="neither a column nor a number"):
        ucle.table("edges", value=["w"])  # type: ignore[arg-type]


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    filtered = pd.DataFrame({"src": [0, 1], "dst": [1, 2]}, index=[5, 6])
    assert entries(read(filtered)) == [(0, 1, 1.0), (1, 2, 1.0)]
    filtered.to_parquet(tmp_path / "e.parquet")
    filtered.to_csv(tmp_path / "e.csv")
    frame = filtered.rename_axis("node")
    frame.to_parquet(tmp_path / "named.parquet")
    for given in (tmp_path / "e.parquet", tmp_path / "named.parquet", tmp_path / "e.csv"):
        with pytest.raises(InputError, match="not clear which column") as info:
            read(str(given))
        assert "index" in str(info.value.hint)
        stated = ucle.table(str(given), ["src", "dst"], 1)
        assert entries(read(stated)) == [(0, 1, 1.0), (1, 2, 1.0)]
    with pytest.raises(InputError, match="not clear which column"):
        read(pa.Table.from_pandas(filtered))
    for given in (frame, frame.set_index("src"), frame.set_index(["src", "dst"])):
        with pytest.raises(InputError, match="index of this frame") as info:
            read(given, rank=1)
        assert "reset_index" in str(info.value.hint)
    assert entries(read(ucle.table(frame, ["src", "dst"]))) == [(0, 1, 1.0), (1, 2, 1.0)]
    for index in ("src", ["src", "dst"], ["dst", "src"]):
        levels = ucle.table(frame.set_index(index), {"i": "src", "j": "dst"}, 1)
        assert entries(read(levels)) == [(0, 1, 1.0), (1, 2, 1.0)]
    values = frame.assign(w=[2.0, 3.0]).set_index(["w", "src"])
    assert entries(read(ucle.table(values, ["src", "dst"], "w"))) == [(0, 1, 2.0), (1, 2, 3.0)]


def test_a_lazy_frame_has_to_be_collected() -> None:
    lazy = pl.LazyFrame({"src": [0, 1], "dst": [1, 2]})
    with pytest.raises(InputError, match="LazyFrame") as info:
        read(lazy)
    assert "collect()" in str(info.value.hint)
    assert entries(read(lazy.collect())) == [(0, 1, 1.0), (1, 2, 1.0)]


def test_folders_of_a_glob_are_no_values(tmp_path: Path) -> None:
    for year, value in ((2020, 0), (2021, 1)):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        pq.write_table(pa.table({"src": [value], "dst": [1]}), folder / "e.parquet")
    for path in (tmp_path / "*" / "*.parquet", tmp_path / "year=2020" / "e.parquet"):
        with pytest.raises(InputError, match="not clear which column") as info:
            read(str(path))
        assert "year is part of the files' path" in str(info.value.hint)
    glob = str(tmp_path / "*" / "*.parquet")
    assert entries(read(ucle.table(glob, value=1))) == [(0, 1, 1.0), (1, 1, 1.0)]
    years = read(ucle.table(glob, ["src", "dst"], "year"))
    assert entries(years) == [(0, 1, 2020), (1, 1, 2021)]


def test_a_result_in_a_folder_is_read_by_its_description(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    array = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    ucle.array(array, axes=("i", "j")).compute().save(folder / "a.parquet")
    np.testing.assert_array_equal(np.asarray(ucle.tensor(folder / "a.parquet")), array)


def test_ellipsis_of_an_array_in_a_table() -> None:
    array = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(ucle.einsum("...i->...", ucle.table(array)), array.sum(1))


def test_the_command_line_takes_a_number() -> None:
    from ucle.command.options import parse_input

    assert parse_input("edges(src, dst: 1)", "error").value == 1
    assert parse_input("edges(src, dst: w1)", "error").value == "w1"


def test_labels_of_a_lazy_tensor(tables: Any) -> None:
    tensor = ucle.tensor(ucle.table("ratings", {"i": "usr", "j": "item"}, 1), database=tables).sum(
        "j"
    )
    assert np.asarray(tensor).tolist() == [1.0, 1.0]
    turned = ucle.table("ratings", {"j": "item", "i": "usr"}, 1)
    found = ucle.tensor(turned, axes=("i", "j"), database=tables).to_numpy()
    assert entries(found) == [(0, 1, 1.0), (1, 2, 1.0)]
