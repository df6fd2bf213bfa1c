"""Breadth-first search: Galley's section 7.4, a program for each step.

The frontier of the next step is the set of unvisited neighbours of this one's: a sparse matrix
times a vector, under a mask. Frontier and visited vertices are tables that change, so the program
is compiled once, or again for each step, as Galley does. The other sides are SQL by hand on the
same DuckDB, and SciPy's own search, which is one call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from scipy.sparse import csgraph

import ucle
from benchmarks.by_hand import REACH
from benchmarks.measure import THREADS, Table, race, ratio
from benchmarks.workloads import GRAPHS

CAUSE = "before each step, about forty statements check the tables that have changed"

STEP = "N[j] = any[i](A[i,j] and F[i]) and not V[j]"
SIDE = 16
"""Side of a grid, whose corners are far apart."""


def graphs() -> Iterator[tuple[str, Any]]:
    """Yield adjacency matrices by name: those that are available, and a grid."""
    for path in sorted(GRAPHS.parent.glob("*/*/edges.parquet")):
        edges = pq.read_table(path)
        ends = edges["src"].to_numpy(), edges["dst"].to_numpy()
        size = 1 + max(int(column.max()) for column in ends)
        if path.parent.name in ("amazon_photo", "human", "wordnet", "yeast"):
            yield path.parent.name, sp.csr_array((np.ones(len(edges)), ends), shape=(size, size))
    side = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(SIDE, SIDE))
    one = sp.eye_array(SIDE)
    yield (
        f"grid {SIDE} x {SIDE}",
        sp.csr_array(sp.kron(side, one) + sp.kron(one, side)),
    )


class Search:
    """Tables of a graph, of the frontier, and of visited vertices with their level."""

    def __init__(self, adjacency: Any, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.adjacency = adjacency
        self.start = int(np.argmax(np.diff(adjacency.indptr)))
        i, j = (x.astype(np.int64) for x in adjacency.tocoo().coords)
        connection.register("source", pa.table({"i": i, "j": j}))
        connection.execute("CREATE TABLE edges AS FROM source").fetchall()
        connection.unregister("source")
        connection.execute("CREATE TABLE visited (j BIGINT, level INTEGER)")
        self.restart()

    def restart(self) -> None:
        """Reset the tables: the frontier is the start, and nothing was visited."""
        start = f"SELECT {self.start}::BIGINT AS j, true AS val"
        self.connection.execute(f"CREATE OR REPLACE TABLE frontier AS {start}")
        self.connection.execute("TRUNCATE visited")

    def levels(self, step: Callable[[], None]) -> Any:
        """Return the level of every vertex, or -1; `step` makes the next frontier."""
        self.restart()
        run = self.connection.execute
        level, found = 0, 1
        while found:
            run(f"INSERT INTO visited SELECT j, {level} FROM frontier")
            step()
            level += 1
            (found,) = run("SELECT count(*) FROM frontier").fetchone() or (0,)
        made = np.full(self.adjacency.shape[0], -1)
        rows = run("FROM visited").fetchnumpy()
        made[rows["j"]] = rows["level"]
        return made

    def by_hand(self) -> None:
        """Make the next frontier in SQL."""
        self.connection.execute(
            "CREATE OR REPLACE TABLE frontier AS SELECT DISTINCT e.j, true AS val FROM edges e "
            "SEMI JOIN frontier f ON e.i = f.j ANTI JOIN visited v ON e.j = v.j"
        )

    def compiled(self) -> ucle.EinsumProgram:
        """Compile a step for the current contents of the tables."""
        square = self.adjacency.shape
        return ucle.einsum_program(
            STEP,
            database=self.connection,
            A=ucle.table("edges", ["i", "j"], True, bounds=square),
            F=ucle.table("frontier", ["j"], "val", bounds=square[:1]),
            V=ucle.table("visited", ["j"], True, bounds=square[:1]),
        )

    def with_ucle(self, program: ucle.EinsumProgram) -> None:
        """Make the next frontier by a program."""
        with warnings.catch_warnings():
            # The tables have changed since; compiling again is the alternative that is measured.
            warnings.simplefilter("ignore", ucle.StaleStatisticsWarning)
            result = program.execute(self.connection)
        with result:
            result["N"].to_table("frontier", rows="nonfill", replace=True)

    def in_memory(self) -> Any:
        """Compute the level of every vertex with SciPy."""
        order, before = csgraph.breadth_first_order(self.adjacency, self.start)
        made = np.full(self.adjacency.shape[0], -1)
        made[self.start] = 0
        for vertex in order[1:]:
            made[vertex] = made[before[vertex]] + 1
        return made


def _measure(graph: str, adjacency: Any, rounds: int) -> Sequence[str]:
    with ucle.connect(threads=THREADS) as connection:
        search = Search(adjacency, connection)
        program = search.compiled()
        expected = search.in_memory()

        def check(side: str, result: Any) -> None:
            if side != "SciPy" and not np.array_equal(result, expected):
                raise SystemExit(f"{graph}, {side} is wrong")

        times = race(
            {
                "once": lambda: search.levels(lambda: search.with_ucle(program)),
                "again": lambda: search.levels(lambda: search.with_ucle(search.compiled())),
                "SQL": lambda: search.levels(search.by_hand),
                "SciPy": lambda: csgraph.breadth_first_order(adjacency, search.start),
            },
            rounds,
            check,
        )
    levels = int(expected.max()) + 1
    to_hand = times["once"] / times["SQL"]
    return (
        graph,
        f"{adjacency.nnz:,}",
        str(levels),
        *(f"{times[x]:.3f}" for x in ("once", "again", "SQL", "SciPy")),
        ratio(to_hand),
        ratio(times["again"] / times["SQL"]),
        f"{1000 * (times['once'] - times['SQL']) / levels:.0f}",
        "reached" if to_hand <= REACH else f"missed: {CAUSE}",
    )


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for name, adjacency in graphs():
        yield _measure(name, adjacency, rounds)


TABLE = Table(
    "frontiers",
    "Breadth-first search",
    "Seconds for a whole search from the vertex with the most edges: with ucle, whose\n"
    "program for a step is compiled once, or compiled again for each step; with SQL by hand\n"
    "on the same DuckDB; and with SciPy, where a search is one call in memory. `more in a\n"
    "step` is the time by which a step takes longer with ucle than with SQL, in\n"
    f"milliseconds. Goal: at most {REACH:g} times the time of the SQL.",
    (
        "graph",
        "edges",
        "levels",
        "compiled once",
        "compiled again",
        "SQL by hand",
        "SciPy",
        "once / by hand",
        "again / by hand",
        "more in a step",
        "goal",
    ),
    _rows,
)
