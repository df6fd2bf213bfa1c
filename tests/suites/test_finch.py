"""Statistics of tensors, and programs for a logical optimiser, as Finch tests its own.

The cases are those of finch-tensor-lite (`tests/test_tensor_stats.py`,
`tests/test_galley_logical_optimizer.py`, `tests/test_galley_branch_and_bound.py`,
`tests/test_galley_optimizer_pipeline.py`) and of Finch.jl (`test/suites/galley_tests.jl`) that
index notation can say, written again with the figures that are expected there; each bears the name
that it has there. Their statistics and ours: DCStats are `degrees`, whose bound is `Rows.high`;
VPStats (entries, and distinct coordinates of each axis) are `occupancy`; ExactStats are what the
answer holds. Where our figure differs, the table says both.

What is given there as constraints of no data is made here of data that has them. The constraints
themselves, on degrees that no data needs to have, stand in `tests/stats/test_degrees.py`.

Not covered, as ucle has nothing of the kind:

- UniformStats (one probability for all cells): where V says no more they agree, and stand below.
- LPStats (`test_lp_*`: norms of degrees between 1 and infinity): ucle bounds by the norms 1 and
  infinity alone; their cases that only ask for a bound stand below.
- BlockedStats (`test_blocked_stats_*`): statistics of blocks of a tensor.
- FDStats (`test_fd_*`, `test_smart_formatter_*`): which axes are dense; here a decomposition says
  that of every tensor.
- DummyStats and DenseStats (`test_dummy_*`, `test_mapjoin_mul_and_add`, `test_aggregate`,
  `test_estimate_non_fill_values`): estimators that look at no data.
- Embeddings (`test_embeddings`, `test_exact_embedding`, `test_lp_embedding_shape`), similarity of
  statistics (`issimilar`), copies and getters of objects, plan equality and plan hash.
- `test_get_reducible_idxs*`, `test_get_idx_connected_components`, `test_replace_and_remove_nodes`,
  `test_get_remaining_query` and the passthrough cases of `test_galley_branch_and_bound.py`: steps
  of their search on trees of theirs. What these steps lead to is run as programs.
- `test_base_mapjoin` with axes of two sizes under one name, which is an error here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import ucle
from ucle.inputs.table_input import TableInput
from ucle.ir.layouts import Layout
from ucle.options import REWRITES, Optimisations
from ucle.program import EinsumProgram
from ucle.stats.degrees import Degrees
from ucle.stats.estimate import MeasuredInputs, Rows
from ucle.stats.estimators import ESTIMATORS
from ucle.stats.model import array_statistics
from ucle.testing.check_matrix import recompiled

Inputs = Mapping[str, Any]


def rows_of(program: EinsumProgram, estimator: str) -> Rows:
    """The rows that an estimator expects for the only output."""
    compiled = program.compiled
    (name,) = program.outputs
    known = MeasuredInputs(compiled.statistics.measured, ESTIMATORS[estimator]).of(compiled.program)
    return known.rows(name, Layout.of([True] * len(compiled.program.types[name].shape)))


def entries_of(program: EinsumProgram, connection: duckdb.DuckDBPyConnection) -> int:
    """The number of entries of the only output that differ from its fill."""
    (name,) = program.outputs
    with program.execute(connection) as result:
        return int(result[name].to_arrow(rows="nonfill").num_rows)


def as_it_stands(text: str, inputs: Inputs, connection: duckdb.DuckDBPyConnection) -> EinsumProgram:
    """A program whose vertices are the products and sums of its text, all labels promoted."""
    return ucle.einsum_program(
        text,
        inputs=inputs,
        database=connection,
        decomposition="relational",
        association="as-written",
        rewrite="none",
    )


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with ucle.connect(threads=2) as opened:
        yield opened


# ---- Degrees of inputs (test_dc_stats_*, test_lp_norm_endpoints) ----

STEPS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]])
CUBE = np.array([[[1, 0], [0, 0]], [[0, 1], [1, 0]]])
TESSERACT = np.zeros((2, 2, 2, 2))
TESSERACT[(0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 0)] = 1

DEGREES: dict[str, tuple[Any, float, list[float], list[float]]] = {
    # an array; its entries; of each axis the distinct coordinates, and the largest degree
    "vector of ones": (np.ones(4), 4, [4], [1]),
    "vector": (np.array([0, 1, 0, 0, 1]), 2, [2], [1]),
    "matrix of ones": (np.ones((3, 3)), 9, [3, 3], [3, 3]),
    "matrix": (STEPS, 4, [2, 3], [2, 2]),
    "3d of ones": (np.ones((2, 2, 2)), 8, [2, 2, 2], [4, 4, 4]),
    "3d": (CUBE, 3, [2, 2, 2], [2, 2, 2]),
    "4d of ones": (np.ones((2, 2, 2, 2)), 16, [2] * 4, [8] * 4),
    "4d": (TESSERACT, 3, [2] * 4, [2] * 4),
    "lp norm endpoints": (np.array([[1, 1, 1], [0, 1, 0], [0, 0, 0]]), 4, [2, 3], [3, 2]),
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", DEGREES)
def test_degrees_of_inputs(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    array, entries, distinct, largest = DEGREES[name]
    counted = array_statistics(array.astype(float), 0.0)
    sparse = scipy.sparse.coo_array(array.astype(float))
    labels = ",".join("ijkl"[: array.ndim])
    read = as_it_stands(f"Z[{labels}] = A[{labels}]", {"A": sparse}, connection)
    asked = read.compiled.statistics.measured["A"]
    for statistics in (counted, getattr(asked, "counts", asked)):
        assert statistics.entries == entries
        assert list(statistics.distinct) == distinct
        assert list(statistics.largest) == largest
    degrees = Degrees.from_counts(array.shape, entries, distinct, largest)
    every = (1 << array.ndim) - 1
    assert degrees.most(every) == entries
    for axis in range(array.ndim):
        assert degrees.most(1 << axis) == distinct[axis]
        assert degrees.most(every, given=1 << axis) == min(largest[axis], entries)


def test_a_scalar_is_one_entry(connection: duckdb.DuckDBPyConnection) -> None:
    """`test_dc_stats_scalar` and `test_lp_scalar_tensor`."""
    assert Degrees((), {}).most(0) == 1
    assert rows_of(as_it_stands("Z = A[]", {"A": 5.0}, connection), "degrees") == Rows(1, 1, 1)


# ---- The chain bound ----


def matrix(shape: tuple[int, int], rows: int, columns: int, degree: int) -> Any:
    """A band of `rows` x `columns` in a larger matrix, with `degree` entries in each row."""
    i = np.repeat(np.arange(rows), degree)
    j = (i * degree // max(rows * degree // columns, 1) + np.tile(range(degree), rows)) % columns
    return scipy.sparse.coo_array((np.ones(len(i)), (i, j)), shape=shape)


def filled(array: Any, fill: float) -> TableInput:
    """A tensor with the positions of an array, values from 2 on, and another fill."""
    coords = array.tocoo().coords
    names = "abc"[: len(coords)]
    columns = {name: c.astype(np.int64) for name, c in zip(names, coords, strict=True)}
    relation = pa.table({**columns, "val": 2.0 + np.arange(array.nnz)})
    return ucle.table(relation, list(names), "val", bounds=array.shape, fill=fill)


def block(entries: int, *shape: int) -> Any:
    """A tensor with entries along its diagonal."""
    places = tuple(np.arange(entries) for _ in shape)
    return scipy.sparse.coo_array((np.ones(entries), places), shape=shape)


THOUSAND = (1000, 1000)
EDGE = matrix(THOUSAND, 10, 10, 5)
"""50 entries, 5 in each row and in each column."""
ONE = matrix(THOUSAND, 1, 1, 1)
TRIANGLE = "A[i,j] * B[j,k] * C[i,k]"
WIDE, TALL = block(5, 1000, 100), block(10, 100, 1000)

BOUNDS: dict[str, tuple[str, Inputs, float]] = {
    # Finch.jl, testset "DCStats", and finch-tensor-lite, test_*_dc_card
    "Single Tensor Card": ("Z[i,j] = A[i,j]", {"A": EDGE}, 50),
    "1 Join DC Card": ("Z[i,j,k] = A[i,j] * B[j,k]", {"A": EDGE, "B": EDGE}, 250),
    "2 Join DC Card": (
        "Z[i,j,k,l] = A[i,j] * B[j,k] * C[k,l]",
        {"A": EDGE, "B": EDGE, "C": EDGE},
        1250,
    ),
    "Triangle DC Card": (f"Z[i,j,k] = {TRIANGLE}", {"A": EDGE, "B": EDGE, "C": EDGE}, 250),
    "Triangle-Small DC Card": (f"Z[i,j,k] = {TRIANGLE}", {"A": ONE, "B": EDGE, "C": EDGE}, 5),
    "Full Reduce DC Card": (f"Z += {TRIANGLE}", {"A": EDGE, "B": EDGE, "C": EDGE}, 1),
    "1-Attr Reduce DC Card": (f"Z[k] += {TRIANGLE}", {"A": ONE, "B": EDGE, "C": EDGE}, 5),
    "2-Attr Reduce DC Card": (f"Z[j,k] += {TRIANGLE}", {"A": ONE, "B": EDGE, "C": EDGE}, 5),
    "1D Disjunction DC Card": (
        "Z[i] = A[i] + B[i]",
        {"A": block(1, 1000), "B": block(1, 1000)},
        2,
    ),
    "2D Disjunction DC Card": (
        "Z[i,j] = A[i,j] + B[i,j]",
        {"A": block(1, 1000, 100), "B": block(1, 1000, 100)},
        2,
    ),
    "2D Disjoint Disjunction DC Card": (
        "Z[i,j] = A[i] + B[j]",
        {"A": block(5, 1000), "B": block(10, 100)},
        10 * 1000 + 5 * 100,
    ),
    "3D Disjoint Disjunction DC Card": (
        "Z[i,j,k] = A[i,j] + B[j,k]",
        {"A": WIDE, "B": TALL},
        10 * 1000 + 5 * 1000,
    ),
    "test_large_disjoint_disjunction_dc_card": (
        "Z[i,j,k] = A[i,j] * B[j,k] * C[i,j,k]",
        {
            "A": filled(WIDE, 1.0),
            "B": filled(TALL, 1.0),
            "C": filled(block(10, 1000, 100, 1000), 1.0),
        },
        10 * 1000 + 5 * 1000 + 10,
    ),
    "Mixture Disjunction Conjunction DC Card": (
        "Z[i,j,k] = A[i,j] * B[j,k] * C[i,j,k]",
        {"A": filled(WIDE, 1.0), "B": filled(TALL, 1.0), "C": block(10, 1000, 100, 1000)},
        10,
    ),
    # finch-tensor-lite, test_merge_dc_join and test_merge_dc_union
    "merge dc join": ("Z[i] = A[i] * B[i]", {"A": block(5, 1000), "B": block(2, 1000)}, 2),
    "merge dc union": ("Z[i] = A[i] + B[i]", {"A": block(5, 1000), "B": block(2, 1000)}, 7),
    "merge dc union, lifted": ("Z[i,j] = A[i] + B[j]", {"A": block(3, 10), "B": block(2, 4)}, 32),
    "merge dc union, clamped": ("Z[i] = A[i] + B[i]", {"A": block(5, 5), "B": block(4, 5)}, 5),
    # finch-tensor-lite, test_varied_reduce_DC_card
    "varied reduce, sparse and dense": (
        "Z[j] += A[i,k] * x[j]",
        {"A": matrix((100, 100), 100, 100, 1), "x": np.ones(100)},
        100,
    ),
}

TOO_MANY = 10**4
"""Entries from which on it takes seconds to compute what is only estimated here."""


def most_held(program: EinsumProgram) -> float:
    """The bound of the largest tensor of a program."""
    compiled, types = program.compiled, program.compiled.program.types
    names = [vertex.name for vertex in compiled.program.vertices]
    layouts = [Layout.of([True] * len(types[name].shape)) for name in names]
    return max(map(compiled.statistics.rows, names, layouts), key=lambda rows: rows.high).high


TIGHTER: dict[str, tuple[str, Inputs, float, float]] = {
    # their figure, and ours, which knows the distinct coordinates of each axis, too
    "varied reduce, asymmetric": (
        "Z[i,k] += A[i,j] * B[j,k]",
        {"A": matrix((100, 100), 50, 100, 2), "B": matrix((100, 100), 50, 50, 1)},
        5000,
        50,
    ),
    "varied reduce, imbalance": (
        "Z[j,k] += A[i,j] * B[j,k] * C[i,k]",
        {"A": block(5, 1000, 100), "B": matrix((100, 10), 80, 10, 1), "C": block(1, 1000, 10)},
        5,
        1,
    ),
}


@pytest.mark.parametrize("name", TIGHTER)
def test_a_tighter_chain_bound(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    text, inputs, theirs, ours = TIGHTER[name]
    program = as_it_stands(text, inputs, connection)
    assert rows_of(program, "degrees").high == ours < theirs
    assert entries_of(program, connection) <= ours


@pytest.mark.parametrize("name", BOUNDS)
def test_the_chain_bound(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    text, inputs, expected = BOUNDS[name]
    program = as_it_stands(text, inputs, connection)
    assert rows_of(program, "degrees").high == expected
    if most_held(program) < TOO_MANY:
        assert entries_of(program, connection) <= expected


SKEWED = np.zeros((6, 4))
SKEWED[:, 0] = SKEWED[0, 1] = SKEWED[1, 2] = SKEWED[2, 3] = 1
LEFT = np.array([[1.0, 0.0, 2.0], [0.0, 5.0, 0.0], [0.0, 0.0, 3.0]])
RIGHT = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 3.0]])

UPPER: dict[str, tuple[str, Inputs, float]] = {
    # finch-tensor-lite, test_lp_*: at most this, and at least what there is
    "base tensor": ("Z[i,j] = A[i,j]", {"A": LEFT}, 4),
    "empty tensor": ("Z[i,j] = A[i,j]", {"A": np.zeros((3, 4))}, 0),
    "join": ("Z[i,j,k] = A[i,j] * B[j,k]", {"A": SKEWED, "B": SKEWED.T}, 6 * 4 * 6),
    "join keeps min": ("Z[i,j] = A[i,j] * B[i,j]", {"A": LEFT, "B": RIGHT}, 4),
    "aggregate drops index": ("Z[i] += A[i,j]", {"A": LEFT}, 3),
    "relabel and reorder": ("Z[j,k] = A[k,j]", {"A": LEFT}, 4),
}


@pytest.mark.parametrize("name", UPPER)
def test_upper_bounds(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    text, inputs, most = UPPER[name]
    program = as_it_stands(text, inputs, connection)
    assert entries_of(program, connection) <= rows_of(program, "degrees").high <= most


# ---- Estimates by entries and distinct coordinates (VPStats), and by one probability ----

TOP, BOTTOM, FRONT = np.zeros((10, 10)), np.zeros((10, 10)), np.zeros((10, 10))
TOP[:5], BOTTOM[5:], FRONT[:, :5] = 1, 1, 1
EYE = np.eye(10)

ESTIMATES: dict[str, tuple[str, Inputs, float]] = {
    "vp mapjoin join": ("Z[i,k,j] = A[i,k] * B[k,j]", {"A": EYE, "B": EYE}, 10),
    "uniform mapjoin mul": ("Z[i,j] = A[i,j] * B[i,j]", {"A": TOP, "B": FRONT}, 25),
    "uniform mapjoin add": ("Z[i,j] = A[i,j] + B[i,j]", {"A": TOP, "B": FRONT}, 75),
    "vp from tensor": ("Z[i,j] = A[i,j]", {"A": block(2, 2, 3)}, 2),
    "vp reorder": ("Z[j,i] = A[i,j]", {"A": EYE}, 10),
    "vp relabel": ("Z[row,col] = A[row,col]", {"A": EYE}, 10),
    **{
        f"vp of {shape}, {entries}": ("Z[{0}] = A[{0}]", {"A": block(entries, *shape)}, entries)
        for shape, entries in [((4, 5), 3), ((5, 5), 3), ((3, 3, 3), 3), ((10, 10), 10)]
    },
    "vp of nothing": ("Z[i,j,k] = A[i,j,k]", {"A": np.zeros((5, 5, 5))}, 0),
    "vp of everything": ("Z[i,j] = A[i,j]", {"A": np.ones((2, 2))}, 4),
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    text, inputs, expected = ESTIMATES[name]
    labels = ",".join("ijk"[: inputs["A"].ndim])
    program = as_it_stands(text.format(labels), inputs, connection)
    assert rows_of(program, "occupancy").estimate == expected


MORE, MOST = block(2, 4, 5), block(3, 5, 3)

OTHER_ESTIMATES: dict[str, tuple[str, Inputs, float, float]] = {
    # their figure, and ours as far as three digits
    "vp mapjoin elementwise": ("Z[i,j] = A[i,j] + B[i,j]", {"A": TOP, "B": BOTTOM}, 100, 70.7),
    "vp mapjoin broadcast": ("Z[i,j,k] = A[i,j] + B[j,k]", {"A": MORE, "B": MOST}, 18, 18),
    "vp aggregate": ("Z[i] += A[i,j]", {"A": EYE}, 10, 7.95),
    "uniform aggregate": ("Z[i] += A[i,j]", {"A": EYE}, 10 * (1 - 0.9**10), 7.95),
}
"""Ours are means of an estimate and a bound (`ucle.stats.chain_bound`)."""


@pytest.mark.parametrize("name", OTHER_ESTIMATES)
def test_other_estimates(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    """No truth is missed by more than a third, and what is taken to be possible holds both."""
    text, inputs, theirs, ours = OTHER_ESTIMATES[name]
    program = as_it_stands(text, inputs, connection)
    rows, truth = rows_of(program, "degrees"), entries_of(program, connection)
    assert rows.estimate == pytest.approx(ours, rel=1e-2)
    assert max(theirs, truth) <= rows.high
    assert 2 / 3 <= rows.estimate / truth <= 3 / 2


# ---- What is stored of results (ExactStats) ----

ONES, FIRST = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0])
TWO = np.eye(2)
INF = np.inf

STORED: dict[str, tuple[str, Inputs, int]] = {
    "elementwise mul": ("Z[i,j] = A[i,j] * B[i,j]", {"A": TWO, "B": ONES}, 1),
    "elementwise add": ("Z[i,j] = A[i,j] + B[i,j]", {"A": TWO, "B": ONES}, 3),
    "broadcast mul": ("Z[i,j] = A[i,j] * b[j]", {"A": TWO, "b": FIRST}, 1),
    "broadcast add": ("Z[i,j] = A[i,j] + b[j]", {"A": TWO, "b": FIRST}, 3),
    "join mul": ("Z[i,j,k] = A[i,j] * B[j,k]", {"A": TWO, "B": TWO}, 2),
    "join add": ("Z[i,j,k] = A[i,j] + B[j,k]", {"A": TWO, "B": TWO}, 6),
    "semiring": (
        "Z[i,k] = sum[j](A[i,j] * A[j,k]) * sum[m](A[i,m] * A[m,k])",
        {"A": np.eye(3)},
        3,
    ),
    "semiring tropical": ("Z[i] min= A[i,j]", {"A": ucle.table(TWO, fill=INF)}, 2),
    "semiring maxplus": (
        "Z[i,k] = max[j](A[i,j] + A[j,k]) + max[m](A[i,m] + A[m,k])",
        {"A": ucle.table(TWO, fill=-INF)},
        4,
    ),
    "semiring boolean": (
        "Z[i,k] = any[j](A[i,j] and A[j,k]) and any[m](A[i,m] and A[m,k])",
        {"A": TWO.astype(bool)},
        2,
    ),
    "semiring maxmin": (
        "Z[i,k] = min(max[j](min(A[i,j], A[j,k])), max[m](min(A[i,m], A[m,k])))",
        {"A": ucle.table(TWO, fill=-INF)},
        4,
    ),
    "reorder": ("Z[j,i] = A[i,j]", {"A": np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])}, 3),
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", STORED)
def test_what_is_stored(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    text, inputs, expected = STORED[name]
    program = as_it_stands(text, inputs, connection)
    assert entries_of(program, connection) == expected
    assert rows_of(program, "degrees").high >= expected


FILLS: dict[str, tuple[str, Inputs, float]] = {
    # test_base_mapjoin and test_base_aggregate: what is not stored of a result
    "added": ("Z[i,j,k] = A[i,j] + B[i,k]", {"A": ((10, 5), 2.0), "B": ((10, 7), 3.0)}, 5),
    "the larger": ("Z[i] = max(A[i], B[i])", {"A": ((6,), 2.0), "B": ((6,), 4.0)}, 4),
    "three": (
        "Z[i] = A[i] + B[i] + C[i]",
        {x: ((5,), y) for x, y in zip("ABC", (1.0, 2, 3), strict=True)},
        6,
    ),
    "one axis": ("Z[i,k] += A[i,j,k]", {"A": ((10, 5, 3), 0.5)}, 0.5 * 5),
    "two axes": ("Z[a,c] += A[a,b,c,d]", {"A": ((2, 4, 8, 16), 7.0)}, 7 * 4 * 16),
    "no axis": ("Z[x,y] += A[x,y]", {"A": ((3, 9), 1.0)}, 1),
    "a product": ("Z[i] *= A[i,j]", {"A": ((2, 3), 2.0)}, 8),
    "the least": ("Z min= A[i]", {"A": ((4,), 7.0)}, 7),
}


@pytest.mark.parametrize("name", FILLS)
def test_fills(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    text, inputs, expected = FILLS[name]
    tables = {x: ucle.table(np.full(shape, y), fill=y) for x, (shape, y) in inputs.items()}
    program = as_it_stands(text, tables, connection)
    with program.execute(connection) as result:
        assert np.all(result["Z"].to_numpy() == expected)
        assert result["Z"].fill == expected


# ---- Programs for the logical optimiser ----

RNG = np.random.default_rng(14)
SMALL = np.array([[1.0, 2.0], [3.0, 4.0]])
PLAIN = np.ones((2, 2))


@dataclass(frozen=True)
class Case:
    """A program, its inputs, and what NumPy says of its outputs."""

    text: str
    inputs: Inputs
    answer: Callable[..., Any]

    def compiled(self, connection: duckdb.DuckDBPyConnection, **options: Any) -> EinsumProgram:
        text = self.text.replace("; ", "\n")
        return ucle.einsum_program(text, inputs=self.inputs, database=connection, **options)


def matrices(*sizes: int) -> dict[str, Any]:
    """A chain of matrices with numbers from 0 on."""
    pairs = zip("ABCDEF", sizes, sizes[1:], strict=False)
    return {name: np.arange(float(n * m)).reshape(n, m) / (n * m) for name, n, m in pairs}


def drawn(**shapes: tuple[int, ...]) -> dict[str, Any]:
    return {name: RNG.random(shape) for name, shape in shapes.items()}


def chain(*sizes: int) -> Case:
    """The product of a chain of matrices."""
    inputs = matrices(*sizes)
    labels = "ijklmn"
    factors = " * ".join(f"{x}[{labels[n]},{labels[n + 1]}]" for n, x in enumerate(inputs))
    text = f"Z[i,{labels[len(inputs)]}] += {factors}"
    return Case(text, inputs, lambda *given: np.linalg.multi_dot(given))


def summed(*sizes: int) -> Case:
    """The sum of all entries of the product of a chain of matrices."""
    case = chain(*sizes)
    text = f"Z += {case.text.partition(' += ')[2]}"
    return Case(text, case.inputs, lambda *given: np.linalg.multi_dot(given).sum())


def powers(name: str, count: int) -> str:
    """The power of a matrix, a statement for each product."""
    steps = [f"T2[i,k] += {name}[i,j] * {name}[j,k]"]
    steps += [f"T{n}[i,k] += T{n - 1}[i,j] * {name}[j,k]" for n in range(3, count + 1)]
    return "; ".join(steps)


PAIR = {"A": SMALL, "B": PLAIN}
FOUR = {"A": SMALL, "B": PLAIN, "C": PLAIN, "D": PLAIN}
AB, CD = "sum[j](A[i,j] * B[j,k])", "sum[j](C[i,j] * D[j,k])"

PROGRAMS: dict[str, Case] = {
    # test_galley_optimizer_pipeline.py
    "elementwise mul": Case("Z[i,j] = A[i,j] * B[i,j]", PAIR, lambda A, B: A * B),
    "add of elementwise": Case(
        "Z[i,j] = A[i,j] * B[i,j] + C[i,j] * D[i,j]", FOUR, lambda A, B, C, D: A * B + C * D
    ),
    "matmul sum axis0": Case(f"P[i,k] = {AB}; Z[k] += P[i,k]", PAIR, lambda A, B: (A @ B).sum(0)),
    "sum axis0 plus sum axis1": Case(
        f"P[i,k] = {AB}; Q[i,k] = {CD}; Z[x] = sum[i](P[i,x]) + sum[k](Q[x,k])",
        FOUR,
        lambda A, B, C, D: (A @ B).sum(0) + (C @ D).sum(1),
    ),
    "nested aggregates full sum": summed(2, 2, 2),
    "deeper nesting": summed(2, 2, 2, 2),
    "expand dims, sum singleton": Case(
        "E[i,j,k] = A[i,j] * o[k]; Z[i,j] += E[i,j,k]",
        {"A": SMALL, "o": np.ones(1)},
        lambda A, o: A,
    ),
    "alias matmul": Case(
        f"B[i,k] += A[i,j] * A[j,k]; {powers('B', 3)}; Z[i,k] = T3[i,k]",
        {"A": SMALL},
        lambda A: np.linalg.matrix_power(A, 6),
    ),
    "alias matmul, two bases": Case(
        "P[i,k] += A[i,j] * B[j,k]; Z[i,k] += P[i,j] * P[j,k]",
        {"A": SMALL, "B": TWO},
        lambda A, B: (A @ B) @ (A @ B),
    ),
    "alias matmul, longer chain": Case(
        f"B[i,k] += A[i,j] * A[j,k]; {powers('B', 4)}; Z[i,k] = T4[i,k]",
        {"A": SMALL},
        lambda A: np.linalg.matrix_power(A, 8),
    ),
    "chain matmul": chain(2, 10, 3, 4),
    "chain matmul 10 2": chain(1000, 2, 1000, 2),
    "chain matmul 5 4": chain(5, 4, 6, 3),
    "chain matmul 3 5": chain(3, 5, 2, 2),
    "chain of four": chain(6, 5, 4, 3, 2),
    "sum elementwise mul": Case("Z += A[i,j] * B[i,j]", PAIR, lambda A, B: np.sum(A * B)),
    "sum elementwise mul axis1": Case("Z[i] += A[i,j] * B[i,j]", PAIR, lambda A, B: (A * B).sum(1)),
    "matmul plus matmul": Case(f"Z[i,k] = {AB} + {CD}", FOUR, lambda A, B, C, D: A @ B + C @ D),
    "multiple compute": Case(
        f"Y[i,k] = {AB}; Z[i,k] = {CD}", FOUR, lambda A, B, C, D: (A @ B, C @ D)
    ),
    # test_galley_logical_optimizer.py: what may go past what
    "one factor": Case("Z[j] += A[i] * B[j]", drawn(A=(20,), B=(30,)), lambda A, B: A.sum() * B),
    "a square": Case("Z += A[i] * A[i]", drawn(A=(20,)), lambda A: A @ A),
    "two factors": Case(
        "Z[k,j] += A[i] * C[i,k] * B[j]",
        drawn(A=(20,), C=(20, 4), B=(30,)),
        lambda A, C, B: np.outer(A @ C, B),
    ),
    "three factors": Case(
        "Z[k,j] += A[i] * C[i,k] * D[k] * B[j]",
        drawn(A=(20,), C=(20, 4), D=(4,), B=(30,)),
        lambda A, C, D, B: np.outer((A @ C) * D, B),
    ),
    "split push": Case(
        "Z[j] += A[i] + B[i] + C[j]",
        drawn(A=(20,), B=(20,), C=(30,)),
        lambda A, B, C: A.sum() + B.sum() + len(A) * C,
    ),
    "a leaf": Case("Z += A[i]", drawn(A=(20,)), np.sum),
    "nested": Case("Z[j] += A[i,j] * B[j]", drawn(A=(20, 30), B=(30,)), lambda A, B: A.sum(0) * B),
    "a wall": Case(
        "Z[j] += max(C[i], D[j])",
        drawn(C=(20,), D=(30,)),
        lambda C, D: np.maximum(C[:, None], D).sum(0),
    ),
    "a wall below a factor": Case(
        "Z[j] += A[j] * max(B[i], C[j])",
        drawn(A=(30,), B=(20,), C=(30,)),
        lambda A, B, C: A * np.maximum(B[:, None], C).sum(0),
    ),
    "annotated chain": summed(5, 5, 5),
    "annotated chain with a wall": Case(
        "Z += max(A[i,j], A[j,k])",
        drawn(A=(7, 7)),
        lambda A: np.maximum(A[:, :, None], A[None]).sum(),
    ),
    "annotated chain, summed inside": Case(
        "Z = sum[j,k](max(sum[i](A[i,j]), A[j,k]))",
        drawn(A=(7, 7)),
        lambda A: np.maximum(A.sum(0)[:, None], A).sum(),
    ),
    "multi component": Case(
        "Z = sum[i](A[i]) + sum[j](B[j])", drawn(A=(20,), B=(30,)), lambda A, B: A.sum() + B.sum()
    ),
    # test_galley_branch_and_bound.py
    "three index chain": summed(4, 8, 6),
    "four index chain": summed(3, 10, 5, 2),
    # Finch.jl, testset "matrix operations"
    "2x2, mult": Case("Z[i,j] = A[i,j] * B[i,j]", {"A": TWO, "B": TWO[::-1]}, lambda A, B: A * B),
    "2x2, add": Case("Z[i,j] = A[i,j] + B[i,j]", {"A": TWO, "B": TWO[::-1]}, lambda A, B: A + B),
    "2x2, min": Case("Z[i,j] = min(A[i,j], B[i,j])", {"A": TWO, "B": TWO[::-1]}, np.minimum),
    "2x2, reverse input": Case(
        "Z[i,j] = A[i,j] * B[j,i]", {"A": ONES, "B": ONES}, lambda A, B: A * B.T
    ),
}


def random_matrices(density: float, names: str) -> dict[str, Any]:
    """Sparse matrices of ones, 100 x 100."""
    drawn_at = {name: RNG.random((100, 100)) < density for name in names}
    return {name: scipy.sparse.coo_array(cells.astype(float)) for name, cells in drawn_at.items()}


SPARSE: dict[str, tuple[str, float, Callable[..., Any]]] = {
    # Finch.jl, testset "matrix operations"
    "mult, reverse output": ("Z[j,i] = A[i,j] * B[i,j]", 0.01, lambda A, B: (A * B).T),
    "matrix mult": ("Z[i,k] += A[i,j] * B[j,k]", 0.01, lambda A, B: A @ B),
    "full sum": ("Z += A[i,j]", 0.01, np.sum),
    "multi-line": (
        "D[i,k] += A[i,j] * B[j,k]; Z[i,l] += D[i,k] * C[k,l]",
        0.1,
        lambda A, B, C: A @ B @ C,
    ),
    "multi-line, reuse": (
        "D[i,k] += A[i,j] * B[j,k]; Z[i,l] += D[i,k] * D[k,l]",
        0.1,
        lambda A, B: np.linalg.matrix_power(A @ B, 2),
    ),
    "diagonal mult": ("Z[i] = A[i,i] * B[i,i]", 0.1, lambda A, B: A.diagonal() * B.diagonal()),
    "diagonal mult, then sum": (
        "Z += A[i,i] * B[i,i]",
        0.1,
        lambda A, B: A.diagonal() @ B.diagonal(),
    ),
    "elementwise +, then sum": ("Z += A[i,j] + B[i,j]", 0.1, lambda A, B: A.sum() + B.sum()),
    "+ on j, then sum all": (
        "Z += A[i,j] + B[j,k]",
        0.1,
        lambda A, B: 100 * A.sum() + 100 * B.sum(),
    ),
}
for _name, (_text, _density, _answer) in SPARSE.items():
    _inputs = random_matrices(_density, "".join(x for x in "ABC" if f"{x}[" in _text))
    PROGRAMS[f"100x100, {_name}"] = Case(_text, _inputs, _answer)

ALWAYS = Optimisations(rewrite_gain=-math.inf, mask_gain=-math.inf, rewrite_effort=math.inf)
"""Other forms are taken, however little they gain."""


def check(case: Case, program: EinsumProgram, connection: duckdb.DuckDBPyConnection) -> None:
    """The answer is NumPy's."""
    dense = {
        name: x.toarray() if scipy.sparse.issparse(x) else x for name, x in case.inputs.items()
    }
    expected = case.answer(*dense.values())
    with program.execute(connection) as result:
        found = tuple(result[name].to_numpy() for name in result)
    for one, other in zip(found, expected if len(found) > 1 else (expected,), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("law", REWRITES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, law: str, connection: duckdb.DuckDBPyConnection) -> None:
    """NumPy's answer, at no more than what the program costs that is written."""
    case = PROGRAMS[name]
    written = case.compiled(connection, rewrite="none", association="as-written")
    program = case.compiled(connection, rewrite=law)
    assert program.cost <= written.cost * (1 + 1e-9)
    check(case, program, connection)
    check(case, recompiled(program, ALWAYS), connection)


def paths(factors: int) -> Iterator[list[tuple[int, int]]]:
    """All orders in which factors can be joined in pairs."""
    if factors == 1:
        yield []
        return
    for pair in combinations(range(factors), 2):
        for rest in paths(factors - 1):
            yield [pair, *rest]


ORDERS: dict[str, int] = {
    # how many factors are joined
    "chain matmul": 3,
    "chain matmul 10 2": 3,
    "chain matmul 5 4": 3,
    "chain matmul 3 5": 3,
    "chain of four": 4,
    "deeper nesting": 3,
    "two factors": 3,
    "three factors": 4,
    "four index chain": 3,
}


@pytest.mark.parametrize("name", ORDERS)
def test_no_order_is_cheaper(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    """`test_pruned_exact_*`, `test_bnb_*`, `test_layered_*`: the least of all orders is chosen."""
    case = PROGRAMS[name]
    given = [case.compiled(connection, path=path) for path in paths(ORDERS[name])]
    least = min(program.cost for program in given)
    assert case.compiled(connection).cost <= least * (1 + Optimisations().association_gain)
    for program in given:
        check(case, program, connection)
