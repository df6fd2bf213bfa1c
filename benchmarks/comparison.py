"""The same jobs with other libraries: seconds, and lines of code (`benchmarks.comparison_sides`).

Libraries that work in memory get arrays in memory, and their answer stays there; DuckDB, Ibis and
ucle get tables of one database. No side reads files.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

import ucle
from benchmarks import comparison_sides as written
from benchmarks.measure import THREADS, Table, expect_close, race, tolerance_of
from benchmarks.workloads import power_law

Side = Callable[[], Any]

LIBRARIES = {
    "ucle": "ucle",
    "NumPy": "numpy",
    "scipy": "scipy",
    "PyTorch": "torch",
    "GraphBLAS": "graphblas",
    "Ibis": "ibis",
    "DuckDB": "duckdb",
}
"""The sides, and the packages that each of them needs."""

AGAIN = "ucle again"
"""The side that runs an already compiled program."""

SLOW = 2
"""Rounds for slow sides, which would otherwise take minutes."""

DOCUMENTS, TOPICS, WIDTH = 100_000, 1000, 256
NODES, EDGES, FEATURES, HIDDEN = 100_000, 1_000_000, 64, 16
QUERIES, CANDIDATES = 500, 20_000


@dataclass(frozen=True)
class Job:
    """One row: sides by name, the code that each runs, and the answer as an array."""

    name: str
    sides: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]]
    expected: Any


def jobs(connection: duckdb.DuckDBPyConnection, backend: Any) -> Iterator[Job]:
    """Yield the jobs, with their data in place."""
    yield _mean(connection, backend)
    yield _convolution(connection, backend)
    yield _cosine(connection, backend)


def _mean(connection: duckdb.DuckDBPyConnection, backend: Any) -> Job:
    random = np.random.default_rng(0)
    embedding = random.random((DOCUMENTS, WIDTH), dtype=np.float32)
    topic = random.integers(TOPICS, size=DOCUMENTS)
    _vectors(connection, "docs", "doc", "embedding", embedding, topic=topic)
    arrays = topic, embedding
    return Job(
        f"mean of {DOCUMENTS:,} embeddings by topic",
        {
            "NumPy": (written.mean_numpy, arrays),
            "scipy": (written.mean_scipy, arrays),
            "PyTorch": (written.mean_torch, _torch(*arrays)),
            "GraphBLAS": (written.mean_graphblas, (topic, _graphblas(embedding))),
            "Ibis": (written.mean_ibis, (backend,)),
            "DuckDB": (written.mean_duckdb, (connection,)),
            "ucle": (written.mean_ucle, (connection,)),
        },
        np.array([embedding[topic == t].mean(axis=0, dtype=float) for t in range(TOPICS)]),
    )


def _convolution(connection: duckdb.DuckDBPyConnection, backend: Any) -> Job:
    random = np.random.default_rng(1)
    graph = power_law(NODES, EDGES, np.float32)
    features = random.normal(size=(NODES, FEATURES)).astype(np.float32)
    layer = random.normal(size=(FEATURES, HIDDEN)).astype(np.float32)
    coo = graph.tocoo()
    source, target = (index.astype(np.int32) for index in coo.coords)
    _store(connection, "edges", {"src": source, "dst": target, "weight": coo.data})
    _vectors(connection, "features", "node", "val", features)
    _vectors(connection, "layer_columns", "n", "w", np.ascontiguousarray(layer.T))
    _entries(connection, "entries", ("node", "m", "x"), features)
    _entries(connection, "layer", ("m", "n", "w"), layer)
    return Job(
        f"graph convolution, {EDGES:,} edges",
        {
            "NumPy": (written.convolution_numpy, ((source, target), coo.data, features, layer)),
            "scipy": (written.convolution_scipy, (graph, features, layer)),
            "PyTorch": (written.convolution_torch, _torch(graph, features, layer)),
            "GraphBLAS": (
                written.convolution_graphblas,
                (_graphblas(graph), _graphblas(features), _graphblas(layer)),
            ),
            "Ibis": (written.convolution_ibis, (backend,)),
            "DuckDB": (written.convolution_duckdb, (connection,)),
            "ucle": (written.convolution_ucle, (connection, layer)),
        },
        np.maximum(graph.astype(float) @ (features.astype(float) @ layer), 0),
    )


def _cosine(connection: duckdb.DuckDBPyConnection, backend: Any) -> Job:
    random = np.random.default_rng(2)
    queries, documents = (
        random.normal(size=(count, WIDTH)).astype(np.float32) for count in (QUERIES, CANDIDATES)
    )
    _vectors(connection, "queries", "id", "val", queries)
    _vectors(connection, "documents", "id", "val", documents)
    arrays = queries, documents
    return Job(
        f"greatest cosine of {QUERIES} with {CANDIDATES:,}",
        {
            "NumPy": (written.cosine_numpy, arrays),
            "PyTorch": (written.cosine_torch, _torch(*arrays)),
            "GraphBLAS": (written.cosine_graphblas, tuple(map(_graphblas, arrays))),
            "Ibis": (written.cosine_ibis, (backend,)),
            "DuckDB": (written.cosine_duckdb, (connection,)),
            "ucle": (written.cosine_ucle, (connection,)),
        },
        written.cosine_numpy(*(x.astype(float) for x in arrays)),
    )


def lines_of(function: Callable[..., Any]) -> int:
    """Count the lines in the body of a function, without imports and empty lines.

    >>> lines_of(written.convolution_scipy)
    1
    """
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    source = inspect.getsource(function).splitlines()
    spans = [x for x in tree.body if not isinstance(x, ast.Import | ast.ImportFrom)]
    numbers = {n for x in spans for n in range(x.lineno - len(_above(x)), (x.end_lineno or 0) + 1)}
    return sum(bool(source[n - 1].strip()) for n in numbers)


def _above(node: ast.stmt) -> list[ast.expr]:
    """Return the decorators, whose lines are above the decorated function."""
    return node.decorator_list if isinstance(node, ast.FunctionDef) else []


def _measure(job: Job, connection: duckdb.DuckDBPyConnection, rounds: int) -> Sequence[str]:
    calls: dict[str, Side] = {
        side: lambda f=function, a=arguments: f(*a)
        for side, (function, arguments) in job.sides.items()
        if importlib.util.find_spec(LIBRARIES[side]) is not None
    }
    compiling = calls["ucle"]
    program = compiling()
    calls["ucle"] = lambda: compiling().execute(connection)
    calls[AGAIN] = lambda: program.execute(connection)
    expected = job.expected

    def check(side: str, found: Any) -> None:
        answer = _array(side, found, connection, expected.shape)
        expect_close(f"{job.name}, {side}", answer, expected, tolerance_of(np.float32))

    slow = {side: calls.pop(side) for side in ("Ibis", "DuckDB") if side in calls}
    times = race(calls, rounds, check) | race(slow, min(rounds, SLOW), check)
    cells = [f"{times['ucle']:.3f} ({lines_of(job.sides['ucle'][0])})", f"{times[AGAIN]:.3f}"]
    for side in list(LIBRARIES)[1:]:
        has = side in times
        cells.append(f"{times[side]:.3f} ({lines_of(job.sides[side][0])})" if has else "")
    return job.name, *cells


def _array(side: str, found: Any, connection: Any, shape: tuple[int, ...]) -> Any:
    """Return the answer of any side as an array."""
    if side in ("ucle", AGAIN):
        return found["answer"].to_numpy()
    if side == "PyTorch":
        return found.numpy()
    if side == "GraphBLAS":
        return found.to_dense(fill_value=0)
    if side not in ("Ibis", "DuckDB"):
        return found
    table = found if side == "Ibis" else connection.sql("FROM answer").to_arrow_table()
    *keys, values = (column.to_numpy() for column in table.columns)
    answer = np.zeros(shape)
    answer[tuple(keys)] = np.stack(values) if values.dtype == object else values
    return answer


def _torch(*arrays: Any) -> tuple[Any, ...]:
    """Convert arrays for PyTorch; the result is empty where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return ()
    import torch  # noqa: PLC0415

    torch.set_num_threads(THREADS)
    torch.sparse.check_sparse_tensor_invariants.disable()
    return tuple(
        torch.sparse_csr_tensor(
            torch.from_numpy(x.indptr.astype(np.int64)),
            torch.from_numpy(x.indices.astype(np.int64)),
            torch.from_numpy(x.data),
            x.shape,
        )
        if sp.issparse(x)
        else torch.from_numpy(x)
        for x in arrays
    )


def _graphblas(array: Any) -> Any:
    if importlib.util.find_spec("graphblas") is None:
        return None
    import graphblas  # noqa: PLC0415

    graphblas.ss.config["nthreads"] = THREADS
    if sp.issparse(array):
        return graphblas.io.from_scipy_sparse(array)
    return graphblas.Matrix.from_dense(array)


def _vectors(connection: Any, name: str, key: str, value: str, matrix: Any, **columns: Any) -> None:
    """Create a table with an array for each row of a matrix."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])
    ids = np.arange(len(matrix), dtype=np.int32)
    _store(connection, name, {key: ids, **columns, value: vectors})


def _entries(connection: Any, name: str, names: Sequence[str], matrix: Any) -> None:
    """Create a table with a row for each entry of a matrix."""
    places = np.indices(matrix.shape, dtype=np.int32)
    columns = [*(place.ravel() for place in places), matrix.ravel()]
    _store(connection, name, dict(zip(names, columns, strict=True)))


def _store(connection: Any, name: str, columns: Mapping[str, Any]) -> None:
    connection.register("source", pa.table(dict(columns)))
    connection.execute(f"CREATE TABLE {name} AS FROM source").fetchall()
    connection.unregister("source")


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    with ucle.connect(threads=THREADS) as connection:
        backend = None
        if importlib.util.find_spec("ibis") is not None:
            import ibis  # noqa: PLC0415

            backend = ibis.duckdb.from_connection(connection.cursor())
        for job in jobs(connection, backend):
            yield _measure(job, connection, rounds)


TABLE = Table(
    "comparison",
    "The same jobs with other libraries",
    "Seconds, with lines of code in parentheses (`benchmarks/comparison_sides.py`). `ucle`\n"
    "compiles and executes the program; `ucle again` executes a compiled program. ucle and\n"
    "DuckDB read tables and write the answer to a table. Ibis reads the same tables and\n"
    "returns an Arrow table. The other libraries work on arrays in memory. Embeddings have\n"
    f"{WIDTH} float32 numbers and belong to {TOPICS:,} topics; the convolution of a graph\n"
    f"with {NODES:,} nodes turns {FEATURES} features into {HIDDEN}. Ibis and DuckDB run at\n"
    f"most {SLOW} times. scipy has no function for the last job. The cells of libraries that\n"
    "are not installed are empty.",
    ("job", "ucle", AGAIN, *list(LIBRARIES)[1:]),
    _rows,
)
