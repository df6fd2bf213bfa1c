"""The demo's two EinSum programs and the tables that they read.

Their inputs are made with plain SQL: by `derive_graph` PageRank's transitions, and for the graph
convolution the adjacency with self-loops and the degrees to the power -1/2, by `derive_bag` a
weighted bag of words. `pagerank` and `convolution` compile the programs on them.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ucle.foundation.libraries import pa
from ucle.inputs.table_input import TableInput
from ucle.inputs.table_options import table
from ucle.program import EinsumProgram, einsum_program

HIDDEN, EMBEDDING = 256, 128
"""Widths of the two layers: the paper's hidden width; an embedding wide enough to tell apart
neighbours under random weights."""

MIN_MODULES = 5
"""A word that fewer modules use says nothing about its module's neighbours."""

GRAPH = """
CREATE TABLE transitions AS
SELECT dst, src, 1.0::DOUBLE / count(*) OVER (PARTITION BY src) AS share
FROM imports ORDER BY dst, src;

CREATE TABLE dangling AS
SELECT id, 1.0::DOUBLE / (SELECT count(*) FROM modules) AS share
FROM modules WHERE id NOT IN (SELECT src FROM imports) ORDER BY id;

CREATE TABLE uniform AS
SELECT id, 1.0::DOUBLE / count(*) OVER () AS share FROM modules ORDER BY id;

CREATE TABLE adjacency AS
SELECT DISTINCT i, j, 1.0::DOUBLE AS val
FROM (SELECT src AS i, dst AS j FROM imports
      UNION ALL SELECT dst, src FROM imports
      UNION ALL SELECT id, id FROM modules)
ORDER BY i, j;

CREATE TABLE scaling AS
SELECT i, 1 / sqrt(sum(val)) AS val FROM adjacency GROUP BY i ORDER BY i
"""

BAG = f"""
CREATE TABLE vocabulary AS
SELECT (row_number() OVER (ORDER BY identifier) - 1)::INTEGER AS id, identifier,
       ln((SELECT count(DISTINCT module) FROM features) / count(*)) AS rarity
FROM features GROUP BY identifier HAVING count(*) >= {MIN_MODULES};

CREATE TABLE bag AS
WITH weighted AS (
    SELECT module, vocabulary.id AS word, ln(1 + count) * rarity AS weight
    FROM features JOIN vocabulary USING (identifier)
    WHERE rarity > 0
)
SELECT module, word, weight / sqrt(sum(weight * weight) OVER (PARTITION BY module)) AS weight
FROM weighted ORDER BY module, word
"""

CONVOLUTION = """\
L[i,l]  = D[i] * A[i,l] * D[l]               # D^-1/2 (A + I) D^-1/2
H1[i,n] = relu(L[i,l] * H[l,m] * W1[m,n])
H2[i,c] = relu(L[i,l] * H1[l,n] * W2[n,c])
mean[c] = H2[i,c] / {modules}
E[i,c]  = H2[i,c] - mean[c]
"""


def derive_graph(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the programs' input tables from the import graph."""
    _run(connection, GRAPH)


def derive_bag(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the convolution's words from those of the modules."""
    _run(connection, BAG)


def _run(connection: duckdb.DuckDBPyConnection, script: str) -> None:
    for statement in script.split(";"):
        connection.execute(statement).fetchall()


def count_rows(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    """Number of rows of a table of the demo."""
    ((count,),) = connection.execute(f"SELECT count(*) FROM {name}").fetchall()
    return int(count)


def pagerank_text(modules: int, iterations: int, damping: float = 0.85) -> str:
    """PageRank, one pair of statements for each iteration.

    Rank flows from a module to what it imports; what imports nothing hands its rank to all, and
    each gets its part of the jumps.

    >>> print(pagerank_text(3, 1))
    lost1 = g[j] * R0[j]
    R1[i] = 0.85 * (P[i,j] * R0[j] + lost1) + 0.15 / 3
    """
    return "\n".join(
        f"lost{n} = g[j] * R{n - 1}[j]\n"
        f"R{n}[i] = {damping} * (P[i,j] * R{n - 1}[j] + lost{n}) + {1 - damping:.12g} / {modules}"
        for n in range(1, iterations + 1)
    )


def pagerank(
    connection: duckdb.DuckDBPyConnection, iterations: int = 20, decomposition: str = "auto"
) -> EinsumProgram:
    """PageRank of the modules; its output is ``R`` with the number of iterations."""
    modules = count_rows(connection, "modules")
    inputs: dict[str, TableInput] = {
        "P": table("transitions", ["dst", "src"], "share", bounds=[modules, modules]),
        "g": table("dangling", ["id"], "share", bounds=[modules]),
        "R0": table("uniform", ["id"], "share", bounds=[modules]),
    }
    return einsum_program(
        pagerank_text(modules, iterations),
        database=connection,
        inputs=inputs,
        # The result is stored as a table, where a reader looks for one row per module.
        decomposition={f"R{iterations}": ["i"]} if decomposition == "auto" else decomposition,
    )


def random_weights(rows: int, columns: int, seed: int) -> NDArray[np.float64]:
    """A layer that nobody has trained; the seed is fixed, so the demo repeats itself."""
    return np.random.default_rng(seed).normal(scale=rows**-0.5, size=(rows, columns))


def store_weights(connection: duckdb.DuckDBPyConnection) -> None:
    """Store the two weight matrices, twice.

    ``weights1`` and ``weights2`` hold arrays, a row or the whole of a matrix in each tuple; the
    temporary tables ``weights1_entries`` and ``weights2_entries`` hold one entry in each: what
    either side of the comparison would have at rest.
    """
    words = max(count_rows(connection, "vocabulary"), 1)
    first, second = random_weights(words, HIDDEN, 1), random_weights(HIDDEN, EMBEDDING, 2)
    rows = pa.FixedSizeListArray.from_arrays(pa.array(first.ravel()), HIDDEN)
    whole = pa.FixedSizeListArray.from_arrays(pa.array(second.ravel()), second.size)
    _store(connection, "TABLE weights1", id=np.arange(words, dtype=np.int32), val=rows)
    _store(connection, "TABLE weights2", val=whole)
    for name, matrix in (("weights1_entries", first), ("weights2_entries", second)):
        row, column = (index.ravel() for index in np.indices(matrix.shape, dtype=np.int32))
        _store(connection, f"TEMPORARY TABLE {name}", i=row, j=column, val=matrix.ravel())


def _store(connection: duckdb.DuckDBPyConnection, target: str, **columns: Any) -> None:
    connection.register("weights_source", pa.table(columns))
    connection.execute(f"CREATE OR REPLACE {target} AS FROM weights_source").fetchall()
    connection.unregister("weights_source")


def convolution(
    connection: duckdb.DuckDBPyConnection, decomposition: str = "auto"
) -> EinsumProgram:
    """Two layers of graph convolution; its output ``E`` is the centred embedding.

    Centring takes out what all modules share, so that a cosine says how two of them differ from
    the rest.
    """
    modules = count_rows(connection, "modules")
    words = max(count_rows(connection, "vocabulary"), 1)
    if decomposition == "relational":
        first: TableInput = table("weights1_entries")
        second: TableInput = table("weights2_entries")
    else:
        first = table("weights1", ["id"], "val")
        second = table("weights2", [], "val", shape=(HIDDEN, EMBEDDING))
    inputs: dict[str, TableInput] = {
        "D": table("scaling", bounds=[modules]),
        "A": table("adjacency", bounds=[modules, modules]),
        "H": table("bag", bounds=[modules, words]),
        "W1": first,
        "W2": second,
    }
    return einsum_program(
        CONVOLUTION.format(modules=modules),
        database=connection,
        inputs=inputs,
        decomposition={"E": ["i"]} if decomposition == "auto" else decomposition,
    )
