"""A process that changes inputs and refreshes, again and again, until it is killed.

    python killed.py DATABASE MODE SEED STEP

It says ``refresh`` when one begins. Before each change it keeps the inputs as they are in tables of
their own, in the same transaction, so that whoever looks can compute what was kept before, too.
With a `STEP`, it kills itself at that statement of its refreshes; 0 leaves that to others. With
``turns`` behind it, it takes so many turns beside other processes, and ends.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import ucle

SIDE = 8
"""The number of coordinates of an axis."""

INPUTS = {"A": ("i", "j"), "x": ("i",)}


@dataclass(frozen=True)
class Job:
    """A program over `A[i,j]` and `x[j]`, with the arguments of its loop."""

    text: str
    outputs: tuple[str, ...]
    loop: dict[str, Any] | None = None

    def program(self, connection: duckdb.DuckDBPyConnection, prefix: str = "") -> Any:
        """Compile it for the inputs, or for others of a prefix."""
        inputs = {
            name: ucle.table(f"{prefix}{name}", bounds=[SIDE] * len(keys))
            for name, keys in INPUTS.items()
            if f"{name}[" in self.text
        }
        if self.loop:
            inputs["label"] = ucle.table("label", bounds=[SIDE])
        return ucle.einsum_program(
            self.text, inputs=inputs, outputs=list(self.outputs), database=connection
        )


JOBS = {
    "sums": Job("C[i,k] += A[i,j] * A[k,j]; r[i] += A[i,j] * x[j]", ("C", "r")),
    "extremes": Job(
        "low[i] min= A[i,j]; high[i] max= A[i,j] * x[j]; far[] = max[i](high[i])",
        ("low", "high", "far"),
    ),
    "steps": Job(
        "T[i] += A[i,j] * x[j]; Z[i] = relu(T[i] - 30); s[] = sum[i](Z[i])", ("T", "Z", "s")
    ),
    "components": Job(
        "around[i] min= when_highest(A[i,j] != 0, label[j]); next[i] = min(label[i], around[i]); "
        "moved[] = sum[i](next[i] < label[i])",
        ("next",),
        {"carry": {"label": "next"}, "until": "moved[] == 0"},
    ),
}

MODES = ("found", "told", "applied", "appended", "script")
"""Inputs are compared; changes are made by the refresh; told and made before; rows are appended to
a table; and plain SQL does it all."""


def combinations() -> list[tuple[str, str]]:
    """Return the names of programs and modes that go together: loops have no scripts."""
    return [(x, y) for x in JOBS for y in MODES if y != "script" or not JOBS[x].loop]


def begin(path: Path, name: str, mode: str) -> None:
    """Create a database with the inputs, and maintain a program over them."""
    job = JOBS[name]
    with ucle.connect(path) as connection:
        connection.execute(f"""
            CREATE TABLE A AS SELECT i, j, 1 + (3 * i + j) % 7 AS val
            FROM range({SIDE}) a(i), range({SIDE}) b(j) WHERE (i + j) % 3 = 0;
            CREATE TABLE x AS SELECT i, i + 1 AS val FROM range({SIDE}) a(i);
            CREATE TABLE label AS SELECT i, i AS val FROM range({SIDE}) a(i)
        """)
        for table in INPUTS:
            connection.execute(f"CREATE TABLE before_{table} AS FROM {table}")
        appended = ["A"] if mode == "appended" else []
        kept = job.program(connection).maintain(
            "kept", connection, append_only=appended, **(job.loop or {})
        )
        if mode == "script":
            script = kept.to_sql(inserted={"A": "came"}, deleted={"A": "went"}, kernels=False)
            path.with_suffix(".sql").write_text(script)


class Writer:
    """Changes inputs and refreshes, by a seed and in one of the modes."""

    def __init__(self, path: Path, mode: str, seed: int) -> None:
        self.path, self.mode, self.rng = path, mode, np.random.default_rng(seed)

    def turn(self, connection: duckdb.DuckDBPyConnection) -> None:
        """One change, and the refresh that follows."""
        run = connection.execute
        kept = ucle.maintained("kept", connection)
        self._draw(connection)
        run("BEGIN")
        for table in INPUTS:
            run(f"CREATE OR REPLACE TABLE before_{table} AS FROM {table}")
        if self.mode in ("found", "appended", "applied"):
            run("DELETE FROM A WHERE (i, j) IN (SELECT (i, j) FROM went)")
            run("INSERT INTO A FROM came")
        if self.mode == "found":
            run("UPDATE x SET val = val + 1 WHERE i = ?", [int(self.rng.integers(SIDE))])
        run("COMMIT")
        print("refresh", flush=True)
        if self.mode == "script":
            run(self.path.with_suffix(".sql").read_text())
        elif self.mode in ("told", "applied"):
            told = {"A": "came"}, {"A": "went"}
            kept.refresh(inserted=told[0], deleted=told[1], applied=self.mode == "applied")
        else:
            kept.refresh()

    def _draw(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Draw rows that come and rows that go, as tables; where rows are appended, none goes."""
        new = [tuple(map(int, x)) for x in self.rng.integers(0, SIDE, (6, 2))]
        values = ", ".join(f"({i}, {j}, {1 + int(self.rng.integers(9))})" for i, j in set(new))
        gone = 0 if self.mode == "appended" else 3
        seed = int(self.rng.integers(1 << 30))
        connection.execute(f"""
            CREATE OR REPLACE TABLE went AS
            SELECT * FROM A ORDER BY hash(i, j, {seed}) LIMIT {gone};
            CREATE OR REPLACE TABLE came AS SELECT n.i::BIGINT AS i, n.j::BIGINT AS j,
                n.val::BIGINT AS val
            FROM (VALUES {values}) n(i, j, val) ANTI JOIN A USING (i, j)
        """)


def rows(relation: Any) -> list[Any]:
    """The rows of a relation, in order."""
    return sorted(relation.fetchall())


def kept_rows(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """What is kept, by the names of outputs."""
    tables = ucle.maintained("kept", connection).outputs
    return {name: rows(connection.table(table)) for name, table in tables.items()}


def full_run(
    connection: duckdb.DuckDBPyConnection, name: str, prefix: str = ""
) -> dict[str, list[Any]]:
    """What a full run gives for the inputs, or for those before."""
    job = JOBS[name]
    program = job.program(connection, prefix)
    with program.iterate(**job.loop) if job.loop else program.execute() as result:
        return {
            x: rows(result[x].shown(rows="nonfill" if result[x].type.rank else "all"))
            for x in job.outputs
        }


class Steps(logging.Handler):
    """Kills the process at a statement of its refreshes, which ucle logs."""

    def __init__(self, last: int) -> None:
        super().__init__(logging.DEBUG)
        self.left = last
        logger = logging.getLogger("ucle")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(path: Path, mode: str, seed: int, step: int) -> None:
    """Go on until killed, on a connection for each turn, as jobs have."""
    writer = Writer(path, mode, seed)
    if step:
        Steps(step)
    while True:
        with ucle.connect(path) as connection:
            writer.turn(connection)


def take_turns(path: Path, mode: str, seed: int, turns: int) -> None:
    """Some turns beside other processes, each while it has a lock of their own.

    DuckDB 2.0.1 loses a commit now and then where one process closes a file while another one opens
    it: 598 of 600 rows are there after four processes have inserted 150 each, and nothing else.
    """
    writer = Writer(path, mode, seed)
    with path.with_suffix(".lock").open("w") as lock:
        for _ in range(turns):
            fcntl.flock(lock, fcntl.LOCK_EX)
            with ucle.connect(path) as connection:
                writer.turn(connection)
            fcntl.flock(lock, fcntl.LOCK_UN)


if __name__ == "__main__":
    given = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:5])
    if sys.argv[5:] == ["turns"]:
        take_turns(*given)
    else:
        main(*given)
