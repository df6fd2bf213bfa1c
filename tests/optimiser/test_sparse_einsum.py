"""SparseEinSum against brute force over every decomposition, on random small DAGs.

DAGs with shared vertices, and the ways to search them, stand in `test_search.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costed_programs import brute_force, random_program

import ucle
from ucle.errors import MemoryLimitError, ProgramError
from ucle.ir.layouts import Label, Layout
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.operators import MULT, SUM
from ucle.optimiser.choose_decomposition import pin_decompositions
from ucle.optimiser.pricing import CostedProgram
from ucle.optimiser.sparse_einsum import sparse_einsum
from ucle.plan.decomposition import StoredInput
from ucle.plan.prices import (
    ENGINE,
    PAPER,
    AggregateWork,
    JoinWork,
    KernelWork,
    LoadWork,
    Profile,
    RepartitionWork,
    cost,
)
from ucle.plan.resources import Resources
from ucle.stats import Occupancy, ProgramStatistics, TensorStatistics, Textbook

PROFILES = (PAPER, ENGINE, replace(ENGINE, name="without once", once=False))


@pytest.mark.sample(48)
@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(200))
def test_trees_are_optimal(seed: int, profile: Profile) -> None:
    costed = random_program(seed, profile)
    found = sparse_einsum(costed).total_cost
    assert found == pytest.approx(brute_force(costed), rel=1e-12, abs=1e-9)


@pytest.mark.sample(68)
@pytest.mark.parametrize("seed", range(100))
def test_the_memory_limit_is_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costed = random_program(seed, ENGINE, memory=float(rng.choice([16, 200, 5_000, 100_000])))
    optimum = brute_force(costed)
    if optimum is None:
        with pytest.raises(MemoryLimitError):
            sparse_einsum(costed)
        return
    chosen = sparse_einsum(costed)
    assert chosen.total_cost == pytest.approx(optimum, rel=1e-12)
    for vertex in costed.program.vertices:
        assert costed.fits(vertex, chosen.decompositions[vertex.name])


def test_the_memory_limits_of_the_tests_bind() -> None:
    """Limits that never bind would make the test above empty."""
    free = [random_program(seed, ENGINE) for seed in range(100)]
    tight = [random_program(seed, ENGINE, memory=200) for seed in range(100)]
    pairs = [(brute_force(a), brute_force(b)) for a, b in zip(free, tight, strict=True)]
    assert sum(a is not None and b is not None and b > a * 1.01 for a, b in pairs) >= 10


def test_a_limit_that_nothing_keeps() -> None:
    costed = random_program(0, replace(PAPER, kernel_bytes=7))
    assert brute_force(costed) is None
    with pytest.raises(MemoryLimitError, match="T0"):
        sparse_einsum(costed)


@pytest.mark.sample(60)
@pytest.mark.parametrize("seed", range(60))
def test_pinned_decompositions_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costed = random_program(seed, ENGINE)
    given = {}
    for vertex in costed.program.vertices:
        if rng.random() < 0.5:
            choices = [p for p in costed.decompositions(vertex) if p.deferred is None]
            given[vertex.name] = choices[rng.integers(len(choices))]
    chosen = sparse_einsum(costed, given)
    assert all(chosen.decompositions[name] == each for name, each in given.items())
    assert chosen.total_cost == pytest.approx(brute_force(costed, given), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("given", [{"T0": {"z"}}, {"nobody": {"i"}}])
def test_a_pin_must_name_what_exists(given: dict[str, set[str]]) -> None:
    with pytest.raises(ProgramError, match="unknown"):
        pin_decompositions(random_program(0, ENGINE).program, given)


@pytest.fixture
def product_of_matrices() -> CostedProgram:
    """T[i,k] += X[i,j] * Y[j,k] with T and V small enough to compute by hand."""
    i, j, k = Label("i", 4), Label("j", 5), Label("k", 6)
    x, y = NamedTensor("X", TensorType((i, j))), NamedTensor("Y", TensorType((j, k)))
    operands = Operand("X", (i, j)), Operand("Y", (j, k))
    vertex = Vertex(NamedTensor("T", TensorType((i, k))), operands, (i, k), MULT, reduce=SUM)
    program = Program((x, y), (vertex,), ("T",))
    measured = {
        "X": TensorStatistics(8, (3, 4), exact=True),
        "Y": TensorStatistics(12, (5, 6), exact=True),
    }
    stored = {"X": StoredInput(), "Y": StoredInput()}
    known = ProgramStatistics(program, measured, Textbook())
    return CostedProgram(program, known, stored, PAPER, Resources())


def test_costs_of_a_join_with_aggregation(product_of_matrices: CostedProgram) -> None:
    """Section 7.2 by hand, with i and j promoted.

    X has its T = 8 tuples, Y one for each of V(Y, j) = 5; T_join = 8 * 5 / max(4, 5) = 8. A tuple
    of X is two keys and a number (16 bytes), one of Y a key and six numbers (52), a kernel call 12
    operations. T_agg = min(8 / 2, V(X, i)) = 3; a tuple of T is a key and six numbers.
    """
    (vertex,) = product_of_matrices.program.vertices
    costs = product_of_matrices.vertex_cost(vertex, vertex.decomposition({"i", "j"}))
    assert costs.join == 8 * (16 + 52 + 15)
    assert costs.kernel == 8 * 12
    assert costs.aggregate == (8 - 3) * (52 + 6 + 15)


def test_costs_without_aggregation(product_of_matrices: CostedProgram) -> None:
    """With i alone promoted, 3 rows of X meet Y in one tuple, and nothing is aggregated."""
    (vertex,) = product_of_matrices.program.vertices
    costs = product_of_matrices.vertex_cost(vertex, vertex.decomposition({"i"}))
    assert costs.join == 3 * ((5 * 8 + 4) + 5 * 6 * 8 + 15)
    assert costs.kernel == 3 * 2 * 5 * 6
    assert costs.aggregate == 0


def test_cost_of_a_repartition() -> None:
    """(2 * 40 - 10 - 5) tuples of 24 bytes: 30 are made new, 35 are stacked away."""
    assert cost(RepartitionWork(10, 40, 5, 24), PAPER) == (2 * 40 - 10 - 5) * (24 + 15)


def test_a_repartition_to_the_same_layout_is_free(product_of_matrices: CostedProgram) -> None:
    layout = Layout.of([True, False])
    assert product_of_matrices.repartition_cost("T", layout, layout) == 0
    assert product_of_matrices.repartition_cost("T", layout, Layout.of([False, True])) > 0


@pytest.mark.parametrize(("promoted", "moved"), [([True, False], False), ([False, True], True)])
def test_cost_of_an_array_from_memory(
    product_of_matrices: CostedProgram, promoted: list[bool], moved: bool
) -> None:
    """Columns are copied out of an array that lies row by row; those of zeros are looked for."""
    costed, layout = replace(product_of_matrices, profile=ENGINE), Layout.of(promoted)
    rows, size, places = (3, 5 * 8, 4) if promoted[0] else (4, 4 * 8, 5)
    work = LoadWork(rows, size, moved, places)
    assert costed.repartition_cost("X", None, layout) == cost(work, ENGINE)
    assert cost(work, ENGINE) > cost(LoadWork(rows, size, moved), ENGINE)


@pytest.mark.sample(None)
@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(20))
def test_costs_grow_with_work(seed: int, profile: Profile) -> None:
    rng = np.random.default_rng(seed)
    rows, left, right, flops = rng.integers(1, 10**6, size=4).astype(float)
    base = cost(JoinWork(rows, left, right), profile)
    for more in ((2, 1, 1), (1, 2, 1), (1, 1, 2)):
        scaled = (n * x for n, x in zip(more, (rows, left, right), strict=True))
        assert cost(JoinWork(*scaled), profile) > base
    called = cost(KernelWork(rows, flops), profile)
    assert cost(KernelWork(2 * rows, flops), profile) > called
    assert cost(KernelWork(rows, 2 * flops), profile) > called
    few = cost(AggregateWork(rows, rows, left, 1), profile)
    assert few == 0 or profile is not PAPER  # the paper moves rows - groups tuples
    assert cost(AggregateWork(2 * rows, rows, left, 1), profile) > few


def test_large_operands_are_not_copied_for_every_row() -> None:
    """Vectors of rows do not share a large matrix if kernels get copies (the Arrow route)."""
    i, m, k = Label("i", 7650), Label("m", 745), Label("k", 1024)
    x, w = NamedTensor("X", TensorType((i, m))), NamedTensor("W", TensorType((m, k)))
    operands = Operand("X", (i, m)), Operand("W", (m, k))
    vertex = Vertex(NamedTensor("T", TensorType((i, k))), operands, (i, k), MULT, reduce=SUM)
    program = Program((x, w), (vertex,), ("T",))
    measured = {
        "X": TensorStatistics(2e6, (7650, 745), exact=True),
        "W": TensorStatistics(745 * 1024, (745, 1024), exact=True),
    }
    stored = {"X": StoredInput((Layout.of([True, False]),)), "W": StoredInput()}
    for copies in (False, True):
        resources = Resources(memory=2**33, threads=2, copies=copies)
        known = ProgramStatistics(program, measured, Occupancy())
        costed = CostedProgram(program, known, stored, ENGINE, resources)
        promoted = sparse_einsum(costed).promoted["T"]
        assert promoted == {"i"} if not copies else promoted != {"i"}
        assert costed.fits(vertex, vertex.decomposition({"i"})) is not copies


def test_memory_that_serves_again_costs_less() -> None:
    """Bytes cost more where a vector of tuples takes more than is kept at hand."""
    vectors = KernelWork(2**16, 0.0, made_bytes=2**11, called=False)
    whole = KernelWork(1, 0.0, made_bytes=2**27, called=False)
    assert cost(whole, ENGINE) == cost(vectors, ENGINE) * (1 + ENGINE.fresh / ENGINE.write)


def test_threads_that_wait_cost_something() -> None:
    flops = 10 * ENGINE.spread / ENGINE.gemm
    one, eight = (
        cost(KernelWork(rows, flops / rows, batched=True, threads=8, called=False), ENGINE)
        for rows in (1, 8)
    )
    assert eight == pytest.approx(10 * ENGINE.spread)
    assert one == pytest.approx(eight + 7 * 9 * ENGINE.spread)
    short = ENGINE.spread / ENGINE.gemm
    alone = KernelWork(1, short, batched=True, threads=8, called=False)
    assert cost(alone, ENGINE) == ENGINE.spread


def test_kernels_that_are_called_for_many_tuples_cost_something() -> None:
    """Each tuple takes a call, and each tensor that it makes becomes a BLOB; SQL needs neither."""
    alone, called, made = (
        cost(KernelWork(1000, 2.0, made_bytes=size, called=called), ENGINE)
        for size, called in ((0.0, False), (0.0, True), (8.0, True))
    )
    assert called - alone == pytest.approx(1000 * ENGINE.call)
    assert made - called == pytest.approx(1000 * (ENGINE.made + 8 * ENGINE.write))


@pytest.mark.parametrize("shape", [(60_000, 128, 256), (2048, 2048, 2048)])
def test_large_products_from_memory_have_a_tuple_for_each_row(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    with ucle.connect(threads=2) as connection:
        program = ucle.einsum_program(
            "Z[i,k] += X[i,j] * W[j,k]",
            X=np.ones((m, n)),
            W=np.ones((n, k)),
            database=connection,
            profile=ENGINE,
        )
    assert program.decomposition["Z"] in ({"i"}, {"i/256"})
