"""`ucle demo`: two EinSum programs on the import graph of the reader's own Python.

In: what is read of the running installation (`ucle.demo.begin_demo`). Out: a DuckDB file with
the graph, its PageRank and its embeddings, and a report in plain text of a screen or two. Findings
come first, as soon as they are there: PageRank, which needs imports alone, then what is near by
embeddings, which need identifiers, too. Next is the time against the purely relational SQL of the
same programs, and at last what SparseEinSum chose, with the statement that matters. With
``--train`` a network learns which package a module belongs to, instead
(`ucle.demo.training`).
"""

from __future__ import annotations

import sys

import duckdb

from ucle.database.open_sessions import connect
from ucle.demo.bar import bar
from ucle.demo.data import (
    check_replaceable,
    number_identifiers,
    number_modules,
    replaced_database,
    store_bag,
    store_graph,
)
from ucle.demo.graph_programs import (
    CONVOLUTION,
    EMBEDDING,
    HIDDEN,
    convolution,
    derive_bag,
    derive_graph,
    pagerank,
    store_weights,
)
from ucle.demo.options import DemoOptions
from ucle.demo.readers import Reading
from ucle.demo.report import Echo, echo_rows, heading, indented, statement_that_matters
from ucle.demo.show_training import show_training
from ucle.demo.timing import LIMIT, ROUNDS, fastest, versus
from ucle.demo.training import SECONDS
from ucle.explain.columns import WIDTH, stack_rows
from ucle.explain.text import decomposition_table
from ucle.program import EinsumProgram

__all__ = ["check_replaceable", "run_demo"]

CENTRAL = 10
"""Modules that are shown with their ranks."""

WELL_KNOWN = (
    *("json.decoder", "asyncio", "unittest", "email.message", "http.client", "urllib.parse"),
    *("zipfile", "numpy.linalg", "scipy.sparse"),
)
"""Modules whose neighbours are shown; the names are short, so that a line has room for some."""

FEW = 6
"""Modules whose neighbours are shown if none of the well-known ones is there, as with a limit."""

EPILOGUE = """
It is all in {0}; look around with
  import ucle; connection = ucle.connect("{0}")
{1}\
"""
QUERIES = {
    False: (
        "FROM pagerank JOIN modules ON id = i ORDER BY val DESC",
        "FROM embeddings JOIN modules ON id = i",
    ),
    True: (
        "FROM network JOIN modules ON id = module JOIN packages p ON p.id = package",
        "SELECT part, count(*) FROM task GROUP BY part",
    ),
}
"""Suggested queries of the database, after the programs or after training."""


def run_demo(options: DemoOptions, reading: Reading, echo: Echo) -> None:
    """Build the demo database, run both programs or train, report through `echo`.

    Raises:
        DatabaseError: the file is not the demo's to overwrite, or cannot be written.
    """
    build_database(options, reading, echo)
    with connect(options.database) as connection:
        if options.train:
            show_training(connection, echo, options.time_limit or SECONDS, all_sql=options.all_sql)
        else:
            store_weights(connection)
            embed = convolution(connection)
            show_neighbours(embed, connection, echo)
            programs = {
                f"PageRank, {options.iterations} iterations": (
                    pagerank(connection, options.iterations),
                    pagerank(connection, options.iterations, "relational"),
                ),
                "graph convolution": (embed, convolution(connection, "relational")),
            }
            show_times(programs, connection, options, echo)
            show_decomposition(embed, echo, all_sql=options.all_sql)
            if options.all_sql:
                show_sql({name: program for name, (program, _) in programs.items()}, echo)
    look = "\n".join(f'  connection.sql("{query}")' for query in QUERIES[options.train])
    echo(EPILOGUE.format(options.database, look))


def build_database(options: DemoOptions, reading: Reading, echo: Echo) -> None:
    """Store what is read; PageRank is shown before identifiers are asked for."""
    names = [module.name for module in reading.modules]
    graph = number_modules(dict(zip(names, reading.imports(), strict=True)))
    with replaced_database(options.database, force=options.force) as connection:
        store_graph(connection, graph)
        derive_graph(connection)
        echo(f"{len(graph.modules):,} modules, {len(graph.imports):,} imports between them.")
        if not options.train:
            show_pagerank(connection, options.iterations, echo)
        with bar("Reading identifiers", len(names), reading.words_done, sys.stderr):
            bag = number_identifiers(reading.words())
        store_bag(connection, bag)
        derive_bag(connection)
    echo(f"\n{len(bag.identifiers):,} identifiers in {len(bag.features):,} places.")


def show_pagerank(connection: duckdb.DuckDBPyConnection, iterations: int, echo: Echo) -> None:
    """Run PageRank, store it as the table ``pagerank``, print the most central modules."""
    with pagerank(connection, iterations).execute(connection) as result:
        result[f"R{iterations}"].to_table("pagerank", mode="replace")
    heading(echo, f"The most central modules, by {iterations} iterations of PageRank")
    echo_rows(
        echo,
        ("module", "rank", "imported by"),
        connection.execute(
            """
            SELECT name, printf('%.2f %%', 100 * val), count(src)::VARCHAR
            FROM pagerank JOIN modules ON id = i LEFT JOIN imports ON dst = i
            GROUP BY name, val ORDER BY val DESC, name LIMIT ?
            """,
            [CENTRAL],
        ).fetchall(),
    )


def show_neighbours(
    program: EinsumProgram, connection: duckdb.DuckDBPyConnection, echo: Echo
) -> None:
    """Run the convolution, store the embeddings, print the neighbours of well-known modules."""
    with program.execute(connection) as result:
        result["E"].to_table("embeddings", keys=["i"], mode="replace")
    heading(echo, "The nearest modules, by a graph convolution over imports and identifiers")
    echo_rows(echo, ("module", "cosine of embeddings"), neighbours(connection))


def neighbours(connection: duckdb.DuckDBPyConnection, count: int = 4) -> list[tuple[str, str]]:
    """The nearest neighbours of some modules, among those with source.

    Each has as many of `count` as fit into a line, and one at least.
    """
    chosen = modules_with_neighbours(connection)
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
        SELECT name, list(other || printf(' %.2f', cosine) ORDER BY cosine DESC, other)
        FROM (
            SELECT *, row_number() OVER (PARTITION BY name ORDER BY cosine DESC, other) AS place
            FROM pairs WHERE NOT isnan(cosine)
        )
        WHERE place <= ? GROUP BY name
        """,
        [chosen, count],
    ).fetchall()
    room = WIDTH - 4 - max((len(name) for name, _ in rows), default=0)
    shown = [(name, _fitting(others, room)) for name, others in rows]
    return sorted(shown, key=lambda row: chosen.index(row[0]))


def modules_with_neighbours(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The well-known modules that are there with source, or else those with the highest ranks."""
    rows = connection.execute(
        """
        SELECT name FROM pagerank JOIN modules ON id = i
        WHERE id IN (SELECT module FROM bag) ORDER BY val DESC, name
        """
    ).fetchall()
    ranked = [name for (name,) in rows]
    return [name for name in WELL_KNOWN if name in ranked] or ranked[:FEW]


def _fitting(parts: list[str], room: int) -> str:
    """The first of some parts, as many as a line has room for."""
    line, *rest = parts
    for part in rest:
        if len(line) + len(part) + 2 > room:
            break
        line += f", {part}"
    return line


def show_times(
    programs: dict[str, tuple[EinsumProgram, EinsumProgram]],
    connection: duckdb.DuckDBPyConnection,
    options: DemoOptions,
    echo: Echo,
) -> None:
    """Time each program as chosen and as relational SQL."""
    heading(echo, "Time of an execution, against the same program as purely relational SQL")
    limit = options.time_limit or LIMIT
    rows = [
        (name, *versus(fastest(pair, connection, limit), limit)) for name, pair in programs.items()
    ]
    echo_rows(echo, ("", "as chosen", "relational", ""), rows)
    echo(
        f"  The best of up to {ROUNDS}, DuckDB {duckdb.__version__}. Relational: all labels are "
        "promoted,\n  so that it is plain SQL over tables with one number in each row."
    )


def show_decomposition(program: EinsumProgram, echo: Echo, *, all_sql: bool) -> None:
    """Print the convolution, what was chosen for it, and the statement where most is computed."""
    heading(echo, f"The convolution: two layers, {HIDDEN} hidden and {EMBEDDING} output features")
    echo(indented(CONVOLUTION.format(modules=program.compiled.program.types["E"].shape[0])))
    echo(
        "  A: imports without directions, with self-loops; D: degrees to the power -1/2,\n"
        "  H: bag of words (tf-idf), W1 and W2: random weights"
    )
    echo("\nSums, by SparseEinSum (UPPER case: a key column; lower case: inside arrays)")
    decomposed = program.compiled.decomposed
    for vertex in decomposed.program.vertices:
        text = vertex.text(decomposed.decompositions[vertex.name])
        if " += " in text:
            echo(f"  {text}")
    if not all_sql and (statement := statement_that_matters(program)):
        echo("\nThe statement in which most is computed (--all-sql prints all)")
        echo(indented(statement))


def show_sql(programs: dict[str, EinsumProgram], echo: Echo) -> None:
    """Print of each program which relations every step reads, and the whole script."""
    for name, program in programs.items():
        heading(echo, f"{name}: schemas of the relations that each step reads, and SQL")
        echo("\n".join(stack_rows(decomposition_table(program.compiled.decomposed))))
        echo("\n" + indented(program.to_sql()))
