"""GetStats: T and V of inputs are counted exactly, those of decompositions are within bounds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import issparse

import ucle
from ucle.errors import InputError
from ucle.ir.layouts import Decomposition, Label, Layout
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.language.parse import parse_program
from ucle.operators import COMBINES
from ucle.run.build import Request, build
from ucle.stats import (
    ESTIMATORS,
    Estimator,
    ProgramStatistics,
    Rows,
    Statistics,
    TensorStatistics,
    Textbook,
)
from ucle.stats.estimate import DerivedVertex, Remembered
from ucle.testing.generate import random_case
from ucle.testing.random_inputs import make_input, random_array

LETTERS = "ijkl"
SHARES = [0.1, 0.2, 0.2, 0.3, 0.2]


def counted(array: NDArray[np.float64], fill: float) -> TensorStatistics:
    """T, V and degrees by their definition: entries, sub-tensors that hold one, the fullest."""
    coordinates = [c for c in np.ndindex(array.shape) if array[c] != fill]
    held = [Counter(c[axis] for c in coordinates) for axis in range(array.ndim)]
    distinct = tuple(float(len(counts)) for counts in held)
    largest = tuple(float(max(counts.values(), default=0)) for counts in held)
    return TensorStatistics(float(len(coordinates)), distinct, True, largest)


def measured(value: Any, rank: int, connection: duckdb.DuckDBPyConnection) -> TensorStatistics:
    """The statistics that the compiler measures of an input."""
    labels = ",".join(LETTERS[:rank])
    program = ucle.einsum_program(f"T[{labels}] = A[{labels}] * 2", A=value, database=connection)
    return program.compiled.statistics.tensor("A")


@pytest.mark.parametrize("seed", range(120))
def test_inputs_are_counted_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 5], size=seed % 5, p=SHARES))
    array = random_array(rng, shape, float(rng.choice([0.0, 0.3, 0.7, 1.0])))
    value, table = make_input(rng, "A", array)
    with duckdb.connect() as connection:
        if table is not None:
            connection.register("data", table)
            connection.execute("CREATE TABLE A AS SELECT * FROM data")
        fill = value.fill if hasattr(value, "fill") else 0.0
        found, expected = measured(value, len(shape), connection), counted(array, fill)
        found = replace(found, tiles=expected.tiles)
        summed = issparse(value) or getattr(value, "sum_duplicates", False)
        if summed:  # several rows may be one entry
            assert all(np.greater_equal(found.largest, expected.largest))
            found = replace(found, largest=expected.largest)
        assert found == expected


@pytest.mark.parametrize("duplicates", ["error", "sum"])
def test_rows_that_share_a_coordinate_count_once(
    native: duckdb.DuckDBPyConnection, duplicates: str
) -> None:
    """V is not counted beside degrees for rows that hold arrays, nor for sums of rows."""
    arrays = duplicates == "error"
    entries, copies = ("[1.0, 2.0]", 1) if arrays else ("1.0", 2)
    native.execute(
        f"CREATE OR REPLACE TEMP TABLE shared AS SELECT 5 * i AS i, 7 * j AS j, {entries} v "
        f"FROM range(3) x(i), range(4) y(j), range({copies})"
    )
    found = measured(ucle.table("shared", duplicates=duplicates), 3 if arrays else 2, native)
    assert found.distinct == ((3, 4, 2) if arrays else (3, 4))


def test_every_kind_of_input_was_counted() -> None:
    """The seeds above reach every way of passing a tensor."""
    rngs = [np.random.default_rng(seed) for seed in range(200)]
    values = [make_input(rng, "A", random_array(rng, (3, 2), 0.5)) for rng in rngs]
    names = {type(getattr(v, "relation", v)).__name__ for v, _ in values}
    sparse = {"coo_array", "csr_array", "csc_array", "bsr_array"}
    assert names == {"ndarray", *sparse, "Table", "DataFrame", "str"}


def test_negative_zero_is_zero(native: duckdb.DuckDBPyConnection) -> None:
    array = np.array([[0.0, -0.0], [1.0, -0.0]])
    assert measured(array, 2, native).entries == 1
    native.execute(
        "CREATE TEMP TABLE zeros AS SELECT 0::INT i, -0.0::DOUBLE v UNION ALL SELECT 1, 2"
    )
    assert measured("zeros", 1, native).entries == 1
    native.execute("DROP TABLE zeros")


def textbook(shape: tuple[int, ...], statistics: TensorStatistics) -> ProgramStatistics:
    axes = tuple(Label(x, n) for x, n in zip(LETTERS, shape, strict=False))
    program = Program((NamedTensor("U", TensorType(axes)),), (), ())
    return ProgramStatistics(program, {"U": statistics}, Textbook())


def layouts(rank: int) -> list[Layout]:
    return [
        Layout.of(axis in chosen for axis in range(rank))
        for count in range(rank + 1)
        for chosen in combinations(range(rank), count)
    ]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_equation_7_between_its_ends(sizes: list[int], density: float, seed: int) -> None:
    """Exact where nothing or all or one label is promoted, clamped between."""
    rng = np.random.default_rng(seed)
    array = random_array(rng, tuple(sizes), density)
    statistics = counted(array, 0.0)
    estimator = textbook(array.shape, statistics)
    for layout in layouts(array.ndim):
        rows = estimator.rows("U", layout)
        axes = tuple(a for a in range(array.ndim) if a not in layout.promoted)
        true = int((array != 0).any(axis=axes).sum()) if array.size else 0
        assert rows.low <= true <= rows.high
        assert rows.low <= rows.estimate <= rows.high
        if len(layout.promoted) in (0, 1, array.ndim):
            assert rows.estimate == true
            assert rows.exact
            continue
        values = [statistics.distinct[axis] for axis in layout.promoted]
        n = math.prod(values)
        printed = n * (1 - math.exp(-statistics.entries / n)) if n else 0.0
        low, high = max(values), min(statistics.entries, n)
        assert rows.estimate == pytest.approx(min(max(printed, low), high), rel=1e-9)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=4))
def test_a_dense_tensor_has_every_tuple(sizes: list[int]) -> None:
    """Equation 7 as printed gives 63% of the tuples."""
    array = np.ones(sizes)
    estimator = textbook(array.shape, counted(array, 0.0))
    for layout in layouts(array.ndim):
        possible = math.prod(sizes[axis] for axis in layout.promoted)
        estimate = estimator.rows("U", layout).estimate
        if len(layout.promoted) in (0, 1, array.ndim):
            assert estimate == possible
        assert estimate >= 0.63 * possible


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=4),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_promoting_a_label_never_loses_tuples(sizes: list[int], density: float, seed: int) -> None:
    array = random_array(np.random.default_rng(seed), tuple(sizes), density)
    estimator = textbook(array.shape, counted(array, 0.0))
    for fewer in layouts(array.ndim):
        for more in layouts(array.ndim):
            if set(fewer.promoted) <= set(more.promoted):
                one, other = (estimator.rows("U", layout).estimate for layout in (fewer, more))
                assert one <= other * (1 + 1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize("seed", range(60))
def test_estimates_of_intermediates_are_possible(seed: int, estimator: Estimator) -> None:
    """Between nothing and one tuple for every position, whatever the program."""
    case = random_case(seed)
    with duckdb.connect() as connection:
        case.create_tables(connection)
        compiled = case.compile(connection).compiled
    program = compiled.program
    estimates = replace(compiled.statistics, estimator=estimator)
    for vertex in program.vertices:
        shape = vertex.tensor.type.shape
        statistics = estimates.tensor(vertex.name)
        assert 0 <= statistics.entries <= math.prod(shape) + 1e-9
        for value, bound in zip(statistics.distinct, shape, strict=True):
            assert 0 <= value <= bound + 1e-9
        for layout in layouts(len(shape)):
            rows = estimates.rows(vertex.name, layout).estimate
            assert 0 <= rows <= math.prod(shape[a] for a in layout.promoted) + 1e-9


def test_nothing_aggregated_keeps_the_size_of_the_join(native: duckdb.DuckDBPyConnection) -> None:
    """T_agg as printed would halve the size."""
    x, y = np.eye(8), np.arange(8.0) + 1
    program = ucle.einsum_program("T[i,j] = X[i,j] * y[j]", X=x, y=y, database=native)
    estimator, (vertex,) = program.compiled.statistics, program.compiled.program.vertices
    for promoted in ({"i", "j"}, {"i"}, {"j"}):
        decomposition = vertex.decomposition(promoted)
        joined = estimator.join_rows(vertex, decomposition)
        assert estimator.output_rows(vertex, decomposition) == joined > 0


def test_the_join_of_the_textbook() -> None:
    """T_join = T(X) T(Y) / max(V(X, j), V(Y, j)), and T_agg stays below its two bounds."""
    with duckdb.connect() as connection:
        x = np.array([[1.0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]])
        y = np.array([[1.0, 0, 0], [1, 1, 1], [0, 0, 1]])
        program = ucle.einsum_program(
            "T[i,k] += X[i,j] * Y[j,k]", X=x, Y=y, database=connection, profile="paper"
        )
    estimator, (vertex,) = program.compiled.statistics, program.compiled.program.vertices
    assert estimator.join_rows(vertex, vertex.all_promoted) == 4 * 5 / 3
    assert estimator.output_rows(vertex, vertex.all_promoted) == pytest.approx(4 * 5 / 3 / 2)


@dataclass(frozen=True)
class Full:
    """An estimator that takes every tensor that a vertex makes to be full."""

    def from_counts(self, type_: TensorType, counts: TensorStatistics) -> Statistics:
        return Statistics(type_, counts)

    def counts(self, statistics: Statistics) -> TensorStatistics:
        return statistics.counts

    def derive(self, vertex: Vertex, operands: tuple[Statistics, ...]) -> Statistics:
        type_ = vertex.tensor.type
        counts = TensorStatistics(float(math.prod(type_.shape)), tuple(map(float, type_.shape)))
        return Statistics(type_, counts, DerivedVertex(vertex, operands))

    def signature(self, statistics: Statistics) -> tuple[object, ...]:
        return ()

    def tuples(self, statistics: Statistics, layout: Layout) -> Rows:
        most = float(math.prod(statistics.type.shape[axis] for axis in layout.promoted))
        return Rows(most, 0.0, most)

    def estimate_join(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        keys = decomposition.promoted
        most = float(math.prod(x.bound for x in derived.vertex.all_labels if x.name in keys))
        return Rows(most, 0.0, most)

    def estimate_groups(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        kept = decomposition.promoted.intersection(derived.vertex.names)
        return self.estimate_join(derived, derived.vertex.decomposition(kept))


def compile_by(name: str) -> ProgramStatistics:
    """Compile two products, of which the order is searched, by a named estimator."""
    inputs = {"X": np.eye(8), "y": np.arange(8.0) + 1}
    text = "T[k] += X[i,j] * y[j] * X[i,k]"
    with duckdb.connect() as connection:
        program = ucle.einsum_program(text, database=connection, **inputs)
        options = replace(program.options, estimator=name)
        request = Request(parse_program(text), inputs)
        return build(request, connection, options).compiled.statistics


def test_an_estimator_is_injected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row in the table is all: orders, decompositions and plans are made by what it says."""
    monkeypatch.setattr("ucle.options.ESTIMATORS", {**ESTIMATORS, "full": Full()})
    for name, expected in {**ESTIMATORS, "full": Full()}.items():
        statistics = compile_by(name)
        assert isinstance(statistics.estimator, Remembered)
        assert statistics.estimator.plain == expected
        for vertex in statistics.program.vertices:
            full = math.prod(vertex.tensor.type.shape)
            rows = statistics.output_rows(vertex, vertex.all_promoted)
            assert rows == full if name == "full" else 0 < rows <= full
    with pytest.raises(InputError, match="unknown way of estimating sizes"):
        compile_by("textbok")


def test_estimates_are_the_same_in_every_process() -> None:
    """Not a bit depends on the order in which a set of labels is gone through, as hashes say."""
    i, j, k = (Label(name, 1000) for name in "ijk")
    types = TensorType((i, j, k)), TensorType((k, j, i))
    x, y = (NamedTensor(name, type_) for name, type_ in zip("XY", types, strict=True))
    operands = tuple(Operand(tensor.name, tensor.type.axes) for tensor in (x, y))
    vertex = Vertex(NamedTensor("Z", types[0]), operands, (i, j, k), COMBINES["mult"])
    program = Program((x, y), (vertex,), ("Z",))
    for first, second, third in permutations((7.0, 11.0, 13.0)):
        measured = {
            "X": TensorStatistics(1e3 / 3, (first, second, third)),
            "Y": TensorStatistics(1e4 / 7, (1.0, 1.0, 1.0)),
        }
        estimates = ProgramStatistics(program, measured, ESTIMATORS["occupancy"])
        expected = 1e3 / 3 * (1e4 / 7) / first / second / third
        assert estimates.join_rows(vertex, vertex.all_promoted) == expected
