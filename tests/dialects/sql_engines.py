"""Engines that scripts in other dialects run on, each by the same three methods.

`load` makes a table, `run` runs a script and gives the rows of its SELECTs, `clear` forgets all.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import UnsupportedError
from ucle.foundation.dtypes import Scalar
from ucle.inputs.inputs import value_array
from ucle.testing.generate import Case
from ucle.testing.oracle import assert_equal

Rows = list[tuple[Any, ...]]
NAMES = ("spark", "postgres")


class SqlEngine(Protocol):
    """The interface of an engine that tests use."""

    name: str

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table of that name."""

    def query(self, sql: str) -> Rows:
        """The rows of one statement."""

    def clear(self) -> None:
        """Forget all tables."""


def statements(script: str) -> list[str]:
    """The statements of a script, without comments in front."""
    parts = re.split(r";\n+", script)
    return [part for part in parts if re.sub(r"(?m)^--.*$", "", part).strip()]


def run(engine: SqlEngine, script: str) -> tuple[dict[str, Rows], int]:
    """The rows of each output of a script, and those of queries that have a row in doubt."""
    results: dict[str, Rows] = {}
    doubts = 0
    for statement in statements(script):
        rows = engine.query(statement)
        if found := re.search(r"(?m)^-- result (.*)$", statement):
            results[found.group(1)] = rows
        elif ": a row here says" in statement:
            doubts += len(rows)
    return results, doubts


class Spark:
    """A Spark on this machine with one core."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session

    def load(self, name: str, table: pa.Table) -> None:
        self._session.createDataFrame(table).createOrReplaceTempView(f"`{name}`")

    def query(self, sql: str) -> Rows:
        return [tuple(row) for row in self._session.sql(sql).collect()]

    def clear(self) -> None:
        for table in self._session.catalog.listTables():
            self._session.sql(f"DROP VIEW `{table.name}`")
        self._session.catalog.clearCache()


@contextlib.contextmanager
def spark() -> Iterator[Spark]:
    """Spark, if it and Java are there."""
    sql = pytest.importorskip("pyspark.sql", reason="`make dialect-test` installs PySpark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java for Spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.simplefilter("ignore", FutureWarning)
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": folder,
        }
        builder = sql.SparkSession.builder.master("local[1]").appName("ucle dialects")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield Spark(session)
        finally:
            session.stop()


POSTGRES_TYPES = {
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE PRECISION",
    pa.bool_(): "BOOLEAN",
    pa.string(): "TEXT",
}


class Postgres:
    """A PostgreSQL that lives as long as the tests."""

    name = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def load(self, name: str, table: pa.Table) -> None:
        columns = ", ".join(f'"{x.name}" {POSTGRES_TYPES[x.type]}' for x in table.schema)
        self._connection.execute(f'CREATE TEMPORARY TABLE "{name}" ({columns})')
        values = ", ".join(["%s"] * table.num_columns)
        with self._connection.cursor() as cursor:
            rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            cursor.executemany(f'INSERT INTO "{name}" VALUES ({values})', rows)

    def query(self, sql: str) -> Rows:
        cursor = self._connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def clear(self) -> None:
        self._connection.rollback()


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """PostgreSQL on a socket in a folder of its own, if it is on this machine."""
    psycopg = pytest.importorskip("psycopg", reason="`make dialect-test` installs psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = found[-1] if found else shutil.which("initdb")
    if initdb is None:
        pytest.skip("there is no PostgreSQL on this machine (initdb)")
    user: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="ucle-pg-"))
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        shutil.chown(folder, "postgres")
        user = ["runuser", "-u", "postgres", "--"]

    def call(program: str, *arguments: str) -> None:
        path = str(Path(initdb).with_name(program))
        subprocess.run([*user, path, *arguments], check=True, capture_output=True, cwd="/tmp")

    data = str(folder / "data")
    call("initdb", "-D", data, "-U", "ucle", "--auth=trust", "-E", "UTF8", "--locale=C")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        with psycopg.connect(host=str(folder), user="ucle", dbname="postgres") as connection:
            yield Postgres(connection)
    finally:
        call("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


ENGINES = {"spark": spark, "postgres": postgres}


def coo(array: np.ndarray[Any, Any], fill: Scalar = 0) -> pa.Table:
    """A table with a row for every entry that is not the fill."""
    if not array.ndim:
        return pa.table({"v": value_array(array.reshape(1))})
    places = np.nonzero(array != fill)
    keys = {f"k{n}": place.astype(np.int32) for n, place in enumerate(places)}
    return pa.table({**keys, "v": value_array(np.ascontiguousarray(array[places]))})


def compiled(
    text: str, arrays: Mapping[str, Any], fills: Mapping[str, Scalar] | None = None, **options: Any
) -> tuple[Any, dict[str, pa.Table]]:
    """A relational program over tables of a DuckDB, and these tables."""
    fills = fills or {}
    connection = ucle.connect()
    inputs, tables = {}, {}
    for number, (name, array) in enumerate(arrays.items()):
        stored = f"Table{number}"
        tables[stored] = coo(array, fills.get(name, 0))
        connection.register("arrow", tables[stored])
        connection.execute(f"CREATE TABLE {stored} AS SELECT * FROM arrow")
        connection.unregister("arrow")
        keys = [f"k{n}" for n in range(array.ndim)]
        inputs[name] = ucle.table(stored, keys, "v", bounds=array.shape, fill=fills.get(name))
    options = {"decomposition": "relational", **options}
    program = ucle.einsum_program(text, inputs=inputs, database=connection, **options)
    return program, tables


def dense(program: Any, name: str, rows: Rows) -> np.ndarray[Any, Any]:
    """The tensor that rows of keys and a value show."""
    read = program.compiled.plan.outputs[name]
    array = np.full(read.type.shape, read.type.fill, read.type.dtype.numpy)
    for *keys, value in rows:
        array[tuple(keys)] = value
    return array


def answers(
    engine: SqlEngine, program: Any, tables: Mapping[str, pa.Table]
) -> dict[str, Any] | None:
    """Run a program on an engine; None where the script reports doubts."""
    script = program.to_sql(dialect=engine.name)
    for name, table in tables.items():
        engine.load(name, table)
    results, doubts = run(engine, script)
    assert tuple(results) == program.outputs, script
    if doubts:
        return None
    return {name: dense(program, name, rows) for name, rows in results.items()}


def check(engine: SqlEngine, case: Case) -> str:
    """Return "ran", "refused" or "doubt" for a case, and compare with the oracle if it ran."""
    expected = case.expected()
    fills = {name: getattr(value, "fill", None) or 0 for name, value in case.inputs.items()}
    program, tables = compiled(
        case.text, case.arrays, fills, bounds=case.stated, outputs=case.outputs
    )
    try:
        found = answers(engine, program, tables)
    except UnsupportedError:
        return "refused"
    if found is None:
        return "doubt"
    for name, array in found.items():
        assert_equal(
            array, expected[name], f"{name}\n{case}\n{program.to_sql(dialect=engine.name)}"
        )
    return "ran"
