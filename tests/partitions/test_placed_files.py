"""Parquet files in folders named by keys: their rows are read where they are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ucle import connect, einsum_program, table
from ucle.errors import InputError
from ucle.partitions import Network, distribute
from ucle.partitions.choices import Problem
from ucle.partitions.cut import cut
from ucle.partitions.distribute import EstimatedSizes
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.placed_files import (
    FILE,
    PlacedFiles,
    files_in_folders,
    rows_of_files,
)
from ucle.plan.placement_rules import SCATTERED, Placement
from ucle.testing.partitions import run_on_partitions

RNG = np.random.default_rng(3)
NODES, WIDTH, PARTITIONS = 100, 6, 3
FAST = Network(workers=PARTITIONS, job=1e3)
"""A cluster on which it is worth while to distribute small tables."""


def write(folder: Path, rows: pa.Table, *keys: str) -> PlacedFiles:
    """Write rows into folders named by keys, as DuckDB writes them; return their files."""
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.execute(
            f"COPY rows TO '{folder}' (FORMAT parquet, PARTITION_BY ({','.join(keys)}))"
        )
    found = files_below(folder)
    assert found is not None
    return found


def files_below(folder: Path) -> PlacedFiles | None:
    return files_in_folders(str(folder), sorted(map(str, folder.rglob("*.parquet"))))


def edges() -> tuple[pa.Table, np.ndarray[Any, Any]]:
    matrix = np.where(RNG.random((NODES, NODES)) < 0.9, RNG.normal(size=(NODES, NODES)), 0.0)
    i, j = (x.astype("i4") for x in np.nonzero(matrix))
    return pa.table({"i": i, "j": j, "val": matrix[i, j]}), matrix


@pytest.fixture
def lake(tmp_path: Path, native: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    """A function that makes a view of a folder of Parquet files, partitioned by keys."""
    made = []

    def view(name: str, rows: pa.Table, *keys: str) -> PlacedFiles:
        files = write(tmp_path / name, rows, *keys)
        native.execute(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM "
            f"read_parquet('{tmp_path / name}/**/*.parquet', hive_partitioning=true)"
        )
        made.append(name)
        return files

    yield view
    for name in made:
        native.execute(f"DROP VIEW {name}")


def brought(plan: DistributedPlan, tensor: str) -> list[Any]:
    return [x for f in plan.fragments for x in f.incoming if x.tensor == tensor]


@pytest.mark.parametrize("key", ["i", "j"])
@pytest.mark.parametrize("decomposition", [{"Z": {"i", "j"}}, "relational"])
def test_a_product_whose_table_stays(
    key: str, decomposition: Any, lake: Any, native: duckdb.DuckDBPyConnection
) -> None:
    """Neither rows of the table nor more than sums for each row of the result move."""
    rows, matrix = edges()
    files = lake("links", rows, key)
    features = RNG.normal(size=(NODES, WIDTH))
    program = einsum_program(
        "Z[i,k] += A[i,j] * H[j,k]",
        A=table("links", columns=["i", "j"], value="val", bounds=[NODES, NODES]),
        H=features,
        database=native,
        decomposition=decomposition,
    )
    plan = distribute(program.compiled, FAST, PARTITIONS, files={"A": files})
    (comes,) = brought(plan, "A")
    assert comes.files is files
    assert comes.columns == (key,)
    assert comes.bytes == files.names_bytes
    assert "its files stay there" in str(plan)
    assert plan.seconds < distribute(program.compiled, FAST, PARTITIONS).seconds
    with run_on_partitions(program, native, PARTITIONS, 1, lambda _: plan) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), matrix @ features, atol=1e-12)


@pytest.mark.turns(3)
def test_all_choices_of_placements(lake: Any, native: duckdb.DuckDBPyConnection) -> None:
    """Where the key of the folders does not decide the partition, rows are shuffled as ever."""
    rows, matrix = edges()
    files = lake("links", rows, "i")
    given = table("links", columns=["i", "j"], value="val", bounds=[NODES, NODES])
    program = einsum_program(
        "d[i] += A[i,j]; t[j] += A[i,j] * d[i]",
        A=given,
        database=native,
        outputs=["d", "t"],
        decomposition="relational",
    )
    sizes = EstimatedSizes(program.compiled)
    problem = Problem(program.compiled.plan, sizes, FAST, PARTITIONS, files={"A": files})
    random, met = np.random.default_rng(0), set()
    for _ in range(12):
        choice = {name: ways[random.integers(len(ways))] for name, ways in problem.ways.items()}
        plan = cut(problem, choice)
        for each in brought(plan, "A"):
            assert (each.files is files) == (each.placement == Placement.by(0))
            met.add(each.placement)
        with run_on_partitions(program, native, PARTITIONS, 1, lambda _, p=plan: p) as result:
            np.testing.assert_allclose(result["d"].to_numpy(), matrix.sum(1), atol=1e-12)
            expected = matrix.T @ matrix.sum(1)
            np.testing.assert_allclose(result["t"].to_numpy(), expected, atol=1e-12)
    assert {Placement.by(0), Placement.by(1), SCATTERED} <= met


def test_two_tables_by_the_same_key_meet(lake: Any, native: duckdb.DuckDBPyConnection) -> None:
    """Folders of one table and rows of another are divided alike."""
    rows, matrix = edges()
    rows, matrix = rows.slice(0, 60), np.where(np.arange(NODES) < 0, matrix, 0.0)
    matrix[rows["i"].to_numpy(), rows["j"].to_numpy()] = rows["val"].to_numpy()
    files = lake("links", rows, "j", "i")
    assert files.keys == ("j", "i")
    weights = pa.table({"j": np.arange(NODES, dtype="i8"), "val": RNG.normal(size=NODES)})
    native.register("weights", weights)
    program = einsum_program(
        "s[i,j] = A[i,j] * w[j]",
        A=table("links", columns=["i", "j"], value="val", bounds=[NODES, NODES]),
        w=table("weights", bounds=[NODES]),
        database=native,
        decomposition="relational",
    )
    problem = Problem(
        program.compiled.plan,
        EstimatedSizes(program.compiled),
        FAST,
        PARTITIONS,
        files={"A": files},
    )
    by_j = Placement.by(1), Placement.by(0)
    (name,) = problem.ways
    way = next(w for w in problem.ways[name] if w.reads == by_j and not w.combined)
    plan = cut(problem, {name: way})
    assert brought(plan, "A")[0].files is files
    assert brought(plan, "w")[0].files is None
    with run_on_partitions(program, native, PARTITIONS, 2, lambda _: plan) as result:
        expected = matrix * weights["val"].to_numpy()
        np.testing.assert_allclose(result["s"].to_numpy(), expected, atol=1e-12)
    native.unregister("weights")


def test_few_keys_are_not_worth_it() -> None:
    """Work that lies on one of many partitions is shared by none."""
    with connect(threads=2) as connection:
        connection.execute(
            "CREATE TEMP TABLE links AS SELECT (x % 2)::INT i, (x // 2)::INT j, 1.5 val "
            "FROM range(200000) t(x)"
        )
        program = einsum_program("y[i] += A[i,j] * A[i,j]", A="links", database=connection)
    network = Network(workers=16, job=1e3, byte=4.0, gigabits=1e4)

    def files(keys: int) -> PlacedFiles:
        paths = tuple(f"lake/i={n}/0.parquet" for n in range(keys))
        return PlacedFiles(("i",), paths, tuple((n,) for n in range(keys)), (1000,) * keys)

    few = distribute(program.compiled, network, 16, files={"A": files(2)})
    many = distribute(program.compiled, network, 16, files={"A": files(2000)})
    assert all(each.files is None for each in brought(few, "A"))
    assert all(each.files is not None for each in brought(many, "A"))
    assert files(2).largest_share(["i"], 16) >= 0.5
    assert files(2000).largest_share(["i"], 16) < 0.1


def test_keys_in_the_names_of_folders(tmp_path: Path) -> None:
    paths = [f"{tmp_path}/i={n}/d=2024-01-0{n}/0.parquet" for n in (1, 2)]
    found = files_in_folders(str(tmp_path), paths)
    assert found is not None
    assert found.keys == ("i",)
    assert found.names.to_pylist() == [{"i": 1, FILE: paths[0]}, {"i": 2, FILE: paths[1]}]
    assert not found.place([])
    assert not found.place(["i", "d"])
    assert files_in_folders(str(tmp_path), []) is None
    assert files_in_folders(f"{tmp_path}/i=1", paths) is None
    assert files_in_folders(f"{tmp_path}/i=1", paths[:1]) is None  # d is a date
    assert files_in_folders("lake", ["lake/old/i=1/0.parquet"]) is None
    assert files_in_folders("lake", ["lake/i=1/0.parquet", "lake/0.parquet"]) is None
    missing = files_in_folders("lake", ["lake/i=-7/0", "lake/i=__HIVE_DEFAULT_PARTITION__/0"])
    assert missing is not None
    assert missing.values == ((-7,), (None,))
    named = files_in_folders("lake", ["lake/a%20b=3/0.parquet"])
    assert named is not None
    assert named.keys == ("a b",)


def test_rows_have_the_columns_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a file has: other types, other case, no such column, or its folder's key in it."""
    monkeypatch.setattr("ucle.partitions.placed_files.BATCH_BYTES", 64)
    schema = pa.schema(
        [("i", pa.int32()), ("J", pa.int64()), ("val", pa.list_(pa.float64())), ("w", pa.int8())]
    )
    values = [[float(n), n + 0.5] for n in range(30)]
    stored = pa.table(
        {
            "j": pa.array(range(30), pa.int32()),
            "val": pa.array(values, pa.list_(pa.float32())),
            "i": pa.array([9] * 30, pa.int64()),
        }
    )
    (tmp_path / "i=4").mkdir()
    pq.write_table(stored, tmp_path / "i=4" / "0.parquet")
    files = files_below(tmp_path)
    assert files is not None
    parts = list(rows_of_files(files.names, schema))
    rows = pa.concat_tables(parts)
    assert len(parts) > 3
    assert rows.schema == schema
    assert rows["i"].to_pylist() == [4] * 30
    assert rows["J"].to_pylist() == list(range(30))
    assert rows["val"].to_pylist() == values
    assert rows["w"].null_count == 30
    (keys,) = rows_of_files(files.names, pa.schema([("i", pa.int16())]))
    assert keys["i"].to_pylist() == [4] * 30


@pytest.mark.parametrize("content", [None, b"no Parquet"])
def test_files_that_cannot_be_read(content: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "i=1").mkdir()
    path = tmp_path / "i=1" / "0.parquet"
    if content is not None:
        path.write_bytes(content)
    files = files_in_folders(str(tmp_path), [str(path)])
    assert files is not None
    with pytest.raises(InputError, match="cannot be read where its partition is"):
        list(rows_of_files(files.names, pa.schema([("i", pa.int32())])))
