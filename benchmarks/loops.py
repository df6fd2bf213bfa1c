"""Loops over a graph of a million edges: `iterate` against hand-written SQL.

The other side is a loop in Python around the same DuckDB: temporary tables that are created in each
step and replace each other. The edges are sorted by the column by which they are grouped, a step
has two statements, and values that a column can carry along are not joined.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio
from ucle.run.iterate import Iteration

EDGES = 1_000_000

PAGERANK = """
links[i] = sum[j](E[i,j])
lost[] = sum[i](when(links[i] == 0, rank[i]))
given[j] = sum[i](E[i,j] * (rank[i] / max(links[i], 1)))
next[j] = (0.15 + 0.85 * lost[]) / NODES + 0.85 * given[j]
moved[] = sum[i](abs(next[i] - rank[i]))
"""

COMPONENTS = """
around[i] min= when_highest(E[i,j], label[j])
next[i] = min(label[i], around[i])
moved[] = sum[i](next[i] < label[i])
"""


@dataclass(frozen=True)
class LoopCase:
    """A loop in both forms; each returns the number of steps and the final state."""

    name: str
    iterate: Callable[[Any], Iteration]
    """Runs the loop; its argument is `progress`."""
    by_hand: Callable[[], tuple[int, np.ndarray]]


def random_edges(
    connection: duckdb.DuckDBPyConnection, nodes: int, count: int, *, both_ways: bool
) -> None:
    """Create a table of random edges between nodes."""
    ends = np.random.default_rng(0).integers(0, nodes, (2, count))
    one, other = np.divmod(np.unique(ends[0] * nodes + ends[1]), nodes)
    drawn = pa.table({"src": one.astype(np.int32), "dst": other.astype(np.int32)})
    connection.register("drawn", drawn)
    turned = "UNION SELECT dst, src FROM drawn" if both_ways else ""
    connection.execute(f"CREATE OR REPLACE TABLE edges AS SELECT src, dst FROM drawn {turned}")
    connection.unregister("drawn")


def _swap(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("DROP TABLE state")
    connection.execute("ALTER TABLE after RENAME TO state")


def pagerank(connection: duckdb.DuckDBPyConnection, edges: int) -> LoopCase:
    """PageRank with ten edges a node, until all ranks together move by less than 1e-10."""
    nodes = edges // 10
    random_edges(connection, nodes, edges, both_ways=False)
    program = ucle.einsum_program(
        PAGERANK.replace("NODES", str(nodes)),
        E=ucle.table("edges", value=1, bounds=[nodes, nodes]),
        rank=ucle.parameter(np.full(nodes, 1 / nodes)),
        outputs=["next"],
        database=connection,
    )

    def by_hand() -> tuple[int, np.ndarray]:
        connection.execute("CREATE TEMP TABLE sorted AS FROM edges ORDER BY dst, src")
        connection.execute(f"""
            CREATE TEMP TABLE state AS
            SELECT id, {1 / nodes!r}::DOUBLE AS r, 0::DOUBLE AS was, links, r / links AS share
            FROM (SELECT range::INTEGER AS id FROM range({nodes}))
            LEFT JOIN (SELECT src, count(*)::DOUBLE AS links FROM edges GROUP BY src) ON src = id
        """)
        steps = 0
        while True:
            ((moved, lost),) = connection.execute(
                "SELECT sum(abs(r - was)), coalesce(sum(r) FILTER (links IS NULL), 0) FROM state"
            ).fetchall()
            if steps and moved < 1e-10:
                break
            steps += 1
            base = (0.15 + 0.85 * lost) / nodes
            connection.execute(f"""
                CREATE TEMP TABLE after AS
                SELECT id, {base!r}::DOUBLE + 0.85::DOUBLE * coalesce(given, 0) AS r,
                       state.r AS was, links,
                       ({base!r}::DOUBLE + 0.85::DOUBLE * coalesce(given, 0)) / links AS share
                FROM state LEFT JOIN (
                    SELECT dst, sum(share) AS given FROM sorted JOIN state ON src = id GROUP BY dst
                ) ON dst = id
            """)
            _swap(connection)
        return steps, _state(connection, "r", "sorted")

    def iterate(progress: Any) -> Iteration:
        return program.iterate({"rank": "next"}, until="moved[] < 1e-10", progress=progress)

    return LoopCase("PageRank to 1e-10", iterate, by_hand)


def components(connection: duckdb.DuckDBPyConnection, edges: int) -> LoopCase:
    """Connected components of half as many pairs as edges: one large and many small ones."""
    nodes = edges // 2
    random_edges(connection, nodes, nodes, both_ways=True)
    program = ucle.einsum_program(
        COMPONENTS,
        E=ucle.table("edges", value=1, dtype="bool", bounds=[nodes, nodes]),
        label=ucle.parameter(np.arange(nodes)),
        outputs=["next"],
        database=connection,
    )

    def by_hand() -> tuple[int, np.ndarray]:
        connection.execute(f"""
            CREATE TEMP TABLE looped AS
            SELECT * FROM (FROM edges UNION ALL SELECT range, range FROM range({nodes}))
            ORDER BY src, dst
        """)
        connection.execute(
            f"CREATE TEMP TABLE state AS SELECT range AS id, range AS l FROM range({nodes})"
        )
        steps, moved = 0, 1
        while moved:
            steps += 1
            connection.execute("""
                CREATE TEMP TABLE after AS
                SELECT src AS id, min(l) AS l, max(l) FILTER (src = dst) AS was
                FROM looped JOIN state ON dst = id GROUP BY src
            """)
            _swap(connection)
            ((moved,),) = connection.execute("SELECT count(*) FROM state WHERE l < was").fetchall()
        return steps, _state(connection, "l", "looped")

    def iterate(progress: Any) -> Iteration:
        return program.iterate({"label": "next"}, until="moved[] == 0", progress=progress)

    return LoopCase("connected components", iterate, by_hand)


def _state(connection: duckdb.DuckDBPyConnection, column: str, table: str) -> np.ndarray:
    found = connection.execute(f"SELECT {column} FROM state ORDER BY id").fetchnumpy()[column]
    connection.execute("DROP TABLE state")
    connection.execute(f"DROP TABLE {table}")
    return np.asarray(found)


class _Lengths(logging.Handler):
    """Records the lengths of the statements of each step of a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []
        self._now = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        statement, _, _ = text.rpartition(" (")  # without the time that it took
        self._now += len(statement) if text.startswith("step ") else 0

    def end_step(self) -> None:
        """Assign the statements so far to one step."""
        self.steps.append(self._now)
        self._now = 0


def watched(case: LoopCase) -> tuple[list[float], list[int]]:
    """Measure the seconds of each step after the first, and the lengths of its SQL from the log."""
    times: list[float] = []
    case.iterate(lambda _: times.append(time.perf_counter())).close()
    log, lengths = logging.getLogger("ucle.execute"), _Lengths()
    before = log.level
    log.addHandler(lengths)
    log.setLevel(logging.DEBUG)
    try:
        case.iterate(lambda _: lengths.end_step()).close()
    finally:
        log.setLevel(before)
        log.removeHandler(lengths)
    return list(np.diff(times)), lengths.steps[1:]


def _row(case: LoopCase, rounds: int) -> Sequence[str]:
    steps, expected = case.by_hand()

    def check(side: str, result: Any) -> None:
        if side == "ucle":
            assert result.steps == steps, (result.steps, steps)
            expect_close(case.name, result["next"].to_numpy(), expected, 1e-12)

    times = race({"ucle": lambda: case.iterate(None), "SQL": case.by_hand}, rounds, check)
    seconds, lengths = watched(case)
    thirds = [1e3 * float(np.median(part)) for part in np.array_split(seconds, 3)]
    return (
        case.name,
        str(steps),
        f"{times['ucle']:.2f}",
        f"{times['SQL']:.2f}",
        ratio(times["ucle"] / times["SQL"]),
        *(f"{each:.0f}" for each in thirds),
        f"{min(lengths):,} to {max(lengths):,}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for case in (pagerank, components):
        with ucle.connect(threads=THREADS) as connection:
            yield _row(case(connection, EDGES), min(rounds, 5))


TABLE = Table(
    "loops",
    "Loops until a condition holds",
    f"A random graph with {EDGES:,} edges in a table. `ucle` is the time of\n"
    "`program.iterate`, which compiles the loop with its condition each time. `SQL by hand`\n"
    "is a loop of SQL statements in the same DuckDB. `SQL of a step` is the length of the\n"
    "statements of a step in characters, from the second step on: the least and the\n"
    "greatest. Goals: at most 3 times the time of the SQL by hand; steps that take as long\n"
    "at the end as at the beginning; SQL that does not grow.",
    (
        "loop",
        "steps",
        "ucle",
        "SQL by hand",
        "ratio",
        "a step: first third, ms",
        "middle, ms",
        "last, ms",
        "SQL of a step",
    ),
    _rows,
)
