"""`ucle demo`: two EinSum programs on the import graph of the reader's own Python.

In: the running installation (`ucle.command.demo_data`). Out: a DuckDB file with the graph, its
PageRank and its embeddings, and a report in plain text: what SparseEinSum chose, the SQL, the time
against the purely relational SQL of the same program, and two small tables. With ``--train`` a
network learns which package a module belongs to, instead (`ucle.command.demo_training`).
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import duckdb

from ucle.command.demo_data import check_replaceable, installed_corpus, store_corpus
from ucle.command.demo_programs import (
    CONVOLUTION,
    EMBEDDING,
    HIDDEN,
    convolution,
    count_rows,
    derive_tables,
    pagerank,
    pagerank_text,
    store_weights,
)
from ucle.command.demo_report import Echo, abridged, echo_rows, heading, indented
from ucle.command.show_training import show_training
from ucle.database.open_sessions import connect
from ucle.errors import ExecutionError
from ucle.explain.columns import stacked
from ucle.explain.text import decomposition_table
from ucle.program import EinsumProgram

WELL_KNOWN = (
    *("json.decoder", "asyncio", "unittest", "email.message", "html.parser", "http.client"),
    *("urllib.parse", "socket", "xml.dom.minidom", "multiprocessing.pool", "zipfile"),
    *("numpy.linalg", "scipy.sparse"),
)
SHOWN = 5
"""Lines of a list that are shown at each end, if it is long."""
ROUNDS = 3
"""Executions of which the fastest counts."""

EPILOGUE = """
It is all in {0}; look around with
  import ucle
  connection = ucle.connect("{0}")
{1}\
"""
QUERIES = {
    False: (
        "SELECT name, val FROM pagerank JOIN modules ON id = i ORDER BY val DESC",
        "SELECT name, val FROM embeddings JOIN modules ON id = i",
    ),
    True: (
        "FROM network JOIN modules ON id = module JOIN packages p ON p.id = package",
        "SELECT part, count(*) FROM task GROUP BY part",
    ),
}
"""What to ask the database after the programs, or after training."""


@dataclass(frozen=True)
class DemoOptions:
    """What `ucle demo` may be told; see its help."""

    database: Path
    force: bool = False
    limit: int | None = None
    iterations: int = 20
    time_limit: float = 60.0
    all_sql: bool = False
    train: bool = False


def run_demo(options: DemoOptions, echo: Echo) -> None:
    """Build the demo database, run both programs or train, report through `echo`.

    Raises:
        DatabaseError: the file is not the demo's to overwrite, or cannot be written.
    """
    check_replaceable(options.database, force=options.force)
    build_database(options, echo)
    with connect(options.database) as connection:
        if options.train:
            show_training(connection, echo, options.time_limit, all_sql=options.all_sql)
        else:
            show_pagerank(connection, options, echo)
            show_convolution(connection, options, echo)
    look = "\n".join(f'  connection.sql("{query}")' for query in QUERIES[options.train])
    echo(EPILOGUE.format(options.database, look))


def build_database(options: DemoOptions, echo: Echo) -> None:
    """Read the installation and store it with the tables that the programs need."""
    version = sys.version.split()[0]
    echo(f"Reading the modules of Python {version} at {sys.prefix} ...")
    start = time.perf_counter()
    corpus = installed_corpus(options.limit)
    seconds = time.perf_counter() - start
    store_corpus(corpus, options.database, derive_tables, force=options.force)
    echo(
        f"{options.database}: {len(corpus.modules):,} modules, {len(corpus.imports):,} imports "
        f"between them, {len(corpus.identifiers):,} identifiers in {len(corpus.features):,} "
        f"places, read in {seconds:.1f} s on {os.cpu_count()} cores."
    )


def show_pagerank(connection: duckdb.DuckDBPyConnection, options: DemoOptions, echo: Echo) -> None:
    """Run PageRank, store it as the table ``pagerank``, print the most central modules."""
    rounds = options.iterations
    heading(echo, f"PageRank of the import graph, {rounds} iterations")
    text = pagerank_text(count_rows(connection, "modules"), rounds).splitlines()
    echo("\n".join(f"  {line}" for line in abridged(text, 2, "the same for R2 to R{}", rounds)))
    echo("  where P are the imports, each module's summing to 1, and g the modules without any")
    program = pagerank(connection, rounds)
    echo("\nChosen by SparseEinSum (upper case: a key column; lower case: inside the arrays)")
    table = stacked(decomposition_table(program.compiled.decomposed))
    first = next((n for n, line in enumerate(table) if line.startswith("  lost3")), len(table))
    echo("\n".join(abridged(table, first, "and so on to R{}", rounds)))
    echo("\nSQL" + ("" if options.all_sql else ", shortened (--all-sql prints all)"))
    script = program.to_sql()
    echo(indented(script if options.all_sql else shortened(script)))
    compare(program, pagerank(connection, rounds, "relational"), connection, options, echo)
    echo("  A rank is a single number and the imports are sparse: arrays have little to win here.")
    with program.execute(connection) as result:
        result[f"R{rounds}"].to_table("pagerank", mode="replace")
    echo("\nThe most central modules")
    echo_rows(
        echo,
        ("module", "rank", "imported by"),
        connection.execute(
            """
            SELECT name, printf('%.2f %%', 100 * val), count(src)::VARCHAR
            FROM pagerank JOIN modules ON id = i LEFT JOIN imports ON dst = i
            GROUP BY name, val ORDER BY val DESC, name LIMIT 12
            """
        ).fetchall(),
    )


def show_convolution(
    connection: duckdb.DuckDBPyConnection, options: DemoOptions, echo: Echo
) -> None:
    """Run the convolution, store the embeddings, print the neighbours of well-known modules."""
    heading(echo, f"Graph convolution, two layers, {HIDDEN} hidden and {EMBEDDING} output features")
    store_weights(connection)
    modules = count_rows(connection, "modules")
    echo(indented(CONVOLUTION.format(modules=modules)))
    echo(
        "  where A is the import graph without directions and with self-loops, D its degrees to "
        "the\n  power -1/2, H the bag of words (tf-idf), W1 and W2 random weights"
    )
    program = convolution(connection)
    echo("\nChosen by SparseEinSum, with the schemas of the relations that each step reads")
    echo("\n".join(stacked(decomposition_table(program.compiled.decomposed))))
    echo("\nSQL")
    echo(indented(program.to_sql()))
    compare(program, convolution(connection, "relational"), connection, options, echo)
    with program.execute(connection) as result:
        result["E"].to_table("embeddings", keys=["i"], mode="replace")
    echo("\nNearest neighbours by the cosine of their embeddings")
    echo_rows(echo, ("module", "neighbours"), neighbours(connection))


def neighbours(connection: duckdb.DuckDBPyConnection, count: int = 4) -> list[tuple[str, str]]:
    """The nearest neighbours of the well-known modules that are there, among those with source."""
    rows = connection.execute(
        """
        WITH named AS (
            SELECT name, val FROM embeddings JOIN modules ON id = i
            WHERE id IN (SELECT module FROM bag)
        ), pairs AS (
            SELECT this.name AS name, other.name AS other,
                   list_cosine_similarity(this.val, other.val) AS cosine
            FROM named AS this JOIN named AS other ON this.name <> other.name
            WHERE list_contains(?, this.name)
        )
        SELECT name, string_agg(other || printf(' %.2f', cosine), ', ' ORDER BY cosine DESC, other)
        FROM (
            SELECT *, row_number() OVER (PARTITION BY name ORDER BY cosine DESC, other) AS place
            FROM pairs WHERE NOT isnan(cosine)
        )
        WHERE place <= ? GROUP BY name
        """,
        [list(WELL_KNOWN), count],
    ).fetchall()
    return sorted(rows, key=lambda row: WELL_KNOWN.index(row[0]))


def compare(
    program: EinsumProgram,
    relational: EinsumProgram,
    connection: duckdb.DuckDBPyConnection,
    options: DemoOptions,
    echo: Echo,
) -> None:
    """Time both programs in turn and print what was compared."""
    best = {program: math.inf, relational: math.inf}
    for number in range(ROUNDS):
        for candidate, fastest in best.items():
            if number == 0 or fastest < math.inf:
                seconds = execution_time(candidate, connection, options.time_limit)
                best[candidate] = min(fastest, seconds)
    chosen, plain = (
        f"{seconds:.3f} s" if seconds < math.inf else f"> {options.time_limit:g} s"
        for seconds in best.values()
    )
    ratio = best[relational] / best[program]
    echo(
        f"\nTime: {chosen} as chosen, {plain} purely relational"
        + (f", {ratio:.1f} times as long" if 1.05 < ratio < math.inf else "")
        + f"\n  Best of {ROUNDS} executions on one connection of DuckDB {duckdb.__version__}. "
        "Purely relational is the same program\n  with every label promoted: plain SQL over tables "
        "with one number in each row."
    )


def execution_time(
    program: EinsumProgram, connection: duckdb.DuckDBPyConnection, limit: float
) -> float:
    """Seconds of one execution; infinite if it was interrupted at the limit."""
    start = time.perf_counter()
    try:
        with interrupted_after(connection, limit), program.execute(connection):
            return time.perf_counter() - start
    except ExecutionError as error:
        if isinstance(error.__cause__, duckdb.InterruptException):
            return math.inf
        raise


@contextmanager
def interrupted_after(connection: duckdb.DuckDBPyConnection, limit: float) -> Iterator[None]:
    """Interrupt whatever the connection runs once `limit` seconds have passed."""
    finished = threading.Event()

    def watch() -> None:
        # More than once, as an interrupt that strikes between two statements is lost.
        wait = limit
        while not finished.wait(wait):
            connection.interrupt()
            wait = 0.1

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()


def shortened(script: str) -> str:
    """A script without the middles of long lists: those of comments, and of the lines of a tape."""
    _, _, body = script.partition("\n\n")
    lines: list[str] = []
    for listed, group in groupby(body.splitlines(), key=_in_a_list):
        every = list(group)
        if listed and len(every) > 2 * SHOWN:
            every[SHOWN:-SHOWN] = [f"... {len(every) - 2 * SHOWN} lines"]
        lines += every
    return "\n".join(lines)


def _in_a_list(line: str) -> str | None:
    """Which kind of list a line of a script stands in, if it does."""
    return next((sign for sign in ("*/", ");") if line.endswith(sign)), None)
