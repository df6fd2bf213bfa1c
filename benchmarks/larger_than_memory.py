"""Programs whose inputs are four times DuckDB's memory limit, with and without the limit.

Inputs are in an uncompressed database file, which is therefore as large as they are. Each run is a
process of its own, which reports the time of `execute` and its peak memory. Sums of some rows of
the result are compared with those of plain SQL and NumPy.

For a quick try, ``python -m benchmarks.larger_than_memory --limit 100MB`` takes a tenth of the four
gigabytes; ``--work`` picks one of the programs.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import ucle
from benchmarks.measure import THREADS, Table, ratio
from ucle.database.session import parse_size

LIMIT = "1GB"
INPUTS = 4
"""The size of the inputs in bytes, as a multiple of the limit."""

FEATURES, HIDDEN, CLASSES = 128, 64, 16
DEGREE = 8
"""Entries of a row of the graph."""

FACTOR_DEGREE = 4
"""Entries of a row of the factors of SpGEMM."""

ENTRY = 16
"""Bytes of an entry: two coordinates and a number."""

PIECE = 1 << 16
"""Rows of features that are made at a time."""

CHECKED = 50
"""Approximate number of rows of the result that are checked."""

Sums = dict[int, float]
"""The sum of a row of the result, by its number."""


@dataclass(frozen=True)
class Work:
    """A program over tables, and a function for the sums of the rows of its result.

    `tables` are queries in which ``{rows}`` stands for the number of rows of the graph, each of
    which takes `row_bytes` in all tables together. Where there are `features`, these are a table,
    too. `weights` are arrays from memory.
    """

    name: str
    text: str
    tables: Mapping[str, str]
    row_bytes: int
    expected: Callable[[duckdb.DuckDBPyConnection, int], Sums]
    weights: Mapping[str, NDArray[np.float64]]
    features: bool = True

    def rows(self, limit: str) -> int:
        """Compute the rows of the graph for which the tables are `INPUTS` times a limit."""
        return round(INPUTS * parse_size(limit) / self.row_bytes)

    def inputs(self, limit: str) -> dict[str, Any]:
        """Return the inputs of the program."""
        rows = self.rows(limit)
        named: dict[str, Any] = {
            name: ucle.table(name, ["i", "j"], "v", bounds=(rows, rows)) for name in self.tables
        }
        if self.features:
            bounds = (rows, FEATURES)
            named["H"] = ucle.table("H", ["j"], "v", shape=(FEATURES,), bounds=bounds)
        return {**named, **self.weights}


def _entries(degree: int, seed: int) -> str:
    """Write a query for entries in row order, with scattered columns without duplicates."""
    row, place = f"x // {degree}", f"(x % {degree}) * ({{rows}} // {degree})"
    return f"""SELECT ({row})::INT AS i,
            ((hash({row} + {seed}) % {{rows}} + {place}) % {{rows}})::INT AS j,
            (1 + (x + {seed}) % 3)::DOUBLE AS v
        FROM range({{rows}} * {degree}) t(x)"""


def _store_features(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Store a table with a row of features for each row of the graph, made in pieces."""
    connection.execute("CREATE TABLE H (j INT, v DOUBLE[])").fetchall()
    rng = np.random.default_rng(rows)
    for start in range(0, rows, PIECE):
        numbers = np.arange(start, min(start + PIECE, rows), dtype=np.int32)
        values = rng.integers(-7, 9, (len(numbers), FEATURES)).astype(np.float64)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), FEATURES)
        connection.register("piece", pa.table({"j": numbers, "v": lists}))
        connection.execute("INSERT INTO H SELECT j, v::DOUBLE[] FROM piece").fetchall()
        connection.unregister("piece")


def _weights(rows: int, columns: int) -> NDArray[np.float64]:
    return np.fromfunction(lambda i, j: (3 * i + j) % 5 - 2, (rows, columns))


def _spmm_sums(connection: duckdb.DuckDBPyConnection, every: int) -> Sums:
    return dict(
        connection.execute(
            """SELECT i, sum(A.v * list_sum(H.v)) FROM A JOIN H USING (j)
            WHERE i % ? = 0 GROUP BY i""",
            [every],
        ).fetchall()
    )


def _spgemm_sums(connection: duckdb.DuckDBPyConnection, every: int) -> Sums:
    return dict(
        connection.execute(
            """SELECT A.i, sum(A.v * B.v) FROM A JOIN (SELECT i AS j, v FROM B) B USING (j)
            WHERE A.i % ? = 0 GROUP BY A.i""",
            [every],
        ).fetchall()
    )


def _layers_sums(connection: duckdb.DuckDBPyConnection, every: int) -> Sums:
    """Sums for two layers: the checked rows, their neighbours, and the neighbours of these."""
    outer = connection.execute("SELECT i, j, v FROM A WHERE i % ? = 0", [every]).fetchall()
    sums = connection.execute(
        """SELECT A.i, A.v, H.v FROM A JOIN H USING (j)
        WHERE A.i IN (SELECT j FROM A WHERE i % ? = 0)""",
        [every],
    ).fetchall()
    layer: dict[int, NDArray[np.float64]] = {}
    for row, value, features in sums:
        layer[row] = layer.get(row, 0.0) + value * np.array(features)
    first, second = _weights(FEATURES, HIDDEN), _weights(HIDDEN, CLASSES)
    hidden = {row: np.maximum(x @ first, 0.0) for row, x in layer.items()}
    found: Sums = {}
    for row, column, value in outer:
        found[row] = found.get(row, 0.0) + value * float((hidden[column] @ second).sum())
    return found


GRAPH = {"A": _entries(DEGREE, 0)}
GRAPH_BYTES = DEGREE * ENTRY + FEATURES * 8

WORKS = {
    work.name: work
    for work in (
        Work("SpMM", "Z[i,k] += A[i,j] * H[j,k]", GRAPH, GRAPH_BYTES, _spmm_sums, {}),
        Work(
            "GCN forward",
            "G[i,m] = relu(A[i,j] * H[j,k] * U[k,m]); Z[i,c] = A[i,j] * G[j,m] * W[m,c]",
            GRAPH,
            GRAPH_BYTES,
            _layers_sums,
            {"U": _weights(FEATURES, HIDDEN), "W": _weights(HIDDEN, CLASSES)},
        ),
        Work(
            "SpGEMM",
            "Z[i,k] += A[i,j] * B[j,k]",
            {"A": _entries(FACTOR_DEGREE, 0), "B": _entries(FACTOR_DEGREE, 7)},
            2 * FACTOR_DEGREE * ENTRY,
            _spgemm_sums,
            {},
            features=False,
        ),
    )
}


def prepare(path: Path, work: Work, limit: str) -> None:
    """Write a file with the tables of a program."""
    with duckdb.connect(str(path), config={"threads": THREADS}) as connection:
        connection.execute("SET force_compression = 'uncompressed'")
        for name, query in work.tables.items():
            text = query.format(rows=work.rows(limit))
            connection.execute(f"CREATE TABLE {name} AS {text}").fetchall()
        if work.features:
            _store_features(connection, work.rows(limit))


def checked(work: Work, limit: str) -> int:
    """The distance between checked rows."""
    return max(work.rows(limit) // CHECKED, 1)


def peak() -> int:
    """Return the largest resident size of this process so far, in bytes.

    The value of `resource` includes the process that started this one, if that was larger.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(path: str, work: Work, limit: str, *, limited: bool) -> dict[str, Any]:
    """Run the measured process; return seconds, the peak in bytes, the plan, and sums of rows."""
    config = {"memory_limit": limit} if limited else {}
    with ucle.connect(path, threads=THREADS, **config) as connection:
        program = ucle.einsum_program(work.text, inputs=work.inputs(limit), database=connection)
        start = time.perf_counter()
        with program.execute(connection) as result:
            seconds = time.perf_counter() - start
            high = peak()
            found = _sums(result["Z"], checked(work, limit))
    return {"seconds": seconds, "peak": high, "plan": str(program), "sums": found}


def _sums(tensor: ucle.TensorRelation, every: int) -> list[tuple[int, float]]:
    sums: Sums = {}
    for row, *_, value in tensor.stored.filter(f"i % {every} = 0").fetchall():
        sums[row] = sums.get(row, 0.0) + float(np.sum(value))
    return sorted(sums.items())


def _run_apart(path: Path, work: Work, limit: str, side: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name, "--work", work.name, "--limit", limit]
    done = subprocess.run(
        [*command, "--run", side, str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{work.name}, {side}: {done.stderr}")
    return dict(json.loads(done.stdout))


SIDES = ("limited", "unlimited")


def measure(work: Work, limit: str, rounds: int) -> Sequence[str]:
    """Measure a program; return a line of the table."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.duckdb"
        prepare(path, work, limit)
        with duckdb.connect(str(path), read_only=True) as connection:
            expected = work.expected(connection, checked(work, limit))
        size = path.stat().st_size
        for _ in range(rounds):
            for side, every in runs.items():
                every.append(_run_apart(path, work, limit, side))
                if dict(map(tuple, every[-1].pop("sums"))) != expected:
                    raise SystemExit(f"{work.name}, {side}: the sums of rows are wrong")
    within, without = (
        statistics.median(each["seconds"] for each in every) for every in runs.values()
    )
    peaks = [max(each["peak"] for each in every) for every in runs.values()]
    return (
        work.name,
        f"{size / 1e9:.2f} GB",
        f"{within:.1f}",
        f"{without:.1f}",
        ratio(within / without),
        *(f"{each / 1e9:.2f} GB" for each in peaks),
        runs["limited"][0]["plan"].replace("\n", "; "),
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for work in WORKS.values():
        yield measure(work, LIMIT, min(rounds, 3))


TABLE = Table(
    "larger_than_memory",
    "Inputs four times as large as the memory limit",
    "Seconds from `execute` until the result is in DuckDB. Each run is a process of its\n"
    f"own. `limited` has a memory limit of {LIMIT}, `in memory` has none, and `peak` is the\n"
    "largest resident size of the process.",
    (
        "work",
        "inputs",
        "limited",
        "in memory",
        "limited / in memory",
        "peak, limited",
        "peak, in memory",
        "plan",
    ),
    _rows,
)


@click.command()
@click.option("--limit", default=LIMIT, show_default=True, help="DuckDB's memory limit.")
@click.option("--work", "name", type=click.Choice(list(WORKS)), help="One of the programs.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each side.")
@click.option("--run", "side", type=click.Choice(SIDES), help="One run over the file PATH.")
@click.argument("path", required=False)
def main(limit: str, name: str | None, rounds: int, side: str | None, path: str | None) -> None:
    """Measure the programs with another limit, and inputs of four times that."""
    if side is not None and name is not None and path is not None:
        print(json.dumps(run(path, WORKS[name], limit, limited=side == SIDES[0])))
        return
    click.echo(f"| {' | '.join(TABLE.header)} |")
    for work in WORKS.values() if name is None else [WORKS[name]]:
        click.echo(f"| {' | '.join(measure(work, limit, rounds))} |")


if __name__ == "__main__":
    main()
