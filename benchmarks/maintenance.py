"""Results that follow their data: a refresh against a full run, by the share of rows that changed.

Each refresh and each full run follows a change of its own, so that neither finds what the other one
has measured: rows of the graph are inserted. A full run recompiles for the changed data, as a
refresh does, and writes the table of its output. The answers are compared. Ratios are those of
processor time, which does not depend on what else the machine does.

    python -m benchmarks.run maintenance --rounds 3
    python -m benchmarks.maintenance --job means --edges 200000 --share 0.001 --found told
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import click
import duckdb

import ucle
from benchmarks.measure import THREADS, Table, ratio

SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SIZES = (200_000, 2_000_000)
WIDTH = 8
TYPICAL = 1e-3

APPENDED, COMPARED, TOLD = "appended", "compared", "told"
FOUND = (APPENDED, COMPARED, TOLD)
"""How a change is found: behind the last row, by a comparison of all rows, or the caller tells."""

UNIFORM, SKEWED = "uniform", "skewed"
DATA = {UNIFORM: (0.5, 1), SKEWED: (0.25, 3)}
"""A seed, and the power of a random number that makes a node."""


@dataclass(frozen=True)
class Job:
    """A program over edges `A[i,j]`, features `H[i,k]`, weights `W[k,n]` and numbers `r[i]`."""

    name: str
    text: str
    output: str
    bounds: dict[str, int] = field(default_factory=dict)
    delta: str = ""
    """What one writes by hand: the rows by which the output grows, from `A` and its `new_rows`."""
    state: str = ""
    """What one keeps by hand beside the output."""
    by_hand: str = ""
    """What one writes by hand in place of `delta`."""

    @property
    def inputs(self) -> list[str]:
        """The tables that the program reads."""
        return [x for x in "AHWr" if f"{x}[" in self.text]

    @property
    def script(self) -> str:
        """What one writes by hand; empty where nothing is."""
        return self.by_hand or (self.delta and _growth(self.delta))


GRAPH_LAYER = "T[i,k] += A[i,j] * H[j,k]; Z[i,n] = relu(T[i,k] * W[k,n])"

JOBS = (
    Job(
        "two layers of a graph network",
        f"{GRAPH_LAYER}; U[i,n] += A[i,j] * Z[j,n]; Y[i,m] = U[i,n] * W[n,m]",
        "Y",
    ),
    Job(
        "attention along edges",
        "S[i,j] = when(A[i,j], exp(sum[k](H[i,k] * H[j,k]))); n[i] += S[i,j]; "
        "O[i,k] += S[i,j] * H[j,k]; Y[i,k] = O[i,k] / max(n[i], 1e-9)",
        "Y",
    ),
    Job(
        "step of PageRank",
        "links[i] += A[i,j]; Y[j] = 0.15 + 0.85 * sum[i](A[i,j] * r[i] / max(links[i], 1))",
        "Y",
    ),
    Job(
        "triangles and clustering",
        "t[i] += A[i,j] * A[j,k] * A[i,k]; d[i] += A[i,j]; c[i] = t[i] / max(d[i] * d[i], 1)",
        "c",
    ),
    Job(
        "items chosen together",
        "C[i,k] += A[j,i] * A[j,k]",
        "C",
        delta="""
            SELECT a.j AS i, b.j AS k, sum(a.val * b.val) AS val
            FROM new_rows a JOIN A b USING (i) GROUP BY ALL
            UNION ALL
            SELECT a.j, b.j, sum(a.val * b.val) FROM A a JOIN new_rows b USING (i) GROUP BY ALL
            UNION ALL
            SELECT a.j, b.j, -sum(a.val * b.val) FROM new_rows a JOIN new_rows b USING (i)
            GROUP BY ALL
        """,
    ),
    Job(
        "TF-IDF",
        "df[j] count= A[i,j] != 0; idf[j] = log(1e6 / max(df[j], 1)); X[i,j] = A[i,j] * idf[j]",
        "X",
    ),
    Job(
        "least squares over a join",
        "G[k,l] += A[i,j] * H[j,k] * H[j,l]; b[k] += A[i,j] * H[j,k] * r[i]; "
        "Y[k] = inv[k,l](G[k,l]) * b[l]",
        "Y",
    ),
    Job("ten largest of each row", "s[i,p] = top_k[j,p](A[i,j])", "s", {"p": 10}),
    Job(
        "sums by group",
        "S[i] += A[i,j]",
        "S",
        delta="SELECT i, sum(val) AS val FROM new_rows GROUP BY ALL",
    ),
    Job(
        "means by group",
        "s[i] += A[i,j]; n[i] count= A[i,j] != 0; m[i] = s[i] / max(n[i], 1)",
        "m",
        state="SELECT i, sum(val) AS s, count(*) AS n FROM A GROUP BY i",
        by_hand="""
            BEGIN;
            CREATE OR REPLACE TEMP TABLE delta AS
            SELECT i, sum(val) AS s, count(*) AS n FROM new_rows GROUP BY i;
            CREATE OR REPLACE TEMP TABLE grown AS
            SELECT i, coalesce(b.s, 0) + d.s AS s, coalesce(b.n, 0) + d.n AS n
            FROM delta d LEFT JOIN by_hand_state b USING (i);
            DELETE FROM by_hand_state USING delta WHERE by_hand_state.i = delta.i;
            INSERT INTO by_hand_state BY NAME FROM grown;
            DELETE FROM by_hand USING delta WHERE by_hand.i = delta.i;
            INSERT INTO by_hand BY NAME SELECT i, s / n AS val FROM grown;
            COMMIT;
        """,
    ),
)


def _growth(delta: str) -> str:
    """The script that adds rows to a table."""
    columns = [
        x.strip().removeprefix("SELECT ") for x in delta.strip().split(" FROM ")[0].split(",")
    ]
    keys = [x.split(" AS ")[-1].split(".")[-1] for x in columns[:-1]]
    on = " AND ".join(f"by_hand.{x} = delta.{x}" for x in keys)
    named = ", ".join(keys)
    return f"""
        BEGIN;
        CREATE OR REPLACE TEMP TABLE delta AS
        SELECT {named}, sum(val) AS val FROM ({delta}) GROUP BY {named};
        CREATE OR REPLACE TEMP TABLE grown AS
        SELECT {named}, coalesce(by_hand.val, 0) + delta.val AS val
        FROM delta LEFT JOIN by_hand USING ({named});
        DELETE FROM by_hand USING delta WHERE {on};
        INSERT INTO by_hand BY NAME FROM grown;
        COMMIT;
    """


VALUE = "(1 + (31 * i + j) % 7)::DOUBLE"


@dataclass(frozen=True)
class Case:
    """A job over some edges, a share of which is new, and how that is found."""

    job: Job
    edges: int
    share: float
    data: str = UNIFORM
    found: str = APPENDED

    @property
    def count(self) -> int:
        """The number of new edges."""
        return max(1, int(self.share * self.edges))

    @property
    def new_edges(self) -> str:
        """A query for edges at random."""
        return self.random_edges(self.count)

    def random_edges(self, count: int) -> str:
        """A query for a number of edges at random."""
        _, power = DATA[self.data]
        node = f"(random() ** {power} * {self.edges // 10 - 1})::BIGINT"
        return f"SELECT DISTINCT {node} AS i, {node} AS j FROM range({count})"

    def create(self) -> duckdb.DuckDBPyConnection:
        """Return a database with the tables."""
        connection, nodes, (seed, _) = (
            ucle.connect(threads=THREADS),
            self.edges // 10,
            DATA[self.data],
        )
        connection.execute(f"SELECT setseed({seed})").fetchall()
        edges = self.random_edges(self.edges)
        connection.execute(f"CREATE TABLE A AS SELECT *, {VALUE} AS val FROM ({edges})")
        connection.execute(
            f"CREATE TABLE H AS SELECT i, k, random() AS val "
            f"FROM range({nodes}) a(i), range({WIDTH}) b(k)"
        )
        connection.execute(f"CREATE TABLE r AS SELECT i, random() AS val FROM range({nodes}) a(i)")
        connection.execute(
            f"CREATE TABLE W AS SELECT k, n, random() - 0.5 AS val "
            f"FROM range({WIDTH}) a(k), range({WIDTH}) b(n)"
        )
        return connection


@dataclass(frozen=True)
class Times:
    """Seconds of the processor of a full run, a refresh and what is written by hand, and others."""

    full: float
    refreshed: float
    by_hand: float
    full_wall: float
    refreshed_wall: float
    rows: float
    """The share of the output's rows that differ."""


def _measured(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    start, started = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - start, time.perf_counter() - started


class Bench:
    """A maintained program, and what is written by hand, over tables that grow."""

    def __init__(self, case: Case) -> None:
        self.case, self.connection = case, case.create()
        job, run = case.job, self.connection.execute
        self.program = ucle.einsum_program(
            job.text,
            inputs={name: name for name in job.inputs},
            database=self.connection,
            outputs=[job.output],
            bounds=job.bounds or None,
        )
        appended = ["A"] if case.found == APPENDED else []
        self.kept = self.program.maintain("kept", self.connection, append_only=appended)
        if job.script:
            run("CREATE TABLE by_hand AS FROM kept")
        if job.state:
            run(f"CREATE TABLE by_hand_state AS {job.state}")

    def round(self) -> Times:
        """Change the data twice: before a refresh, and before a full run."""
        case, by_hand = self.case, 0.0
        told = self._insert(case)
        if case.job.script:
            by_hand, _ = _measured(lambda: self.connection.execute(case.job.script))
        report: list[ucle.RefreshReport] = []
        refreshed = _measured(lambda: report.append(self.kept.refresh(**told)))
        if case.job.script:
            self._check("by_hand")
        told = self._insert(case)
        if case.job.script:
            self.connection.execute(case.job.script)
        full = _measured(self._run_whole)
        self.kept.refresh(**told)
        self._check("whole")
        ((rows,),) = self.connection.sql("SELECT count(*) FROM kept").fetchall()
        share = report[0].tensors[-1].rows / max(rows, 1)
        return Times(full[0], refreshed[0], by_hand, full[1], refreshed[1], share)

    def _run_whole(self) -> None:
        with self.program.recompile().execute() as result:
            output = result[self.case.job.output]
            output.to_table("whole", mode="replace", rows="nonfill")

    def _insert(self, case: Case) -> dict[str, object]:
        """Append new edges, which are in a table of their own, too; return how they are told."""
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE new_rows AS SELECT *, {VALUE} AS val "
            f"FROM ({case.new_edges}) ANTI JOIN A USING (i, j)"
        )
        self.connection.execute("INSERT INTO A FROM new_rows")
        return {"inserted": {"A": "new_rows"}, "applied": True} if case.found == TOLD else {}

    def _check(self, other: str) -> None:
        differ = _differ(self.connection, "kept", other)
        limit = 1e-8 * max(1.0, self.case.edges)
        assert differ < limit, f"{self.case.job.name}, {other}: {differ}"


def _differ(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> float:
    """The largest difference between two tables, infinite if their keys differ."""
    keys = [x[0] for x in connection.sql(f"DESCRIBE {one}").fetchall() if x[0] != "val"]
    matched = f"USING ({', '.join(keys)})" if keys else "ON true"
    ((found,),) = connection.sql(
        f"SELECT max(coalesce(abs(a.val - b.val), 'inf'::DOUBLE)) FROM {one} a "
        f"FULL JOIN {other} b {matched} "
        "WHERE coalesce(a.val, 0) <> 0 OR coalesce(b.val, 0) <> 0"
    ).fetchall()
    return float(found or 0)


def _row(case: Case, rounds: int) -> Sequence[str]:
    """Measure a case; the first round, in which programs are compiled, does not count."""
    bench = Bench(case)
    with bench.connection:
        times = [bench.round() for _ in range(rounds + 1)][1:]
    full, refreshed, by_hand, full_wall, refreshed_wall, rows = (
        median(getattr(x, name) for x in times) for name in Times.__dataclass_fields__
    )
    return (
        case.job.name,
        f"{case.edges:,}",
        case.data,
        case.found,
        f"{case.share:.3%}",
        f"{rows:.2%}",
        f"{full_wall:.3f}",
        f"{refreshed_wall:.3f}",
        ratio(refreshed / full),
        ratio(refreshed / by_hand) if by_hand else "",
    )


def _cases() -> Iterator[Case]:
    for edges in SIZES:
        for job in JOBS:
            yield from (Case(job, edges, share) for share in SHARES)
    for job in JOBS:
        yield from (Case(job, SIZES[-1], TYPICAL, found=found) for found in (COMPARED, TOLD))
        yield Case(job, SIZES[0], TYPICAL, SKEWED)


def _rows(rounds: int, cases: Iterable[Case] | None = None) -> Iterator[Sequence[str]]:
    for case in _cases() if cases is None else cases:
        yield _row(case, rounds)


TABLE = Table(
    "maintenance",
    "Refreshes of maintained results",
    "Seconds of a refresh and of a full run after some rows were appended to the edges, and\n"
    "the ratio of their processor times. The last column compares a refresh with SQL that\n"
    "is written by hand for exactly this change: it does not look for other changes, and\n"
    "checks nothing. A refresh can save the more, the fewer rows of the output differ.",
    (
        "program",
        "edges",
        "data",
        "found",
        "new",
        "rows that differ",
        "full run",
        "refresh",
        "refresh / full run",
        "refresh / by hand",
    ),
    _rows,
)


@click.command()
@click.option("--job", "jobs", multiple=True, help="A part of a program's name; all by default.")
@click.option("--edges", "sizes", multiple=True, type=int, default=[SIZES[0]], show_default=True)
@click.option("--share", "shares", multiple=True, type=float, default=[TYPICAL], show_default=True)
@click.option("--data", type=click.Choice(list(DATA)), default=UNIFORM, show_default=True)
@click.option("--found", type=click.Choice(FOUND), default=APPENDED, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(
    jobs: tuple[str, ...],
    sizes: tuple[int, ...],
    shares: tuple[float, ...],
    data: str,
    found: str,
    rounds: int,
) -> None:
    """Measure some rows of the table, and print them."""
    chosen = [x for x in JOBS if not jobs or any(y in x.name for y in jobs)]
    cases = (Case(x, n, share, data, found) for n in sizes for x in chosen for share in shares)
    click.echo(f"| {' | '.join(TABLE.header)} |\n|{' --- |' * len(TABLE.header)}")
    for row in _rows(rounds, cases):
        click.echo(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
