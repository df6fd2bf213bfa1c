"""Every kind of file and relation x what its data may be: right, or a typed error of ucle.

The cases are those of objects in memory (`test_object_matrix`). Files and tables that have types
are held to the same rules; in text files a number is a number however it came there.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from test_object_matrix import CASES, Case, check, read

import ucle
from ucle import errors


def table(case: Case) -> pa.Table:
    """A case as Arrow holds it; an error where it does not."""
    return pa.table({"k": list(case.keys), "v": list(case.values)})


def parts(case: Case) -> list[pa.Table]:
    """The rows of a case in two tables, each with the types that it has by itself."""
    half = max(len(case.keys) - 1, 1)
    halves = (
        replace(case, keys=case.keys[each], values=case.values[each])
        for each in (slice(None, half), slice(half, None))
    )
    return [table(each) for each in halves if len(each.keys)]


TYPED = ("parquet", "pattern", "feather", "arrow", "table", "view", "relation")


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", TYPED)
def test_files_and_relations_with_types(
    kind: str, native: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    def made(case: Case) -> Any:
        path = tmp_path / str(CASES.index(case))
        if kind == "pattern":
            path.mkdir()
            if len(halves := parts(case)) < 2:
                raise ValueError("one row is in one file")
            for number, half in enumerate(halves):
                pq.write_table(half, path / f"{number}.parquet")
            return str(path / "*.parquet")
        data = table(case)
        if kind == "parquet":
            pq.write_table(data, f"{path}.parquet")
            return f"{path}.parquet"
        if kind == "feather":
            feather.write_feather(data, f"{path}.feather")
            return f"{path}.feather"
        if kind == "arrow":
            with pa.ipc.new_file(f"{path}.arrow", data.schema) as writer:
                writer.write_table(data)
            return f"{path}.arrow"
        native.register("given_rows", data)
        native.execute("CREATE OR REPLACE TEMP TABLE matrix_rows AS FROM given_rows").fetchall()
        native.unregister("given_rows")
        if kind == "view":
            native.execute("CREATE OR REPLACE TEMP VIEW matrix_view AS FROM matrix_rows").fetchall()
            return "matrix_view"
        return native.sql("FROM matrix_rows") if kind == "relation" else "matrix_rows"

    # A column that holds nothing has no type of numbers, and truth values meet no number in a
    # pattern, whose files are read in the type of all of them.
    refused = ["empty", "truths, late 5"] if kind == "pattern" else ["empty"]
    assert check(made, native, may_refuse=refused) > 20


DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ";", ".csv.gz": ",", ".edges": "|"}
OF_TEXT = [
    case
    for case in CASES
    if case.name
    not in ("text is no number", "late text", "numbers in text", "number among names", "text keys")
    and not case.name.startswith(("truths", "2^63", "ids", "dates", "times"))
]
"""Cases that text files can express; they do not tell text from numbers."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("suffix", DELIMITERS)
@pytest.mark.parametrize("header", [True, False], ids=["header", "rows"])
def test_text_files(
    suffix: str, header: bool, native: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    def made(case: Case) -> Any:
        path = tmp_path / f"{CASES.index(case)}{suffix}"
        rows = [
            ["" if x is None else x for x in row]
            for row in zip(case.keys, case.values, strict=True)
        ]
        text = io.StringIO()
        writer = csv.writer(text, delimiter=DELIMITERS[suffix], lineterminator="\n")
        writer.writerows([["k", "v"], *rows] if header else rows)
        content = text.getvalue().encode()
        path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
        return str(path) if header else ucle.table(str(path), header=False)

    assert check(made, native, cases=OF_TEXT, may_refuse=["empty", "one row"]) == len(OF_TEXT)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings(encoding: str, native: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """UTF-8, with a mark before it or without; else the error says so."""
    path = tmp_path / "names.csv"
    path.write_bytes("who,v\nbjörn,1\nänne,2\n".encode(encoding))
    if encoding.startswith("utf-8"):
        assert read(str(path), native) == {"björn": 1, "änne": 2}
        return
    with pytest.raises(errors.InputError) as info:
        read(str(path), native)
    assert "utf-8" in str(info.value).casefold()


def category(values: Sequence[str]) -> pa.Array:
    """Text as a dictionary's indices."""
    return pa.array(values).dictionary_encode()


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".parquet": pq.write_table,
    ".feather": feather.write_feather,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_categories(suffix: str, native: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / f"names{suffix}"
    WRITERS[suffix](pa.table({"k": category(["b", "a", "c"]), "v": [1.0, 2.0, 3.0]}), path)
    assert read(str(path), native) == {"b": 1, "a": 2, "c": 3}
    WRITERS[suffix](pa.table({"k": [0, 1], "v": category(["1", "2"])}), path)
    with pytest.raises(errors.InputError):
        read(str(path), native)


ROWS = 10**6


@pytest.mark.sample(1)
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".feather"])
def test_a_million_rows_of_a_file(
    suffix: str, native: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Far behind what is looked at first, a fraction comes."""
    path = tmp_path / f"many{suffix}"
    values = pa.array([1] * (ROWS - 1) + [0.25], pa.float64())
    data = pa.table({"k": pa.array(range(ROWS)), "v": values})
    if suffix == ".csv":
        frame = pd.DataFrame({"k": range(ROWS), "v": ["1"] * (ROWS - 1) + ["0.25"]})
        frame.to_csv(path, index=False)
    else:
        WRITERS[suffix](data, path)
    with ucle.einsum_program("s += A[i]", A=str(path), database=native).execute() as result:
        assert result["s"].item() == ROWS - 0.75
