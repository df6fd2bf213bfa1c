"""Scripts that bring maintained tables up to date in any client: equal to a full run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from maintenance.sequences import PROGRAMS, Rows, Sequence, Table

import ucle
from ucle.errors import ArgumentError, NameResolutionError, UcleError, UnsupportedError

ROUTES = {"native": ucle.connect, "plain": duckdb.connect}


class Scripted(Sequence):
    """A program over tables that change, brought up to date by scripts that are written once."""

    scripts: dict[tuple[Any, ...], str]
    kernels = False

    def step(self) -> bool:
        """Change some tables and run a script; False if the data has no answer, or no script."""
        inserted, deleted = dict[str, str](), dict[str, str]()
        applied = bool(self.rng.integers(2))
        for name in self.tables:
            table = self.tables[name]
            if self.rng.integers(3) == 0:
                continue
            went, came = self._changes(table)
            self.log.append((name, went, came))
            if name in self.append_only:
                self._insert(table, came)
            else:
                self._write(f"new_{name}", table, came)
                self._write(f"old_{name}", table, went)
                inserted[name] = f"new_{name}"
                if went or self.rng.integers(2):
                    deleted[name] = f"old_{name}"
                if applied:
                    self._delete(table, went)
                    self._insert(table, came)
            for key in went:
                del table.rows[key]
            table.rows |= came
        if not inserted and not self.append_only:
            return True
        return self._run(inserted, deleted, applied)

    def _write(self, name: str, table: Table, rows: Rows) -> None:
        told = self._told(table, rows, 0, values=True)
        held = self.connection.table(told) if isinstance(told, str) else told
        arrow = held if isinstance(held, pa.Table) else None
        if arrow is None:
            arrow = held.to_arrow_table() if hasattr(held, "to_arrow_table") else held
        self.connection.register("given", arrow)
        columns = ", ".join([*table.keys, "val"])
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {columns} FROM given")
        self.connection.unregister("given")

    def _run(self, inserted: dict[str, str], deleted: dict[str, str], applied: bool) -> bool:
        key = tuple(inserted), tuple(deleted), applied
        arguments = {"inserted": inserted, "deleted": deleted, "applied": applied}
        for attempt in range(2):
            if key not in self.scripts or attempt:
                try:
                    self.scripts[key] = self.kept.to_sql(**arguments, kernels=self.kernels)
                except UcleError as error:
                    self.log.append(error)
                    return False
            try:
                self.connection.execute(self.scripts[key])
            except duckdb.Error as error:
                self.connection.execute("ROLLBACK")
                self.log.append(error)
            else:
                self.log.append(f"a script ran, {key}")
                return True
        return False


def run_scripts(seed: int, route: str, steps: int = 5) -> int:
    """Run scripts after changes, and now and then a refresh; return how many scripts ran."""
    with ROUTES[route]() as connection:
        try:
            sequence = Scripted(seed, connection)
        except UcleError:  # a random program over other types
            return 0
        sequence.scripts, sequence.kernels, ran = {}, route == "native", 0
        try:
            for _ in range(steps):
                if not sequence.step():
                    break
                ran += 1
                with contextlib.suppress(UcleError):  # then no answer is known
                    sequence.program.recompile().execute().close()
                    sequence.check()
                if sequence.rng.integers(3) == 0:
                    report = sequence.kept.refresh()
                    assert not report.changed
                    assert not report.rows
        except Exception as error:
            log = "\n  ".join(map(str, sequence.log))
            raise AssertionError(f"scripts {seed}\n  {log}") from error
    return ran


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("seed", range(2 * len(PROGRAMS)))
@pytest.mark.parametrize("route", ROUTES)
def test_sequences(route: str, seed: int) -> None:
    run_scripts(seed, route)


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
@pytest.mark.filterwarnings("ignore::ucle.MeaningWarning")
@pytest.mark.parametrize("route", ROUTES)
def test_many_sequences(route: str) -> None:
    first = 2 * len(PROGRAMS)
    for seed in range(first, first + int(os.environ["UCLE_FUZZ_PROGRAMS"])):
        run_scripts(seed, route, 10)


TEXT = "C[i,k] += B[u,i] * B[u,k]; n[i] += B[u,i]; m[] = mean[i](n[i]); a[u] = mean[i](B[u,i])"


def _database(path: Path) -> ucle.EinsumProgram:
    with ucle.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE B AS SELECT i % 9 AS u, (i * i) % 7 AS i, 1 AS val FROM range(20) r(i) "
            "GROUP BY ALL"
        )
    return ucle.einsum_program(TEXT, B="B", database=str(path))


def _outputs(path: Path, kept: ucle.Maintained) -> dict[str, list[Any]]:
    tables = kept.outputs
    with duckdb.connect(str(path)) as connection:
        return {x: sorted(connection.table(y).fetchall()) for x, y in tables.items()}


def _full(program: ucle.EinsumProgram) -> dict[str, list[Any]]:
    with program.recompile().execute() as result:
        return {
            x: sorted(result[x].shown(rows="nonfill" if result[x].type.rank else "all").fetchall())
            for x in result
        }


@pytest.mark.sample(1)
@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("applied", [False, True])
def test_a_bare_client(tmp_path: Path, kernels: bool, applied: bool) -> None:
    """A script runs in a process's own connection, again and again, and `refresh` goes on."""
    path = tmp_path / "shop.duckdb"
    program = _database(path)
    kept = program.maintain("together")
    script = kept.to_sql(
        inserted={"B": "today"}, deleted={"B": "returned"}, applied=applied, kernels=kernels
    )
    connect: Callable[..., Any] = ucle.connect if kernels else duckdb.connect
    for day in range(3):
        with connect(str(path)) as connection:
            connection.execute(
                f"CREATE OR REPLACE TABLE today AS SELECT {day} AS u, 20 + {day} AS i, 2 AS val"
            )
            connection.execute("CREATE OR REPLACE TABLE returned AS SELECT u, i FROM B LIMIT 2")
            if applied:
                connection.execute(
                    "DELETE FROM B WHERE (u, i) IN (FROM returned); "
                    "INSERT INTO B BY NAME FROM today"
                )
            connection.execute(script)
        assert _outputs(path, kept) == _full(program)
        report = kept.refresh()
        assert (report.changed, report.rows) == ({}, 0)
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO B VALUES (5, 30, 1)")
    assert kept.refresh().changed == {"B": 1}
    assert _outputs(path, kept) == _full(program)


@pytest.mark.turns(3)
def test_appended_rows(tmp_path: Path) -> None:
    """A script finds the rows that are new in a table to which they are appended."""
    path = tmp_path / "shop.duckdb"
    program = _database(path)
    kept = program.maintain("together", append_only=["B"])
    script = kept.to_sql(kernels=False)
    for day in range(3):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"INSERT INTO B VALUES ({day}, 40 + {day}, 1)")
            if day == 1:
                connection.execute(script)
        if day != 1:
            kept.refresh()
        assert _outputs(path, kept) == _full(program)
        assert kept.refresh().changed == {}
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM B WHERE u = 1 AND i = 41")
        with pytest.raises(duckdb.Error, match="rows were removed"):
            connection.execute(script)


@pytest.mark.turns(3)
def test_in_a_transaction_of_another(tmp_path: Path) -> None:
    """What runs the script can still take it back, with all else of its transaction."""
    path = tmp_path / "shop.duckdb"
    program = _database(path)
    kept = program.maintain("together", append_only=["B"])
    script = kept.to_sql(kernels=False, transaction=False)
    before, tables = _outputs(path, kept), kept.outputs
    with duckdb.connect(str(path)) as connection:
        for end, rows in (("ROLLBACK", 0), ("COMMIT", 1)):
            connection.execute("BEGIN")
            connection.execute("INSERT INTO B VALUES (5, 30, 1)")
            connection.execute(script)
            connection.execute(end)
            found = connection.execute("SELECT count(*) FROM B WHERE i = 30").fetchall()
            assert found == [(rows,)]
            values = {x: sorted(connection.table(y).fetchall()) for x, y in tables.items()}
            assert (values == before) == (rows == 0)
    assert _outputs(path, kept) == _full(program)
    assert kept.refresh().changed == {}


REFUSED = {
    "SELECT 1 AS u, 2 AS i, NULL::INT AS val": "NULL",
    "SELECT -1 AS u, 2 AS i, 1 AS val": "negative",
    "SELECT 1 AS u, 50 AS i, 1.5 AS val": "not of its type",
    "SELECT u, i, 7 AS val FROM B LIMIT 1": "there is a row",
    "SELECT 1 AS u, 50 AS i, 1 AS val FROM range(2)": "two inserted rows",
}


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", REFUSED)
def test_rows_that_do_not_fit(tmp_path: Path, rows: str) -> None:
    """An error ends the script, and nothing has changed."""
    path = tmp_path / "shop.duckdb"
    kept = _database(path).maintain("together")
    script = kept.to_sql(inserted={"B": "today"}, deleted={"B": "returned"}, kernels=False)
    before = _outputs(path, kept)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE today AS {rows}")
        connection.execute("CREATE TABLE returned AS SELECT u, i FROM B LIMIT 0")
        with pytest.raises(duckdb.Error, match=REFUSED[rows]):
            connection.execute(script)
        connection.rollback()
    assert _outputs(path, kept) == before
    assert kept.refresh().changed == {}


@pytest.mark.turns(3)
def test_other_changes(tmp_path: Path) -> None:
    """A deleted row that is not there, a change that nobody told, another program of the name."""
    path = tmp_path / "shop.duckdb"
    program = _database(path)
    kept = program.maintain("together")
    script = kept.to_sql(deleted={"B": "returned"}, kernels=False)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE returned AS SELECT 8 AS u, 99 AS i")
        with pytest.raises(duckdb.Error, match="is not there"):
            connection.execute(script)
        connection.rollback()
        connection.execute("DELETE FROM returned; INSERT INTO B VALUES (8, 99, 1)")
        with pytest.raises(duckdb.Error, match="other changes"):
            connection.execute(script)
        connection.rollback()
    kept.drop()
    ucle.einsum_program("C[i] += B[u,i]", B="B", database=str(path)).maintain("together")
    with (
        duckdb.connect(str(path)) as connection,
        pytest.raises(duckdb.Error, match="another one"),
    ):
        connection.execute(script)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("append_only", [[], ["A"], ["B"]])
def test_two_inputs_that_are_one_table(append_only: list[str]) -> None:
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i, j, 1.0::DOUBLE AS val "
            "FROM range(3) a(i), range(2) b(j) WHERE i <> 1"
        )
        program = ucle.einsum_program(
            "C[i,k] += A[i,j] * B[k,j]", A="t", B="main.t", database=connection
        )
        kept = program.maintain("products", connection, append_only=append_only)
        told = {x: "today" for x in "AB" if x not in append_only}
        for name in told:
            with pytest.raises(ArgumentError, match="another one reads it"):
                kept.to_sql(inserted={name: "today"})
        script = kept.to_sql(inserted=told, applied=True)
        for place in range(2):
            connection.execute(
                f"CREATE OR REPLACE TABLE today AS SELECT 1 AS i, {place} AS j, 2.5 AS val"
            )
            connection.execute("INSERT INTO t FROM today")
            connection.execute(script)
            expected = connection.sql(
                "SELECT a.i, b.i AS k, sum(a.val * b.val) AS val FROM t a JOIN t b USING (j) "
                "GROUP BY ALL ORDER BY ALL"
            )
            assert connection.sql("FROM products ORDER BY ALL").fetchall() == expected.fetchall()
            assert not kept.refresh().rows


@pytest.mark.turns(3)
def test_arguments(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    program = _database(path)
    kept = program.maintain("together")
    with pytest.raises(ArgumentError, match="which inputs change"):
        kept.to_sql()
    with pytest.raises(NameResolutionError, match="no input of this name"):
        kept.to_sql(inserted={"C": "today"})
    appended = program.maintain("grown", append_only=["B"])
    with pytest.raises(ArgumentError, match="by itself"):
        appended.to_sql(inserted={"B": "today"})
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE v AS SELECT 1 AS i, [1.0, 2.0]::DOUBLE[2] AS val")
    arrays = ucle.einsum_program("s[i] += v[i,j]", v="v", database=str(path)).maintain("sums")
    with pytest.raises(UnsupportedError, match="no single entry"):
        arrays.to_sql(inserted={"v": "today"})
