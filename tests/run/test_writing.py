"""Writing results: the rows there are by default, tables that exist, folders, what is gone."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle import errors
from ucle.database.engine_errors import execution_error
from ucle.foundation import atomic_files
from ucle.inputs.inputs import parse_table_name
from ucle.optimiser.profiles import save_profile

A = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
EDGES = ucle.table(np.array([[0, 1.0], [np.inf, 0]]), fill=np.inf)


def computed(connection: Any, text: str = "T[i,j] = A[i,j]", **inputs: Any) -> Any:
    program = ucle.einsum_program(text, inputs=inputs or {"A": A}, database=connection)
    return program.execute()[program.outputs[0]]


def rows(connection: Any, name: str) -> list[Any]:
    return sorted(connection.sql(f"FROM {name}").fetchall())


# ---- Which rows there are ----

DEFAULTS = [
    ("y[i] = 1 / (1 + A[i,j])", {"A": A}, 2),
    ("y[i] += A[i,j]", {"A": 0 * A}, 0),
    ("y[i,j] = A[i,j] == 0", {"A": A}, 6),
    ("y[i,j] = A[i,j] > 0", {"A": A}, 3),
    ("y[i,k] min= A[i,j] + A[j,k]", {"A": EDGES}, 3),
    ("y[i,k] = min[j](A[i,j] + A[j,k])", {"A": EDGES}, 3),
    ("y[k,i] = A[i,k]", {"A": EDGES}, 3),
    ("x[i,k] min= A[i,j] + A[j,k]; y[k,i] = x[i,k]", {"A": EDGES}, 3),
    ("y[i,k] = min(A[i,k], A[k,i])", {"A": EDGES}, 4),
    ("y[i,k] = A[i,k] + 1", {"A": EDGES}, 4),
    ("y[i] max= A[i,j] + 1", {"A": A}, 2),
    ("y[i] any= A[i,j]", {"A": A * [[1], [0]]}, 1),
    ("y += A[i,j]", {"A": 0 * A}, 1),
]


@pytest.mark.parametrize(("text", "inputs", "count"), DEFAULTS, ids=[x[0] for x in DEFAULTS])
def test_rows_follow_the_fill(
    text: str, inputs: Any, count: int, connection: duckdb.DuckDBPyConnection
) -> None:
    """Fills other than 0 used to vanish, and what a plan had stored of zeros to appear."""
    program = ucle.einsum_program(text, inputs=inputs, database=connection)
    for way in ("auto", "relational"):
        with program.with_decomposition(way).execute() as result:
            y = result["y"]
            assert len(y.to_arrow()) == len(y.to_pandas()) == len(y.relation.fetchall()) == count
            if y.shape:
                assert len(y.to_arrow(rows="all")) == np.prod(y.shape)


def test_argmax_lists_every_row() -> None:
    """Rows whose winner is position 0 were missing."""
    frame = ucle.array([[5.0, 1.0], [1.0, 5.0]], axes=("i", "j")).argmax("j").to_pandas(rows="all")
    assert sorted(frame.itertuples(index=False, name=None)) == [(0, 0), (1, 1)]


def test_too_many_rows_are_refused_before_anything_is_done(
    native: duckdb.DuckDBPyConnection,
) -> None:
    size = 10**6
    one = ucle.table(pa.table({"i": [3], "j": [5], "v": [1.0]}), bounds=(size, size))
    program = ucle.einsum_program("T[i,j] = exp(A[i,j])", A=one, database=native)
    with program.execute() as result:
        tensor = result["T"]
        for write in (
            lambda: tensor.to_table("big"),
            tensor.to_arrow,
            lambda: tensor.relation,
            lambda: tensor.save("/nowhere/t.parquet"),
        ):
            with pytest.raises(errors.ArgumentError, match="rows='nonfill'"):
                write()
        assert len(tensor.to_arrow(rows="nonfill")) == 1
        with pytest.raises(errors.MemoryLimitError, match="rows='nonfill'"):
            tensor.to_arrow(rows="all", max_rows=10**13)


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rows": "some"}, errors.ArgumentError),
        ({"rows": 5}, errors.ArgumentError),
        ({"keys": "i"}, errors.ArgumentTypeError),
        ({"keys": ["x"]}, errors.LabelError),
        ({"max_rows": -1}, errors.ArgumentError),
        ({"mode": "add"}, errors.ArgumentError),
        ({"mode": "append", "replace": True}, errors.ArgumentError),
        ({"on": ["i"]}, errors.ArgumentError),
        ({"mode": "upsert", "on": ["x"]}, errors.LabelError),
        ({"mode": "upsert", "keys": []}, errors.ArgumentError),
    ],
    ids=str,
)
def test_arguments_are_checked(arguments: Any, error: type[Exception], native: Any) -> None:
    tensor = computed(native)
    with pytest.raises(error):
        tensor.to_table("never", **arguments)
    assert not native.sql("FROM duckdb_tables() WHERE table_name = 'never'").fetchall()


def test_a_line_names_the_keys(native: Any, caplog: pytest.LogCaptureFixture) -> None:
    tensor = computed(native, "T[i,j] = A[i,j]", A=np.ones((400, 300)))
    with caplog.at_level(logging.INFO, "ucle.result"):
        tensor.to_arrow(["i"])
        assert not caplog.messages
        tensor.to_arrow()
    assert "keys=['i']" in caplog.messages[0]


# ---- Tables that exist ----


def test_modes(fresh: duckdb.DuckDBPyConnection) -> None:
    tensor = computed(fresh)
    expected = [(0, 1, 2.0), (1, 0, 3.0), (1, 2, 4.0)]
    tensor.to_table("t", mode="append")
    assert rows(fresh, "t") == expected
    with pytest.raises(errors.DatabaseError, match="already exists"):
        tensor.to_table("t")
    tensor.to_table("t", mode="append")
    assert rows(fresh, "t") == sorted(expected * 2)
    tensor.to_table("t", mode="replace")
    fresh.execute("UPDATE t SET val = 0; INSERT INTO t VALUES (7, 7, 7), (1, 1, 5)")
    tensor.to_table("t", mode="upsert")
    assert rows(fresh, "t") == sorted([*expected, (7, 7, 7), (1, 1, 5)])
    tensor.to_table("t", mode="upsert", on=["i"])
    assert rows(fresh, "t") == sorted([*expected, (7, 7, 7)])
    fresh.execute("CREATE TABLE p (val DOUBLE, i BIGINT, j BIGINT, PRIMARY KEY (i, j))")
    for _ in range(2):
        tensor.to_table("p", mode="upsert")
    assert rows(fresh, "p") == sorted((v, i, j) for i, j, v in expected)
    tensor.to_table("arrays", keys=["i"])
    tensor.to_table("arrays", keys=["i"], mode="upsert")
    assert rows(fresh, "arrays") == [(0, [0.0, 2.0, 0.0]), (1, [3.0, 0.0, 4.0])]


def test_columns_have_to_fit(fresh: duckdb.DuckDBPyConnection) -> None:
    tensor = computed(fresh)
    fresh.execute("CREATE TABLE t (i INTEGER, k INTEGER, val DOUBLE)")
    fresh.execute("CREATE TABLE u (i INTEGER, j INTEGER, val INTEGER)")
    fresh.execute("CREATE VIEW v AS FROM t")
    fresh.execute("BEGIN")
    for name in ("t", "u"):
        with pytest.raises(errors.ColumnsError, match="j INTEGER, val DOUBLE") as caught:
            tensor.to_table(name, mode="append")
        assert ("k INTEGER" if name == "t" else "val INTEGER") in str(caught.value)
    for mode in ("replace", "append", "error"):
        with pytest.raises(errors.DatabaseError, match="view"):
            tensor.to_table("v", mode=mode)
    with pytest.raises(errors.DatabaseError, match="no schema nope"):
        tensor.to_table("nope.t")
    counts = fresh.sql("SELECT 0 AS i, 2::BIGINT AS val")
    with ucle.einsum_program("y[i] = c[i]", c=counts, database=fresh).execute() as result:
        fresh.execute(
            "CREATE TABLE f (i BIGINT, val DOUBLE); CREATE TABLE h (i BIGINT, val HUGEINT)"
        )
        with pytest.raises(errors.ColumnsError, match="val DOUBLE"):
            result["y"].to_table("f", mode="append")  # which does not have every integer
        result["y"].to_table("h", mode="append")
        assert rows(fresh, "h") == [(0, 2)]
    fresh.execute("COMMIT")  # no refusal has aborted the transaction


def test_a_failure_leaves_the_table_as_it_was(fresh: duckdb.DuckDBPyConnection) -> None:
    tensor = computed(fresh)
    fresh.execute("CREATE TABLE t (i INTEGER, j INTEGER, val DOUBLE CHECK (val < 4))")
    fresh.execute("INSERT INTO t VALUES (0, 1, 1)")
    for mode in ("append", "upsert"):
        with pytest.raises(errors.DatabaseError):
            tensor.to_table("t", mode=mode)
        assert rows(fresh, "t") == [(0, 1, 1.0)]


def test_a_transaction_of_the_user_is_respected(fresh: duckdb.DuckDBPyConnection) -> None:
    tensor = computed(fresh)
    tensor.to_table("t")
    fresh.execute("UPDATE t SET val = 0")
    before = rows(fresh, "t")
    fresh.execute("BEGIN")
    tensor.to_table("t", mode="upsert")
    assert rows(fresh, "t") != before
    fresh.execute("ROLLBACK")
    assert rows(fresh, "t") == before


def test_attached_databases(fresh: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    tensor = computed(fresh)
    fresh.execute(f"ATTACH '{tmp_path}/other.db' AS other; CREATE SCHEMA other.s")
    for name in ("other.t", "other.s.t", '"other"."s"."my ""t"""'):
        for mode in ("error", "upsert"):
            tensor.to_table(name, mode=mode)
            assert len(rows(fresh, name)) == 3
    fresh.execute(f"DETACH other; ATTACH '{tmp_path}/other.db' AS other (READ_ONLY)")
    fresh.execute("BEGIN")
    for mode in ("error", "replace", "append", "upsert"):
        with pytest.raises(errors.ReadOnlyError, match="read-only"):
            tensor.to_table("other.t", mode=mode)
    fresh.execute("COMMIT")


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", [".x", "a.", 'my"table', "a..b", '""', "", " ", '"a"b', "a.b.c.d"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(errors.InputError, match="not the name of a table"):
        parse_table_name(name, "here")


def test_names_are_taken_apart() -> None:
    for name, parts in {
        "a.b": ("a", "b"),
        '"my ""t""".x': ('my "t"', "x"),
        "my table": ("my table",),
        ' a . "b.c" ': ("a", "b.c"),
    }.items():
        assert parse_table_name(name, "here").parts == parts


# ---- Files and folders ----


def test_other_files_stay_as_they_are(tmp_path: Path) -> None:
    """Files used to be written as NAME.new, wherever that led, and the profile as .partial."""
    mine, precious = tmp_path / "t.csv.new", tmp_path / "precious"
    precious.write_text("precious")
    mine.symlink_to(precious)
    (tmp_path / "t.csv").symlink_to(precious)
    (tmp_path / "profile.partial").symlink_to(precious)
    with ucle.connect() as connection:
        computed(connection).save(tmp_path / "t.csv")
    save_profile(ucle.plan.prices.ENGINE, tmp_path / "profile.json")
    assert precious.read_text() == "precious"
    assert mine.is_symlink()
    assert "val" in (tmp_path / "t.csv").read_text()
    assert len(list(tmp_path.iterdir())) == 5


def test_partitions(fresh: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    tensor, folder = computed(fresh), tmp_path / "parts"
    for keys in (None, ["i"]):
        tensor.save(folder, partition_by=["i"], keys=keys)
        assert sorted(x.name for x in folder.iterdir()) == ["i=0", "i=1"]
        assert [x.name for x in tmp_path.iterdir()] == ["parts"]
        found = fresh.sql(f"SELECT count(*), count(DISTINCT i) FROM '{folder}/*/*.parquet'")
        assert found.fetchall() == [(3 if keys is None else 2, 2)]
    (file, *_) = folder.glob("*/*.parquet")
    assert b"ucle" in pq.read_schema(file).metadata
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(errors.OutputError, match="other files"):
        tensor.save(folder, partition_by=["i"])
    with pytest.raises(errors.LabelError, match="partition"):
        tensor.save(tmp_path / "q", partition_by=["j"], keys=["i"])
    assert (folder / "notes.txt").read_text() == "mine"
    assert [x.name for x in tmp_path.iterdir()] == ["parts"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_replaced(
    exchanges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of that name exists at every moment if the system exchanges folders."""
    target = tmp_path / "parts"
    renamed = []
    monkeypatch.setattr(Path, "rename", lambda *x: renamed.append(x) or os.rename(*x))
    if not exchanges:
        monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    elif sys.platform not in ("linux", "darwin"):
        pytest.skip("this system exchanges no folders")
    for version in ("one", "two"):
        with atomic_files.fresh_folder(target) as folder:
            (folder / version).touch()
        assert [x.name for x in target.iterdir()] == [version]
        assert list(tmp_path.iterdir()) == [target]
    assert len(renamed) == (1 if exchanges else 3)


# ---- What is gone ----


@pytest.mark.slow
@pytest.mark.parametrize("step", ["as it is", "filtered"])
def test_a_relation_holds_what_it_shows(step: str, fresh: duckdb.DuckDBPyConnection) -> None:
    for name in ("relation", "stored"):
        found = getattr(computed(fresh, "y[i] += A[i,j]"), name)
        if step == "filtered":
            found = found.limit(5)
        gc.collect()
        assert len(found.fetchall()) in (1, 2)
        del found
    gc.collect()
    assert not fresh.sql("FROM duckdb_tables() WHERE temporary").fetchall()


READS: list[Any] = [
    lambda t: t.to_numpy(),
    lambda t: t.to_scipy(),
    lambda t: t.to_arrow(),
    lambda t: t.to_arrow(["i"]),
    lambda t: t.to_pandas(),
    lambda t: t.to_table("t"),
    lambda t: t.to_table("t", keys=["i"], mode="upsert"),
    lambda t: t.relation,
    lambda t: t.stored,
]


TOGETHER = "T[i,j] = square(A[i,j]); U[i] += T[i,j]; V[i] = U[i] * U[i]"
"""A program whose results are columns of one row."""


def test_what_is_read_in_a_transaction_outlasts_its_end(fresh: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(TOGETHER, A=A, outputs=["T", "U"], database=fresh)
    assert "tape(" in program.to_sql()
    with program.execute() as result:
        fresh.execute("BEGIN")
        np.testing.assert_allclose(result["U"].to_numpy(), np.square(A).sum(axis=1))
        assert len(result["U"].relation.fetchall()) == len(A)
        fresh.execute("ROLLBACK")
        np.testing.assert_allclose(result["U"].to_numpy(), np.square(A).sum(axis=1))
        assert len(result["U"].relation.fetchall()) == len(A)


@pytest.mark.parametrize("text", ["T[i,j] = A[i,j]", TOGETHER])
@pytest.mark.parametrize("end", ["closed", "rolled back", "connection"])
def test_what_is_gone_says_so(
    end: str, text: str, fresh: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    if end == "rolled back":
        fresh.execute("BEGIN")
    outputs = ["T", "U"] if text == TOGETHER else ["T"]
    program = ucle.einsum_program(text, A=A, outputs=outputs, database=fresh)
    result = program.execute()
    tensor = result["T"]
    if end == "closed":
        result.close()
    elif end == "connection":
        fresh.close()
    else:
        fresh.execute("ROLLBACK")
    for read in [*READS, lambda t: t.save(tmp_path / "t.parquet")]:
        with pytest.raises(errors.ResultClosedError, match=end):
            read(tensor)
    assert not list(tmp_path.iterdir())


def test_names_of_tensors(native: duckdb.DuckDBPyConnection) -> None:
    with ucle.einsum_program("Total[i] += A[i,j]", A=A, database=native).execute() as result:
        with pytest.raises(errors.OutputNameError, match="Did you mean"):
            result["total"]
        with pytest.raises(KeyError):
            result["total"]
        assert result.get("total") is None
        assert "total" not in result
        assert "Total" in result


# ---- Views ----


def test_views_show_what_tables_hold(native: duckdb.DuckDBPyConnection) -> None:
    native.execute("CREATE SCHEMA shown; CREATE TABLE shown.edges (i INTEGER, j INTEGER, v DOUBLE)")
    native.execute("INSERT INTO shown.edges VALUES (0, 1, 2), (1, 0, 3)")
    try:
        program = ucle.einsum_program(
            "y[i] = 1 / (1 + A[i,j]); z[i,j] = A[i,j]",
            A="shown.edges",
            outputs=["y", "z"],
            database=native,
        )
        for way in ("auto", "relational"):
            planned = program.with_decomposition(way)
            planned.create_views(schema="shown", replace=True)
            assert rows(native, "shown.y") == [(0, 1 / 3), (1, 0.25)]
            assert rows(native, "shown.z") == [(0, 1, 2.0), (1, 0, 3.0)]
            planned.create_views(schema="shown", replace=True, keys={"z": ["j"]}, rows="all")
            assert rows(native, "shown.z") == [(0, [0.0, 3.0]), (1, [2.0, 0.0])]
        with pytest.raises(errors.ArgumentError, match="which output"):
            program.create_views(schema="shown", replace=True, keys=["i"])
        with pytest.raises(errors.ArgumentError, match="too many"):
            program.create_views(schema="shown", replace=True, max_rows=1)
    finally:
        native.execute("DROP SCHEMA shown CASCADE")


@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_lack_of_memory_is_called_so(mode: str) -> None:
    with ucle.connect(threads=1) as connection:
        rows = "SELECT x::INT AS i, (x + 1)::DOUBLE AS val FROM range(300000) r(x)"
        connection.execute(f"CREATE TABLE t AS {rows}; CREATE TABLE o AS {rows}").fetchall()
        program = ucle.einsum_program(
            "y[i] = 2 * A[i]", A="t", database=connection, decomposition="relational"
        )
        with program.execute() as result:
            used = "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"
            ((held,),) = connection.execute(used).fetchall()
            connection.execute("SET temp_directory = ''").fetchall()
            connection.execute(f"SET memory_limit = '{held + 3_000_000}B'").fetchall()
            with pytest.raises(errors.MemoryLimitError, match="raise memory_limit"):
                result["y"].to_table("o", mode=mode)
            connection.execute("SET memory_limit = '1GB'").fetchall()
            assert connection.sql("SELECT sum(val) FROM o").fetchall() == [(300000 * 300001 / 2,)]


def test_memory_that_a_commit_lacks() -> None:
    """DuckDB says of a COMMIT that the transaction failed, whatever it failed for."""
    text = "Failed to commit: could not allocate block of size 256.0 KiB (22.7 MiB/22.8 MiB used)"
    for kind in (duckdb.TransactionException, duckdb.IOException):
        error = execution_error(kind(f"TransactionContext Error: {text}"), "to_table('t')")
        assert isinstance(error, errors.MemoryLimitError)


def test_other_libraries_names_of_arguments(connection: duckdb.DuckDBPyConnection) -> None:
    """``overwrite=True`` and ``if_exists=`` are answered with the names that do this here."""
    for tensor in (
        ucle.einsum_program("y[i] = x[i]", x=[1.0, 2.0], database=connection).execute()["y"],
        2 * ucle.array([1.0, 2.0]),
    ):
        for name, value, here in (("overwrite", True, "replace"), ("if_exists", "append", "mode")):
            with pytest.raises(errors.ArgumentTypeError) as caught:
                tensor.to_table("sums", **{name: value})
            assert caught.value.found == name
            assert caught.value.hint == f'Did you mean "{here}"?'
