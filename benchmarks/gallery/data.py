"""Data that several recipes make, and columns of tables as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
import scipy.sparse as sp
from numpy.typing import NDArray
from tables import store

Array = NDArray[Any]


def vectors(matrix: Array) -> pa.Array:
    """A column with an array of fixed size for each row of a matrix."""
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])


def columns(connection: duckdb.DuckDBPyConnection, query: str) -> list[Array]:
    """The columns of a query: numbers, or lists of one length as the rows of a matrix."""
    table = connection.sql(query).to_arrow_table().combine_chunks()
    return [
        np.asarray(pyarrow.compute.list_flatten(x)).reshape(len(x), -1)
        if pa.types.is_nested(x.type)
        else np.asarray(x)
        for x in table.columns
    ]


def upper_pairs(width: int) -> list[tuple[int, int]]:
    """The places on and above the diagonal of a square matrix."""
    return [(a, b) for a in range(width) for b in range(a, width)]


def symmetric(width: int, entries: Sequence[float]) -> Array:
    """The symmetric matrix that has these entries at `upper_pairs`."""
    matrix = np.zeros((width, width))
    for (a, b), value in zip(upper_pairs(width), entries, strict=True):
        matrix[a, b] = matrix[b, a] = value
    return matrix


def make_graph(connection: duckdb.DuckDBPyConnection, nodes: int, degree: int, groups: int) -> None:
    """A table `edges` (src, dst) with each edge in both directions, of a graph with groups.

    Node n is of group n % groups, and four of five of its links lead to nodes of that group.
    """
    rng = np.random.default_rng(0)
    here = np.repeat(np.arange(nodes), degree // 2)
    there = rng.integers(nodes, size=len(here))
    own = there - (there - here) % groups
    there = np.where((rng.random(len(here)) < 0.8) & (own >= 0), own, there)
    pairs = np.stack([np.minimum(here, there), np.maximum(here, there)])
    low, high = np.unique(pairs[:, here != there], axis=1)
    both = {"src": np.concatenate([low, high]), "dst": np.concatenate([high, low])}
    store(connection, "edges", both)


def make_nodes(connection: duckdb.DuckDBPyConnection, nodes: int, groups: int, width: int) -> None:
    """A table `nodes` (node, x) with features that are alike within the groups of `make_graph`."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(groups, width))[np.arange(nodes) % groups]
    x += rng.normal(size=x.shape)
    store(connection, "nodes", {"node": np.arange(nodes), "x": vectors(x)})


def adjacency(connection: duckdb.DuckDBPyConnection, nodes: int) -> sp.csr_array:
    """The graph as a sparse matrix."""
    src, dst = columns(connection, "SELECT src, dst FROM edges")
    return sp.csr_array((np.ones(len(src)), (src, dst)), (nodes, nodes))


def count(connection: duckdb.DuckDBPyConnection, what: str, table: str) -> int:
    """One number of a table, such as ``count(*)`` or ``max(node) + 1``."""
    return int(columns(connection, f"SELECT {what} FROM {table}")[0][0])
